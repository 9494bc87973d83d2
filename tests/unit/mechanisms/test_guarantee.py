"""Guarantees against dp-accounting, quadrature and each other, and at the ends of their ranges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import integrate, optimize, special, stats
from scipy.special import ndtri

from gramercy.mechanisms.accounting.composition import Filter, compose
from gramercy.mechanisms.accounting.gdp import (
    approximate_delta,
    approximate_epsilons,
    exact_delta,
    gaussian_mu,
    gaussian_scale,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    mu_from_pure_epsilon,
    pure_epsilon_from_mu,
    satisfies_dp,
    zcdp_delta,
)
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.accounting.wishart_profile import add_remove_profile, replace_one_bound
from gramercy.schemas import families
from tests.support.factories import at_scale
from tests.support.problems import raises

GRID = [(e, d) for e in (0.01, 0.3, 1.0, 4.0, 20.0) for d in (1e-12, 1e-6, 1e-2)]


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
def test_delta_is_the_hockey_stick_divergence(mu: float, epsilon: float) -> None:
    def excess(x: float) -> float:
        return max(0.0, stats.norm.pdf(x - mu) - math.exp(epsilon) * stats.norm.pdf(x))

    start = epsilon / mu + mu / 2
    integral, _ = integrate.quad(excess, start, start + 40, epsabs=1e-14)
    assert gdp_delta(mu, epsilon) == pytest.approx(integral, rel=1e-8, abs=1e-13)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_gdp_conversions_are_inverse_and_conservative(epsilon: float, delta: float) -> None:
    mu = gdp_mu(epsilon, delta)
    assert gdp_delta(mu, epsilon) <= delta
    assert gdp_delta(mu * (1 + 1e-12), epsilon) > delta
    assert epsilon * (1 - 1e-11) <= gdp_epsilon(mu, delta) <= epsilon


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_noise_scale_never_exceeds_requested_mu(epsilon: float, delta: float) -> None:
    mu = gdp_mu(epsilon, delta)
    for squared in (1.0, 1.0625, 2.0):
        scale = gaussian_scale(squared, mu)
        assert gaussian_mu(squared, scale) <= mu
        assert gaussian_mu(squared, scale * (1 - 1e-15)) > mu
        assert Guarantee(gaussian_mu(squared, scale)).epsilon(delta) <= epsilon


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_agrees_with_dp_accounting(mu: float) -> None:
    # Of losses that spread over mu; finer intervals change the epsilons by less than the tolerance.
    reference = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-3 * mu)
    for delta in (1e-8, 1e-5):
        assert gdp_epsilon(mu, delta) == pytest.approx(
            reference.get_epsilon_for_delta(delta), rel=2e-3
        )


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 5.0, 200.0])
def test_pure_epsilon_touches_gdp_curve_at_the_corner(epsilon: float) -> None:
    mu = Guarantee.from_pure(epsilon).mu
    if epsilon < 30:
        assert mu == pytest.approx(-2 * special.ndtri(special.expit(-epsilon)), rel=1e-12)
    # The trade-off curve of pure epsilon-DP is above that of mu-GDP, and touches it at its corner.
    for alpha in np.geomspace(1e-6, 0.5, 30):
        pure = max(0.0, 1 - math.exp(min(epsilon, 700)) * alpha, math.exp(-epsilon) * (1 - alpha))
        assert pure >= stats.norm.cdf(stats.norm.isf(alpha) - mu) - 1e-12


def test_epsilon_of_guarantees_that_are_pure_or_may_fail() -> None:
    pure = Guarantee.from_pure(1.0)
    assert pure.epsilon(1e-9) == 1.0
    assert pure.delta(1.0) == 0.0
    assert Guarantee(0.5, delta0=1e-6).delta(2.0) >= gdp_delta(0.5, 2.0) + 1e-6
    assert Guarantee(0.0).epsilon(0.0) == 0.0


def admits(total: Guarantee, epsilon: float, delta: float) -> bool:
    return Filter(epsilon, delta, delta / 10).admits(total)


def test_one_release_fits_its_own_budget_exactly() -> None:
    """A tenth of the budget's delta is set aside for failures."""
    for epsilon, delta in GRID:
        once = Guarantee(gdp_mu(epsilon, 0.9 * delta * (1 - 1e-12)))
        assert admits(compose([once]), epsilon, delta)
        assert not admits(Guarantee(gdp_mu(epsilon, 0.9 * delta * (1 + 1e-9))), epsilon, delta)
        assert not admits(compose([once, once]), epsilon, delta)
        left = Filter(epsilon, delta, delta / 10).remaining_mu(Guarantee(once.mu / 2))
        assert admits(compose([Guarantee(once.mu / 2), Guarantee(left)]), epsilon, delta)
        too_large = Guarantee(left * (1 + 1e-9))
        assert not admits(compose([Guarantee(once.mu / 2), too_large]), epsilon, delta)


