"""Audit a home: ledger, archive and run history have to tell one story.

Reads everything and changes nothing: neither charges nor bundles, whatever it finds.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gramercy.application.affected import affected
from gramercy.application.audit_record import Audit, Audited, Discrepancy, write_audit
from gramercy.application.context import Context, hold_to_archive
from gramercy.application.verification import verify_release
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import read_release
from gramercy.archive.withdrawal_notice import read_withdrawal
from gramercy.ledger import Charge, Ledger
from gramercy.ledger.sources import sharing
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import (
    ArchiveError,
    Invalid,
    LedgerError,
    RequestError,
    UntrustedLedger,
)
from gramercy.schemas.run_history import History

_UNFINISHED = {"reserved", "drawn", "sealed"}
_MADE = {"published", "withdrawn"}


def make_audit(
    context: Context,
    history: History | None = None,
    on_release: Callable[[str], None] = lambda _: None,
    trusted: frozenset[str] | None = None,
) -> Audit:
    """Audit a home.

    Parameters
    ----------
    context
        Its ledger and archive.
    history
        What Prefect remembers; None where it is not to be asked.
    on_release
        Is told every release before it is verified.
    trusted
        Public keys, in hexadecimal; default: those of the home.

    Raises
    ------
    RequestError
        If there is no ledger.
    LedgerError, ArchiveError
        If ledger or archive cannot be read at all.
    """
    ledger = context.known_ledger
    archive = context.archive if trusted is None else replace(context.archive, trusted=trusted)
    if ledger is None:
        raise RequestError(
            f"{context.home.ledger}: there is no ledger.",
            "Set GRAMERCY_HOME or GRAMERCY_LEDGER_URL to where it is.",
        )
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    audit = Audit(ledger.where, archive.where, ledger.head(), now, history is not None)
    lying = archive.releases()  # first: what is published meanwhile has its charge by then
    audit.discrepancies += _chain(ledger, archive, history, audit)
    charged: set[tuple[str, str]] = set()
    for dataset in ledger.datasets():
        charged |= {(dataset, release) for release in ledger.releases(dataset)}
        try:
            audit.statements += [(dataset, each) for each in ledger.statements(dataset)]
            charges = ledger.charges(dataset)
        except UntrustedLedger as found:  # its entries are named above, one by one
            audit.discrepancies.append(Discrepancy(dataset, str(found)))
            continue
        for charge in charges:
            on_release(f"{dataset}/{charge.release}")
            audit.releases.append(_audited(ledger, archive, dataset, charge, history, audit))
    audit.discrepancies += _strangers(archive, lying, charged)
    audit.notes += [*_changes(ledger), *_shared(ledger)]
    with contextlib.suppress(UntrustedLedger):  # found by the examination already
        audit.notes += affected(ledger, archive)
    if history is not None:
        audit.discrepancies += _unknown_runs(history, audit.releases)
        audit.notes += [*_lost_runs(audit.releases), *history.elsewhere]
    return audit


def _chain(
    ledger: Ledger, archive: Archive, history: History | None, audit: Audit
) -> Iterator[Discrepancy]:
    """Whether the journal is whole, and agrees with whoever was told of it."""
    anchors: list[Anchor] = list(history.anchors) if history else []
    try:
        told = archive.anchor()
        if told is not None and told.ledger == audit.head.ledger:
            anchors.append(told)  # it is examined with the journal, entry by entry
        else:
            hold_to_archive(ledger, archive)
    except (LedgerError, Invalid) as found:
        yield Discrepancy("ledger", str(found))
    audit.anchors = len(anchors)
    for finding in ledger.examine(anchors):
        yield Discrepancy(finding.subject, f"entry {finding.entry} {finding.words}")
    if (moved := ledger.elsewhere()) is not None:
        yield Discrepancy("ledger", f"is a copy: it belongs at {moved}")


def _strangers(
    archive: Archive, lying: Iterable[tuple[str, str]], charged: set[tuple[str, str]]
) -> Iterator[Discrepancy]:
    """What lies in the archive, and nobody who charges has put there."""
    if lying and not archive.trusted:
        words = "no public key is known: nobody can say whose bundles these are; name it: --key"
        yield Discrepancy("archive", words)
    for dataset, release in lying:
        if (dataset, release) not in charged:
            words = "a bundle lies in the archive, and the ledger has no charge for it"
            yield Discrepancy(f"{dataset}/{release}", words)
    for name in archive.strays():
        yield Discrepancy(name, "lies in the archive, and is part of no bundle")


def _changes(ledger: Ledger) -> Iterator[str]:
    """What a steward has done on his own word: it may be right, and should be looked at."""
    changes = ledger.changes()
    if upgraded := [entry for entry in changes if entry.states("upgraded")]:
        day = str(upgraded[0].at).partition("T")[0]
        yield f"On {day} the ledger was upgraded: a tenth of every delta is set aside for failures."
    for entry in changes:
        if entry.states("upgraded"):
            continue
        reason, day = "what was said is lost", str(entry.at).partition("T")[0]
        with contextlib.suppress(UntrustedLedger):  # found by the examination already
            reason = entry.says("reason", str)
        if entry.kind == "moved":
            yield f"On {day} the ledger was said to lie elsewhere, or its archive lost: {reason}"
        else:
            to = f"epsilon {entry.epsilon}, delta {entry.delta}"
            yield f"On {day} the budget of {entry.dataset} was {entry.kind} to {to}: {reason}"


def _shared(ledger: Ledger) -> Iterator[str]:
    """Tables that are read under several ids, each of which has a budget of its own."""
    sources: dict[str, set[str]] = {}
    with contextlib.suppress(UntrustedLedger):
        sources = ledger.sources()
    groups = {tuple(sorted([name, *sharing(sources, name)])) for name in sources}
    for group in sorted(each for each in groups if len(each) > 1):
        yield (
            f"{', '.join(group)} read the same table: each has a budget of its own, and together "
            "they may cost the sum of all."
        )


def _audited(
    ledger: Ledger,
    archive: Archive,
    dataset: str,
    charge: Charge,
    history: History | None,
    audit: Audit,
) -> Audited:
    """A charge held against the archive; what is wrong goes into the audit."""
    name = f"{dataset}/{charge.release}"
    bundle, wrong = _checked(ledger, archive, dataset, charge)
    if wrong and (now := _settled(ledger, dataset, charge)) != charge:
        charge = now  # somebody was at work on it
        bundle, wrong = _checked(ledger, archive, dataset, charge)
    audit.discrepancies += [Discrepancy(name, words) for words in wrong]
    runs = None if history is None else tuple(history.runs.get(name, ()))
    return Audited(dataset, charge, bundle, runs)


def _checked(
    ledger: Ledger, archive: Archive, dataset: str, charge: Charge
) -> tuple[str, list[str]]:
    check = _made if charge.state in _MADE else _nothing_made
    try:
        return check(ledger, archive, dataset, charge), []
    except (Invalid, ArchiveError, UntrustedLedger) as found:
        return "wrong", [str(found)]


def _settled(ledger: Ledger, dataset: str, charge: Charge) -> Charge:
    """The charge once whoever is at work on it, if anyone is, has finished."""
    try:
        with ledger.alone(dataset):
            pass
    except LedgerError:  # an auditor may not be allowed to take turns
        return charge
    return ledger.charge_of(dataset, charge.release) or charge


def _made(ledger: Ledger, archive: Archive, dataset: str, charge: Charge) -> str:
    """A bundle is there, is the one that was charged, and says what follows from what was asked."""
    verify_release(archive, dataset, charge.release, ledger, beside=False)
    place = archive.withdrawal(dataset, charge.release)
    if archive.holds(place) != (charge.state == "withdrawn"):
        raise Invalid(f"{archive.shown(place)}: the ledger says '{charge.state}'.")
    if charge.state == "published":
        return "verified"
    notice = read_withdrawal(place).manifest
    released = read_release(archive.release(dataset, charge.release)).sha256
    if (notice.release_sha256, notice.reason) != (released, charge.reason):
        raise Invalid(f"{archive.shown(place)}: does not say what the ledger says.")
    return "verified, withdrawn"


def _nothing_made(ledger: Ledger, archive: Archive, dataset: str, charge: Charge) -> str:
    """No bundle is there, and the ledger says why."""
    place = archive.release(dataset, charge.release)
    if archive.holds(place):
        raise Invalid(f"{archive.shown(place)}: the ledger says '{charge.state}'.")
    if charge.state in _UNFINISHED:
        raise Invalid(
            "was charged and then interrupted, and its failure is not on record.",
            "Release the same request again: it is then finished, or recorded as spent.",
        )
    return "none, as recorded"


def _unknown_runs(history: History, releases: Sequence[Audited]) -> Iterator[Discrepancy]:
    known = {each.id for each in releases if each.charge.state in _MADE}
    for name in sorted(history.runs.keys() - known):
        runs = ", ".join(history.runs[name])
        yield Discrepancy(name, f"was published by run {runs}, and the ledger does not know it")


def _lost_runs(releases: Iterable[Audited]) -> Iterator[str]:
    for each in releases:
        if each.charge.state in _MADE and not each.runs:
            yield f"{each.id}: its flow run is no longer in Prefect's history."


def audit(context: Context, history: History | None, folder: Path) -> tuple[Path, list[str]]:
    """Audit a home and write the report; returns the page, and what does not agree, in words."""
    made = make_audit(context, history)
    page = write_audit(made, folder)
    return page, [f"{each.subject}: {each.words}" for each in made.discrepancies]
