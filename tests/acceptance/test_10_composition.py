"""Composition: exact for Gaussians, and never below dp-accounting for mixtures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from gramercy.mechanisms.accounting.composition import Filter, compose
from gramercy.mechanisms.accounting.gdp import gdp_delta
from gramercy.mechanisms.accounting.guarantee import Guarantee
from tests.support.factories import at_scale

INTERVAL = 1e-3


def test_gaussians_compose_in_closed_form() -> None:
    rng = np.random.default_rng(8)
    for _ in range(at_scale(20, 200)):
        mus = rng.uniform(0.001, 1.5, size=rng.integers(1, 30))
        total = compose(Guarantee(float(mu)) for mu in mus)
        assert total.mu == pytest.approx(math.sqrt(math.fsum(mus**2)), rel=1e-15)
        assert total.delta(1.0) == pytest.approx(gdp_delta(total.mu, 1.0), abs=1e-9)


OPTIMISTIC: dict[str, Any] = {
    "value_discretization_interval": INTERVAL,
    "pessimistic_estimate": False,
    "use_connect_dots": False,
}


def gaussian(mu: float) -> Any:
    return pld.from_gaussian_mechanism(1 / mu, **OPTIMISTIC)


def laplace(epsilon: float) -> Any:
    return pld.from_laplace_mechanism(1 / epsilon, **OPTIMISTIC)


def pure(epsilon: float, delta: float = 0.0) -> Any:
    """The worst-case pure mechanism; epsilon is rounded down to the grid."""
    steps = math.floor(epsilon / INTERVAL)
    larger_mass = (1 - delta) / (1 + math.exp(-steps * INTERVAL))
    masses = {steps: larger_mass, -steps: 1 - delta - larger_mass} if steps else {0: 1 - delta}
    return pld.PrivacyLossDistribution.create_from_rounded_probability(
        masses, delta, INTERVAL, pessimistic_estimate=False
    )


def failing(mu: float, delta0: float) -> Any:
    """Gaussian, except for an event of probability delta0 that reveals everything."""
    return gaussian(mu).compose(pure(0.0, delta0))


def composed(parts: Sequence[Any]) -> Any:
    return reduce(lambda first, second: first.compose(second), parts)


@pytest.mark.parametrize("turn", range(at_scale(5, 30)))
def test_mixed_sequences_are_at_least_the_optimistic_pld(turn: int) -> None:
    rng = np.random.default_rng(turn)

    def uniform(low: float, high: float, size_limit: int) -> list[float]:
        return [float(x) for x in rng.uniform(low, high, size=rng.integers(1, size_limit))]

    mus, laplace_epsilons, pure_epsilons = (
        uniform(0.1, 0.8, 4),
        uniform(0.05, 0.8, 3),
        uniform(0.05, 0.6, 3),
    )
    with_failures = [(mu, 10.0 ** -rng.uniform(4, 9)) for mu in uniform(0.05, 0.5, 3)]
    total = compose(
        [
            *(Guarantee(m) for m in mus),
            *(Guarantee.from_pure(e) for e in (*laplace_epsilons, *pure_epsilons)),
            *(Guarantee(m, d) for m, d in with_failures),
        ]
    )
    parts = (
        [gaussian(m) for m in mus]
        + [laplace(e) for e in laplace_epsilons]
        + [pure(e) for e in pure_epsilons]
    )
    parts += [failing(m, d) for m, d in with_failures]
    reference = composed(parts)
    assert total.delta0 == pytest.approx(sum(d for _, d in with_failures), rel=1e-12)
    assert total.pure == math.inf
    # The optimistic value has an error of one grid step per mechanism.
    slack = INTERVAL * len(parts)
    for delta in (1e-8, 1e-5, 1e-3):
        assert total.epsilon(delta) >= reference.get_epsilon_for_delta(delta) - slack
    for epsilon in (0.5, 1.0, 3.0):
        assert total.delta(epsilon) >= reference.get_delta_for_epsilon(epsilon + slack) - 1e-13


@pytest.mark.parametrize("turn", range(at_scale(3, 20)))
def test_pure_sequences_use_the_better_composition(turn: int) -> None:
    """Basic composition or Gaussian composition, whichever is smaller."""
    rng = np.random.default_rng(turn)
    for count in (1, 3, 20):
        epsilons = [float(x) for x in rng.uniform(0.02, 0.5, size=count)]
        total = compose(Guarantee.from_pure(e) for e in epsilons)
        reference = composed([pure(e) for e in epsilons])
        assert total.pure == pytest.approx(sum(epsilons), rel=1e-14)
        assert total.pure >= math.fsum(epsilons)
        assert total.epsilon(0.0) == total.pure
        for delta in (1e-9, 1e-6, 1e-3):
            assert total.epsilon(delta) <= total.pure
            slack = INTERVAL * count
            assert total.epsilon(delta) >= reference.get_epsilon_for_delta(delta) - slack
    small = compose([Guarantee.from_pure(0.05)] * 100)
    assert small.epsilon(1e-3) < 0.5 * small.pure


def test_failure_probabilities_add_up() -> None:
    """Close to the cost of failing mechanisms, and never below."""
    parts = [(0.3, 1e-6), (0.4, 3e-7), (0.2, 0.0)]
    total = compose(Guarantee(m, d) for m, d in parts)
    reference = composed([failing(m, d) for m, d in parts])
    assert total.epsilon(1.2e-6) == math.inf
    for epsilon in (0.5, 1.0, 2.0, 5.0):
        expected = reference.get_delta_for_epsilon(epsilon + 3 * INTERVAL)
        assert total.delta(epsilon) >= expected * (1 - 1e-9)
        assert total.delta(epsilon) <= 1.1 * expected + 1e-12


@pytest.mark.parametrize("turn", range(3))
def test_gaussian_sequences_equal_the_pld(turn: int) -> None:
    mus = [float(x) for x in np.random.default_rng(turn).uniform(0.1, 0.8, size=4)]
    total, reference = compose(Guarantee(m) for m in mus), composed([gaussian(m) for m in mus])
    for delta in (1e-8, 1e-5):
        expected = reference.get_epsilon_for_delta(delta)
        assert total.epsilon(delta) == pytest.approx(expected, abs=5 * INTERVAL)
        assert total.epsilon(delta) >= expected - 1e-9


def test_composition_fits_exactly_its_own_budget() -> None:
    rng = np.random.default_rng(2)
    for _ in range(at_scale(10, 100)):
        parts = [Guarantee(float(m), float(d)) for m, d in rng.uniform(0, [0.5, 1e-7], (4, 2))]
        parts += [Guarantee.from_pure(float(e)) for e in rng.uniform(0, 0.3, size=2)]
        total = compose(parts)
        delta, failures = total.delta0 + 1e-6, total.delta0
        rule = Filter(total.epsilon(delta), delta, failures)
        assert rule.admits(total)
        assert rule.epsilon_spent(total) <= rule.epsilon
        assert not Filter(rule.epsilon * (1 - 1e-9), delta, failures).admits(total)
        assert not Filter(rule.epsilon, delta, failures * (1 - 1e-9)).admits(total)
        assert not Filter(rule.epsilon, failures, failures).admits(total)
