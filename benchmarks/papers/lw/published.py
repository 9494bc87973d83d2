"""The numbers printed by Li and Wang, in their order.

Mathematics 2023, 11, 3670. Tables 1 to 6: means over 50 repetitions; Table 7: of 20 test rows.
Table 3 has "Model 2" in its caption and "Model 1" inside; its numbers continue those of Model 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.papers.experiment import Setting

COLUMNS = ("lw", "wx", "lw-local", "wx-local")
NORMS = ("spectral", "frobenius")
DELTA = 1 / 400
EPSILON = 0.5


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Parameters
    ----------
    table
        Number of the table.
    model, rows, p, n, epsilon, delta
        Setting of the simulation.
    spectral, frobenius
        Errors in the four columns.
    """

    table: int
    model: int
    rows: str
    p: int
    n: int
    epsilon: float
    delta: float
    spectral: tuple[float, float, float, float]
    frobenius: tuple[float, float, float, float]

    @property
    def setting(self) -> Setting:
        keys = ("model", "rows", "p", "n", "epsilon", "delta")
        return tuple((key, getattr(self, key)) for key in keys)

    @property
    def name(self) -> str:
        """Return the setting that varies within its table."""
        if self.table <= 2:
            return f"Model {self.model}, p = {self.p}, n = {self.n}"
        if self.table <= 4:
            return f"epsilon = {self.epsilon:g}"
        return f"delta = 1/{1 / self.delta:.0f}"

    def printed(self, column: str, norm: str) -> float:
        result: tuple[float, ...] = getattr(self, norm)
        return result[COLUMNS.index(column)]


_SIZES = ((50, 200), (50, 300), (100, 200), (100, 300), (200, 300))
_FIRST = {
    "normal": """
        1.92 2.50 4.31 4.95 4.41 5.90 8.15 9.77
        1.52 1.89 3.70 4.18 3.74 4.65 6.58 7.65
        2.13 2.79 5.44 7.67 6.83 9.34 10.71 14.11
        1.76 2.18 4.73 6.73 5.86 7.13 8.81 11.07
        1.89 2.56 6.08 8.81 8.73 10.10 11.68 15.28
        1.01 1.56 3.46 4.11 3.32 4.90 6.42 8.95
        0.74 0.92 3.13 3.51 2.87 3.23 5.20 7.16
        1.28 1.78 4.19 5.04 4.99 8.07 8.03 13.35
        0.82 1.43 3.60 4.30 4.29 5.30 5.75 9.53
        0.93 1.63 4.00 5.35 6.28 8.93 8.94 13.84
    """,
    "t5": """
        4.48 5.31 8.64 10.45 9.44 11.41 13.75 15.44
        3.69 4.63 7.79 9.36 7.95 9.80 12.74 13.63
        4.81 5.56 9.98 13.75 14.10 16.78 20.32 22.97
        4.35 5.08 8.73 11.69 12.53 14.84 18.72 19.42
        4.59 5.42 10.62 14.61 18.91 20.59 23.09 24.10
        2.81 4.23 7.34 9.42 6.06 7.29 10.85 11.78
        2.27 3.35 6.19 7.47 4.86 5.88 9.53 10.77
        3.91 4.61 8.46 10.95 9.68 13.17 14.58 16.69
        2.94 3.73 6.69 8.52 7.63 10.83 11.95 13.65
        3.56 4.46 9.36 11.48 12.25 15.81 15.46 18.42
    """,
}
_EPSILONS = (0.1, 0.4, 0.6, 0.7)
_BY_EPSILON = {
    "normal": """
        2.60 3.04 7.49 9.84 7.69 11.14 12.74 17.54
        1.51 2.12 5.25 6.88 5.95 9.11 9.82 14.72
        1.08 1.70 3.31 4.07 4.66 7.64 7.67 12.67
        1.03 1.65 3.03 3.34 4.45 7.02 7.16 11.66
    """,
    "t5": """
        6.98 8.29 15.03 17.59 12.99 16.58 19.70 22.18
        4.71 5.72 10.37 12.88 10.78 14.34 16.14 18.16
        3.02 3.82 6.90 9.15 8.89 12.39 13.25 15.38
        1.84 2.55 4.54 6.28 7.38 10.65 11.52 13.22
    """,
}
_DELTAS = (1 / 50, 1 / 100, 1 / 200, 1 / 500)
_BY_DELTA = {
    "normal": """
        1.85 2.47 4.08 4.92 6.37 8.67 6.33 8.62
        1.99 2.58 4.49 5.51 6.47 8.89 7.66 11.14
        2.08 2.62 4.92 6.43 6.68 9.12 9.17 13.09
        2.32 2.96 5.63 7.97 7.04 9.66 11.15 15.68
    """,
    "t5": """
        4.40 5.29 6.95 10.31 13.42 16.22 17.94 19.17
        4.64 5.38 8.01 11.24 13.69 16.39 18.70 20.56
        5.73 5.45 8.91 13.00 13.94 16.55 19.10 21.96
        5.05 5.78 10.51 14.47 14.33 16.93 20.66 23.37
    """,
}


def _rows() -> list[Row]:
    result = []
    for turn, rows in enumerate(("normal", "t5")):
        first = [(model, p, n, EPSILON, DELTA) for model in (1, 2) for p, n in _SIZES]
        by_epsilon = [(2, 100, 200, epsilon, DELTA) for epsilon in _EPSILONS]
        by_delta = [(1, 100, 200, EPSILON, delta) for delta in _DELTAS]
        for number, at, lines in (
            (1, first, _FIRST), (3, by_epsilon, _BY_EPSILON), (5, by_delta, _BY_DELTA)
        ):  # fmt: skip
            numbers = [tuple(map(float, line.split())) for line in lines[rows].strip().splitlines()]
            for (model, p, n, epsilon, delta), each in zip(at, numbers, strict=True):
                one, two, three, four, *rest = each
                five, six, seven, eight = rest
                result.append(
                    Row(
                        number + turn, model, rows, p, n, epsilon, delta,
                        (one, two, three, four), (five, six, seven, eight),
                    )
                )  # fmt: skip
    return sorted(result, key=lambda row: row.table)


ROWS = _rows()

# Table 7: misclassified rows among 20 test rows (13 lean, 7 obese).
TEST_ROWS = 20
SMALLER_CLASS = 7
MISCLASSIFIED = {25: (2.25, 5.70, 4.30, 6.45), 40: (3.20, 4.95, 5.15, 6.90)}
