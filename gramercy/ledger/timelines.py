"""The timeline of a budget: its changes and charges, in the order of the journal.

Epsilons are in double precision, rounded up: a ledger may have many thousands of them. Decisions
use `Statement` and `Guarantee`, which are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gramercy.ledger.entry import RELEASE_KINDS, Entry
from gramercy.ledger.statement import Charge, Statement
from gramercy.mechanisms.accounting.composition import NO_CHARGES, Total
from gramercy.mechanisms.accounting.gdp import approximate_epsilons
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.budget import Budget
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
                steps.append(_Step(entry, budget, total))
            elif entry.kind == ChargeState.RESERVED and entry.window == window:
                total = entry.total
                charge = Charge.of(by_release[str(entry.release)])
                steps.append(_Step(entry, budget, total, charge))
        made.append(Timeline(dataset, window, tuple(_events(steps, mechanisms))))
    return tuple(made)


@dataclass(frozen=True)
class _Step:
    """An entry of a budget or a charge, with the budget and the sum of charges after it."""

    entry: Entry
    budget: Budget
    total: Total
    charge: Charge | None = None

    @property
    def statement(self) -> Statement:
        return Statement(self.budget, self.total)


def _events(steps: Sequence[_Step], mechanisms: Mapping[str, str]) -> Iterator[Event]:
    charged = [(each.charge.guarantee, each.budget.delta) for each in steps if each.charge]
    spent, epsilons = approximate_spent_and_own([each.statement for each in steps], charged)
    own = iter(epsilons)
    for step, so_far in zip(steps, spent, strict=True):
        budget, charge = step.budget, step.charge
        if charge is None:
            kind, reason, record = _BUDGETS[step.entry.kind], step.entry.fact("reason", str), None
        else:
            kind, reason = "charged", charge.reason
            record = _record(charge, next(own), mechanisms.get(charge.release, ""))
        yield Event(step.entry.at, kind, budget.epsilon, budget.delta, so_far, reason, record)


def _record(charge: Charge, epsilon: float, mechanism: str) -> ChargeRecord:
    guarantee = charge.guarantee
    return ChargeRecord(
        charge.release,
        charge.version,
        charge.state,
        guarantee.mu,
        guarantee.delta0,
        guarantee.pure,
        epsilon,
        mechanism,
        charge.sha256,
    )


def approximate_spent(statements: Sequence[Statement]) -> list[float]:
    """`Statement.spent` of each; at most 1e-7 larger, relatively or absolutely, and not smaller."""
    totals = [each.total for each in statements]
    return _epsilons(totals, _deltas(statements, totals))


def approximate_epsilons_of(charges: Sequence[tuple[Guarantee, float]]) -> list[float]:
    """`Guarantee.epsilon` of guarantees without a profile, each at its delta; as precise."""
    own = _own(charges)
    return _epsilons([guarantee for guarantee, _ in own], [delta for _, delta in own])


def approximate_spent_and_own(
    statements: Sequence[Statement], charges: Sequence[tuple[Guarantee, float]]
) -> tuple[list[float], list[float]]:
    """`approximate_spent` and `approximate_epsilons_of`, in half the time of both."""
    totals = [each.total for each in statements]
    both = [*zip(totals, _deltas(statements, totals), strict=True), *_own(charges)]
    epsilons = _epsilons([guarantee for guarantee, _ in both], [delta for _, delta in both])
    return epsilons[: len(statements)], epsilons[len(statements) :]


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
