"""The metric and the radius in it follow from published numbers, for any column order."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gramercy.estimators.noise.denoise import denoise, project
from gramercy.scaling.clipping_radius import RowLengths, clipping_radius, length_edges
from gramercy.scaling.whitening import Pilot, Turning
from tests.support.histogram_tables import Array
from tests.support.noisy_matrices import ar, gaussian_law, goe

N = 20_000


def rows_of(covariance: Array, seed: int = 0) -> Array:
    """Rows with an intercept, shape (N, q)."""
    rng = np.random.default_rng(seed)
    cells = rng.normal(size=(N, len(covariance))) @ np.linalg.cholesky(covariance).T
    return np.hstack([np.ones((N, 1)), cells])


def lengths_in(rows: Array, edges: Array, sd: float = 1.0) -> RowLengths:
    bins = np.searchsorted(edges, np.linalg.norm(rows, axis=1), side="right") - 1
    counts = np.bincount(np.maximum(bins, 0), minlength=edges.size)
    return RowLengths(counts.astype(np.int64), sd, edges, N)


def turning_of(rows: Array, noise: float, seed: int = 0) -> Turning:
    """`noise`: of the released sum; the pilot matrix has three times as much."""
    n, q = rows.shape
    lengths = lengths_in(rows, length_edges(q, 100.0))
    radius = clipping_radius(lengths, q, q - 1, noise)
    spread = 3 * noise * radius**2 / n
    kept = rows * np.minimum(1, radius / np.linalg.norm(rows, axis=1))[:, None]
    noisy = kept.T @ kept / n + goe(np.random.default_rng(seed), q, spread)
    estimate = denoise(noisy, gaussian_law(spread), radius**2, n, unit=False)
    return Turning(Pilot(estimate, spread, radius, n), lengths)


def chosen(turning: Turning, rows: Array, noise: float) -> float | None:
    metric = turning.metric
    edges = turning.edges(metric, float(np.linalg.norm(rows, axis=1).max()))
    return turning.radius(lengths_in(rows @ metric, edges), metric, noise)


def test_correlated_rows_are_clipped_in_the_metric() -> None:
    rows = rows_of(ar(10, 0.9))
    radius = chosen(turning_of(rows, 4.0), rows, 4.0)
    assert radius is not None
    assert radius == float(f"{radius:.2e}")


def test_metric_makes_the_clear_directions_alike_and_no_direction_long() -> None:
    rows = rows_of(ar(10, 0.9))
    turning = turning_of(rows, 0.1)
    metric = turning.metric
    assert (metric == metric.T).all()
    turned = np.linalg.eigvalsh(metric @ (rows.T @ rows / N) @ metric)
    assert turned.max() < 1.05
    assert turned[-4:].min() > 0.75
    assert (np.diff(turned) > 0).all()


@pytest.mark.parametrize("noise", [0.01, 30.0])
def test_directions_in_which_rows_hardly_vary_are_stretched_to_a_limit(noise: float) -> None:
    """By the noise of the pilot, and by a share of the mean square of a column without it."""
    covariance = np.eye(6)
    covariance[0, 1] = covariance[1, 0] = 1 - 1e-9
    turning = turning_of(rows_of(covariance), noise)
    of_noise, of_columns = turning.pilot.noise * math.sqrt(7), 0.1
    floor = max(of_noise, of_columns)
    assert floor == (of_noise if noise > 1 else of_columns)
    assert np.linalg.eigvalsh(turning.metric)[-1] == pytest.approx(floor**-0.5, rel=0.2)


def test_order_of_columns_does_not_matter() -> None:
    rows, order = rows_of(ar(8, 0.8)), np.array([0, 5, 2, 8, 1, 7, 3, 4, 6])
    turning = turning_of(rows, 4.0)
    moment = turning.pilot.estimate[np.ix_(order, order)]
    other = replace(turning, pilot=replace(turning.pilot, estimate=moment))
    assert other.metric == pytest.approx(turning.metric[np.ix_(order, order)], abs=1e-6)
    assert chosen(other, rows[:, order], 4.0) == chosen(turning, rows, 4.0)


def test_choices_follow_from_published_numbers() -> None:
    rows = rows_of(ar(8, 0.8))
    first, second = (turning_of(rows, 4.0, seed=3) for _ in range(2))
    assert (first.metric == second.metric).all()
    assert chosen(first, rows, 4.0) == chosen(second, rows, 4.0)


def test_a_table_without_correlations_loses_little() -> None:
    """The metric is that of scaled rows within the noise, and so is the radius."""
    rows = rows_of(np.eye(10))
    turning = turning_of(rows, 1.0)
    radius = chosen(turning, rows, 1.0)
    typical = math.sqrt(float(np.trace(turning.metric @ turning.metric)) / 11)
    assert radius is None or radius == pytest.approx(turning.pilot.radius * typical, rel=0.2)


def test_rows_that_break_a_near_identity_are_not_lost() -> None:
    rows = rows_of(np.eye(10))
    broken = np.random.default_rng(1).random(N) < 0.01
    rows[~broken, 2] = rows[~broken, 1]
    turning = turning_of(rows, 0.2)
    radius = chosen(turning, rows, 0.2)
    assert radius is not None
    assert (np.linalg.norm(rows[broken] @ turning.metric, axis=1) > radius).mean() < 0.3


def test_rows_far_out_in_the_metric_keep_that_of_scaled_rows() -> None:
    """Rows that differ from the others in many directions at once would be lost."""
    rows = rows_of(np.eye(30))
    same = np.random.default_rng(1).random(N) > 0.01
    rows[same, 2:] = rows[same, 1:2]
    assert chosen(turning_of(rows, 0.2), rows, 0.2) is None


def test_a_constant_column_has_a_finite_metric() -> None:
    rows = rows_of(ar(6, 0.9))
    rows[:, 3] = 0.0
    turning = turning_of(rows, 4.0)
    assert np.isfinite(turning.metric).all()
    assert chosen(turning, rows, 4.0) is not None


@pytest.mark.parametrize("correlation", [0.0, 0.99])
def test_two_columns(correlation: float) -> None:
    rows = rows_of(np.array([[1, correlation], [correlation, 1]]))
    radius = chosen(turning_of(rows, 4.0), rows, 4.0)
    assert radius is None or radius > 0


def test_a_pilot_lost_in_the_noise_turns_nothing() -> None:
    """Its estimate is a multiple of the identity, and so is the metric."""
    turning = turning_of(rows_of(ar(10, 0.9)), 1e6)
    scale = np.diag(turning.metric).mean()
    assert turning.metric == pytest.approx(scale * np.eye(11), rel=0.2, abs=0.2 * scale)


def test_any_pilot_has_a_metric_and_any_counts_a_choice() -> None:
    rng = np.random.default_rng(5)
    for q in (2, 3, 30):
        for scale in (1e-6, 1.0, 1e6):
            estimate = project(scale * goe(rng, q, 1.0), math.inf)
            radius = scale**0.5 * math.sqrt(q)
            lengths = lengths_in(radius * rng.random((N, q)), length_edges(q, 100.0))
            turning = Turning(Pilot(estimate, scale, radius, N), lengths)
            metric = turning.metric
            assert np.isfinite(metric).all()
            edges = turning.edges(metric, 1e3)
            counts = rng.integers(-1000, 1000, edges.size)
            found = turning.radius(RowLengths(counts, 1e3, edges, N), metric, 10.0)
            assert found is None or 0 < found < math.inf