def test_basic_composition_admits_pure_charges_that_gdp_refuses() -> None:
    halves = [Guarantee.from_pure(0.5)] * 2
    assert admits(compose(halves), 1.0, 1e-9)
    assert not admits(compose([*halves, Guarantee(1e-3)]), 1.0, 1e-9)


def test_invalid_guarantees_and_budgets_admit_nothing() -> None:
    for mu in (math.nan, -1.0):
        with raises(families.ARGUMENT, argument="mu"):
            Guarantee(mu)
    assert not admits(Guarantee(math.inf), 10.0, 1e-6)
    assert not admits(Guarantee(0.1), math.nan, 1e-6)
    assert not admits(Guarantee(0.1), 10.0, math.nan)
    assert not admits(Guarantee(0.1, delta0=1e-6), 10.0, 1e-6)
    for epsilon in (-1.0, math.nan):
        with raises(families.ARGUMENT, argument="epsilon"):
            gdp_mu(epsilon, 1e-6)
    for delta in (0.0, 1.0, math.nan):
        with raises(families.ARGUMENT, argument="delta"):
            gdp_mu(1.0, delta)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.3, 2.0, 12.0])
def test_pure_and_gdp_conversions_are_inverse(mu: float) -> None:
    epsilon = pure_epsilon_from_mu(mu)
    assert mu_from_pure_epsilon(epsilon) <= mu
    assert mu_from_pure_epsilon(epsilon * (1 + 1e-12)) > mu


def test_epsilon_is_infinite_below_the_failure_probability() -> None:
    """Below delta0 no epsilon holds, even at mu = 0."""
    for mu in (0.0, 0.3):
        failing = Guarantee(mu, delta0=0.28)
        for delta in (0.0, 1e-6, 0.27):
            assert failing.epsilon(delta) == math.inf
            assert not admits(failing, 100.0, delta)
        assert failing.delta(50.0) >= 0.28


PROFILES: dict[str, tuple[Callable[[float], float], float]] = {
    "wishart, few degrees": (lambda e: add_remove_profile(6.0, 2.0, e), 1e-5),
    "wishart, flat": (lambda e: add_remove_profile(2.0, 1.5, e), 1e-6),
    "wishart, many degrees": (lambda e: add_remove_profile(1e6, 0.03, e), 1e-9),
    "wishart, small delta": (lambda e: add_remove_profile(1e6, 0.41, e), 1e-14),
    "wishart, replaced": (lambda e: replace_one_bound(60.0, 5.0, e), 1e-7),
    "zcdp": (lambda e: zcdp_delta(0.02, e), 1e-7),
    "zcdp, large rho": (lambda e: zcdp_delta(1.0, e), 1e-9),
    "steps": (lambda e: 0.1 * (e < 0.3) + 1e-4 * (e < 2.0) + 1e-9, 1e-8),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROFILES)
def test_mu_and_failure_bound_the_whole_profile(name: str) -> None:
    profile, delta0 = PROFILES[name]
    guarantee = Guarantee.from_profile(profile, delta0)
    end = max(40.0, 8 * guarantee.mu**2) if name != "wishart, flat" else 600.0
    fine = np.unique([*np.linspace(0, 3, at_scale(120, 20_000)), *np.linspace(0, end, 100)])
    for epsilon in map(float, fine):
        by_mu = gdp_delta(guarantee.mu, epsilon) + guarantee.delta0
        assert profile(epsilon) <= by_mu * (1 + 1e-12)
        assert guarantee.delta(epsilon) == min(1.0, profile(epsilon), guarantee.delta(epsilon))
    assert guarantee.delta0 <= max(delta0, profile(1024.0) * (1 + 2e-9))
    # No larger than necessary, up to the grid.
    near = np.linspace(0, 10 * guarantee.mu**2 + 8 * guarantee.mu, at_scale(120, 2000))
    smaller = [gdp_delta(0.9 * guarantee.mu, float(e)) + guarantee.delta0 for e in near]
    assert any(profile(float(e)) > by_mu for e, by_mu in zip(near, smaller, strict=True)) or (
        guarantee.mu < 1e-6
    )
    # Epsilon at delta, by the profile.
    for delta in (0.3, 1e-3, 1e-5):
        epsilon = guarantee.epsilon(delta)
        if epsilon < math.inf:
            assert profile(epsilon) <= delta
            assert epsilon == 0 or profile(epsilon * (1 - 1e-6)) > delta
        else:
            assert profile(1000.0) > delta


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 5.0])
def test_zcdp_delta_uses_the_best_renyi_order(rho: float) -> None:
    """It equals Corollary 13 of Canonne, Kamath and Steinke, minimised over a grid of orders."""
    excess = np.geomspace(1e-4, 1e7, 4000)  # order - 1
    for epsilon in (0.0, 0.1, 1.0, 8.0):
        exponent = excess * ((1 + excess) * rho - epsilon)
        log_delta = (exponent - np.log1p(excess) - excess * np.log1p(1 / excess)).min()
        delta = zcdp_delta(rho, epsilon)
        assert delta <= max(math.exp(min(0.0, log_delta)) * (1 + 1e-9), 5e-324)
        assert delta >= min(1.0, math.exp(log_delta) * (1 - 1e-3))
        assert delta >= gdp_delta(math.sqrt(2 * rho), epsilon) * (1 - 1e-12) - 1e-300


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return float(special.logsumexp(order * np.log(p) - (order - 1) * np.log(q)) / (order - 1))


