"""Epsilons of many charges and statements at once, in double precision, for tables and charts.

Decisions use `Statement` and `Guarantee`, which are exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramercy.ledger.statement import Statement
from gramercy.mechanisms.accounting.gdp import approximate_epsilons
from gramercy.mechanisms.accounting.guarantee import Guarantee


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
