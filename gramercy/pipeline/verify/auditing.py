"""Audit a home: whether ledger, archive and run history agree.

An audit reads everything and changes nothing, apart from its report. An entry's hash depends on all
entries before it. So a signed anchor, a signed release that states the ledger's head, or an anchor
in Prefect's history reveals any change to the entries up to it.
"""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gramercy.archive.bundles.bundle_kinds import read_release_manifest
from gramercy.archive.seal.anchors import newest_of
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import is_page
from gramercy.archive.store.opening import Witness
from gramercy.common.disk import make_folder
from gramercy.common.extras import publishing
from gramercy.common.home import Home
from gramercy.ledger import Charge, Ledger, Statement
from gramercy.ledger.entry import datasets_with_same_source
from gramercy.ledger.integrity import Finding
from gramercy.pipeline.context import Context, verify_ledger_anchor
from gramercy.pipeline.page_links import archive_links
from gramercy.pipeline.publish.approval import approvers, signer_of
from gramercy.pipeline.verify.verification import listing_problem, verify_release
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import (
    ArchiveError,
    GramercyError,
    Invalid,
    LedgerError,
    UntrustedLedger,
)
from gramercy.schemas.ledger_history import Anchor, ChargeState, History
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
    """Audit a home."""
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
    _audit_approvals(context, ledger, audit)
    files = archive.other_files()
    audit.discrepancies += _unexpected_files(archive, bundles, files, charged)
    # What is wrong with the listing or the pages, beyond the releases that are wrong.
    intact = {
        (each.dataset, each.charge.release)
        for each in audit.releases
        if each.charge.state.was_published and each.bundle != _WRONG
    }
    others = set(bundles) - intact
    of_intact = [name for name in files if tuple(name.split("/")[:2]) not in others]
    if (problem := listing_problem(archive, intact, ledger, of_intact)) is not None:
        audit.discrepancies.append(Discrepancy("listing", problem))
    audit.notes += [*check.notes, *_steward_changes(ledger), *_shared_tables(ledger)]
    if history is not None:
        published = [each for each in audit.releases if each.charge.state.was_published]
        audit.discrepancies += [
            Discrepancy(
                name,
                families.UNKNOWN_BUNDLE(
                    "The release was published by the flow runs {runs}, but the ledger does "
                    "not have it.",
                    "Restore the ledger that these runs charged.",
                    runs=tuple(history.runs[name]),
                ),
            )
            for name in sorted(history.runs.keys() - {each.id for each in published})
        ]
        audit.notes += [
            families.RECORDED(
                "{release}: its flow run is no longer in Prefect's history.", release=each.id
            )
            for each in published
            if not each.runs
        ]
        audit.notes += history.elsewhere
    return audit


def _audit_approvals(context: Context, ledger: Ledger, audit: Audit) -> None:
    """Compare approvals with what was charged, and note charges without one and unknown keys."""
    known, unknown = approvers(context.home), set[str]()
    for entry in ledger.approved_charges():
        with contextlib.suppress(UntrustedLedger):  # reported with the charges
            public = signer_of(entry, audit.head.ledger)
            if public is None:
                problem = families.ENTRY(
                    "The approval in entry {entry} is not signed for its charge.",
                    "Find out who can write to the ledger's database.",
                    entry=entry.seq,
                )
                audit.discrepancies.append(Discrepancy(entry.subject, problem))
            elif known.get(public) != entry.approved["by"]:
                unknown.add(entry.approved["by"])
    if unknown:
        audit.notes.append(
            families.RECORDED(
                "Keys that are not registered here, or no longer, have approved charges: {names}.",
                names=tuple(sorted(unknown)),
            )
        )
    approved, without = set[str](), list[str]()
    for each in audit.releases:
        if each.charge.approved_by:
            approved.add(each.dataset)
        elif each.dataset in approved:
            without.append(each.id)
    if without:
        audit.notes.append(
            families.RECORDED(
                "Charged without an approval, after others of the same data set that have one: "
                "{releases}.",
                releases=tuple(without),
            )
        )


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
            place = archive.release(dataset, charge.release)
            if archive.contains(place):
                raise wordings.bundle_unexpected(archive.display_path(place), charge.state)
            if charge.state.is_unfinished:
                raise families.STATE(
                    "The release was charged and then interrupted, and the ledger does not record "
                    "the failure.",
                    "Repeat its request: the release is then finished, or recorded as spent.",
                )
            return "none, as recorded", None
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


