"""The trace of a second moment, from a released trace and public bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gramercy.estimators.noise.denoise import estimate_trace


def posterior_mean(released: float, sd: float, bound: float) -> float:
    smallest = sd if math.isinf(bound) else bound / 16
    t = np.linspace(0.0, min(bound, max(released, 0.0) + 15 * sd), 400_001)
    t = (t[1:] + t[:-1]) / 2
    density = np.exp(-(((t - released) / sd) ** 2) / 2 + (min(released, 0) / sd) ** 2 / 2)
    density /= t + smallest
    return float((t * density).sum() / density.sum())


@pytest.mark.parametrize("bound", [1.0, 8.0, math.inf])
@pytest.mark.parametrize("sd", [0.01, 0.5, 20.0])
def test_general_estimate_is_the_posterior_mean(sd: float, bound: float) -> None:
    for released in (-3 * sd, 0.0, 0.4, 1.0, 1 + 2 * sd):
        expected = posterior_mean(released, sd, bound)
        assert estimate_trace(released, sd, bound, False) == pytest.approx(expected, rel=1e-4)


def test_estimates_are_possible_traces() -> None:
    for unit in (False, True):
        for sd in (1e-9, 1e-3, 1.0, 1e6):
            for released in (-1e3, -1.0, 0.0, 1.0, 2.0, 1e3):
                assert 0 < estimate_trace(released, sd, 1.0, unit) <= 1.0
    assert estimate_trace(-1.0, 0.0, 1.0, False) == 0.0
    assert estimate_trace(0.4, 0.0, 1.0, True) == 0.4


def test_unit_rows_have_the_bound_as_trace_unless_contradicted() -> None:
    assert estimate_trace(-5.0, 4.0, 1.0, True) == 1.0
    assert estimate_trace(0.81, 0.1, 1.0, True) == 1.0
    assert estimate_trace(0.5, 0.1, 1.0, True) == estimate_trace(0.5, 0.1, 1.0, False)
    assert estimate_trace(0.5, 0.1, math.inf, True) == estimate_trace(0.5, 0.1, math.inf, False)
    steps = np.array([estimate_trace(t, 0.1, 1.0, True) for t in np.linspace(0, 1, 1001)])
    assert (np.diff(steps) >= 0).all()
    assert np.diff(steps).max() < 0.004
