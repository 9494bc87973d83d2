"""Draws whose shares depend on earlier draws: the theorem of docs/privacy.md, by quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from gramercy.mechanisms.accounting.gdp import gdp_delta

Array = NDArray[Any]
MU, FIRST = 1.3, 0.5
NODES, STEP = np.arange(-9, 11, 0.02), 0.02

# The squared mu of the second draw by the first output, and of the third by both outputs.
Policy = tuple[Callable[[Array], Array], Callable[[Array, Array, Array], Array]]


def rest(_: Array, __: Array, second: Array) -> Array:
    return MU**2 - FIRST**2 - second


def by_first(y: Array) -> Array:
    return np.asarray((MU**2 - FIRST**2) * (0.5 + 0.4 * np.sin(3 * y)))


POLICIES: dict[str, Policy] = {
    "fixed shares": (lambda y: np.full_like(y, 0.4), rest),
    "shares by what was published": (by_first, rest),
    "stopped by what was published": (
        by_first,
        lambda one, two, second: np.where(one + two > 1, rest(one, two, second), 0.0),
    ),
    "a decision that is not paid for": (
        by_first,
        lambda one, two, second: rest(one, two, second) + np.where(two > 0.5, 0.5, 0.0),
    ),
}


def delta(policy: Policy, epsilon: float) -> float:
    """The exact delta of three draws of N(h mu_k, 1), integrated over the first two outputs."""
    second_of, third_of = policy
    one, two = np.meshgrid(NODES, NODES, indexing="ij")
    second = second_of(one)
    third = np.sqrt(third_of(one, two, second))
    found = 0.0
    for h, weight in ((1, 1.0), (0, -math.exp(epsilon))):
        means = (h * FIRST, h * np.sqrt(second))
        density = np.exp(-((one - means[0]) ** 2 + (two - means[1]) ** 2) / 2) / (2 * math.pi)
        loss = FIRST * one - FIRST**2 / 2 + np.sqrt(second) * two - second / 2
        # Of the third draw: the loss is normal with the variance mu^2, and half of it as mean.
        needed, sign = epsilon - loss, 1 if h else -1
        tail = np.where(
            third > 0,
            ndtr((sign * third**2 / 2 - needed) / np.maximum(third, 1e-300)),
            needed < 0,
        )
        found += weight * float((density * tail).sum()) * STEP**2
    return found


@pytest.mark.parametrize("name", POLICIES)
def test_draws_that_depend_on_each_other_have_the_guarantee_of_their_sum(name: str) -> None:
    for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0):
        exact, claimed = delta(POLICIES[name], epsilon), float(gdp_delta(MU, epsilon))
        if "paid" in name:
            assert exact > 1.05 * claimed
        elif "stopped" in name:
            assert 0 < exact < claimed
        else:
            assert exact == pytest.approx(claimed, rel=1e-4)
