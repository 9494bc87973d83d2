"""The five columns of the tables: what their rows are, under the reading that was chosen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.graphs.truths import truth
from benchmarks.papers.data import unit_rows
from benchmarks.papers.whx.published import COLUMNS

Array = NDArray[np.float64]
Rng = np.random.Generator

P = 50  # columns of the synthetic tables: the slides do not say
GENES = 100  # of the 2000 of the Colon table, the first
SHAPES = {
    **{column: (round(P * float(column.split()[-1])), P) for column in COLUMNS[:3]},
    "Colon": (62, GENES),
    "Parkinson's": (195, 22),
}
TABLES = {"Colon": "colon_alon1999", "Parkinson's": "parkinsons"}


def rows_of(column: str, rng: Rng) -> Array:
    """Rows of length one; synthetic ones drawn, n = r p of them."""
    if column in TABLES:
        return unit_rows(TABLES[column])
    n, p = SHAPES[column]
    return truth("random", p, rng).rows(n, rng)
