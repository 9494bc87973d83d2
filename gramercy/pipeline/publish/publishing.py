"""Answer a request from the archive, or publish it once: charge, draw, seal, commit.

Only this step makes anything public; `Publication` explains the order.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gramercy.archive.bundles.release_bundle import ReleaseBundle, read_release
from gramercy.ledger import Charge, check_budget
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish import internal_record
from gramercy.pipeline.publish.accumulation import PrivateCounts, PrivateSums
from gramercy.pipeline.publish.drawing import average_into, draw_into
from gramercy.pipeline.publish.publication import locked_publication
from gramercy.pipeline.publish.report_sum import ReportSum
from gramercy.schemas.errors import SpentFailure
from gramercy.schemas.facts import LedgerFacts, group_names
from gramercy.tables.formats.source import needs_copy, open_source
from gramercy.tables.sums.streaming import Accumulated


def replay(context: Context, plan: Plan) -> str | None:
    """The id of the release that already answers this request, or None.

    The request and the ledger alone decide, before the table is read. Whether the files have
    changed since then is noted in the internal record.

    Raises
    ------
    TermsChanged
        If the contract is not the registered one.
    SpentFailure
        If the same request was charged before and interrupted.
    BudgetRefused
        If the request is new, and its charge would not fit.
    UntrustedLedger
        If the ledger is behind its anchor in the archive, or is a copy.
    ArchiveError
        If the request is new, and its release may not fit on a disk.
    """
    with locked_publication(context, plan) as run:
        statement = run.ledger.preview(plan.contract, plan.request.version)
        charge = run.published_charge()
        if charge is None:
            # Refuse now what would be refused after reading the table.
            run.check_ledger_is_complete()
            check_budget(run.dataset, statement, plan.guarantee)
            run.check_space()
            return None
    facts = {"table_changed_since": _has_changed(plan, charge)}
    internal_record.update_record(context.home, plan.contract.id, charge.release, facts)
    return charge.release


def _has_changed(plan: Plan, charge: Charge) -> bool | None:
    """Whether the files have changed since they were published; None for a table that is copied."""
    if needs_copy(plan.contract.source):
        return None
    with contextlib.suppress(Exception):  # a missing or unreadable table counts as changed
        return open_source(plan.contract.source).fingerprint() != charge.fingerprint
    return True


def publish(context: Context, plan: Plan, data: PrivateSums | PrivateCounts | ReportSum) -> str:
    """Publish the planned release, once; returns the release id.

    Raises
    ------
    BudgetRefused
        If the charge does not fit the budget. Nothing was drawn.
    SpentFailure
        If the same request was charged before and interrupted.
    """
    summed_last: list[PrivateSums | PrivateCounts] = []

    def draw(folder: Path, release: str, ledger: LedgerFacts) -> None:
        charged = replace(plan, spec=plan.spec.model_copy(update={"ledger": ledger}))
        if isinstance(data, ReportSum):
            average_into(folder, charged, data, release)
        else:
            summed_last.append(draw_into(folder, charged, data, release))

    sampler.self_test()  # fails before the charge
    with locked_publication(context, plan) as run:
        if published := run.published_charge():
            return published.release
        try:
            charge = run.charge(data.fingerprint, draw)
        except SpentFailure:
            # The lock was lost, and another run has charged this request or closed its charge.
            if published := run.published_charge():
                return published.release
            raise
    for summed in summed_last:
        facts = _table_facts(context, plan, charge, summed)
        internal_record.update_record(context.home, plan.contract.id, charge.release, facts)
    return charge.release


def _table_facts(
    context: Context, plan: Plan, charge: Charge, data: PrivateSums | PrivateCounts
) -> dict[str, Any]:
    """For the steward: what was repaired, and how far the release is from the exact matrix."""
    names = plan.matrix_contract.names
    if isinstance(data, PrivateCounts):
        counts = data.counts
        # A dropped malformed line counts as a row without values, and a person as one row.
        missing = [int(each[-1]) - counts.malformed for each in counts.counts]
        return {
            "rows": counts.rows_read,
            "malformed_rows": counts.malformed,
            **(
                {"filled_cells": dict(zip(names, missing, strict=True))}
                if plan.contract.persons is None
                else {"persons": counts.units, "persons_declared": plan.contract.persons}
            ),
            "table_changed_since": False,
        }
    bundle = read_release(context.archive.release(plan.contract.id, charge.release))
    sums = data.sums
    return {
        "rows": sums.rows_read,
        **_group_sizes(plan, sums),
        **_person_counts(plan, sums),
        "malformed_rows": sums.malformed,
        "filled_cells": dict(zip(names, sums.repairs.filled.tolist(), strict=True)),
        "clamped_cells": dict(zip(names, sums.repairs.clamped.tolist(), strict=True)),
        "table_changed_since": False,
        **_error_facts(plan, sums, bundle),
    }


def _error_facts(
    plan: Plan, sums: Accumulated, bundle: ReleaseBundle
) -> dict[str, dict[str, float]]:
    if bundle.manifest.kind == "precision" or sums.gram is None:
        return {}
    public = plan.contract.neighbours == "replace-one"
    count = plan.contract.count if public else max(1, sums.rows)
    truth = sums.gram.astype(np.float64) / plan.mechanism.lattice.divisor / count
    return {"truth": internal_record.error_against_truth(bundle, truth)}


def _group_sizes(plan: Plan, sums: Accumulated) -> dict[str, dict[str, int]]:
    """The exact number of rows or persons of every group."""
    if plan.spec.by is None:
        return {}
    rows = np.array([part.rows for part in sums.part_sums]).reshape(-1, plan.spec.folds).sum(axis=1)
    return {"groups": dict(zip(group_names(plan.spec.by), rows.tolist(), strict=True))}


def _person_counts(plan: Plan, sums: Accumulated) -> dict[str, int]:
    if plan.contract.persons is None:
        return {}
    return {
        "persons": sums.rows,
        "persons_declared": plan.contract.persons,
        "rows_without_person": sums.rows_without_person,
    }
