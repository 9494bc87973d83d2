"""Add up reports that were made elsewhere, as tasks."""

from __future__ import annotations

from gramercy.application import gathering as steps
from gramercy.tasks.policy import private_task

gather = private_task(steps.gather)
refuse_other_sources = private_task(steps.refuse_other_sources)
