"""The mu of `matrix-laplace`: the computed part of its proof, and bounds from below."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr, ndtri, roots_genlaguerre, roots_jacobi, roots_laguerre

from gramercy.mechanisms.accounting.gdp import (
    log_lipschitz_epsilon,
    log_lipschitz_mu,
    mu_from_pure_epsilon,
)
from gramercy.mechanisms.matrix_laplace import (
    MatrixLaplace,
    one_row_score_bound,
    two_row_score_bound,
)
from gramercy.schemas.neighbours import Neighbours
from tests.proofs.matrix_laplace import ALL_LARGER_FROM, largest_ratio, least_mu, stop_loss
from tests.support.factories import FULL

BOTH: tuple[Neighbours, ...] = ("replace-one", "add-remove")
BY_COMPUTATION = (
    [*range(2, 41), 64, 100, 225, 500, 775, 776, 823, 824, 1049] if FULL else [2, 5, 20]
)


def calibrated(p: int, neighbours: Neighbours, **privacy: Any) -> MatrixLaplace:
    return MatrixLaplace.calibrated(p=p, n=1000, neighbours=neighbours, **privacy)


def rank(p: int, neighbours: Neighbours) -> int:
    return 2 if neighbours == "replace-one" and p > 1 else 1


# The proof.


@pytest.mark.parametrize("p", BY_COMPUTATION)
def test_one_row_bound_is_proven_by_computation(p: int) -> None:
    assert largest_ratio(p, one_row_score_bound(p)) < 0.98


def test_one_row_bound_is_proven_for_larger_dimensions() -> None:
    p = ALL_LARGER_FROM
    assert one_row_score_bound(p) == one_row_score_bound(10**6)
    assert largest_ratio(p, one_row_score_bound(p), onwards=True) < 0.98


@pytest.mark.parametrize("p", [2, 5, 20])
def test_computation_rejects_impossible_bounds(p: int) -> None:
    """A bound below the mu of a test, divided by epsilon, cannot be proven."""
    assert largest_ratio(p, least_mu(p, 0.1, rows=1) / 0.1) > 1.01


def by_quadrature(p: int, t: float) -> float:
    """E (X - t)+ of the proof's X, by Gauss quadrature in all variables but the normal one."""
    k, weights_k = roots_jacobi(40, (p - 1) / 2, (p - 1) / 2)
    x, weights_r = roots_jacobi(12, p / 2, (p - 1) / 2 - 1)
    half, weights_c = roots_genlaguerre(24, (p + 3) / 2 - 1)
    exponential, weights_g = roots_laguerre(12)
    square, c = (1 + x)[:, None, None] / 2, 2 * half[:, None]
    b = 0.75 * (p - 1) / (2 * p - 1)
    sd = np.sqrt(square / c + b * 2 * exponential / c**2)[..., None]
    z = (t - (1 + 2 / c[..., None]) * k) / sd
    values = sd * (np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) - z * ndtr(-z))
    weights = [each / each.sum() for each in (weights_r, weights_c, weights_g, weights_k)]
    return float(np.einsum("abcd,a,b,c,d", values, *weights))


@pytest.mark.parametrize("p", [2, 3, 7, 20, 100])
def test_computed_stop_loss_is_a_tight_upper_bound(p: int) -> None:
    c = one_row_score_bound(p)
    t = c * np.array([0.0, 0.3, 0.9, 2.0])
    exact = np.array([by_quadrature(p, each) for each in t])
    bound = stop_loss(p, t, 1 / c)
    assert (bound >= exact * (1 - 1e-6)).all()
    assert bound[0] < 1.04 * exact[0]


@pytest.mark.parametrize("p", [2, 3, 4, 5, 20, 64, 500, 1937, 1938, 5000])
def test_two_row_bound_equals_its_formula(p: int) -> None:
    """1 / E chi_(p-1), rounded up; and no less than one row at half the epsilon."""
    half = mpmath.mpf(p) / 2
    exact = mpmath.gamma(half - 0.5) / mpmath.gamma(half) / mpmath.sqrt(2)
    assert two_row_score_bound(p) >= max(exact, one_row_score_bound(p) / 2)
    assert two_row_score_bound(p) == pytest.approx(max(float(exact), 1 / 44), rel=1e-8)


# The guarantee of the noise.


