"""The data sets in the five columns of the tables, under the chosen interpretation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.graphs.truths import truth
from benchmarks.papers.data import unit_rows
from benchmarks.papers.whx.published import COLUMNS

Array = NDArray[np.float64]
Rng = np.random.Generator

P = 50  # columns of the synthetic tables; the slides do not state it
GENES = 100  # the first ones of the 2000 in the Colon table
SHAPES = {
    **{column: (round(P * float(column.split()[-1])), P) for column in COLUMNS[:3]},
    "Colon": (62, GENES),
    "Parkinson's": (195, 22),
}
TABLES = {"Colon": "colon_alon1999", "Parkinson's": "parkinsons"}


def rows_of(column: str, rng: Rng) -> Array:
    """Return the rows of a column, of length one; for synthetic data, draw n = r p rows."""
    if column in TABLES:
        return unit_rows(TABLES[column])
    n, p = SHAPES[column]
    return truth("random", p, rng).rows(n, rng)
