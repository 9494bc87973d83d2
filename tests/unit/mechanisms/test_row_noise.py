"""The stated law of noisy rows, against moments and probabilities by their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.mechanism import PublicParameters, nominal_deviations, rounded_variance
from gramercy.mechanisms.rows import Rows


@pytest.mark.parametrize("scale", [0.1, 0.5, 3.0, 9.99, 10.0, 10.01, 60.0])
def test_variance_of_rounded_noise_is_that_of_its_cells(scale: float) -> None:
    edges = np.arange(-1500, 1502) - 0.5
    tails = stats.norm.sf(np.abs(edges) / scale)  # differences of small numbers, not of ones
    cells = np.abs(np.diff(tails))
    cells[1500] = 1 - 2 * stats.norm.sf(0.5 / scale)
    exact = float((np.arange(-1500, 1501) ** 2 * cells).sum())
    assert rounded_variance(scale) == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize(("mean_squared_norm", "variance"), [(1.0, 0.3), (7.0, 0.3), (1.0, 4.0)])
def test_deviations_are_those_of_products_of_noisy_cells(
    mean_squared_norm: float, variance: float
) -> None:
    """By Gauss-Hermite quadrature, which is exact for polynomials of this degree."""
    p, n = 5, 30
    public = PublicParameters(p, n, "replace-one", mean_squared_norm=mean_squared_norm)
    x = math.sqrt(mean_squared_norm / p)
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    weights = weights / weights.sum()
    y = x + math.sqrt(variance) * nodes
    on = weights @ y**4 - (weights @ y**2) ** 2
    off = (weights @ y**2) ** 2 - (weights @ y) ** 4
    expected = (math.sqrt(n * on), math.sqrt(n * off))
    assert nominal_deviations(public, variance) == pytest.approx(expected, rel=1e-12)


def noisy_rows(**level: Any) -> Rows:
    return Rows.calibrated(p=3, n=1000, neighbours="replace-one", delta=1e-6, **level)


def test_gram_of_noisy_rows_has_the_noise_removed_from_its_diagonal() -> None:
    rows = noisy_rows(mu=1.0)
    noisy = np.arange(12.0).reshape(3, 4)
    difference = noisy @ noisy.T - rows.gram(noisy)
    assert rows.law.cell_variance is not None
    assert difference == pytest.approx(4 * rows.law.cell_variance * np.eye(3), rel=1e-12)


def test_variance_of_a_cell_is_in_the_units_of_published_rows() -> None:
    rows = noisy_rows(mu=1.0)
    units = rows.lattice.squared_radius * rows.scale**2 + 1 / 12  # scales of rows are large
    assert rows.law.cell_variance == pytest.approx(units * rows.step**2, rel=1e-12)


@pytest.mark.parametrize("snr", [-20.0, 0.0, 6.0])
def test_signal_to_noise_ratio_is_that_of_a_cell(snr: float) -> None:
    rows = noisy_rows(snr=snr)
    assert rows.scale**2 == pytest.approx(10 ** (-snr / 10) / 3, rel=1e-12)
    assert rows.constants()["snr_db"] == pytest.approx(snr, abs=1e-9)
    assert rows.guarantee.mu == pytest.approx(2 / rows.scale, rel=1e-9)


def test_noisy_count_is_one_coordinate_of_weight_a_quarter() -> None:
    """The weight cancels from the guarantee, and decides between matrix and count."""
    facts: dict[str, Any] = {
        "p": 3,
        "n": 1000,
        "neighbours": "add-remove",
        "mu": 0.5,
        "delta": 1e-6,
    }
    alone, counted = (
        Gaussian.calibrated(**facts, publishes_noisy_count=count) for count in (False, True)
    )
    assert alone.sd_rows is None
    assert counted.sd_rows == 4 * counted.sd_diagonal
    assert counted.sd_diagonal / alone.sd_diagonal == pytest.approx(math.sqrt(17 / 16), rel=1e-12)
    assert alone.sd_diagonal == pytest.approx(2.0, rel=1e-12)