def test_mu_decreases_with_the_number_of_columns() -> None:
    assert calibrated(20, "replace-one", epsilon=1.0).guarantee.mu < 0.24
    assert calibrated(20, "add-remove", epsilon=1.0).guarantee.mu < 0.3
    for p in (2, 20, 500):
        bounds = two_row_score_bound(p), one_row_score_bound(p)
        for neighbours, bound in zip(BOTH, bounds, strict=True):
            guarantee = calibrated(p, neighbours, epsilon=0.01).guarantee
            laplace_mu = -2 * ndtri(math.exp(-0.005) / 2)
            assert guarantee.mu == pytest.approx(min(bound * 0.01, laplace_mu), rel=1e-9)
            assert guarantee.delta0 == 0.0
            assert guarantee.pure == pytest.approx(0.01, rel=1e-12)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("p", [1, 2, 5, 20, 64])
def test_mu_is_at_least_that_of_the_best_test(
    p: int, epsilon: float, neighbours: Neighbours
) -> None:
    mu = calibrated(p, neighbours, epsilon=epsilon).guarantee.mu
    lower_bound = least_mu(p, epsilon, rows=rank(p, neighbours))
    assert lower_bound * (1 - 1e-9) <= mu <= mu_from_pure_epsilon(epsilon)
    if p == 1:  # Laplace noise, for which the test is the best
        assert mu == pytest.approx(lower_bound, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_mu_with_a_count_is_at_least_that_of_a_test(epsilon: float) -> None:
    """One column: the error probability of a test on two Laplace variables."""
    matrix_epsilon = epsilon / 1.1
    error = (0.5 + 0.1 * matrix_epsilon / 4) * math.exp(-epsilon / 2)
    mu = calibrated(1, "add-remove", epsilon=epsilon, publishes_noisy_count=True).guarantee.mu
    assert -2 * ndtri(error) <= mu < mu_from_pure_epsilon(epsilon)


@pytest.mark.parametrize("p", [2, 20, 500])
def test_cost_of_a_count_equals_its_formula(p: int) -> None:
    uncounted = calibrated(p, "add-remove", epsilon=0.1)
    counted = calibrated(p, "add-remove", epsilon=0.1, publishes_noisy_count=True)
    assert counted.scale == pytest.approx(1.1 * uncounted.scale, rel=1e-12)
    exact = min(
        math.hypot(one_row_score_bound(p), 0.1 * math.sqrt(math.pi / 2)) / 1.1 * 0.1,
        -2 * ndtri(math.exp(-0.05) / 2),
    )
    assert counted.guarantee.mu == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("p", [1, 2, 5, 64, 2000])
def test_mu_and_scale_are_inverse(p: int, neighbours: Neighbours, counted: bool) -> None:
    for mu in (1e-6, 0.01, 0.1, 0.25, 1.0, 3.0, 20.0, 50.0):
        noise = calibrated(
            p, neighbours, mu=mu, publishes_noisy_count=counted and neighbours == "add-remove"
        )
        assert mu * (1 - 1e-9) <= noise.guarantee.mu <= mu


# The mu of noise whose log density changes gradually.


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.1, 1.0, 10.0, 100.0, 2200.0])
def test_mu_of_laplace_noise_is_exact(epsilon: float) -> None:
    """Exactly that of the test halfway: a miss has probability exp(-epsilon / 2) / 2."""
    mu = log_lipschitz_mu(epsilon)
    with mpmath.workdps(60):
        exact = -2 * mpmath.log(2 * mpmath.ncdf(-mpmath.mpf(mu) / 2))
        before = -2 * mpmath.log(2 * mpmath.ncdf(-mpmath.mpf(math.nextafter(mu, 0)) / 2))
    assert before < epsilon <= exact
    assert log_lipschitz_epsilon(mu) == pytest.approx(epsilon, rel=1e-15)
    assert log_lipschitz_mu(log_lipschitz_epsilon(mu)) <= mu


def test_staircase_noise_attains_the_pure_bound() -> None:
    """Staircase noise of steps at half of the shift attains the mu of any pure epsilon."""
    epsilon = 1.0
    error = math.exp(-epsilon) / (1 + math.exp(-epsilon))  # P(Z > 1/2), for a shift of 1
    assert log_lipschitz_mu(epsilon) < 0.9 * -2 * ndtri(error)
    assert mu_from_pure_epsilon(epsilon) == pytest.approx(-2 * ndtri(error), rel=1e-12)
    assert log_lipschitz_mu(0.0) == 0.0
