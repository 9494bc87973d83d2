"""Charge, draw, seal, commit: the one step after which something is public.

The order is what makes it safe: the charge is durable, and told to the archive, before any noise
exists; a release id is drawn for once; a bundle appears whole, by one rename, after its charge. A
process that dies in between leaves a charge without a release, which the next run calls spent; or a
sealed bundle that only has to be put in its place, or lacks its charge's last mark, which the next
run completes, with the same bytes.

One run at a time has the turn of a data set. On PostgreSQL the turn can be lost at any moment, so
it is checked, and taken again, before every step that assumes it. Where it was lost, the ledger
still decides: another run may have finished the sealed bundle, or called an open charge spent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gramercy.application import internal_record
from gramercy.application.accumulation import Collected
from gramercy.application.drawing import average_into, draw_into
from gramercy.application.gathering import Gathered
from gramercy.application.open_stores import open_books
from gramercy.application.planning import Plan
from gramercy.archive.release_bundle import ReleaseBundle, read_release
from gramercy.archive.store import Archive
from gramercy.ledger import Charge, Ledger, admit, unanswered
from gramercy.ledger.turns import Turn
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.errors import BundleError, LedgerError, SpentFailure, UntrustedLedger
from gramercy.tables.source import open_source
from gramercy.tables.streaming import Accumulated


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
    UntrustedLedger
        If the ledger is older than its archive has seen it, or a copy.
    """
    ledger, archive = open_books()
    statement = ledger.preview(plan.contract, plan.request.version)
    with ledger.alone(plan.contract.id) as turn:
        charge = _answered(plan, ledger, archive, turn)
        if charge is None:
            # What would be refused after the table was read is refused before it.
            _check_history(plan.contract.id, ledger, archive)
            admit(plan.contract.id, statement, plan.guarantee)
            return None
    with contextlib.suppress(Exception):  # a table that is gone or unreadable has changed, too
        changed = True
        changed = open_source(plan.contract.source).fingerprint() != charge.fingerprint
    internal_record.record(plan.contract.id, charge.release, {"table_changed_since": changed})
    return charge.release


def publish(plan: Plan, collected: Collected | Gathered) -> str:
    """Publish what was asked for, once; returns the release id.

    Raises
    ------
    BudgetRefused
        If the charge does not fit the budget. Nothing was drawn.
    SpentFailure
        If the same request was charged before and interrupted.
    """
    dataset = plan.contract.id
    ledger, archive = open_books()
    # What can fail without noise fails before the charge: the sampler, the archive's disk.
    sampler.self_test()
    with ledger.alone(dataset) as turn:
        if answered := _answered(plan, ledger, archive, turn):
            return answered.release
        try:
            charge = _charged_and_drawn(plan, collected, ledger, archive, turn)
        except SpentFailure:
            # The turn was lost, and another run has charged this request, or closed its charge.
            if answered := _answered(plan, ledger, archive, turn):
                return answered.release
            raise
    if isinstance(collected, Collected):
        bundle = read_release(archive.release(dataset, charge.release))
        _record(plan, charge, collected, bundle)
    return charge.release


def _charged_and_drawn(
    plan: Plan, collected: Collected | Gathered, ledger: Ledger, archive: Archive, turn: Turn
) -> Charge:
    """The charge, and the bundle in its place; or a charge that is spent."""
    dataset = plan.contract.id
    with archive.staging(dataset, alone=True) as staged:
        _check_history(dataset, ledger, archive)
        archive.write_anchor(ledger.head())
        turn.hold()
        charge = ledger.charge(
            plan.contract,
            plan.request.version,
            plan.key,
            plan.guarantee,
            collected.fingerprint,
            instead_of=plan.request.new_charge,
        )
        try:
            archive.write_anchor(ledger.head())
            ledger.mark(dataset, charge.release, "drawn")
            if isinstance(collected, Gathered):
                average_into(staged, plan, collected, charge.release)
            else:
                draw_into(staged, plan, collected, charge.release)
            turn.hold()
            digest = archive.seal(staged)
            sealed = archive.keep(staged)  # once it is marked, the next run finishes what fails
        except BaseException:
            with contextlib.suppress(LedgerError, SpentFailure):
                ledger.mark(dataset, charge.release, "spent", reason=_INTERRUPTED)
            raise
        try:
            _mark_sealed(dataset, charge, digest, ledger, turn)
            place = archive.release(dataset, charge.release)
            archive.commit(sealed, place, _not_spent(dataset, charge, ledger, turn))
            _mark_published(dataset, charge, ledger, archive)
        except SpentFailure:
            archive.discard(sealed)
            raise
    return charge


def _mark_sealed(dataset: str, charge: Charge, digest: str, ledger: Ledger, turn: Turn) -> None:
    """Enter the digest, so that a bundle found later is known to be this release, or is not."""
    try:
        ledger.mark(dataset, charge.release, "sealed", sha256=digest)
    except LedgerError:
        # The mark may have been made nevertheless, and then whoever has the turn may finish the
        # release. Only with the turn is it certain that no other run is about to.
        with contextlib.suppress(LedgerError, SpentFailure):
            turn.hold()
            ledger.mark(dataset, charge.release, "spent", reason=_INTERRUPTED)
        raise


