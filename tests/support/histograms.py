"""Histograms of columns and of row lengths, counted with numpy, with seeded noise or without."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.column_constants import (
    Constants,
    Grid,
    column_constants,
    first_grid,
    zoomed_grid,
)

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


def counted(cells: Array, grid: Grid) -> Counts:
    """The exact counts of cells; NaN is missing."""
    present = np.clip(cells[np.isfinite(cells)], grid.edges[0], grid.edges[-1])
    counts = np.histogram(present, grid.edges)[0]
    return np.append(counts, len(cells) - len(present)).astype(np.int64)


def noisy(counts: Counts, sd: float, rng: np.random.Generator) -> Counts:
    """Counts with rounded Gaussian noise."""
    result: Counts = np.rint(counts + sd * rng.normal(size=counts.shape)).astype(np.int64)
    return result


def estimated(
    cells: Array,
    lower: float | None = None,
    upper: float | None = None,
    *,
    sd: float = 1e-3,
    stages: int = 3,
    seed: int = 0,
    planned: float | None = None,
) -> Constants:
    """The constants of a column after some stages of histograms with noise `sd`.

    `planned` is the number of rows that the rule is given, by default the true one.
    """
    rng, constants = np.random.default_rng(seed), None
    for _ in range(stages):
        grid = zoomed_grid(constants, lower, upper) if constants else first_grid(lower, upper)
        counts = noisy(counted(cells, grid), sd, rng)
        n = float(planned or len(cells))
        constants = column_constants(counts, grid, sd, n, constants, lower, upper)
    assert constants is not None
    return constants
