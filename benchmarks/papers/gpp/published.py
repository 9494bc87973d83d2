"""The paper's printed settings and claims; its extracted text lacks the numbers in the tables.

The claims are taken from its sentences. The expected numbers are from this project's earlier
measurements with the same protocol.
"""

from __future__ import annotations

from dataclasses import dataclass

# Tables 1 and 2: the noise levels of their rows. Infinite decibels mean no noise.
DECIBELS = (float("inf"), 100.0, 80.0, 60.0, 40.0, 20.0, 10.0, 0.0)  # 0 dB is an addition
SIZES = (50, 500, 5000)  # Table 1(a)
SPARSITIES = (99, 98, 95, 90)  # Table 1(b), percent of zeros
# Shapes of the real tables that the text states: table 2, sections 8.4, 8.8, 8.9.
SHAPES = {
    "sachs": "7,466 rows, 11 columns",
    "ieee14": "11 columns",
    "ieee118": "115 columns",
    "chickenpox": "517 rows",
    "soil": "89 rows",
}


@dataclass(frozen=True)
class Expected:
    """An earlier measurement of this project, and the tolerance around it.

    Parameters
    ----------
    value
        Measured value.
    low, high
        Bounds of the tolerance.
    """

    value: float
    low: float
    high: float

    def holds(self, result: float) -> bool:
        return self.low <= result <= self.high


def _at_least(value: float, low: float) -> Expected:
    return Expected(value, low, 1.0)


def _within_three_hundredths(value: float, middle: float) -> Expected:
    return Expected(value, middle - 0.03, middle + 0.03)


# AR(1), 20 columns: by (rows, decibels), the area against the true graph.
TRUTH = {
    (50, float("inf")): _at_least(0.999, 0.98),
    (50, 40.0): _at_least(0.999, 0.98),
    (50, 20.0): _at_least(0.998, 0.98),
    (50, 10.0): _at_least(0.987, 0.96),
    **{
        (n, at): _at_least(1.0, 0.99)
        for n in (500, 5000)
        for at in (float("inf"), 40.0, 20.0, 10.0)
    },
}
# By (rows, decibels), the area against the graphical lasso of the rows without noise.
VANILLA = {
    **{(n, float("inf")): Expected(1.0, 1.0, 1.0) for n in SIZES},
    (50, 40.0): _within_three_hundredths(0.991, 0.985),
    (500, 40.0): _within_three_hundredths(0.991, 0.985),
    (5000, 40.0): _within_three_hundredths(0.990, 0.985),
    (50, 20.0): _within_three_hundredths(0.949, 0.95),
    (500, 20.0): _within_three_hundredths(0.959, 0.95),
    (5000, 20.0): _within_three_hundredths(0.961, 0.95),
    (50, 10.0): _within_three_hundredths(0.848, 0.855),
    (500, 10.0): _within_three_hundredths(0.855, 0.855),
    (5000, 10.0): _within_three_hundredths(0.860, 0.855),
}
# 100 columns, 20 dB: by percent of zeros, the area against the true graph.
SPARSE = {99: _at_least(1.0, 0.99), 98: _at_least(1.0, 0.99), 95: _at_least(0.996, 0.97),
          90: Expected(0.925, 0.88, 0.97)}  # fmt: skip
