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
    delta = [
        each.budget.delta - max(total.delta0, each.budget.failure_share)
        for each, total in zip(statements, totals, strict=True)
    ]
    return _epsilons(totals, delta)


def approximate_epsilons_of(charges: Sequence[tuple[Guarantee, float]]) -> list[float]:
    """`Guarantee.epsilon` of guarantees without a profile, each at its delta; as precise."""
    guarantees = [guarantee for guarantee, _ in charges]
    return _epsilons(guarantees, [delta - each.delta0 for each, delta in charges])


def _epsilons(guarantees: Sequence[Guarantee], delta: Sequence[float]) -> list[float]:
    mu, pure = (np.array([getattr(g, name) for g in guarantees]) for name in ("mu", "pure"))
    return [float(x) for x in np.minimum(pure, approximate_epsilons(mu, np.array(delta)))]
