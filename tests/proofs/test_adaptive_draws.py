"""Draws whose shares depend on earlier draws: the theorem of docs/privacy.md, by quadrature."""

from __future__ import annotations

import numpy as np
import pytest

from gramercy.mechanisms.accounting.gdp import gdp_delta
from tests.proofs.adaptive_draws import Array, Policy, delta

MU, FIRST = 1.3, 0.5


def rest(_: Array, __: Array, second: Array) -> Array:
    return MU**2 - FIRST**2 - second


def by_first(y: Array) -> Array:
    return np.asarray((MU**2 - FIRST**2) * (0.5 + 0.4 * np.sin(3 * y)))


POLICIES: dict[str, Policy] = {
    "fixed shares": (lambda y: np.full_like(y, 0.4), rest),
    "shares by what was published": (by_first, rest),
    "stopped by what was published": (
        by_first,
        lambda one, two, second: np.where(one + two > 1, rest(one, two, second), 0.0),
    ),
    "a decision that is not paid for": (
        by_first,
        lambda one, two, second: rest(one, two, second) + np.where(two > 0.5, 0.5, 0.0),
    ),
}


@pytest.mark.parametrize("name", POLICIES)
def test_draws_that_depend_on_each_other_have_the_guarantee_of_their_sum(name: str) -> None:
    for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0):
        exact, claimed = delta(FIRST, POLICIES[name], epsilon), float(gdp_delta(MU, epsilon))
        if "paid" in name:
            assert exact > 1.05 * claimed
        elif "stopped" in name:
            assert 0 < exact < claimed
        else:
            assert exact == pytest.approx(claimed, rel=1e-4)
