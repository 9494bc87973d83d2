"""Rows in a metric: exact, of the row alone, and the same in compiled code."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.common.metric import Metric, row_exponents
from gramercy.schemas.column import Column, Levels
from gramercy.schemas.normalisation import Clip, Lost
from gramercy.tables.counts.counting import RowLengths
from gramercy.tables.sums.row_transform import (
    MetricKernel,
    MetricRows,
    Repairs,
    RowTransform,
)

Array = NDArray[np.float64]

COLUMNS = (
    Column(lower=-3, upper=5, centre=0.25, scale=0.75),
    Levels(levels=("a", "b")),
    Column(lower=-1e4, upper=1e6, centre=3, scale=0.5),
    Column(lower=0, upper=1),
)
WIDTH = 6  # with the intercept
LATTICE = Lattice(WIDTH, 14)


def a_matrix(seed: int = 0, size: int = WIDTH) -> Array:
    """A matrix of the kind that whitens nearly collinear columns."""
    random = np.random.default_rng(seed)
    root = np.linalg.cholesky(0.99 * np.ones((size, size)) + 0.01 * np.eye(size))
    values, vectors = np.linalg.eigh(root @ root.T)
    matrix: Array = (vectors * random.uniform(0.5, 2, size) / np.sqrt(values)) @ vectors.T
    return (matrix + matrix.T) / 2


def some_cells(seed: int, rows: int) -> Array:
    random = np.random.default_rng(seed)
    cells = random.normal(size=(4, rows)) * np.array([[3], [1], [1e5], [1]])
    cells[1] = random.integers(0, 3, rows)
    cells[random.random(cells.shape) < 0.05] = np.nan
    return cells


def transform(metric: Metric, *, compiled: bool) -> RowTransform:
    clip = Clip(radius=2.5)
    kernel = MetricKernel(COLUMNS, True, metric, clip, LATTICE) if compiled else None
    return RowTransform(COLUMNS, True, clip, LATTICE, kernel, metric)


@pytest.mark.slow
@given(st.integers(0, 1000), st.integers(2, 40))
def test_product_is_exact(seed: int, size: int) -> None:
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(size, size))
    metric = Metric.near(matrix + matrix.T)
    scaled = random.uniform(-1, 1, (size, 3)) * 2.0 ** random.integers(-40, 40, (size, 3))
    powers = 2.0 ** (22 - row_exponents(scaled))
    whole = np.rint(scaled * powers)
    exact = [
        [sum(int(a) * int(z) for a, z in zip(row, column, strict=True)) for column in whole.T]
        for row in metric.units
    ]
    assert np.abs(metric.units).sum(axis=1).max() * np.abs(whole).max() <= 2.0**53
    unit = metric.matrix[0, 0] / metric.units[0, 0]
    assert (metric.rows(scaled) == np.array(exact, float) * unit / powers).all()
    error = metric.rows(scaled) - metric.matrix @ scaled
    most = np.abs(metric.matrix).sum(axis=1).max() * np.abs(scaled).max(axis=0)
    assert (np.abs(error) <= 2.0**-21 * most).all()


def test_published_entries_give_the_same_metric() -> None:
    metric = Metric.near(a_matrix())
    again = Metric(metric.matrix)
    assert (again.units == metric.units).all()
    with pytest.raises(ValueError):  # noqa: PT011
        _ = Metric(a_matrix()).units


def test_power_of_two_stays_a_power_of_two() -> None:
    matrix = np.full((2, 2), 0.25)
    metric = Metric.near(matrix - 2.0**-40 * np.ones((2, 2)))
    assert (metric.matrix == matrix).all()
    assert (Metric(metric.matrix).units == metric.units).all()


def whitening_matrix(size: int, condition: float) -> Array:
    """A metric with eigenvalues from 1 to the condition, in directions of no column."""
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))[0]
    matrix: Array = (vectors * np.geomspace(1, condition, size)) @ vectors.T
    return (matrix + matrix.T) / 2


@pytest.mark.parametrize(("size", "condition"), [(2, 2.0**16), (60, 2.0**13), (1000, 2.0**11)])
def test_nearly_singular_metrics_stay_invertible(size: int, condition: float) -> None:
    """More than what the noise of a pilot allows for a billion rows."""
    metric = Metric.near(whitening_matrix(size, condition))
    values = np.linalg.eigvalsh(metric.matrix)
    assert values[0] > 0.5
    assert np.isclose(values[-1], condition, rtol=1e-3)


@pytest.mark.parametrize(
    "row",
    [
        [0.0, -0.0, 0.0],
        [5e-324, -5e-324, 0.0],
        [1.0, 1e-300, 5e-324],
        [1e-100, 1e-110, 0.0],
        [2.0**40, -(2.0**40), 1.0],
        [1.0, 1e100, -1e100],
        [1.7e308, -1.7e308, 1.0],
    ],
)
def test_rows_of_any_size_are_finite_and_keep_their_direction(row: list[float]) -> None:
    metric = Metric.near(np.array([[3.0, 1, 0.5], [1, 2, 0.25], [0.5, 0.25, 1]]) / 8)
    z = np.array(row)[:, None]
    y = metric.rows(z)
    assert np.isfinite(y).all()
    assert (metric.rows(np.hstack([np.ones((3, 1)), z]))[:, 1:] == y).all()
    largest = np.abs(z).max()
    if 1e-120 < largest < 1e120:  # others are far beyond every radius, or zero
        assert np.allclose(y / largest, metric.matrix @ (z / largest), rtol=0, atol=1e-6)


@pytest.mark.slow
def test_wide_rows_are_exact() -> None:
    """3000 columns, and sums of terms of one sign, which are the largest."""
    metric = Metric.near(np.full((3000, 3000), 0.999) - 0.25 * np.eye(3000))
    scaled = np.random.default_rng(1).uniform(0.9, 1, (3000, 4))
    whole = np.rint(scaled * 2.0 ** (22 - row_exponents(scaled))).astype(np.int64)
    some = metric.units[:4].astype(np.int64)
    exact = [
        [sum(int(a) * int(z) for a, z in zip(r, c, strict=True)) for c in whole.T] for r in some
    ]
    assert 2.0**52 < max(map(max, exact)) <= 2.0**53
    unit = metric.matrix[0, 0] / metric.units[0, 0] / 2.0**22
    assert (metric.rows(scaled)[:4] == np.array(exact, float) * unit).all()


def test_far_cell_of_one_row_leaves_the_digits_of_others() -> None:
    metric, z = Metric.near(a_matrix()), np.random.default_rng(2).normal(size=(WIDTH, 50))
    alone = metric.rows(z)
    z[3, 7] = 1e15
    others = np.arange(50) != 7
    assert (metric.rows(z)[:, others] == alone[:, others]).all()
    assert np.allclose(alone[:, others], metric.matrix @ z[:, others], rtol=0, atol=1e-5)


@pytest.mark.slow
@given(st.integers(0, 1000))
def test_a_row_does_not_depend_on_its_batch(seed: int) -> None:
    metric, cells = Metric.near(a_matrix(seed)), some_cells(seed, 500)
    rows = transform(metric, compiled=False)
    whole = rows.integers(cells, Repairs.zeros(4))
    order = np.random.default_rng(seed).permutation(500)
    for part in np.split(order, [1, 8, 100]):
        own = rows.integers(np.ascontiguousarray(cells[:, part]), Repairs.zeros(4))
        assert (own == whole[:, part]).all()
    assert ((whole.astype(np.int64) ** 2).sum(axis=0) <= LATTICE.squared_radius).all()


@pytest.mark.slow
def test_compiled_pass_gives_the_same_rows() -> None:
    metric, cells = Metric.near(a_matrix(3)), some_cells(3, 3000)
    plain, quick = Repairs.zeros(4), Repairs.zeros(4)
    expected = transform(metric, compiled=False)
    compiled = transform(metric, compiled=True)
    assert (expected.integers(cells, plain) == compiled.integers(cells, quick)).all()
    assert (plain.filled == quick.filled).all()
    assert (plain.clamped == quick.clamped).all()
    own = Repairs.zeros(4)
    assert (expected.squares(cells, plain) == compiled.squares(cells, own)).all()


def test_lengths_and_losses_are_measured_in_the_metric() -> None:
    metric, cells = Metric.near(a_matrix(5)), some_cells(5, 400)
    cells[2] /= 1e5
    lengths = RowLengths(COLUMNS, True, WIDTH, metric, large=False).squares(cells) / 2.0**20
    clip = Clip(radius=math.sqrt(np.median(lengths)))
    lost = Lost(radius=clip.length, unit=clip.length, cut=8.0, intercept=0.5)
    scaled = RowTransform(COLUMNS, True, clip, LATTICE).integers(cells, Repairs.zeros(4))
    rows = RowTransform(COLUMNS, True, clip, LATTICE, None, metric).integers(
        cells, Repairs.zeros(4)
    )
    own = RowTransform(COLUMNS, True, lost, LATTICE, None, metric)
    losses = own.integers(cells, Repairs.zeros(4))
    clipped = np.sqrt(lengths) > clip.length
    assert 0 < clipped.sum() < clipped.size
    of_rows = (rows**2).sum(axis=0) / LATTICE.squared_radius
    assert np.allclose(of_rows, np.minimum(lengths / clip.length**2, 1), atol=1e-3)
    assert (losses[:, ~clipped] == 0).all()
    assert (losses[:, clipped] != 0).any(axis=0).all()
    # What is lost is in the units of scaled rows: it has their direction.
    far = np.flatnonzero(clipped)[0]
    direction, own_direction = scaled[1:, far], losses[1:, far]
    cosine = (
        direction
        @ own_direction
        / math.sqrt((direction @ direction) * (own_direction @ own_direction))
    )
    assert cosine == pytest.approx(1, abs=1e-3)


def test_rows_with_one_enormous_cell_are_clipped_and_others_are_exact() -> None:
    columns = (Column(lower=-1e300, upper=1e300, centre=0, scale=1), *COLUMNS[1:])
    metric, cells = Metric.near(a_matrix(7)), some_cells(7, 600)
    cells[:] = np.nan_to_num(cells)
    alone = cells.copy()
    cells[0, ::3] = 10.0 ** np.random.default_rng(7).integers(-300, 300, 200)
    made = []
    for compiled in (False, True):
        clip = Clip(radius=2.5)
        kernel = MetricKernel(columns, True, metric, clip, LATTICE) if compiled else None
        rows = RowTransform(columns, True, clip, LATTICE, kernel, metric)
        made.append(rows.integers(cells, Repairs.zeros(4)))
        unchanged = rows.integers(alone, Repairs.zeros(4))
        ordinary = np.arange(600) % 3 != 0
        assert (made[-1][:, ordinary] == unchanged[:, ordinary]).all()
    assert (made[0] == made[1]).all()
    largest = np.abs(cells[0]) > 1e20
    direction = metric.matrix[:, 1] / np.linalg.norm(metric.matrix[:, 1])
    shown = made[0][:, largest].T @ direction / 2.0**LATTICE.bits
    assert np.allclose(np.abs(shown), 1, atol=1e-3)


@pytest.mark.parametrize("persons", [False, True])
def test_compiled_lengths_find_the_same_losses(persons: bool) -> None:
    metric, cells = Metric.near(a_matrix(9)), some_cells(9, 3000)
    cells[2] /= 1e5
    lengths = RowLengths(COLUMNS, True, WIDTH, metric, large=True).squares(cells) / 2.0**20
    radius = math.sqrt(np.quantile(lengths, 0.9))
    lost = Lost(radius=radius, unit=2.0, cut=8.0, intercept=0.5)
    factors = np.random.default_rng(9).uniform(0.5, 2, 3000).clip(max=1.0) if persons else None
    plain = RowTransform(COLUMNS, True, lost, LATTICE, None, metric)
    quick = replace(plain, measure=MetricRows(COLUMNS, True, metric))
    expected = plain.integers(cells, Repairs.zeros(4), factors)
    assert 0 < expected.any(axis=0).sum() < 3000
    assert (quick.integers(cells, Repairs.zeros(4), factors) == expected).all()
    squares = quick.squares(cells, Repairs.zeros(4), factors)
    assert (squares == (expected * expected).sum(axis=0)).all()
