"""Estimate from a release, as a task."""

from __future__ import annotations

from gramercy.application import estimate as steps
from gramercy.tasks.policy import private_task

estimate = private_task(steps.estimate)
