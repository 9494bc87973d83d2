"""Numbers printed on the slides: Tables 1 and 2, relative errors by method, epsilon, column.

Output perturbation is NA throughout. SQLU of Table 2 is NA except on Parkinson's; the slides do not
define it.
"""

from __future__ import annotations

from benchmarks.arrays import Array, Rng
from benchmarks.graphs.truths import truth
from benchmarks.papers.data import unit_rows

EPSILONS = (0.5, 1.0, 1.5)
COLUMNS = ("r = 0.5", "r = 1.0", "r = 1.5", "Colon", "Parkinson's")

_PRINTED = {
    "wishart": (  # Table 1
        (0.993, 0.9918, 0.9914, 0.995, 0.9140),
        (0.986, 0.9863, 0.9856, 0.993, 0.8899),
        (0.9817, 0.9815, 0.9806, 0.9907, 0.8796),
    ),
    "laplace": (  # Table 1
        (101.4, 52.85, 35.42, 190.57, 9.950),
        (49.44, 25.41, 16.83, 95.01, 4.690),
        (32.30, 16.41, 10.76, 63.67, 3.913),
    ),
    "wishart-approximate": (  # Table 2
        (0.9999, 0.9997, 0.9993, 1.636, 1.00),
        (0.9982, 0.9947, 0.9906, 1.1155, 0.990),
        (0.9954, 0.9895, 0.9837, 1.0474, 0.9992),
    ),
    "gaussian": (  # Table 2
        (0.1285, 0.1607, 0.1759, 0.3039, 0.1527),
        (0.1254, 0.1605, 0.1737, 0.1081, 0.1514),
        (0.1242, 0.1585, 0.1701, 0.0833, 0.1474),
    ),
}
SULQ = (0.7419, 0.7318, 0.7065)  # Table 2, Parkinson's, by epsilon
METHODS = tuple(_PRINTED)
TITLES = {  # with the number of the table
    "wishart": "1: Wishart",
    "laplace": "1: Laplace",
    "wishart-approximate": "2: Wishart",
    "gaussian": "2: Gaussian",
}


def printed(method: str, epsilon: float, column: str) -> float:
    """The relative error of a cell."""
    return _PRINTED[method][EPSILONS.index(epsilon)][COLUMNS.index(column)]


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
