"""Check a journal: every entry follows from those before it, and all charges fit the budget."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from gramercy.ledger.entry import (
    BUDGET_CHANGES,
    DERIVED,
    DERIVED_KINDS,
    FIRST_PREVIOUS,
    LEDGER_KINDS,
    RELEASE_KINDS,
    Entry,
    numbering,
)
from gramercy.ledger.series import SeriesAccount
from gramercy.mechanisms.accounting.composition import NO_CHARGES, Filter, Total
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from gramercy.schemas.budget import Budget, budget_window
from gramercy.schemas.errors import RequestError, UntrustedLedger
from gramercy.schemas.ledger_history import Anchor, ChargeState, SeriesStep
from gramercy.schemas.model import digest
from gramercy.schemas.problem import Notice, Wording


def _changed(sentence: str) -> Wording[Notice]:
    """What is wrong with an entry; called with the facts in the sentence."""
    return Wording(
        families.ENTRY,
        sentence,
        "Find out who can write to the ledger's database, keep a copy of it, and restore it from a "
        "backup; the bundles may be right. See docs/how-to/verify.md.",
    )


@dataclass(frozen=True)
class Finding:
    """An inconsistency in a ledger."""

    entry: int  # number of the entry, or of the first one that is missing
    subject: str  # the data set or the release that it is about, or `ledger`
    notice: Notice  # what is wrong


@dataclass
class _Dataset:
    """The state of a data set after the entries read so far."""

    budget: Budget
    rule: Filter
    rows: int
    charge_count: int = 0
    numbers: Counter[str] = field(default_factory=Counter)  # the last, by `numbering` of versions
    # Whether all numbers are those of the charges of the data set, as Gramercy numbered at first
    by_turn: bool = True
    totals: dict[str, Total] = field(default_factory=dict)
    # Charges since the last change of the budget, with the total after each, by window.
    since: dict[str, list[tuple[Entry, Total]]] = field(default_factory=dict)
    states: dict[str, ChargeState] = field(default_factory=dict)
    # Series by window and digest.
    series: dict[tuple[str, str], _Series] = field(default_factory=dict)


@dataclass
class _Series:
    """A cumulative series after the entries read so far."""

    first: Entry
    charged: list[SeriesStep] = field(default_factory=list)
    releases: dict[int, list[str]] = field(default_factory=dict)  # by step

    def states(self, step: int, dataset: _Dataset) -> list[ChargeState]:
        """The present states of the releases of a step."""
        return [dataset.states[release] for release in self.releases.get(step, [])]


def find_inconsistencies(
    journal: Iterable[Entry], head: Anchor, anchors: Iterable[Anchor]
) -> list[Finding]:
    """All inconsistencies of a journal; a change to any entry is found and named."""
    findings: list[Finding] = []
    datasets: dict[str, _Dataset] = {}
    expected, previous = 1, FIRST_PREVIOUS
    anchored: dict[int, set[str]] = {}
    for each in anchors:
        if each.ledger == head.ledger:
            anchored.setdefault(each.seq, set()).add(each.hash)
    for entry in journal:
        notices = list(_chain_errors(entry, expected, previous))
        if anchored.pop(entry.seq, {entry.hash}) != {entry.hash}:
            notices.append(
                _changed("Entry {entry} differs from its anchor outside the ledger.")(entry.seq)
            )
        try:
            notices += _accounting_errors(entry, datasets, findings)
        except (UntrustedLedger, RequestError, TypeError):
            notices.append(
                families.ENTRY(
                    "Entry {entry} is malformed.",
                    "It was changed after it was written.",
                    entry=entry.seq,
                )
            )
        findings += [Finding(entry.seq, entry.subject, notice) for notice in notices]
        expected, previous = entry.seq + 1, entry.hash
    findings += [finding for dataset in datasets.values() for finding in _overspent(dataset)]
    last = expected - 1
    if (last, previous) != (head.seq, head.hash):
        findings.append(
            Finding(
                expected,
                "ledger",
                _changed("The ledger ends at entry {last}, but its head names entry {head}.")(
                    last, head.seq
                ),
            )
        )
    for seq in sorted(anchored):
        findings.append(
            Finding(
                expected,
                "ledger",
                _changed(
                    "The ledger ends at entry {last}, but there is an anchor of entry {anchored}."
                )(last, seq),
            )
        )
    return findings


def _chain_errors(entry: Entry, expected: int, previous: str) -> Iterator[Notice]:
    if entry.seq != expected:
        yield _changed("Entries are missing before entry {entry}: {count}.")(
            entry.seq, entry.seq - expected
        )
    if entry.previous != previous:
        yield _changed("Entry {entry} does not follow from the entry before it.")(entry.seq)
    if entry.digest() != entry.hash:
        yield _changed("Entry {entry} was changed: its hash does not match its content.")(entry.seq)


def _accounting_errors(
    entry: Entry, datasets: dict[str, _Dataset], findings: list[Finding]
) -> Iterator[Notice]:
    """Whether budget, total and state follow from all entries before."""
    if (entry.kind in LEDGER_KINDS) != (entry.dataset is None):
        yield _changed("Entry {entry} of kind '{kind}' has the wrong subject.")(
            entry.seq, entry.kind
        )
    if (entry.kind == "opened") != (entry.seq == 1):
        yield _changed(
            "Entry {entry} is of kind '{kind}'; the first entry alone must open the ledger."
        )(entry.seq, entry.kind)
    if entry.dataset is None:
        return
    dataset = datasets.get(entry.dataset)
    if entry.kind == "registered":
        if dataset is not None:
            yield _changed("Entry {entry} registers its data set a second time.")(entry.seq)
        rows = entry.fact("rows", int)
        datasets[entry.dataset] = dataset = _Dataset(entry.budget, entry.rule, rows)
        yield from _delta_errors(entry, dataset)
    elif dataset is None:
        yield _changed("Entry {entry} is about a data set that was not registered.")(entry.seq)
    elif entry.kind in BUDGET_CHANGES:
        findings += _overspent(dataset)
        yield from _budget_change_errors(entry, dataset)
    elif entry.kind == ChargeState.RESERVED:
        yield from _charge_errors(entry, dataset)
    else:
        yield from _state_errors(entry, dataset)


def _state_errors(entry: Entry, dataset: _Dataset) -> Iterator[Notice]:
    release, kind = str(entry.release), entry.kind
    state = dataset.states.get(release)
    if kind == DERIVED:
        artifact, *_ = [entry.fact(name, str) for name in ("artifact", "name", "sha256")]
        allowed = state and state.was_published and artifact in DERIVED_KINDS
    else:
        allowed = kind in RELEASE_KINDS and state in ChargeState(kind).before
    if not allowed:
        yield _changed(
            "Entry {entry} changes a release from {state} to {new_state}, which is not allowed."
        )(entry.seq, state or "unknown", kind)
    if kind in RELEASE_KINDS:
        dataset.states[release] = ChargeState(kind)


def _delta_errors(entry: Entry, dataset: _Dataset) -> Iterator[Notice]:
    if dataset.budget.delta >= 1 / dataset.rows:
        yield _changed("Entry {entry} sets a budget whose delta is 1/rows or more.")(entry.seq)


def _budget_change_errors(entry: Entry, dataset: _Dataset) -> Iterator[Notice]:
    """A budget is raised or lowered in both parts, and stays per the same period."""
    before, after = dataset.budget, entry.budget
    grows = (after.epsilon >= before.epsilon, after.delta >= before.delta)
    shrinks = (after.epsilon <= before.epsilon, after.delta <= before.delta)
    if not all(grows if entry.kind == "raised" else shrinks) or before.per != after.per:
        yield _changed("Entry {entry} is of kind '{kind}', but changes the budget in another way.")(
            entry.seq, entry.kind
        )
    dataset.budget, dataset.rule, dataset.rows = after, entry.rule, entry.fact("rows", int)
    yield from _delta_errors(entry, dataset)


def _charge_errors(entry: Entry, dataset: _Dataset) -> Iterator[Notice]:
    version, window = entry.fact("version", str), str(entry.window)
    total = dataset.totals.get(window, NO_CHARGES).plus(entry.guarantee)
    dataset.charge_count += 1
    if (entry.total, entry.fact("turn", int)) != (total, dataset.charge_count):
        yield _changed("Entry {entry} states a total that is not the sum of all charges up to it.")(
            entry.seq
        )
    if window != budget_window(dataset.budget, version):
        yield _changed(
            "Entry {entry} is charged to the period '{window}', but its version is of "
            "another period."
        )(entry.seq, window)
    dataset.by_turn &= entry.release == f"{version}-r{dataset.charge_count}"
    number = dataset.charge_count if dataset.by_turn else dataset.numbers[numbering(version)] + 1
    dataset.numbers[numbering(version)] = number
    if entry.release != f"{version}-r{number}" or entry.release in dataset.states:
        yield _changed("Entry {entry} charges a release whose number is out of sequence.")(
            entry.seq
        )
    if (step := entry.series) is not None:
        yield from _step_errors(entry, step, dataset)
    dataset.totals[window] = total
    if not entry.is_included:
        dataset.since.setdefault(window, []).append((entry, total))
    dataset.states[str(entry.release)] = ChargeState.RESERVED


def _step_errors(entry: Entry, step: SeriesStep, dataset: _Dataset) -> Iterator[Notice]:
    """The first charge of a series is for its window, and later ones for what they add to it."""
    series = dataset.series.setdefault((str(entry.window), step.series), _Series(entry))
    if series.first is entry:
        yield from _first_step_errors(entry, step)
    else:
        yield from _later_step_errors(entry, step, series, dataset)
    before = [series.states(each, dataset) for each in range(1, step.step)]
    if not all(ChargeState.PUBLISHED in states for states in before):
        yield _changed(
            "Entry {entry} charges step {step} of a series before all steps before it are "
            "published."
        )(entry.seq, step.step)
    series.charged.append(step)
    series.releases.setdefault(step.step, []).append(str(entry.release))


def _first_step_errors(entry: Entry, step: SeriesStep) -> Iterator[Notice]:
    registered = entry.registered_series or {}
    boundaries = registered.get("boundaries")
    is_whole = isinstance(boundaries, list) and len(boundaries) == step.steps + 1
    if not is_whole or digest(registered) != step.terms:
        yield _changed(
            "Entry {entry} is the first charge of a series of {steps} steps, but does not register "
            "their dates."
        )(entry.seq, step.steps)
    guarantee = entry.guarantee
    if entry.is_included or guarantee != Guarantee(guarantee.mu):
        yield _changed(
            "Entry {entry} is the first charge of a series, but charges mu={mu:.4g} in place of "
            "the guarantee of its window."
        )(entry.seq, guarantee.mu)


def _later_step_errors(
    entry: Entry, step: SeriesStep, series: _Series, dataset: _Dataset
) -> Iterator[Notice]:
    first = series.first
    if entry.registered_series is not None or replace(step, step=1, included="") != first.series:
        yield _changed(
            "Entry {entry} charges a step of a series, but entry {first} registered the series "
            "with other facts."
        )(entry.seq, first.seq)
        return
    if not all(state.is_closed for state in series.states(step.step, dataset)):
        yield _changed(
            "Entry {entry} charges step {step} of a series again, which is neither spent nor "
            "withdrawn."
        )(entry.seq, step.step)
    price = SeriesAccount.of(first.guarantee, series.charged).price(step.step)
    stated = (first.release, first.guarantee) if entry.is_included else ("", price)
    if entry.guarantee != price or (step.included, entry.stated_guarantee) != stated:
        yield _changed(
            "Entry {entry} charges step {step} of a series mu={mu:.4g} in place of mu={price:.4g}."
        )(entry.seq, step.step, entry.stated_guarantee.mu, price.mu)


def _overspent(dataset: _Dataset) -> Iterator[Finding]:
    """The first charge of every window that did not fit the budget of its time.

    Sums only grow: where the last one fits, all before it did.
    """
    rule = dataset.rule
    for charges in dataset.since.values():
        fitting = bisect.bisect_left(
            charges, 1, key=lambda each: not rule.admits(each[1].guarantee)
        )
        if fitting < len(charges):
            entry, _ = charges[fitting]
            yield Finding(
                entry.seq,
                entry.subject,
                _changed("Entry {entry} exceeds the budget that applied at its time.")(entry.seq),
            )
    dataset.since.clear()
