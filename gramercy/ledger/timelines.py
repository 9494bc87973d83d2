"""The timeline of a budget: its changes and charges, in the order of the journal.

Epsilons are in double precision, rounded up: a ledger may have many thousands of them. Decisions
use `Statement` and `Guarantee`, which are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from gramercy.ledger.entry import RELEASE_KINDS, Entry
from gramercy.ledger.statement import Charge, Statement
from gramercy.mechanisms.accounting.composition import NO_CHARGES
from gramercy.mechanisms.accounting.gdp import approximate_epsilons
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.ledger_history import ChargeRecord, ChargeState, Event, EventKind, Timeline

_BUDGETS: dict[str, EventKind] = {
    "registered": "registered",
    "raised": "raised",
    "lowered": "lowered",
}


def timelines(
    dataset: str, journal: Iterable[Entry], mechanisms: Mapping[str, str]
) -> tuple[Timeline, ...]:
    """The timeline of a data set, or one for every calendar year of its data."""
    entries = list(journal)
    by_release: dict[str, list[Entry]] = {}
    for each in entries:
        if each.kind in RELEASE_KINDS:
            by_release.setdefault(str(each.release), []).append(each)
    windows = sorted({str(each.window) for each in entries if each.kind == ChargeState.RESERVED})
    made = []
    for window in windows or [""]:
        steps: list[_Step] = []
        total, budget = NO_CHARGES, entries[0].budget
        for entry in entries:
            if entry.kind in _BUDGETS:
                budget = entry.budget
                steps.append((entry, Statement(budget, total), None))
            elif entry.kind == ChargeState.RESERVED and entry.window == window:
                total = entry.total
                charge = Charge.of(by_release[str(entry.release)])
                steps.append((entry, Statement(budget, total), charge))
        made.append(Timeline(dataset, window, tuple(_events(steps, mechanisms))))
    return tuple(made)


# An entry of a budget or a charge; the budget and the sum of charges after it; and the charge.
_Step = tuple[Entry, Statement, Charge | None]


def _events(steps: Sequence[_Step], mechanisms: Mapping[str, str]) -> Iterator[Event]:
    # All epsilons at once, in half the time of one call for the sums and one for the charges.
    totals = [after.total for _, after, _ in steps]
    own = _own([(each.loss, after.budget.delta) for _, after, each in steps if each])
    both = [*zip(totals, _deltas([after for _, after, _ in steps], totals), strict=True), *own]
    epsilons = _epsilons([guarantee for guarantee, _ in both], [delta for _, delta in both])
    of_charges = iter(epsilons[len(steps) :])
    for (entry, after, charge), spent in zip(steps, epsilons[: len(steps)], strict=True):
        budget, record = after.budget, None
        if charge is None:
            kind, reason = _BUDGETS[entry.kind], entry.fact("reason", str)
        else:
            kind, reason = "charged", charge.reason
            record = ChargeRecord(
                charge.release,
                charge.version,
                charge.state,
                charge.guarantee.mu,
                charge.guarantee.delta0,
                charge.guarantee.pure,
                next(of_charges),
                mechanisms.get(charge.release, ""),
                charge.sha256,
                charge.series,
                charge.by,
                charge.approved_by,
            )
        yield Event(entry.at, kind, budget.epsilon, budget.delta, spent, reason, record)


def approximate_spent(statements: Sequence[Statement]) -> list[float]:
    """`Statement.spent` of each; at most 1e-7 larger, relatively or absolutely, and not smaller."""
    totals = [each.total for each in statements]
    return _epsilons(totals, _deltas(statements, totals))


def approximate_epsilons_of(charges: Sequence[tuple[Guarantee, float]]) -> list[float]:
    """`Guarantee.epsilon` of guarantees without a profile, each at its delta; as precise."""
    own = _own(charges)
    return _epsilons([guarantee for guarantee, _ in own], [delta for _, delta in own])


def _deltas(statements: Sequence[Statement], totals: Sequence[Guarantee]) -> list[float]:
    """The delta of each budget that is left for the Gaussian part of its total."""
    return [
        each.budget.delta - max(total.delta0, each.budget.failure_share)
        for each, total in zip(statements, totals, strict=True)
    ]


def _own(charges: Sequence[tuple[Guarantee, float]]) -> list[tuple[Guarantee, float]]:
    return [(guarantee, delta - guarantee.delta0) for guarantee, delta in charges]


def _epsilons(guarantees: Sequence[Guarantee], delta: Sequence[float]) -> list[float]:
    mu, pure = (np.array([getattr(g, name) for g in guarantees]) for name in ("mu", "pure"))
    return [float(x) for x in np.minimum(pure, approximate_epsilons(mu, np.array(delta)))]
