"""The mu and delta0 that composition charges bound the whole profile they were derived from."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from gramercy.mechanisms.accounting.gdp import exact_delta, gdp_delta
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from tests.support.problems import raises


@pytest.mark.parametrize("end", [0.3, 2.7])
def test_profile_with_a_step_is_bounded_up_to_the_step(end: float) -> None:
    """The worst profile for a grid: constant, and zero from some epsilon on."""
    delta, target = 0.05, 1e-6
    made = Guarantee.from_profile(lambda epsilon: delta if epsilon < end else 0.0, target)
    assert made.delta0 == target
    needed = delta - target
    assert exact_delta(made.mu, math.nextafter(end, 0)) >= needed
    # The grid costs less than one of its steps.
    assert exact_delta(made.mu, end * 1.01) < needed


def test_delta_that_never_falls_is_charged_as_failure() -> None:
    constant = 0.25
    made = Guarantee.from_profile(lambda _: constant, constant / 2)
    assert constant <= made.delta0 <= constant * (1 + 1e-8)


def test_profile_that_is_zero_costs_the_target_and_almost_no_mu() -> None:
    made = Guarantee.from_profile(lambda _: 0.0, 1e-9)
    assert made.delta0 == 1e-9
    assert 0 < made.mu <= 1e-9


@pytest.mark.parametrize(("mu", "target"), [(0.2, 1e-8), (3.0, 1e-5)])
def test_profile_of_a_gaussian_costs_little_more_than_its_mu(mu: float, target: float) -> None:
    made = Guarantee.from_profile(partial(gdp_delta, mu), target)
    assert made.delta0 == target
    assert mu * 0.999 < made.mu < mu * 1.01
    for epsilon in np.linspace(0, 8 * mu, 41).tolist():
        assert gdp_delta(mu, epsilon) <= exact_delta(made.mu, epsilon) + target


def test_guarantee_states_probabilities() -> None:
    for delta0 in (-5e-324, math.nextafter(1.0, 2.0), math.nan):
        with raises(families.ARGUMENT, argument="delta0"):
            Guarantee(0.1, delta0)
    for pure in (-5e-324, math.nan):
        with raises(families.ARGUMENT, argument="pure"):
            Guarantee(0.1, pure=pure)
    for guarantee in (Guarantee(0.0), Guarantee(0.1, 1.0), Guarantee(0.1, pure=0.0)):
        assert guarantee.delta(1.0) <= 1.0
    assert Guarantee(0.1, 1.0).delta(5.0) == 1.0
    assert Guarantee(9.0, 0.5, pure=0.0).delta(0.0) == 0.0
