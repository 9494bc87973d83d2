"""The steps of a release, and of what follows from it, as private tasks."""

from __future__ import annotations

from gramercy.application import (
    accumulation,
    auditing,
    catalogue_pages,
    estimating,
    gathering,
    publishing,
    reporting,
    validation,
)
from gramercy.tasks.policy import private_task

replay = private_task(publishing.replay)
validate = private_task(validation.validate)
accumulate = private_task(accumulation.accumulate)
gather = private_task(gathering.gather)
refuse_other_sources = private_task(gathering.refuse_other_sources)
publish = private_task(publishing.publish)
estimate = private_task(estimating.estimate)
report = private_task(reporting.report)
catalogue = private_task(catalogue_pages.catalogue)
audit = private_task(auditing.audit)
