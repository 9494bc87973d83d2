"""The exact privacy loss of three draws of which the later depend on the earlier, by quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[Any]
NODES, STEP = np.arange(-9, 11, 0.02), 0.02

# The squared mu of the second draw by the first output, and of the third by both outputs.
Policy = tuple[Callable[[Array], Array], Callable[[Array, Array, Array], Array]]


def delta(first: float, policy: Policy, epsilon: float) -> float:
    """The exact delta of three draws of N(h mu_k, 1), integrated over the first two outputs.

    `first`: the mu of the first draw.
    """
    second_of, third_of = policy
    one, two = np.meshgrid(NODES, NODES, indexing="ij")
    second = second_of(one)
    third = np.sqrt(third_of(one, two, second))
    found = 0.0
    for h, weight in ((1, 1.0), (0, -math.exp(epsilon))):
        means = (h * first, h * np.sqrt(second))
        density = np.exp(-((one - means[0]) ** 2 + (two - means[1]) ** 2) / 2) / (2 * math.pi)
        loss = first * one - first**2 / 2 + np.sqrt(second) * two - second / 2
        # Of the third draw: the loss is normal with the variance mu^2, and half of it as mean.
        needed, sign = epsilon - loss, 1 if h else -1
        tail = np.where(
            third > 0,
            ndtr((sign * third**2 / 2 - needed) / np.maximum(third, 1e-300)),
            needed < 0,
        )
        found += weight * float((density * tail).sum()) * STEP**2
    return found
