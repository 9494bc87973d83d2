"""Report on a release, as a task."""

from __future__ import annotations

from gramercy.application import reporting as steps
from gramercy.tasks.policy import private_task

report = private_task(steps.report)