def audit(context: Context, history: History | None, folder: Path) -> tuple[Path, list[str]]:
    """Audit a home and write the report; returns the page and the discrepancies, in words."""
    result = make_audit(context, history)
    return write_audit(context, result, folder), [str(each) for each in result.discrepancies]


with publishing():
    from gramercy.common.notation import message_in_symbols
    from gramercy.reports.steward_pages import audit_page


@dataclass(frozen=True)
class Discrepancy:
    """A contradiction between ledger, archive and run history."""

    subject: str  # the release, the data set, the file, or `ledger`
    problem: GramercyError | Notice  # what is wrong

    def __str__(self) -> str:
        return f"{self.subject}: {self.words} ({self.code})"

    @property
    def words(self) -> str:
        """The problem as a message."""
        return self.problem.message

    @property
    def code(self) -> str:
        """The stable code of the problem."""
        return self.problem.code


@dataclass(frozen=True)
class AuditedCharge:
    """A charge, and the state of its bundle."""

    dataset: str  # id of the data set
    charge: Charge  # the charge in the ledger
    bundle: str  # the state of the bundle, in a few words
    # names of the flow runs that published it; None if the history was left out
    runs: tuple[str, ...] | None

    @property
    def id(self) -> str:
        """``<dataset>/<release>``."""
        return f"{self.dataset}/{self.charge.release}"


@dataclass
class Audit:
    """The result of an audit."""

    # ledger, archive: locations of the ledger and the archive
    ledger: str
    archive: str
    head: Anchor  # the last entry of the ledger
    at: str  # time of the audit, UTC, ISO 8601
    history: bool = False  # whether Prefect's history was included
    # number of anchors of the ledger that were found outside of it, by where they were found
    anchors: dict[str, int] = field(default_factory=dict)
    # (data set, statement) of every budget
    statements: list[tuple[str, Statement]] = field(default_factory=list)
    # every charge, in the order of the ledger
    releases: list[AuditedCharge] = field(default_factory=list)
    discrepancies: list[Discrepancy] = field(default_factory=list)  # all contradictions
    # facts for the auditor to consider or confirm; they are not contradictions
    notes: list[Notice | str] = field(default_factory=list)


def audit_facts(audit: Audit) -> dict[str, Any]:
    """An audit as plain data, without the private fingerprints in the ledger."""
    return {
        "at": audit.at,
        "ledger": audit.ledger,
        "archive": audit.archive,
        "head": audit.head.model_dump(),
        "anchors": audit.anchors,
        "runs": audit.history,
        "discrepancies": [
            {"subject": each.subject, "words": each.words, "code": each.code}
            for each in audit.discrepancies
        ],
        "notes": [str(note) for note in audit.notes],
        "budgets": [{"dataset": name, **each.facts()} for name, each in audit.statements],
        "releases": [_release_facts(each) for each in audit.releases],
    }


def _release_facts(each: AuditedCharge) -> dict[str, Any]:
    runs = None if each.runs is None else list(each.runs)
    return each.charge.facts() | {"release": each.id, "bundle": each.bundle, "runs": runs}


def new_audit_folder(home: Home) -> Path:
    """A folder in the home for the report of an audit made now."""
    now = datetime.datetime.now(datetime.UTC)
    return home.audits / now.strftime("%Y-%m-%dT%H%M%SZ")


