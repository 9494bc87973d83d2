"""The test whether a table changed between two releases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest

from gramercy.estimators.table_comparison import change
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw

ROWS, SD, COUNT_SD = 1000.0, 5.0, 20.0
SECOND = np.array([[1.0, 0.4, -0.2], [0.4, 0.8, 0.1], [-0.2, 0.1, 0.5]])


def released(seed: int, second: np.ndarray = SECOND) -> Evidence:
    """A noisy sum over a noisy number of rows."""
    stream = np.random.default_rng(seed)
    half = stream.normal(size=second.shape) * SD / np.sqrt(2)
    rows = ROWS + stream.normal() * COUNT_SD
    raw = (ROWS * second + half + half.T) / rows
    sds = {"sd_diagonal": SD * np.sqrt(2) / rows, "sd_off_diagonal": SD / rows}
    law = NoiseLaw(family="gaussian-isotropic", **sds)
    return Evidence(raw, raw, law, rows, unit=False, divisor="noisy", rows_sd=COUNT_SD)


def test_p_values_allow_for_noise_on_the_number_of_rows() -> None:
    """Entries are correlated through the number: a plain sum of squares would be too large."""
    found = [change(released(2 * k), released(2 * k + 1)) for k in range(400)]
    p_values = [each.p_value for each in found]
    assert kstest(p_values, "uniform").pvalue > 1e-3
    plain = [float((each.deviations[np.triu_indices(3)] ** 2).sum()) for each in found]
    assert np.std(plain) > 1.3 * np.sqrt(12)


def test_changed_moment_is_found() -> None:
    moved = SECOND.copy()
    moved[0, 1] = moved[1, 0] = 0.45
    found = change(released(1, moved), released(2))
    assert found.p_value == pytest.approx(0.0, abs=1e-8)
    assert np.unravel_index(np.abs(found.deviations).argmax(), (3, 3)) == (0, 1)


def test_few_rows_and_other_divisors_have_no_test() -> None:
    first, second = released(1), released(2)
    assert change(first, replace(second, rows=9 * COUNT_SD)).p_value is None
    assert change(first, replace(second, divisor="itself")).p_value is None
