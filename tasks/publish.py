"""Answer from the archive, or charge, draw, seal and commit, as tasks."""

from __future__ import annotations

from gramercy.application import publishing as steps
from gramercy.tasks.policy import private_task

replay = private_task(steps.replay)
publish = private_task(steps.publish)
