"""Answer a request from the archive, or publish it once: charge, draw, seal, commit.

The one step after which something is public; `Publication` says in what order, and why.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np

from gramercy.application import internal_record
from gramercy.application.accumulation import Collected
from gramercy.application.context import Context
from gramercy.application.drawing import average_into, draw_into
from gramercy.application.gathering import Gathered
from gramercy.application.planning import Plan
from gramercy.application.publication import publication
from gramercy.archive.release_bundle import ReleaseBundle, read_release
from gramercy.ledger import Charge, admit
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.errors import SpentFailure
from gramercy.tables.source import open_source
from gramercy.tables.streaming import Accumulated


def replay(context: Context, plan: Plan) -> str | None:
    """The id of the release that already answers this request, or None.

    Decided by the request and the ledger alone, before the table is looked at. That the files have
    changed since goes into the steward's record.

    Raises
    ------
    TermsChanged
        If the contract is not the registered one.
    SpentFailure
        If the same request was charged before and interrupted.
    BudgetRefused
        If the request is new, and its charge would not fit.
    UntrustedLedger
        If the ledger is older than its archive has seen it, or a copy.
    """
    with publication(context, plan) as run:
        statement = run.ledger.preview(plan.contract, plan.request.version)
        charge = run.answer()
        if charge is None:
            # What would be refused after the table was read is refused before it.
            run.check_history()
            admit(run.dataset, statement, plan.guarantee)
            return None
    with contextlib.suppress(Exception):  # a table that is gone or unreadable has changed, too
        changed = True
        changed = open_source(plan.contract.source).fingerprint() != charge.fingerprint
    facts = {"table_changed_since": changed}
    internal_record.record(context.home, plan.contract.id, charge.release, facts)
    return charge.release


def publish(context: Context, plan: Plan, collected: Collected | Gathered) -> str:
    """Publish what was asked for, once; returns the release id.

    Raises
    ------
    BudgetRefused
        If the charge does not fit the budget. Nothing was drawn.
    SpentFailure
        If the same request was charged before and interrupted.
    """

    def draw(folder: Path, release: str) -> None:
        if isinstance(collected, Gathered):
            average_into(folder, plan, collected, release)
        else:
            draw_into(folder, plan, collected, release)

    # What can fail without noise fails before the charge: the sampler, the archive's disk.
    sampler.self_test()
    with publication(context, plan) as run:
        if answered := run.answer():
            return answered.release
        try:
            charge = run.charge(collected.fingerprint, draw)
        except SpentFailure:
            # The turn was lost, and another run has charged this request, or closed its charge.
            if answered := run.answer():
                return answered.release
            raise
    if isinstance(collected, Collected):
        _record(context, plan, charge, collected)
    return charge.release


def _record(context: Context, plan: Plan, charge: Charge, collected: Collected) -> None:
    """What was mended, and how far the release lies from the truth, for the steward."""
    bundle = read_release(context.archive.release(plan.contract.id, charge.release))
    sums, names = collected.sums, plan.contract.names
    facts = {
        "rows": sums.read,
        **_persons(plan, sums),
        "malformed_rows": sums.malformed,
        "filled_cells": dict(zip(names, sums.repairs.filled.tolist(), strict=True)),
        "clamped_cells": dict(zip(names, sums.repairs.clamped.tolist(), strict=True)),
        "table_changed_since": False,
        **_against_the_truth(plan, sums, bundle),
    }
    internal_record.record(context.home, plan.contract.id, charge.release, facts)


def _against_the_truth(
    plan: Plan, sums: Accumulated, bundle: ReleaseBundle
) -> dict[str, dict[str, float]]:
    if bundle.manifest.kind == "precision" or sums.gram is None:
        return {}
    public = plan.contract.neighbours == "replace-one"
    count = plan.contract.count if public else max(1, sums.rows)
    truth = sums.gram.astype(np.float64) / plan.mechanism.lattice.divisor / count
    return {"truth": internal_record.against_the_truth(bundle, truth)}


def _persons(plan: Plan, sums: Accumulated) -> dict[str, int]:
    if plan.contract.persons is None:
        return {}
    return {
        "persons": sums.rows,
        "persons_declared": plan.contract.persons,
        "rows_of_nobody": sums.nobodys,
    }