def _not_spent(dataset: str, charge: Charge, ledger: Ledger, turn: Turn) -> Callable[[], None]:
    """What `Archive.commit` calls at the last moment: raises if the charge was called spent."""

    def confirm() -> None:
        turn.hold()
        now = ledger.charge_of(dataset, charge.release)
        if now is None or now.state not in {"sealed", "published"}:
            raise unanswered(dataset, now or charge)

    return confirm


def _mark_published(dataset: str, charge: Charge, ledger: Ledger, archive: Archive) -> None:
    """Enter that the bundle is in its place, unless another run that finished it already has."""
    try:
        ledger.mark(dataset, charge.release, "published")
    except SpentFailure:
        now = ledger.charge_of(dataset, charge.release)
        if now is None or now.state != "published":
            raise
    archive.write_anchor(ledger.head())


def _record(plan: Plan, charge: Charge, collected: Collected, bundle: ReleaseBundle) -> None:
    """What was mended, and how far the release lies from the truth, for the steward."""
    sums, names = collected.sums, plan.contract.names
    facts = {
        "rows": sums.read,
        **_persons(plan, sums),
        "malformed_rows": sums.malformed,
        "filled_cells": dict(zip(names, sums.repairs.filled.tolist(), strict=True)),
        "clamped_cells": dict(zip(names, sums.repairs.clamped.tolist(), strict=True)),
        "table_changed_since": False,
    }
    if bundle.manifest.kind != "precision" and sums.gram is not None:
        public = plan.contract.neighbours == "replace-one"
        count = plan.contract.count if public else max(1, sums.rows)
        truth = sums.gram.astype(np.float64) / plan.mechanism.lattice.divisor / count
        facts["truth"] = internal_record.against_the_truth(bundle, truth)
    internal_record.record(plan.contract.id, charge.release, facts)


def _persons(plan: Plan, sums: Accumulated) -> dict[str, int]:
    if plan.contract.persons is None:
        return {}
    return {
        "persons": sums.rows,
        "persons_declared": plan.contract.persons,
        "rows_of_nobody": sums.nobodys,
    }


def _finish(dataset: str, ledger: Ledger, archive: Archive, turn: Turn) -> None:
    """Finish, with the very same bytes, what others have sealed and left; of any request."""
    for charge in ledger.sealed(dataset):
        place = archive.release(dataset, charge.release)
        # A charge that another run calls spent meanwhile, or another bundle in its place, is for
        # its own request to report.
        with contextlib.suppress(SpentFailure, BundleError):
            if not archive.holds(place):
                confirm = _not_spent(dataset, charge, ledger, turn)
                archive.finish(dataset, charge.sha256, place, confirm)
            if archive.holds(place) and read_release(place).sha256 == charge.sha256:
                _mark_published(dataset, charge, ledger, archive)


def _answered(plan: Plan, ledger: Ledger, archive: Archive, turn: Turn) -> Charge | None:
    """The published charge for this request, after finishing or closing an interrupted one."""
    dataset = plan.contract.id
    while True:
        charge, in_place = found = _found(plan, ledger, archive)
        _finish(dataset, ledger, archive, turn)
        # What was found is still true if no other run was at work in between.
        if _found(plan, ledger, archive) == found and turn.hold():
            break
    if charge is None:
        return None
    place = archive.release(dataset, charge.release)
    if charge.state in {"spent", "withdrawn"} or not in_place:
        _close(plan, charge, place, ledger, archive)
        return None
    if read_release(place).sha256 != charge.sha256:
        raise BundleError(
            f"{archive.shown(place)}: is not the bundle that was published.", _RESTORE
        )
    return charge


def _found(plan: Plan, ledger: Ledger, archive: Archive) -> tuple[Charge | None, bool]:
    """The charge of this request, and whether a bundle is in its place."""
    dataset = plan.contract.id
    charge = ledger.find(dataset, plan.key)
    if charge is None:
        return None, False
    return charge, archive.holds(archive.release(dataset, charge.release))


def _close(plan: Plan, charge: Charge, place: Path, ledger: Ledger, archive: Archive) -> None:
    """Call a charge with nothing to show for it spent; let it pass if it is paid for again."""
    dataset = plan.contract.id
    if charge.state == "published":
        raise BundleError(f"{archive.shown(place)}: was published, and is gone.", _RESTORE)
    if charge.state not in {"spent", "withdrawn"}:
        ledger.mark(dataset, charge.release, "spent", reason="found without a release")
        archive.sweep(dataset)
    if plan.request.new_charge != charge.release:
        raise unanswered(dataset, charge)


_INTERRUPTED = "interrupted when drawn"
_RESTORE = "Restore it from a copy: noise is never drawn again for a published release."


def _check_history(dataset: str, ledger: Ledger, archive: Archive) -> None:
    """Refuse to charge a ledger that has forgotten releases which the archive still holds."""
    held = [name for d, name in archive.releases() if d == dataset]
    known = ledger.releases(dataset)  # read last: a release is charged before it is published
    forgotten = [name for name in held if name not in known]
    if forgotten:
        raise UntrustedLedger(
            f"The archive holds '{dataset}/{forgotten[0]}', and the ledger does not know it: the "
            "ledger is older than the archive.",
            "Restore the ledger that belongs to it: its charges are spent, recorded or not.",
        )
