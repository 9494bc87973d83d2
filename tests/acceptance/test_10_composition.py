"""Composition: exact for Gaussians, and never below what dp-accounting knows for mixtures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from mechanisms.guarantee import Guarantee, compose, gdp_delta
from tests.making import at_scale

INTERVAL = 1e-3


def test_gaussians_compose_in_closed_form() -> None:
    rng = np.random.default_rng(8)
    for _ in range(at_scale(20, 200)):
        mus = rng.uniform(0.001, 1.5, size=rng.integers(1, 30))
        total = compose(Guarantee(float(mu)) for mu in mus)
        assert total.mu == pytest.approx(math.sqrt(math.fsum(mus**2)), rel=1e-15)
        assert total.delta(1.0) == pytest.approx(gdp_delta(total.mu, 1.0), abs=1e-9)


def optimistic(mus: list[float], epsilons: list[float]) -> pld.PrivacyLossDistribution:
    parts = [
        pld.from_gaussian_mechanism(
            1 / mu, value_discretization_interval=INTERVAL, pessimistic_estimate=False
        )
        for mu in mus
    ] + [
        pld.from_laplace_mechanism(
            1 / epsilon, value_discretization_interval=INTERVAL, pessimistic_estimate=False
        )
        for epsilon in epsilons
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return whole


@pytest.mark.parametrize("turn", range(at_scale(4, 20)))
def test_mixed_sequences_lie_at_or_above_the_optimistic_pld(turn: int) -> None:
    rng = np.random.default_rng(turn)
    mus = [float(x) for x in rng.uniform(0.1, 0.8, size=rng.integers(1, 5))]
    epsilons = [float(x) for x in rng.uniform(0.05, 0.8, size=rng.integers(1, 4))]
    ours = compose([*(Guarantee(m) for m in mus), *(Guarantee.of_pure(e) for e in epsilons)])
    theirs = optimistic(mus, epsilons)
    for delta in (1e-8, 1e-5, 1e-3):
        # The optimistic value itself is off by its grid, once a mechanism.
        slack = INTERVAL * (len(mus) + len(epsilons))
        assert ours.epsilon(delta) >= theirs.get_epsilon_for_delta(delta) - slack


@pytest.mark.parametrize("turn", range(3))
def test_gaussian_sequences_equal_the_pld(turn: int) -> None:
    mus = [float(x) for x in np.random.default_rng(turn).uniform(0.1, 0.8, size=4)]
    ours = compose(Guarantee(m) for m in mus)
    for delta in (1e-8, 1e-5):
        theirs = optimistic(mus, []).get_epsilon_for_delta(delta)
        assert ours.epsilon(delta) == pytest.approx(theirs, abs=5 * INTERVAL)
        assert ours.epsilon(delta) >= theirs - 1e-9