ORDERS = (1.001, 1.5, 2.0, 4.0, 16.0, 64.0)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0, 12.0])
def test_rho_of_a_pure_epsilon(epsilon: float) -> None:
    """Checked on randomized response, the worst case."""
    rho, failure = Guarantee.from_pure(epsilon).rho()
    assert failure == 0
    p = np.array([special.expit(epsilon), special.expit(-epsilon)])
    for order in ORDERS:
        assert renyi(p, p[::-1], order) <= rho * order * (1 + 1e-9)


@pytest.mark.parametrize("mu", [0.01, 0.5, 2.0])
def test_rho_of_a_gaussian(mu: float) -> None:
    rho, failure = Guarantee(mu).rho()
    assert failure == 0
    assert rho == pytest.approx(mu * mu / 2, rel=1e-15)
    assert rho >= mu * mu / 2
    x = np.linspace(-12, 12 + 64 * mu, 200_001)
    log_p, log_q = stats.norm.logpdf(x, mu), stats.norm.logpdf(x)
    for order in ORDERS[1:]:
        total = special.logsumexp(order * log_p - (order - 1) * log_q) + math.log(x[1] - x[0])
        assert total / (order - 1) == pytest.approx(rho * order, rel=1e-3)


@pytest.mark.parametrize("mu", [0.1, 1.0])
@pytest.mark.parametrize("delta0", [1e-3, 0.1, 0.3])
def test_rho_of_a_guarantee_that_may_fail(mu: float, delta0: float) -> None:
    """The worst case of (mu, delta0) exceeds mu^2 / 2, so no rho is stated."""
    assert Guarantee(mu, delta0).rho()[0] == math.inf
    assert Guarantee(mu, delta0, pure=9.0).rho() == pytest.approx((mu**2 / 2, delta0))
    half = _half_width(mu, delta0)
    x = np.arange(-12, 12 + 4 * mu, 1e-4)
    x = x[np.abs(x - mu / 2) > half]
    p, q = (each / each.sum() for each in (stats.norm.pdf(x, mu), stats.norm.pdf(x)))
    assert renyi(p, q, 1.01) > 1.01 * mu**2 / 2


def _half_width(mu: float, delta0: float) -> float:
    """Half the width of the central interval with probability delta0, under either law."""

    def excess(half: float) -> float:
        return stats.norm.cdf(mu / 2 + half) - stats.norm.cdf(mu / 2 - half) - delta0

    return float(optimize.brentq(excess, 0, 10, xtol=1e-14))


@pytest.mark.parametrize("alpha", [1e-6, 0.01, 0.05, 0.3, 0.9])
def test_power_is_the_trade_off_curve(alpha: float) -> None:
    for mu in (0.01, 0.5, 3.0):
        power = Guarantee(mu).power(alpha)
        exact = mpmath.ncdf(mpmath.mpf(float(stats.norm.ppf(alpha))) + mu)
        assert power == pytest.approx(float(exact), rel=1e-9)
        # The best attack, over every epsilon, in both directions; alpha is its false positive rate.
        epsilons = np.linspace(0, 3 * mu * mu + 8 * mu, at_scale(400, 4000))
        deltas = np.array([gdp_delta(mu, float(e)) for e in epsilons])
        for delta0 in (0.0, 1e-3, 0.2):
            forward = np.exp(epsilons) * alpha + deltas + delta0
            backward = 1 - np.exp(-epsilons) * (1 - alpha - deltas - delta0)
            best = min(1.0, forward.min(), backward.min())
            claim = Guarantee(mu, delta0).power(alpha)
            assert claim >= best * (1 - 1e-3)
            assert claim == pytest.approx(min(1.0, power + delta0), rel=1e-12)
    for epsilon in (0.1, 1.0, 5.0):
        exact = min(math.exp(epsilon) * alpha, 1 - math.exp(-epsilon) * (1 - alpha))
        assert Guarantee.from_pure(epsilon).power(alpha) == pytest.approx(exact, rel=1e-12)
    assert Guarantee(math.inf, 1.0).power(alpha) == 1.0
    assert Guarantee(0.0).power(alpha) == pytest.approx(alpha, rel=1e-15)


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


@pytest.mark.slow
def test_delta_that_never_falls_is_charged_as_failure() -> None:
    constant = 0.25
    made = Guarantee.from_profile(lambda _: constant, constant / 2)
    assert constant <= made.delta0 <= constant * (1 + 1e-8)


@pytest.mark.slow
def test_profile_that_is_zero_costs_the_target_and_almost_no_mu() -> None:
    made = Guarantee.from_profile(lambda _: 0.0, 1e-9)
    assert made.delta0 == 1e-9
    assert 0 < made.mu <= 1e-9


@pytest.mark.slow
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
