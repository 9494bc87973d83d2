"""Audit a home: whether ledger, archive and run history agree.

An audit reads everything and changes nothing.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import is_page
from gramercy.ledger import Charge, Ledger
from gramercy.ledger.sources import datasets_with_same_source
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.audit_record import Audit, AuditedCharge, Discrepancy, write_audit
from gramercy.pipeline.verify.ledger_trust import check_ledger
from gramercy.pipeline.verify.listing_checks import listing_problem
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import (
    ArchiveError,
    GramercyError,
    Invalid,
    LedgerError,
    UntrustedLedger,
)
from gramercy.schemas.ledger_history import ChargeState, History
from gramercy.schemas.problem import Notice

_WRONG = "wrong"  # the state of a bundle that has a discrepancy


def make_audit(
    context: Context,
    history: History | None = None,
    on_release: Callable[[str], None] = lambda _: None,
    trusted: frozenset[str] | None = None,
    *,
    of_copy: bool = False,
) -> Audit:
    """Audit a home.

    Parameters
    ----------
    context
        The home, with ledger and archive.
    history
        Prefect's run history; None to leave it out.
    on_release
        Called with the name of each release before it is verified.
    trusted
        Public keys, in hexadecimal; default: those of the home.
    of_copy
        Whether the home is a copy that is audited on purpose.

    Raises
    ------
    RequestError
        If the ledger does not exist.
    LedgerError, ArchiveError
        If ledger or archive cannot be read at all.
    """
    ledger = context.existing_ledger
    archive = context.archive if trusted is None else replace(context.archive, trusted=trusted)
    if ledger is None:
        raise wordings.no_ledger(str(context.home.ledger))
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    audit = Audit(ledger.location, archive.location, ledger.head(), now, history is not None)
    # The archive is read first, because a bundle is charged before it appears there.
    bundles = archive.releases()
    check = check_ledger(ledger, archive, bundles, context.witness, history, of_copy=of_copy)
    audit.anchors = check.anchors
    audit.discrepancies += [Discrepancy(*each) for each in check.problems]
    charged: set[tuple[str, str]] = set()
    for dataset in ledger.datasets():
        charged |= {(dataset, release) for release in ledger.releases(dataset)}
        try:
            audit.statements += [(dataset, each) for each in ledger.statements(dataset)]
            charges = ledger.charges(dataset)
        except UntrustedLedger as error:  # `check_ledger` has reported its inconsistent entries
            audit.discrepancies.append(Discrepancy(dataset, error))
            continue
        for charge in charges:
            on_release(f"{dataset}/{charge.release}")
            audit.releases.append(_audit_charge(ledger, archive, dataset, charge, history, audit))
    files = archive.other_files()
    audit.discrepancies += _unexpected_files(archive, bundles, files, charged)
    audit.discrepancies += _listing_discrepancy(archive, bundles, files, ledger, audit.releases)
    audit.notes += [*check.notes, *_steward_changes(ledger), *_shared_tables(ledger)]
    if history is not None:
        audit.discrepancies += _runs_without_charge(history, audit.releases)
        audit.notes += [*_forgotten_runs(audit.releases), *history.elsewhere]
    return audit


def _unexpected_files(
    archive: Archive,
    bundles: Sequence[tuple[str, str]],
    files: Iterable[str],
    charged: set[tuple[str, str]],
) -> Iterator[Discrepancy]:
    """Bundles without a charge, files outside of bundles, and signatures of unknown keys."""
    if bundles and not archive.trusted:
        yield Discrepancy(
            "archive",
            families.NOT_CHECKED(
                "No public key is trusted, so signatures could not be attributed to a curator.",
                "Name the curator's public key with '--key'.",
            ),
        )
    for dataset, release in bundles:
        if (dataset, release) not in charged:
            yield Discrepancy(
                f"{dataset}/{release}",
                families.UNKNOWN_BUNDLE(
                    "The bundle is in the archive, but the ledger does not have a charge for it.",
                    "Find out who put it there; a release without a charge breaks the budget.",
                ),
            )
    for name in files:
        if not is_page(name):
            yield Discrepancy(
                name,
                families.UNKNOWN_BUNDLE(
                    "The file is in the archive, but does not belong to a bundle.",
                    "Remove it, if it is private.",
                ),
            )


def _listing_discrepancy(
    archive: Archive,
    bundles: Sequence[tuple[str, str]],
    files: Iterable[str],
    ledger: Ledger,
    releases: Iterable[AuditedCharge],
) -> Iterator[Discrepancy]:
    """What is wrong with the listing or the pages, beyond the releases that are wrong."""
    intact = {
        (each.dataset, each.charge.release)
        for each in releases
        if each.charge.state.was_published and each.bundle != _WRONG
    }
    others = set(bundles) - intact
    files = [name for name in files if tuple(name.split("/")[:2]) not in others]
    if (problem := listing_problem(archive, intact, ledger, files)) is not None:
        yield Discrepancy("listing", problem)


def _steward_changes(ledger: Ledger) -> Iterator[Notice]:
    """Changes that a steward declared without proof, for an auditor to confirm."""
    for entry in ledger.steward_changes():
        reason, day = "the reason is lost", str(entry.at).partition("T")[0]
        with contextlib.suppress(UntrustedLedger):  # reported as a discrepancy
            reason = entry.fact("reason", str)
        if entry.kind == "moved":
            yield families.RECORDED(
                "On {day} the ledger was declared to be moved, or its archive lost: {reason}",
                day=day,
                reason=reason,
            )
        else:
            yield families.RECORDED(
                "On {day} the budget of {dataset} was {change} to epsilon={epsilon}, "
                "delta={delta}: {reason}",
                day=day,
                dataset=str(entry.dataset),
                change=entry.kind,
                epsilon=entry.epsilon,
                delta=entry.delta,
                reason=reason,
            )


def _shared_tables(ledger: Ledger) -> Iterator[Notice]:
    """Tables that several data sets read, each with its own budget."""
    sources: dict[str, set[str]] = {}
    with contextlib.suppress(UntrustedLedger):
        sources = ledger.sources()
    groups = {tuple(sorted([name, *datasets_with_same_source(sources, name)])) for name in sources}
    for group in sorted(each for each in groups if len(each) > 1):
        yield wordings.table_shared(group)


def _audit_charge(
    ledger: Ledger,
    archive: Archive,
    dataset: str,
    charge: Charge,
    history: History | None,
    audit: Audit,
) -> AuditedCharge:
    """Compare a charge with the archive; adds a discrepancy to the audit, if there is one."""
    name = f"{dataset}/{charge.release}"
    notes: list[Notice] = []
    bundle, error = _check_charge(ledger, archive, dataset, charge, notes)
    if error and (current := _wait_for_run(ledger, dataset, charge)) != charge:
        charge = current  # a run was active when the charge was read
        notes.clear()
        bundle, error = _check_charge(ledger, archive, dataset, charge, notes)
    audit.notes += notes
    audit.discrepancies += [Discrepancy(name, error)] if error else []
    runs = None if history is None else tuple(history.runs.get(name, ()))
    return AuditedCharge(dataset, charge, bundle, runs)


def _check_charge(
    ledger: Ledger, archive: Archive, dataset: str, charge: Charge, notes: list[Notice]
) -> tuple[str, GramercyError | None]:
    """The state of the bundle in a few words, and the error if the check fails; adds notes."""
    try:
        if not charge.state.was_published:
            return _check_unpublished(archive, dataset, charge), None
        verified = verify_release(archive, dataset, charge.release, ledger, recompute_derived=False)
        recorded = families.NOT_RECORDED.code
        notes += [each for each in verified.unchecked if each.code == recorded]
        return (
            "verified, withdrawn" if charge.state is ChargeState.WITHDRAWN else "verified"
        ), None
    except (Invalid, ArchiveError, UntrustedLedger) as error:
        return _WRONG, error


def _wait_for_run(ledger: Ledger, dataset: str, charge: Charge) -> Charge:
    """The charge after an active run of the data set, if there is one, has finished."""
    try:
        with ledger.lock(dataset):
            pass
    except LedgerError:  # an auditor may lack permission to lock the data set
        return charge
    return ledger.charge_of(dataset, charge.release) or charge


def _check_unpublished(archive: Archive, dataset: str, charge: Charge) -> str:
    """Check that the bundle does not exist, and that the ledger says why."""
    place = archive.release(dataset, charge.release)
    if archive.contains(place):
        raise wordings.bundle_unexpected(archive.display_path(place), charge.state)
    if charge.state.is_unfinished:
        raise families.STATE(
            "The release was charged and then interrupted, and the ledger does not record the "
            "failure.",
            "Repeat its request: the release is then finished, or recorded as spent.",
        )
    return "none, as recorded"


def _runs_without_charge(
    history: History, releases: Sequence[AuditedCharge]
) -> Iterator[Discrepancy]:
    """Runs in Prefect's history whose releases the ledger does not list as published."""
    published = {each.id for each in releases if each.charge.state.was_published}
    for name in sorted(history.runs.keys() - published):
        yield Discrepancy(
            name,
            families.UNKNOWN_BUNDLE(
                "The release was published by the flow runs {runs}, but the ledger does "
                "not have it.",
                "Restore the ledger that these runs charged.",
                runs=tuple(history.runs[name]),
            ),
        )


def _forgotten_runs(releases: Iterable[AuditedCharge]) -> Iterator[Notice]:
    """Published releases whose runs are no longer in Prefect's history."""
    for each in releases:
        if each.charge.state.was_published and not each.runs:
            yield families.RECORDED(
                "{release}: its flow run is no longer in Prefect's history.",
                release=each.id,
            )


def audit(context: Context, history: History | None, folder: Path) -> tuple[Path, list[str]]:
    """Audit a home and write the report; returns the page and the discrepancies, in words."""
    result = make_audit(context, history)
    return write_audit(context, result, folder), [str(each) for each in result.discrepancies]
