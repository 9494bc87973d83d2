"""The validation of a table by Great Expectations: a step of a release, and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, utc_now
from gramercy.pipeline.publish.internal_record import read_record, record_run
from gramercy.pipeline.validation.outcome import Outcome, changes, validate_table
from gramercy.pipeline.validation.suite import Job
from gramercy.pipeline.validation.worker_process import WorkerProcess


def expectations(context: Context, plan: Plan, job: Job, process: WorkerProcess) -> Outcome:
    """The step of a release: refuse what differs in names and types, before anything is charged.

    Expectations about cells refuse nothing, nor does a worker that fails: the columns and types of
    the contract have been compared without it.
    """
    outcome = validate_table(job, process)
    error = outcome.error(context.home)
    facts = {
        "version": plan.request.version,
        "refused": None if error is None else error.code,
        **outcome.facts(),
    }
    record_run(context.home, plan.contract.id, utc_now(), facts)
    if error is not None:
        raise error
    return outcome


def changes_since_last_version(
    context: Context, dataset: str, release: str, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """For the steward: what differs from the last release whose table was validated.

    `release`: the release to which the facts belong; empty if none does yet.
    """
    for _, name in reversed(context.archive.releases(dataset)):
        record = read_record(context.home, dataset, name) if name != release else {}
        if "types" in record:
            return {"changes_since": name, "changes": changes(record, facts)}
    return {}
