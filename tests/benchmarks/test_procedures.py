"""Procedures of other authors are near least squares at a large budget, and cover."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.analyses.procedures import binagg, noisy_statistics, private_tree, weighted_fit

RNG = np.random.default_rng(7)
ONES = np.ones((4000, 1))
X = np.hstack([ONES, RNG.uniform(-1, 1, (4000, 2))])
TRUTH = np.array([0.1, 0.5, -0.3])
Y = X @ TRUTH + RNG.uniform(-0.1, 0.1, 4000)
LOWER, UPPER = np.array([1.0, -1.0, -1.0]), np.ones(3)


def test_noisy_statistics_are_least_squares_with_classical_intervals() -> None:
    found = noisy_statistics(X, Y, np.sqrt(3), 1.0, 1e9, np.random.default_rng(1))
    exact, (square,), *_ = np.linalg.lstsq(X, Y)
    assert found.coefficients == pytest.approx(exact, abs=1e-6)
    error = np.sqrt(square / 3997 * np.diag(np.linalg.inv(X.T @ X)))
    assert (found.upper - found.lower) / 2 == pytest.approx(1.9606 * error, rel=1e-3)


def test_noisy_statistics_have_wider_intervals_with_noise_that_cover() -> None:
    fits = [
        noisy_statistics(X, Y, np.sqrt(3), 1.0, 0.2, np.random.default_rng(k)) for k in range(60)
    ]
    covered = [(each.lower <= TRUTH) & (each.upper >= TRUTH) for each in fits]
    assert np.mean(covered) > 0.85
    assert np.mean([each.upper - each.lower for each in fits]) > 0.05


def test_noisy_statistics_are_arbitrary_where_noise_makes_them_indefinite() -> None:
    found = [
        noisy_statistics(X[:50], Y[:50], np.sqrt(3), 1.0, 0.05, np.random.default_rng(k))
        for k in range(10)
    ]
    assert max(np.abs(each.coefficients).max() for each in found) > 1e4


def test_the_bins_of_a_private_tree_partition_the_rows() -> None:
    bins = private_tree(X, LOWER, UPPER, 0.5, np.random.default_rng(1))
    assert len(bins) > 10
    rows = np.concatenate([each.rows for each in bins])
    assert sorted(rows) == list(range(len(X)))
    for each in bins:
        cells = X[each.rows]
        assert (each.lower <= cells).all()
        assert (cells <= each.upper).all()
        assert each.lower[0] == each.upper[0] == 1.0


def test_a_private_tree_has_more_bins_than_regressors_without_budget() -> None:
    bins = private_tree(X, LOWER, UPPER, 1e-6, np.random.default_rng(3))
    assert len(bins) >= 4


def test_binagg_is_near_least_squares_at_a_large_budget() -> None:
    found = binagg(X, Y, LOWER, UPPER, 20.0, np.random.default_rng(1))
    assert found.coefficients == pytest.approx(TRUTH, abs=0.02)
    assert (found.lower < found.coefficients).all()


def test_binagg_corrects_the_bias_of_noisy_sums() -> None:
    """Noise in the regressors attenuates; the correction leaves no bias beyond chance."""
    rng, counts = np.random.default_rng(1), np.full(60, 50.0)
    sums = counts[:, None] * np.hstack([np.ones((60, 1)), rng.uniform(-1, 1, (60, 2))])
    totals, sd = sums @ TRUTH, np.full(sums.shape, 15.0)
    corrected, naive = [], []
    for _ in range(300):
        drawn = sums + rng.normal(size=sums.shape) * sd
        corrected.append(weighted_fit(counts, drawn, totals, sd**2).coefficients)
        naive.append(weighted_fit(counts, drawn, totals, 0 * sd).coefficients)
    assert np.mean(naive, axis=0)[1] < 0.43
    assert np.mean(corrected, axis=0) == pytest.approx(TRUTH, abs=0.02)


def test_the_intervals_of_binagg_cover() -> None:
    fits = [binagg(X, Y, LOWER, UPPER, 5.0, np.random.default_rng(k)) for k in range(40)]
    covered = [(each.lower <= TRUTH) & (each.upper >= TRUTH) for each in fits]
    assert np.mean(covered) > 0.85
