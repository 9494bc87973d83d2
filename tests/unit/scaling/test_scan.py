"""Centre and scale from histograms: right without noise, robust with it, equal everywhere."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gramercy.scaling.column_constants import (
    binary_logarithm,
    rounded,
)
from gramercy.scaling.column_scan import ColumnScan
from tests.support.histogram_tables import estimated, scanned

Array = NDArray[np.float64]
N = 20_000
RNG = np.random.default_rng(1)
NORMAL = RNG.normal(size=N)
COLUMNS: dict[str, tuple[Array, float, float]] = {
    "normal": (NORMAL, -10, 10),
    "wide bounds": (NORMAL, -1000, 1000),
    "near a bound": (NORMAL, -5, 5000),
    "far from zero": (1013 + 0.05 * NORMAL, 0, 1e4),
    "lognormal": (np.exp(NORMAL), 0, 100),
    "uniform": (RNG.random(N), 0, 1),
    "two values": (np.where(NORMAL > 0.3, 1.0, 0.0), 0, 1),
    "bimodal": (np.where(NORMAL > 0, 1, -1) + 0.05 * RNG.normal(size=N), -50, 50),
    "Likert": (np.clip(np.round(NORMAL + 3), 1, 5), 1, 5),
    "counts": (RNG.poisson(2.0, N).astype(float), 0, 1000),
    "zero-inflated": (np.where(RNG.random(N) < 0.1, np.exp(NORMAL), 0.0), 0, 1000),
    "an atom at a bound": (np.where(RNG.random(N) < 0.03, 2 + np.exp(NORMAL), 1.0), 1, 100),
    "an atom within": (np.where(RNG.random(N) < 0.1, 37 + 5 * NORMAL, 37.0), 0, 100),
    "half at one value": (np.where(RNG.random(N) < 0.5, 0.5, RNG.random(N)), 0, 1),
    "dates": (np.round(20_240 + 300 * NORMAL), 0, 1e5),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("bounded", [True, False])
def test_constants_are_those_of_the_column(name: str, bounded: bool) -> None:
    cells, lower, upper = COLUMNS[name]
    limits = (float(lower), float(upper)) if bounded else (None, None)
    constants = estimated(cells, *limits)
    sd = float(cells.std())
    assert constants.centre == pytest.approx(cells.mean(), abs=0.1 * sd)
    assert 0.8 < constants.scale / sd < (1.25 if bounded else 1.6)
    assert not constants.sign
    assert constants.present == 1.0


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("bounded", [True, False])
def test_noise_changes_constants_little(name: str, bounded: bool) -> None:
    """A noise of one row in 2,000 per bin: some 50,000 rows of 20 columns at epsilon 1."""
    cells, lower, upper = COLUMNS[name]
    limits = (float(lower), float(upper)) if bounded else (None, None)
    for seed in range(4):
        constants = estimated(cells, *limits, sd=N / 2000, seed=seed)
        sd = float(cells.std())
        assert abs(constants.centre - cells.mean()) < 0.5 * sd
        assert constants.sign or 0.3 < constants.scale / sd < 3


def test_missing_cells_are_measured() -> None:
    cells = np.where(np.arange(N) % 5 < 2, np.nan, 50 + 4 * NORMAL)
    constants = estimated(cells, 0.0, 1000.0)
    assert constants.present == pytest.approx(0.6, abs=1e-3)
    assert constants.scale == pytest.approx(4.0, rel=0.1)
    few_missing = np.where(np.arange(N) % 1000 == 0, np.nan, NORMAL)
    assert estimated(few_missing, -9.0, 9.0, sd=50.0).present == 1.0


def test_mostly_missing_column() -> None:
    cells = np.where(np.arange(N) % 20 == 0, 7 + NORMAL, np.nan)
    constants = estimated(cells, -100.0, 100.0, sd=5.0)
    assert constants.present == pytest.approx(0.05, abs=0.005)
    assert constants.centre == pytest.approx(7.0, abs=0.5)
    assert 0.5 < constants.scale < 2


@pytest.mark.parametrize("value", [0.0, 3.0, -7.25, 1e4])
@pytest.mark.parametrize("bounded", [True, False])
def test_constant_column(value: float, bounded: bool) -> None:
    limits = (-1e4, 1e4) if bounded else (None, None)
    constants = estimated(np.full(N, value), *limits, sd=20.0)
    assert constants.sign
    assert constants.scale > 0
    assert constants.lower <= value <= constants.upper
    assert constants.most_others < 0.01 * N


def test_column_without_any_value() -> None:
    constants = estimated(np.full(N, np.nan), 2.0, 3.0, sd=20.0)
    assert 0 < constants.present < 0.01
    assert 2 <= constants.centre <= 3
    assert constants.scale > 0


def test_rare_values_are_seen_or_said_to_be_unknown() -> None:
    """Of 3 % of the cells, either the scale is right, or only the sign is published."""
    rare = np.where(RNG.random(N) < 0.03, 10 + NORMAL, 0.0)
    for seed in range(5):
        few = estimated(rare, 0.0, 100.0, sd=N / 1000, seed=seed)
        assert few.scale == pytest.approx(rare.std(), rel=0.3)
        hidden = estimated(rare, 0.0, 100.0, sd=N / 60, seed=seed)
        assert hidden.sign
        assert hidden.most_others > (rare != 0).sum()
        assert hidden.upper < 1e-3


def test_no_scale_for_cells_of_which_some_are_not_seen() -> None:
    """The cells off the atom are counted; those that are seen must account for all of them."""
    spread = np.where(RNG.random(N) < 0.06, 100 * RNG.random(N) ** 8, 0.0)
    for seed in range(5):
        found = estimated(spread, 0.0, 1000.0, sd=N / 300, seed=seed)
        assert found.sign or found.scale > spread.std() / 2


def test_a_tail_widens_its_scale_where_noise_is_small() -> None:
    tail = np.where(RNG.random(N) < 0.1, np.exp(1.5 * NORMAL), 0.0)
    scan = scanned(tail, 0.0, 1000.0, sd=3.0)
    precise, noisy = (scan.finished(float(N), noise, 21) for noise in (1e-3, 100.0))
    assert precise.scale > 1.3 * noisy.scale
    assert precise.upper == noisy.upper


def test_distant_values_count() -> None:
    """Two per cent of the cells at the bound make three quarters of the variance."""
    cells = np.where(RNG.random(N) < 0.02, 12.0, NORMAL)
    constants = estimated(cells, -12.0, 12.0, sd=5.0)
    assert constants.scale == pytest.approx(cells.std(), rel=0.2)


def test_a_code_at_a_bound_is_seen_by_all_stages_together() -> None:
    """One per cent of the cells: three to four standard deviations of the noise of each stage."""
    cells = np.where(np.arange(N) % 100 == 0, 999_999.0, NORMAL)
    scales = np.array([estimated(cells, -5.0, 1e6, sd=55.0, seed=seed).scale for seed in range(12)])
    assert ((scales / cells.std() > 0.5) & (scales / cells.std() < 2)).sum() >= 10


def test_wrong_planning_figures_are_corrected_by_the_counts() -> None:
    """The caller passes the number of rows that the counts show; a small error is harmless."""
    for planned in (N - 100.0, N + 100.0):
        constants = estimated(NORMAL * 3 + 5, -100.0, 100.0, sd=20.0, planned=planned)
        assert constants.centre == pytest.approx(5, abs=1)
        assert constants.scale == pytest.approx(3, rel=0.4)


def test_histograms_get_finer_where_noise_is_small() -> None:
    def bins(cells: Array, lower: float, upper: float, **how: Any) -> int:
        body = scanned(cells, lower, upper, **how).body
        assert body is not None
        return body.bins

    assert bins(NORMAL, -9.0, 9.0, sd=N / 100) == 16
    assert bins(NORMAL, -9.0, 9.0, sd=N / 1000) == 32
    assert bins(NORMAL, -9.0, 9.0, sd=1.0) == 64
    assert bins(5e5 + NORMAL, 1.0, 1e6, sd=1.0, stages=1) == 128


@pytest.mark.slow
@given(
    st.sampled_from([(None, None), (0.0, 1.0), (-3.0, 1e6), (1013.0, 1014.0), (-1e308, 1e308)]),
    st.integers(0, 2**32),
    st.sampled_from([0, 1, 100, 10**6, 10**15]),
    st.floats(1e-6, 1e6),
    st.sampled_from([1.0, 1e3, 1e9]),
)
@example((-1e308, 1e308), 0, 1, 996.0, 1e3)  # a bound farther from the centre than any float
def test_any_counts_give_usable_constants(
    bounds: tuple[float | None, float | None], seed: int, size: int, sd: float, n: float
) -> None:
    lower, upper = bounds
    rng, scan = np.random.default_rng(seed), ColumnScan(lower, upper)
    for _ in range(3):
        edges = scan.grid.edges
        assert (np.diff(edges / 2) > 0).all()
        scan = scan.after(rng.integers(-size, size + 1, len(edges)), sd, n)
    constants = scan.finished(n, sd, 21)
    assert 0 < constants.scale < math.inf
    assert 0 < constants.present <= 1
    assert constants.lower <= constants.centre <= constants.upper
    assert constants.lower < constants.upper
    assert lower is None or (lower <= constants.lower and constants.upper <= float(upper or 0))
    assert replace(scan).finished(n, sd, 21) == constants


@pytest.mark.parametrize(
    ("centre", "scale", "expected"),
    [
        (1013.2567, 0.1234, (1013.26, 0.123)),
        (-0.00049, 0.0321, (0.0, 0.0321)),
        (123456.0, 9876.5, (123500.0, 9880.0)),
        (5e-7, 1.5e-6, (5e-7, 1.5e-6)),
        (2.0, 1e300, (0.0, 1e300)),
    ],
)
def test_rounding(centre: float, scale: float, expected: tuple[float, float]) -> None:
    assert rounded(centre, scale) == expected


@given(st.floats(1e-300, 1e300))
def test_logarithm_without_the_mathematical_library(value: float) -> None:
    (result,) = binary_logarithm(np.array([value]))
    assert result == pytest.approx(math.log2(value), abs=1e-5)
