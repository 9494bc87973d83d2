"""Conversions of mu at the ends of their ranges, and in double precision."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtri

from gramercy.mechanisms.accounting.gdp import (
    approximate_delta,
    approximate_epsilons,
    exact_delta,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    satisfies_dp,
)

MUS = [0.0, 1e-9, 1e-3, 0.4, 3.0, 20.0, math.inf]
DELTAS = [-1.0, 0.0, 1e-300, 1e-12, 1e-3, 0.5, 1.0]


def test_epsilons_in_double_precision_are_slightly_above_the_exact_ones() -> None:
    grid = np.array(list(itertools.product(MUS, DELTAS)))
    for (mu, delta), rough in zip(grid, approximate_epsilons(*grid.T), strict=True):
        exact = gdp_epsilon(float(mu), float(delta))
        assert exact <= rough <= exact * (1 + 1e-7) + 1e-7, (mu, delta)
        assert math.isinf(exact) == math.isinf(rough)


@pytest.mark.parametrize("mu", [0.01, 0.4, 3.0])
@pytest.mark.parametrize("deviations", [0.0, 1.0, 5.0])
def test_delta_in_double_precision_has_nine_digits(mu: float, deviations: float) -> None:
    """It decides which points of a profile are skipped."""
    epsilon = mu * deviations + mu * mu / 2
    exact = float(exact_delta(mu, epsilon))
    assert approximate_delta(mu, epsilon) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.3])
def test_epsilon_zero_bounds_the_total_variation(delta: float) -> None:
    mu = gdp_mu(0.0, delta)
    assert mu == pytest.approx(2 * ndtri((1 + delta) / 2), rel=1e-3)
    assert gdp_delta(mu, 0.0) <= delta < gdp_delta(mu * (1 + 1e-12), 0.0)
    assert gdp_epsilon(mu, delta) == 0.0
    assert satisfies_dp(mu, 0.0, delta)
    assert not satisfies_dp(mu * (1 + 1e-12), 0.0, delta)


@pytest.mark.parametrize("delta", [1e-100, 1e-6, 0.9])
def test_epsilon_of_a_mu_beyond_double_precision_is_exact(delta: float) -> None:
    mu = 1e8
    epsilon = gdp_epsilon(mu, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert exact_delta(mu, epsilon * (1 - 1e-15)) > delta


def test_nothing_and_everything() -> None:
    assert gdp_delta(0.0, 0.0) == 0.0
    assert gdp_delta(math.inf, 5.0) == 1.0
    assert gdp_epsilon(0.0, 0.0) == 0.0
    assert (
        gdp_epsilon(0.0, -1e-9) == gdp_epsilon(1.0, 0.0) == gdp_epsilon(math.inf, 0.5) == math.inf
    )
    assert satisfies_dp(0.0, 0.0, 5e-324)
    for mu, epsilon, delta in ((0.0, 1.0, 0.0), (math.inf, 1.0, 0.5), (math.nan, 1.0, 0.5)):
        assert not satisfies_dp(mu, epsilon, delta)
