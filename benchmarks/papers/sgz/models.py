"""The paper's models, rows and noise, as published; the noise is seeded, for benchmarks only."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.utility.matrices import triangle

Array = NDArray[np.float64]
Rng = np.random.Generator
_DRAWS = 10_000  # number of columns of W in Model 1


def precision(model: int, p: int, rng: Rng) -> Array:
    """Precision matrix of Models 1 to 4; Models 1 and 4 are random."""
    apart = np.abs(np.subtract.outer(range(p), range(p)))
    made: Array
    if model == 1:
        W = rng.standard_normal((p, _DRAWS))
        made = W @ W.T / _DRAWS
        return made
    if model == 2:
        made = np.where(apart == 0, 1.0, 0.5)
        return made
    if model == 3:  # the paper prints a zero diagonal, impossible for a precision matrix
        made = np.select([apart == 0, apart == 1, apart == 2], [1.0, 0.5, 0.25], 0.0)
        return made
    links = np.triu(rng.random((p, p)) < 0.1, 1) * 0.5
    links = links + links.T
    values = np.linalg.eigvalsh(links)
    alpha = (values[-1] - p * values[0]) / (p - 1)  # the condition number is p
    made = links / alpha + np.eye(p)
    return made


def rows(theta: Array, n: int, rng: Rng) -> Array:
    """Draw normal rows with that precision matrix, divided by the largest row length."""
    root = np.linalg.cholesky(np.linalg.inv(theta))
    return shortened(rng.standard_normal((n, len(theta))) @ root.T)


def shortened(table: Array) -> Array:
    """Divide by the largest row length. That is private, so the claimed guarantee is not valid."""
    made: Array = table / np.linalg.norm(table, axis=1).max()
    return made


def moment(table: Array) -> Array:
    """X^T X / n, not centred."""
    made: Array = table.T @ table / len(table)
    return made


def text_scale(n: int, epsilon: float, delta: float) -> float:
    """Noise deviation of an entry of `moment` as in the paper's text; sensitivity sqrt2 / n."""
    return math.sqrt(2) * math.sqrt(2 * math.log(1.25 / delta)) / (n * epsilon)


def printed_scale(n: int, epsilon: float, delta: float) -> float:
    """Noise deviation that reproduces Tables 1 and 2: sqrt2 times the text's up to epsilon 0.8."""
    return text_scale(n, epsilon, delta) * (math.sqrt(2) if epsilon < 1 else 1.0)


def noise(p: int, rng: Rng) -> Array:
    """Draw a symmetric matrix with independent standard normal entries in the upper triangle."""
    return triangle(rng.standard_normal, p)
