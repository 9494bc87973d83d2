"""Compare a ledger with everything outside of it that remembers some of its entries.

An entry's hash depends on all entries before it. So a signed anchor, a signed release that states
the ledger's head, or an anchor in Prefect's history reveals any change to the entries up to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gramercy.archive.bundles.release_bundle import read_release_manifest
from gramercy.archive.seal.anchors import newest_of
from gramercy.archive.seal.witness import Witness
from gramercy.archive.store.archive import Archive
from gramercy.ledger import Ledger
from gramercy.ledger.integrity import Finding
from gramercy.pipeline.context import verify_ledger_anchor
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import ArchiveError, GramercyError, Invalid, LedgerError
from gramercy.schemas.ledger_history import Anchor, History
from gramercy.schemas.problem import Notice


@dataclass
class LedgerCheck:
    """The result of comparing a ledger with its anchors.

    Parameters
    ----------
    problems
        (subject, problem) of each contradiction: a data set, a release, or ``ledger``.
    notes
        What is not a contradiction.
    anchors
        The number of anchors that were found, by where they were found.
    """

    problems: list[tuple[str, GramercyError | Notice]] = field(default_factory=list)
    notes: list[Notice] = field(default_factory=list)
    anchors: dict[str, int] = field(default_factory=dict)

    def add_location(self, ledger: Ledger, *, of_copy: bool) -> None:
        """Add that the ledger is a copy, if it is one."""
        original = ledger.original_location()
        if original is not None and of_copy:
            self.notes.append(
                families.RECORDED(
                    "This is a copy, which was only read: the ledger was in the file {location}.",
                    "Audit the original as well, which may have entries that are newer.",
                    location=original,
                )
            )
        elif original is not None:
            self.problems.append(("ledger", wordings.ledger_copied(ledger.location, original)))


def check_ledger(
    ledger: Ledger,
    archive: Archive,
    releases: Iterable[tuple[str, str]],
    witness: Witness | None,
    history: History | None = None,
    *,
    of_copy: bool = False,
) -> LedgerCheck:
    """Check a ledger in itself and against the archive, its releases, the witness and the history.

    Parameters
    ----------
    ledger, archive
        The ledger, and the archive of its releases.
    releases
        (data set, release) of the releases to compare it with.
    witness
        The place outside of both that keeps anchors, if there is one.
    history
        Prefect's run history; None to leave it out.
    of_copy
        Whether a copy of the ledger is checked on purpose.

    Raises
    ------
    LedgerError
        If the ledger cannot be read at all.
    """
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
    check.add_location(ledger, of_copy=of_copy)
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
