"""Charge, draw, seal, commit: the one step after which something is public.

The order is what makes it safe: the charge is durable before any noise exists; a release id is
drawn for once; a bundle appears whole, by one rename, after its charge. A process that dies in
between leaves a charge without a release, which the next run calls spent, or a release whose charge
lacks its last mark, which the next run completes.
"""

from __future__ import annotations

import contextlib

import numpy as np

from archive.release import ReleaseBundle, read_release
from archive.store import Archive
from ledger import Charge, Ledger, Statement, admit, spent_failure
from mechanisms import sampler
from schemas.errors import BundleError, LedgerError, SpentFailure
from schemas.home import Home
from tables.read import open_source
from tasks import steward
from tasks.accumulate import Collected
from tasks.draw import average_into, draw_into
from tasks.gather import Gathered
from tasks.locks import alone
from tasks.plan import Plan
from tasks.policy import private_task


@private_task
def replay(plan: Plan) -> str | None:
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
    """
    home = Home.default()
    ledger, archive = Ledger(home.ledger), Archive(home.archive)
    statement = ledger.preview(plan.contract)
    with alone(home, plan.contract.id):
        charge = _answered(plan, ledger, archive)
        if charge is None:
            # What would be refused after the table was read is refused before it.
            _check_history(plan.contract.id, statement, archive)
            admit(plan.contract.id, statement, plan.guarantee)
            return None
    with contextlib.suppress(Exception):  # a table that is gone or unreadable has changed, too
        changed = True
        changed = open_source(plan.contract.source).fingerprint() != charge.fingerprint
    steward.record(plan.contract.id, charge.release, {"table_changed_since": changed})
    return charge.release


@private_task
def publish(plan: Plan, collected: Collected | Gathered) -> str:
    """Publish what was asked for, once; returns the release id.

    Raises
    ------
    BudgetRefused
        If the charge does not fit the budget. Nothing was drawn.
    SpentFailure
        If the same request was charged before and interrupted.
    """
    home, dataset = Home.default(), plan.contract.id
    ledger, archive = Ledger(home.ledger), Archive(home.archive)
    # What can fail without noise fails before the charge: the sampler, the archive's disk.
    sampler.self_test()
    with alone(home, dataset), archive.staging(dataset, alone=True) as staged:
        if answered := _answered(plan, ledger, archive):
            return answered.release
        _check_history(dataset, ledger.preview(plan.contract), archive)
        charge = ledger.charge(
            plan.contract,
            plan.request.version,
            plan.key,
            plan.guarantee,
            collected.fingerprint,
            instead_of=plan.request.new_charge,
        )
        place = archive.release(dataset, charge.release)
        try:
            ledger.mark(dataset, charge.release, "drawn")
            if isinstance(collected, Gathered):
                average_into(staged, plan, collected, charge.release)
            else:
                draw_into(staged, plan, collected.sums, charge.release)
            # The digest is in the ledger first, so that a bundle found later is known or foreign.
            ledger.mark(dataset, charge.release, "sealed", archive.seal(staged))
            archive.commit(staged, place)
        except BaseException:
            if not place.exists():
                with contextlib.suppress(LedgerError, SpentFailure):
                    ledger.mark(dataset, charge.release, "spent", "interrupted before its release")
            raise
        ledger.mark(dataset, charge.release, "published")
    if isinstance(collected, Collected):
        _record(plan, charge, collected, read_release(place))
    return charge.release


def _record(plan: Plan, charge: Charge, collected: Collected, bundle: ReleaseBundle) -> None:
    """What was mended, and how far the release lies from the truth, for the steward."""
    sums, names = collected.sums, plan.contract.names
    facts = {
        "rows": sums.rows,
        "malformed_rows": sums.malformed,
        "filled_cells": dict(zip(names, sums.repairs.filled.tolist(), strict=True)),
        "clamped_cells": dict(zip(names, sums.repairs.clamped.tolist(), strict=True)),
        "table_changed_since": False,
    }
    if bundle.manifest.kind != "precision" and sums.gram is not None:
        truth = sums.gram.astype(np.float64) / plan.mechanism.lattice.divisor / max(1, sums.rows)
        facts["truth"] = steward.against_the_truth(bundle, truth)
    steward.record(plan.contract.id, charge.release, facts)


def _answered(plan: Plan, ledger: Ledger, archive: Archive) -> Charge | None:
    """The published charge for this request, after completing or closing an interrupted one.

    Holding the lock, a charge without a mark is nobody's work in progress: its process died.
    """
    dataset = plan.contract.id
    charge = ledger.find(dataset, plan.key)
    if charge is None:
        return None
    place = archive.release(dataset, charge.release)
    if place.exists():
        if read_release(place).sha256 != ledger.detail(dataset, charge.release, "sealed"):
            raise BundleError(f"{place}: is not the bundle that was published.", _RESTORE)
        if charge.state != "published":  # it died between the rename and the last mark
            ledger.mark(dataset, charge.release, "published")
        return charge
    if charge.state == "published":
        raise BundleError(f"{place}: was published, and is gone.", _RESTORE)
    if charge.state != "spent":
        ledger.mark(dataset, charge.release, "spent", "found without a release")
        archive.sweep(dataset)
    if plan.request.new_charge == charge.release:
        return None
    raise spent_failure(dataset, charge)


_RESTORE = "Restore it from a copy: noise is never drawn again for a published release."


def _check_history(dataset: str, statement: Statement, archive: Archive) -> None:
    """Refuse to charge a ledger that has forgotten releases which the archive still holds."""
    known = {charge.release for charge in statement.charges}
    forgotten = [name for d, name in archive.releases() if d == dataset and name not in known]
    if forgotten:
        raise LedgerError(
            f"The archive holds '{dataset}/{forgotten[0]}', and the ledger does not know it: the "
            "ledger is older than the archive.",
            "Restore the ledger that belongs to it: its charges are spent, recorded or not.",
        )
