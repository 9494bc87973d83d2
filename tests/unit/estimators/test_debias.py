"""Debiased second moments of noisy rows, and the exact variance of integer noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from mpmath import MPContext

from gramercy.estimators.noise.debias import debiased, discrete_variance, rounded_variance
from gramercy.mechanisms.rowwise import rounded_variance as of_the_mechanisms
from gramercy.mechanisms.sampling.discrete import discrete_gaussian_variance

SIGMAS = [0.08, 0.2, 0.4, 0.7, 0.999, 1.0, 1.5, 1.999, 2.0, 3.3, 20.0]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_discrete_variance_equals_exact_sum(sigma: float) -> None:
    mp = MPContext()
    mp.dps = 40
    weights = [mp.exp(-(mp.mpf(j) ** 2) / (2 * mp.mpf(sigma) ** 2)) for j in range(1, 300)]
    second = sum(2 * (j + 1) ** 2 * weight for j, weight in enumerate(weights))
    exact = float(second / (1 + 2 * sum(weights)))
    assert discrete_variance(sigma) == pytest.approx(exact, rel=1e-13)
    assert discrete_variance(sigma) == pytest.approx(discrete_gaussian_variance(sigma), rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", SIGMAS)
def test_rounded_variance_equals_exact_sum(sigma: float) -> None:
    """By the probability of every integer, as differences of the normal law's tails."""
    mp = MPContext()
    mp.dps = 40

    def tail(x: float) -> Any:
        return mp.erfc(mp.mpf(x) / mp.mpf(sigma) / mp.sqrt(2)) / 2

    exact = float(sum(2 * j * j * (tail(j - 0.5) - tail(j + 0.5)) for j in range(1, 300)))
    assert rounded_variance(sigma) == pytest.approx(exact, rel=1e-12)
    assert rounded_variance(sigma) == pytest.approx(of_the_mechanisms(sigma), rel=1e-12)


def test_small_scales_differ_from_their_variance() -> None:
    assert discrete_variance(0.2) < 1e-3 * 0.2**2
    assert discrete_variance(0.5) < 0.9 * 0.5**2
    assert 1e-8 < 1 - discrete_variance(1.0) < 1e-6
    assert discrete_variance(2.0) == pytest.approx(4.0, rel=1e-14)
    assert rounded_variance(0.1) < 1e-3 * 0.1**2
    assert rounded_variance(2.0) == pytest.approx(4 + 1 / 12, rel=1e-14)
    for variance in (discrete_variance, rounded_variance):
        assert variance(1e-300) == 0.0
        assert variance(1e6) == pytest.approx(1e12)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_invalid_variance_and_rows_are_refused(bad: float) -> None:
    for variance in (discrete_variance, rounded_variance):
        with pytest.raises(ValueError, match="sigma"):
            variance(bad)
    if bad:
        with pytest.raises(ValueError, match="variance"):
            debiased(np.ones((2, 2)), bad)
    for rows in (np.ones(3), np.ones((0, 2)), np.ones((2, 0)), np.array([[math.nan]])):
        with pytest.raises(ValueError, match="rows"):
            debiased(rows, 1.0)


def noise(kind: str, sigma: float, size: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(17)
    if kind == "rounded":
        return np.floor(sigma * rng.normal(size=size) + 0.5)
    support = np.arange(-12, 13)
    weights = np.exp(-0.5 * (support / sigma) ** 2)
    return rng.choice(support, size=size, p=weights / weights.sum()).astype(float)


@pytest.mark.parametrize("sigma", [0.4, 0.8])
@pytest.mark.parametrize("kind", ["discrete", "rounded"])
def test_debiased_moment_is_unbiased(kind: str, sigma: float) -> None:
    """Within six standard errors over many tables; with sigma^2 it would not be."""
    rng, times, n = np.random.default_rng(3), 4000, 100
    rows = rng.integers(-2, 3, size=(n, 3)).astype(float)
    added = noise(kind, sigma, (times, n, 3))
    v = {"discrete": discrete_variance, "rounded": rounded_variance}[kind](sigma)
    found = np.array([debiased(rows + each, v) for each in added])
    deviation = found.std(axis=0) / math.sqrt(times)
    bias = found.mean(axis=0) - rows.T @ rows / n
    assert (np.abs(bias) < 6 * deviation).all()
    assert abs(v - sigma**2) > 12 * deviation.max() or (kind, sigma) == ("discrete", 0.8)


def test_debiased_moment_in_closed_form() -> None:
    rows = np.array([[1.0, 2.0], [3.0, -1.0]])
    expected = np.array([[4.5, -0.5], [-0.5, 2.0]])
    np.testing.assert_allclose(debiased(rows, 0.5), expected, rtol=1e-15)
    assert np.linalg.eigvalsh(debiased(rows, 3.0))[0] < 0  # and stays so
    step = 0.25  # whole numbers times a step
    np.testing.assert_allclose(debiased(step * rows, step**2 * 0.5), step**2 * expected)
