"""The validation of a table by Great Expectations: two steps of a release, and what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramercy.archive.listing.contents import Contents
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, utc_now
from gramercy.pipeline.publish.internal_record import read_record, record_run, update_record
from gramercy.pipeline.validation.outcome import Outcome, changes
from gramercy.pipeline.validation.worker_process import WorkerProcess


def expectations(context: Context, plan: Plan, outcome: Outcome, process: WorkerProcess) -> None:
    """Refuse what differs in names and types, before anything is charged.

    A worker that fails refuses nothing: the columns and types of the contract have been compared
    without it.
    """
    outcome.ask_columns(process)
    if (error := outcome.error(context.home)) is not None:
        _keep_run(context, plan, outcome, error.code)
        raise error


def sampled_expectations(
    context: Context, plan: Plan, outcome: Outcome, process: WorkerProcess
) -> None:
    """Validate cells of a sample, for the steward: no charge waits for it or depends on it."""
    outcome.ask_cells(process)
    _keep_run(context, plan, outcome, None)


def _keep_run(context: Context, plan: Plan, outcome: Outcome, refused: str | None) -> None:
    facts = {"version": plan.request.version, "refused": refused, **outcome.facts()}
    record_run(context.home, plan.contract.id, utc_now(), facts)


def keep_outcome(context: Context, dataset: str, release: str, outcome: Outcome) -> None:
    """Add to the internal record of a release what was found, and what changed."""
    facts = outcome.facts()
    found = read_record(context.home, dataset, release) | facts
    facts |= changes_since_last_version(context, dataset, release, found)
    update_record(context.home, dataset, release, facts)


def changes_since_last_version(
    context: Context, dataset: str, release: str, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """For the steward: what differs from the last release whose table was validated.

    The levels that any version had are kept with it.

    `release`: the release to which the facts belong; empty if none does yet.
    """
    for _, name in reversed(Contents(context.archive).names(dataset)):
        record = read_record(context.home, dataset, name) if name != release else {}
        if record.get("types"):
            old, new = record["levels"], facts["levels"]
            levels = {k: [*dict.fromkeys([*old.get(k, ()), *new.get(k, ())])] for k in old | new}
            changed = changes(record, facts)
            return {"changes_since": name, "changes": changed, "levels": levels}
    return {}
