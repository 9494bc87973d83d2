"""The steps of releases, estimates, reports and audits, as private tasks."""

from __future__ import annotations

from gramercy.pipeline.catalogue import catalogue_pages
from gramercy.pipeline.plan import checking
from gramercy.pipeline.publish import (
    attachments,
    charging,
    drawing,
    private_table,
    table_validation,
)
from gramercy.pipeline.verify import auditing
from gramercy.tasks.policy import private_task

replay = private_task(charging.replay)
copy_table = private_task(private_table.copy_table)
validate = private_task(checking.validate)
expectations = private_task(table_validation.expectations)
sampled_expectations = private_task(table_validation.sampled_expectations)
accumulate = private_task(private_table.accumulate)
sum_reports = private_task(drawing.sum_reports)
check_same_sources = private_task(drawing.check_same_sources)
publish = private_task(charging.publish)
estimate = private_task(attachments.estimate)
report = private_task(attachments.report)
catalogue = private_task(catalogue_pages.catalogue)
audit = private_task(auditing.audit)
