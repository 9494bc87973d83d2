"""Examine a journal: every entry follows from those before it, and all of them fit the budget."""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ledger.entry import NONE, Entry
from mechanisms.composition import Total
from schemas.anchor import Anchor
from schemas.contract import Budget

# What a release must have been, to become this.
BEFORE = {
    "drawn": {"reserved"},
    "sealed": {"drawn"},
    "published": {"sealed"},
    "spent": {"reserved", "drawn", "sealed"},
    "withdrawn": {"published"},
}


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
    budget: Budget
    turns: int = 0
    totals: dict[str, Total] = field(default_factory=dict)
    spent: dict[str, list[tuple[Entry, Total]]] = field(default_factory=dict)
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
        except (ValueError, KeyError, TypeError):
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
    return "/".join(filter(None, (entry.dataset, entry.release))) or "ledger"


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
    if entry.dataset is None:
        return
    if entry.kind == "registered":
        if entry.dataset in datasets:
            yield "registers its data set again"
        datasets[entry.dataset] = _Dataset(entry.budget)
        return
    known = datasets.get(entry.dataset)
    if known is None:
        yield "is about a data set that was never registered"
    elif entry.kind == "raised":
        if entry.budget.epsilon < known.budget.epsilon or entry.budget.delta < known.budget.delta:
            yield "lowers its budget"
        findings += _overspent(known)
        known.budget = entry.budget
    elif entry.kind == "reserved":
        yield from _charged(entry, known)
    else:
        state = known.states.get(str(entry.release), "unknown")
        if state not in BEFORE[entry.kind]:
            yield f"is {entry.kind} after it was {state}"
        known.states[str(entry.release)] = entry.kind


def _charged(entry: Entry, known: _Dataset) -> Iterator[str]:
    window, told = str(entry.window), json.loads(entry.facts)
    before = known.totals.get(window, Total())
    after = before.plus(entry.guarantee)
    known.turns += 1
    if (told["total"], told["turn"]) != (str(after), known.turns):
        yield "does not add up: its total is not that of all charges before and its own"
    known.totals[window] = after
    known.spent.setdefault(window, []).append((entry, after))
    if entry.release in known.states:
        yield "is charged twice"
    known.states[str(entry.release)] = "reserved"


def _overspent(known: _Dataset) -> Iterator[Finding]:
    """The first charge of every window that the budget in force did not hold.

    Sums only grow: where the last one fits, so did all before it.
    """
    epsilon, delta = known.budget.epsilon, known.budget.delta
    for spent in known.spent.values():
        fits = bisect.bisect_left(spent, 1, key=lambda each: not each[1].within(epsilon, delta))
        if fits < len(spent):
            entry, _ = spent[fits]
            words = "its total is more than the budget that was in force"
            yield Finding(entry.seq, _subject(entry), words)
    known.spent.clear()
