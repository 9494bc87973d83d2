"""Published noisy histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROW_LENGTHS = "(row lengths)"  # in place of a column's name


@dataclass(frozen=True)
class Histogram:
    """A noisy histogram of a table column, or of the lengths of scaled rows.

    Parameters
    ----------
    stage
        Stage of the release's histograms, from 1. The last stage has the published marginals, and
        the row lengths have a stage of their own after it.
    column
        Name of the table column, or `ROW_LENGTHS`.
    lower, upper
        Bounds of each bin, shape (bins,): a bin has the cells from `lower` up to, but not
        including, `upper`. NaN for a bin of a level, for the last bin of a column, which counts
        missing cells, and for an unbounded end.
    level
        The level of each bin, as text; None for the other bins.
    count
        Noisy number of rows or persons in each bin, shape (bins,); may be negative.
    sd
        Standard deviation of the noise of a count.
    """

    stage: int
    column: str
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    level: tuple[str | None, ...]
    count: NDArray[np.int64]
    sd: float


def last_stage(histograms: Sequence[Histogram]) -> tuple[Histogram, ...]:
    """The marginals among the histograms of a release: those of all columns in the last stage."""
    if not histograms:
        return ()
    last = histograms[-1].stage - 1  # row lengths have a stage of their own
    return tuple(each for each in histograms if each.stage == last)
