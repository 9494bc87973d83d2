"""Hold a table to its contract, as a task."""

from __future__ import annotations

from gramercy.application import validation as steps
from gramercy.tasks.policy import private_task

validate = private_task(steps.validate)
