"""Read a private table into exact sums, as a task."""

from __future__ import annotations

from gramercy.application import accumulation as steps
from gramercy.tasks.policy import private_task

accumulate = private_task(steps.accumulate)
