"""Examine a journal: every entry follows from those before it, and all of them fit the budget."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gramercy.ledger.entry import BEFORE, CHANGED, NONE, OF_LEDGERS, Entry
from gramercy.mechanisms.accounting.composition import NOTHING, AdaptiveShare, Filter, Total
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.budget import Budget, window_of
from gramercy.schemas.errors import RequestError, UntrustedLedger


@dataclass(frozen=True)
class Finding:
    """Something in a ledger that cannot be.

    Parameters
    ----------
    entry
        Number of the entry, or of the first one that is missing.
    subject
        The data set or the release that it is about; else ``ledger``.
    words
        What is wrong.
    """

    entry: int
    subject: str
    words: str


@dataclass
class _Dataset:
    """What the entries so far make of a data set."""

    budget: Budget
    rule: Filter | AdaptiveShare
    rows: int
    turns: int = 0
    totals: dict[str, Total] = field(default_factory=dict)
    since: dict[str, list[tuple[Entry, Total]]] = field(default_factory=dict)  # the last budget
    states: dict[str, str] = field(default_factory=dict)


def examine(journal: Iterable[Entry], last: Anchor, anchors: Iterable[Anchor]) -> list[Finding]:
    """Everything that is wrong with a journal; a change to any entry is found and named.

    Parameters
    ----------
    journal
        All its entries, in order.
    last
        Where the ledger says it ends.
    anchors
        Where it stood before, as told outside of it.
    """
    findings: list[Finding] = []
    datasets: dict[str, _Dataset] = {}
    expected, previous = 1, NONE
    outside = {each.seq: each.hash for each in anchors if each.ledger == last.ledger}
    for entry in journal:
        said = list(_chained(entry, expected, previous))
        if outside.pop(entry.seq, entry.hash) != entry.hash:
            said.append("is another entry than its anchor outside the ledger was made from")
        try:
            said += _accounted(entry, datasets, findings)
        except (UntrustedLedger, RequestError, TypeError):
            said.append("does not say what such an entry says")
        findings += [Finding(entry.seq, _subject(entry), words) for words in said]
        expected, previous = entry.seq + 1, entry.hash
    findings += [finding for known in datasets.values() for finding in _overspent(known)]
    if (expected - 1, previous) != (last.seq, last.hash):
        words = f"the journal ends at entry {expected - 1}, and its head says {last.seq}"
        findings.append(Finding(expected, "ledger", words))
    for seq in sorted(outside):
        words = f"ends at entry {expected - 1}, and its anchor outside has seen entry {seq}"
        findings.append(Finding(expected, "ledger", words))
    return findings


def _subject(entry: Entry) -> str:
    return entry.subject or "ledger"


def _chained(entry: Entry, expected: int, previous: str) -> Iterator[str]:
    if entry.seq != expected:
        missing = f"entry {expected}" if entry.seq == expected + 1 else f"entries from {expected}"
        yield f"{missing} before it is missing"
    if entry.previous != previous:
        yield "does not follow the entry before it"
    if entry.digest() != entry.hash:
        yield "was changed: its hash is of something else"


def _accounted(
    entry: Entry, datasets: dict[str, _Dataset], findings: list[Finding]
) -> Iterator[str]:
    """Whether budget, total and state are what all entries before make of them."""
    if (entry.kind in OF_LEDGERS) != (entry.dataset is None):
        yield "is of a kind that says nothing of what it is about"
    if (entry.kind == "opened") != (entry.seq == 1):
        yield "opens the ledger, or does not, in the wrong place"
    if entry.dataset is None:
        return
    known = datasets.get(entry.dataset)
    if entry.kind == "registered":
        if known is not None:
            yield "registers its data set again"
        rows = entry.says("rows", int)
        datasets[entry.dataset] = known = _Dataset(entry.budget, entry.rule, rows)
        yield from _bounded(known)
    elif known is None:
        yield "is about a data set that was never registered"
    elif entry.kind in CHANGED:
        findings += _overspent(known)
        yield from _changed(entry, known)
    elif entry.kind == "reserved":
        yield from _charged(entry, known)
    else:
        state = known.states.get(str(entry.release), "unknown")
        if state not in BEFORE.get(entry.kind, ()):
            yield f"is {entry.kind} after it was {state}"
        known.states[str(entry.release)] = entry.kind


def _bounded(known: _Dataset) -> Iterator[str]:
    if known.budget.delta >= 1 / known.rows:
        yield "has a budget whose delta is 1/rows or more"


def _changed(entry: Entry, known: _Dataset) -> Iterator[str]:
    """A budget is raised or lowered, in neither part the other way, and stays what it is per."""
    before, after = known.budget, entry.budget
    grows = (after.epsilon >= before.epsilon, after.delta >= before.delta)
    shrinks = (after.epsilon <= before.epsilon, after.delta <= before.delta)
    if not all(grows if entry.kind == "raised" else shrinks) or before.per != after.per:
        yield f"is called {entry.kind}, and is another change"
    if isinstance(entry.rule, AdaptiveShare) and isinstance(known.rule, Filter):
        yield "goes back to the rule of version 0.1"
    known.budget, known.rule, known.rows = after, entry.rule, entry.says("rows", int)
    yield from _bounded(known)


def _charged(entry: Entry, known: _Dataset) -> Iterator[str]:
    version, window = entry.says("version", str), str(entry.window)
    total = known.totals.get(window, NOTHING).plus(entry.guarantee)
    known.turns += 1
    if (entry.total, entry.says("turn", int)) != (total, known.turns):
        yield "does not add up: its total is not that of all charges before and its own"
    if window != window_of(known.budget, version):
        yield f"is charged to '{window}', and not to the year of its version"
    if entry.release != f"{version}-r{known.turns}" or entry.release in known.states:
        yield "is a charge for another release than it is the turn of"
    known.totals[window] = total
    known.since.setdefault(window, []).append((entry, total))
    known.states[str(entry.release)] = "reserved"


def _overspent(known: _Dataset) -> Iterator[Finding]:
    """The first charge of every window that the budget in force did not hold.

    Sums only grow: where the last one fits, so did all before it.
    """
    rule = known.rule
    for spent in known.since.values():
        fits = bisect.bisect_left(spent, 1, key=lambda each: not rule.admits(each[1].guarantee))
        if fits < len(spent):
            entry, _ = spent[fits]
            words = "its total is more than the budget that was in force"
            yield Finding(entry.seq, _subject(entry), words)
    known.since.clear()
