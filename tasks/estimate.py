"""Estimate from a release, as a task."""

from __future__ import annotations

from gramercy.application import estimating as steps
from gramercy.tasks.policy import private_task

estimate = private_task(steps.estimate)
