"""The comparison of two releases, or of two groups of a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gramercy.api.frames import check_between
from gramercy.api.habits import OF_TABLES, WithHabits
from gramercy.api.notebook import html_table
from gramercy.common.notation import shortened, shortened_pair
from gramercy.common.plotting import forest, with_words
from gramercy.estimators.table_comparison import CORRELATION, DEVIATION, MEAN, differences

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.schemas.evidence import Evidence


class Comparison(WithHabits):
    """The differences between two tables of different rows, by `table_comparison.differences`.

    Parameters
    ----------
    first, second
        Names of the two.
    evidence
        What is published about each of them.
    level
        Confidence level of the intervals, greater than 0.5 and less than 1.

    Raises
    ------
    RequestError
        If `level` is out of range.
    """

    habits = OF_TABLES

    def __init__(
        self, first: str, second: str, evidence: tuple[Evidence, Evidence], level: float
    ) -> None:
        check_between("level", level, 0.5, 1, usual=0.95)
        self.first, self.second, self.level = first, second, level
        self._table = differences(*evidence, level)

    def table(self) -> pd.DataFrame:
        """All differences, one line each; see `table_comparison.differences`.

        ``cohens_d`` is the difference of two means in standard deviations: the root of the mean of
        both variances. NaN for shares of levels, and where noise hides a number.
        """
        table = self._table.copy()
        deviations = table[table["kind"] == DEVIATION].set_index("column")[["first", "second"]]
        pooled = np.sqrt((deviations**2).mean(axis=1, skipna=False))
        table["cohens_d"] = table["difference"] / table["column"].map(pooled)
        table.loc[table["kind"] != MEAN, "cohens_d"] = np.nan
        return table

    @property
    def p_value(self) -> float:
        """P-value of the hypothesis that no number differs: Simes (1986); NaN if none is known."""
        return float(self._table["adjusted"].min())

    def discoveries(self, rate: float = 0.05) -> pd.DataFrame:
        """The differences that are found at a false discovery rate, the surest first."""
        return self._table[self._table["adjusted"] <= rate].sort_values("p_value")

    def plot(self, ax: Axes | None = None, pairs: int = 30) -> Axes:
        """Draw the differences of correlations that are largest in standard errors.

        Parameters
        ----------
        ax
            Axes to draw on; None for a new figure.
        pairs
            Number of pairs of columns to draw.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        """
        table = self._table[self._table["kind"] == CORRELATION]
        shown = table.sort_values("p_value", kind="stable").head(pairs)
        labels = [shortened_pair(a, b) for a, b in shown[["column", "other"]].to_numpy()]
        drawn = forest(shown[["difference", "lower", "upper"]].to_numpy().T, labels, ax)
        pair = f"{shortened(self.first, 16)} minus {shortened(self.second, 16)}"
        title = f"Correlations that differ most: {pair}"
        return with_words(drawn, title, f"difference, with {100 * self.level:g} % interval")

    def _repr_html_(self) -> str:
        found = self.discoveries().set_index("column")
        return html_table(found.head(20), f"{repr(self)[1:-1]}; the surest differences:")

    def __repr__(self) -> str:
        names = f"{self.first} and {self.second}"
        found = f"{len(self.discoveries())} of {len(self._table)} differ"
        return f"<Comparison of {names}: {found} (false discovery rate 0.05)>"
