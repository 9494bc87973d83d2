"""Calibrated scales are exact: never below the exact one, and hardly above it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special

import mechanisms
from tests.making import at_scale


def exact_sigma(epsilon: float, delta: float) -> float:
    """Sensitivity-1 Gaussian scale, by an independent evaluation in log space."""

    def log_delta(log_sigma: float) -> float:
        mu = math.exp(-log_sigma)
        a, b = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
        # e^eps Phi(b) / Phi(a), through scaled complementary error functions: no overflow.
        ratio = special.erfcx(-b / math.sqrt(2)) / special.erfcx(-a / math.sqrt(2))
        return float(special.log_ndtr(a) + math.log1p(-ratio)) - math.log(delta)

    return math.exp(optimize.brentq(log_delta, -6, 14, xtol=1e-15, rtol=1e-15))


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", list(mechanisms.registry))
def test_scale_is_exact(name: str, neighbours: str) -> None:
    squared = {"replace-one": 2.0, "add-remove": 1.0}[neighbours]
    steps = at_scale(6, 25)
    for epsilon in np.geomspace(0.01, 20, steps):
        for delta in np.geomspace(1e-12, 1e-2, steps):
            made = mechanisms.registry[name].calibrated(
                p=5, n=10, neighbours=neighbours, epsilon=float(epsilon), delta=float(delta)
            )
            exact = math.sqrt(squared) * exact_sigma(epsilon, delta)
            assert exact * (1 - 1e-9) <= made.facts()["scale"] <= exact * (1 + 1e-6)
            assert made.guarantee.mu == pytest.approx(
                math.sqrt(squared) / made.facts()["scale"], rel=1e-15
            )
            assert made.guarantee.epsilon(float(delta)) <= epsilon
