"""Guarantees against dp-accounting, quadrature and themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import integrate, special, stats

from mechanisms.guarantee import (
    Guarantee,
    compose,
    gaussian_mu,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    noise_scale,
    within,
)

GRID = [(e, d) for e in (0.01, 0.3, 1.0, 4.0, 20.0) for d in (1e-12, 1e-6, 1e-2)]


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
def test_delta_is_the_hockey_stick_integral(mu: float, epsilon: float) -> None:
    def excess(x: float) -> float:
        return max(0.0, stats.norm.pdf(x - mu) - math.exp(epsilon) * stats.norm.pdf(x))

    start = epsilon / mu + mu / 2
    integral, _ = integrate.quad(excess, start, start + 40, epsabs=1e-14)
    assert gdp_delta(mu, epsilon) == pytest.approx(integral, rel=1e-8, abs=1e-13)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_conversions_are_inverse_and_rounded_towards_less_privacy(
    epsilon: float, delta: float
) -> None:
    mu = gdp_mu(epsilon, delta)
    assert gdp_delta(mu, epsilon) <= delta
    assert gdp_delta(mu * (1 + 1e-12), epsilon) > delta
    assert epsilon * (1 - 1e-11) <= gdp_epsilon(mu, delta) <= epsilon


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_scale_never_costs_more_than_asked(epsilon: float, delta: float) -> None:
    mu = gdp_mu(epsilon, delta)
    for squared in (1.0, 1.0625, 2.0):
        scale = noise_scale(squared, mu)
        assert gaussian_mu(squared, scale) <= mu
        assert gaussian_mu(squared, scale * (1 - 1e-15)) > mu
        assert Guarantee(gaussian_mu(squared, scale)).epsilon(delta) <= epsilon


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_agrees_with_dp_accounting(mu: float) -> None:
    theirs = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
    for delta in (1e-8, 1e-5):
        assert gdp_epsilon(mu, delta) == pytest.approx(
            theirs.get_epsilon_for_delta(delta), rel=2e-3
        )


def test_analytic_beats_the_classical_scale() -> None:
    classical = math.sqrt(2 * math.log(1.25 / 1e-5))
    assert classical / noise_scale(1.0, gdp_mu(1.0, 1e-5)) == pytest.approx(1.30, abs=0.01)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 5.0, 200.0])
def test_pure_is_gdp_at_the_corner(epsilon: float) -> None:
    mu = Guarantee.of_pure(epsilon).mu
    if epsilon < 30:
        assert mu == pytest.approx(-2 * special.ndtri(special.expit(-epsilon)), rel=1e-12)
    # The trade-off curve of pure epsilon-DP lies above that of mu-GDP, touching at its corner.
    for alpha in np.geomspace(1e-6, 0.5, 30):
        pure = max(0.0, 1 - math.exp(min(epsilon, 700)) * alpha, math.exp(-epsilon) * (1 - alpha))
        assert pure >= stats.norm.cdf(stats.norm.isf(alpha) - mu) - 1e-12


def test_epsilon_of_mixed_facts() -> None:
    pure = Guarantee.of_pure(1.0)
    assert pure.epsilon(1e-9) == 1.0
    assert pure.delta(1.0) == 0.0
    failing = Guarantee(0.5, delta0=1e-6)
    assert failing.epsilon(1e-6) == math.inf
    assert failing.delta(2.0) >= gdp_delta(0.5, 2.0) + 1e-6
    assert Guarantee(0.0).epsilon(0.0) == 0.0


def test_one_release_fits_its_own_budget_exactly() -> None:
    for epsilon, delta in GRID:
        once = Guarantee(gdp_mu(epsilon, delta))
        assert within(compose([once]), epsilon, delta)
        assert not within(compose([once, once]), epsilon, delta)


def test_basic_composition_admits_what_gdp_does_not() -> None:
    halves = [Guarantee.of_pure(0.5)] * 2
    assert within(compose(halves), 1.0, 1e-9)
    assert not within(compose([*halves, Guarantee(1e-3)]), 1.0, 1e-9)


def test_nothing_fits_by_being_nonsense() -> None:
    with pytest.raises(ValueError, match="mu"):
        Guarantee(math.nan)
    with pytest.raises(ValueError, match="mu"):
        Guarantee(-1.0)
    assert not within(Guarantee(math.inf), 10.0, 1e-6)
    assert not within(Guarantee(0.1), math.nan, 1e-6)
    assert not within(Guarantee(0.1), 10.0, math.nan)
    assert not within(Guarantee(0.1, delta0=1e-6), 10.0, 1e-6)
    for bad in ((-1.0, 1e-6), (1.0, 0.0), (1.0, 1.0), (math.nan, 1e-6), (1.0, math.nan)):
        with pytest.raises(ValueError, match="needs"):
            gdp_mu(*bad)
