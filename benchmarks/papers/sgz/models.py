"""The paper's models, rows and noise: private as published, which no release ever does."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.utility.matrices import triangle

Array = NDArray[np.float64]
Rng = np.random.Generator
_DRAWS = 10_000  # columns of W in Model 1


def precision(model: int, p: int, rng: Rng) -> Array:
    """Of Models 1 to 4; 1 and 4 are drawn."""
    apart = np.abs(np.subtract.outer(range(p), range(p)))
    made: Array
    if model == 1:
        W = rng.standard_normal((p, _DRAWS))
        made = W @ W.T / _DRAWS
        return made
    if model == 2:
        made = np.where(apart == 0, 1.0, 0.5)
        return made
    if model == 3:  # the paper prints a diagonal of zeros, which no precision matrix has
        made = np.select([apart == 0, apart == 1, apart == 2], [1.0, 0.5, 0.25], 0.0)
        return made
    links = np.triu(rng.random((p, p)) < 0.1, 1) * 0.5
    links = links + links.T
    values = np.linalg.eigvalsh(links)
    alpha = (values[-1] - p * values[0]) / (p - 1)  # the condition number is p
    made = links / alpha + np.eye(p)
    return made


def rows(theta: Array, n: int, rng: Rng) -> Array:
    """Normal rows with that precision matrix, divided by the largest length among them."""
    root = np.linalg.cholesky(np.linalg.inv(theta))
    return shortened(rng.standard_normal((n, len(theta))) @ root.T)


def shortened(table: Array) -> Array:
    """Divided by the largest length of a row: a private number, so the guarantee does not hold."""
    made: Array = table / np.linalg.norm(table, axis=1).max()
    return made


def moment(table: Array) -> Array:
    """X^T X / n, not centred."""
    made: Array = table.T @ table / len(table)
    return made


def text_scale(n: int, epsilon: float, delta: float) -> float:
    """The noise's deviation on an entry of `moment`, as the text has it; sensitivity sqrt2 / n."""
    return math.sqrt(2) * math.sqrt(2 * math.log(1.25 / delta)) / (n * epsilon)


def printed_scale(n: int, epsilon: float, delta: float) -> float:
    """What the numbers of Tables 1 and 2 were made with: up to 0.8, sqrt2 more than the text's."""
    return text_scale(n, epsilon, delta) * (math.sqrt(2) if epsilon < 1 else 1.0)


def noise(p: int, rng: Rng) -> Array:
    """Independent and standard on the upper triangle, mirrored."""
    return triangle(rng.standard_normal, p)