def write_audit(context: Context, audit: Audit, folder: Path) -> Path:
    """Write ``audit.html`` and ``audit.json``; returns the page."""
    facts = audit_facts(audit)
    make_folder(folder, 0o700)
    (folder / "audit.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    page = folder / "audit.html"
    found = [
        {"subject": each.subject, "words": message_in_symbols(each.problem), "code": each.code}
        for each in audit.discrepancies
    ]
    notes = [
        each if isinstance(each, str) else f"{each.code}: {message_in_symbols(each)}"
        for each in audit.notes
    ]
    shown = facts | {"discrepancies": found, "notes": notes}
    page.write_text(audit_page(shown, archive_links(context, page)), encoding="utf-8")
    return page


@dataclass
class LedgerCheck:
    """The result of comparing a ledger with its anchors."""

    # (subject, problem) of each contradiction: a data set, a release, or `ledger`
    problems: list[tuple[str, GramercyError | Notice]] = field(default_factory=list)
    notes: list[Notice] = field(default_factory=list)  # what is not a contradiction
    # the number of anchors that were found, by where they were found
    anchors: dict[str, int] = field(default_factory=dict)


def check_ledger(
    ledger: Ledger,
    archive: Archive,
    releases: Iterable[tuple[str, str]],
    witness: Witness | None,
    history: History | None = None,
    *,
    of_copy: bool = False,
) -> LedgerCheck:
    """Check a ledger itself, and against the archive, its releases, witness and history."""
    check, head = LedgerCheck(), ledger.head()
    found: dict[str, list[Anchor]] = {
        "archive": [],
        "releases": list(_anchors_of_releases(archive, releases, head.ledger)),
    }
    try:
        anchor = archive.anchor()
        if anchor is not None and anchor.ledger == head.ledger:
            found["archive"].append(anchor)  # `find_inconsistencies` compares it with the entries
        else:
            verify_ledger_anchor(ledger, archive)
    except (LedgerError, Invalid) as error:
        check.problems.append(("ledger", error))
    if witness is not None:
        found["witness"] = []
        try:
            found["witness"] += witness.all()
            if found["witness"]:
                newest = newest_of(found["witness"], witness.location)
                if newest.ledger != head.ledger:
                    ledger.verify_anchor(newest, witness.location)
        except (LedgerError, Invalid, ArchiveError) as error:
            check.problems.append(("ledger", error))
    if history is not None:
        found["history"] = list(history.anchors)
    check.anchors = {place: len(anchors) for place, anchors in found.items()}
    findings = ledger.find_inconsistencies([each for of in found.values() for each in of])
    check.problems += _one_for_each_kind(findings)
    original = ledger.original_location()
    if original is not None and of_copy:
        check.notes.append(
            families.RECORDED(
                "This is a copy, which was only read: the ledger was in the file {location}.",
                "Audit the original as well, which may have entries that are newer.",
                location=original,
            )
        )
    elif original is not None:
        check.problems.append(("ledger", wordings.ledger_copied(ledger.location, original)))
    return check


def _one_for_each_kind(findings: Iterable[Finding]) -> Iterator[tuple[str, Notice]]:
    """(subject, problem) of each kind of inconsistency, which one cause may show in every entry."""
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(finding.notice.code, []).append(finding)
    for alike in kinds.values():
        first, count = alike[0], len({each.entry for each in alike})
        if count == 1:
            yield from ((each.subject, each.notice) for each in alike)
            continue
        subject = first.subject if len({each.subject for each in alike}) == 1 else "ledger"
        words = f"{first.notice.code}: {first.notice.sentence}"
        yield (
            subject,
            families.ENTRY(
                "{count} entries, from entry {entry} to entry {last}, have the same "
                "problem. The first is {first}",
                "Find out who can write to the ledger's database, keep a copy of it, and "
                "restore it from a backup; the bundles may be right. See "
                "docs/how-to/verify.md.",
                count=count,
                entry=first.entry,
                last=alike[-1].entry,
                first=words,
            ),
        )


def _anchors_of_releases(
    archive: Archive, releases: Iterable[tuple[str, str]], ledger: str
) -> Iterator[Anchor]:
    """The heads of this ledger that signed releases state; unreadable releases are skipped."""
    for dataset, release in releases:
        try:
            folder = archive.metadata_path(dataset, release)
            if folder is None:
                continue
            archive.verify_signer(folder)
            stated = read_release_manifest(folder).ledger
        except (Invalid, ArchiveError):  # reported by the check of the release
            continue
        if stated is not None and stated.ledger == ledger:
            yield stated.anchor
