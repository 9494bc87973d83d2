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
from gramercy.estimators.table_comparison import (
    CORRELATION,
    DEVIATION,
    MEAN,
    adjusted,
    differences,
)

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
        table["cohens_d"] = table["difference"] / table["column"].map(self._deviations)
        table.loc[table["kind"] != MEAN, "cohens_d"] = np.nan
        return table

    @property
    def _deviations(self) -> pd.Series:
        """Of each numeric column, the root of the mean of both variances."""
        deviations = self._table[self._table["kind"] == DEVIATION].set_index("column")
        return np.sqrt((deviations[["first", "second"]] ** 2).mean(axis=1, skipna=False))

    @property
    def p_value(self) -> float:
        """P-value of the hypothesis that both tables are of one population; NaN if unknown.

        From all of ``one_population``, by Simes (1986). Clipped rows may tell two populations apart
        while no number is found to differ.
        """
        return float(np.fmin.reduce(adjusted(self._table["one_population"].to_numpy())))

    def discoveries(self, rate: float = 0.05) -> pd.DataFrame:
        """The differences that are found at a false discovery rate, the surest first."""
        return self._table[self._table["adjusted"] <= rate].sort_values("p_value")

    def plot(self, ax: Axes | None = None, most: int = 30) -> Axes:
        """Draw the differences of means, standard deviations and correlations, the surest first.

        Those of means and of standard deviations are drawn in standard deviations, as ``cohens_d``
        is; those of shares of levels and of correlations as they are.

        Parameters
        ----------
        ax
            Axes to draw on; None for a new figure.
        most
            Number of differences to draw.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        """
        shown, units = self._table, self._deviations
        shown = shown.sort_values("p_value", kind="stable").head(most)
        scaled = shown["column"].isin(units.index) & (shown["kind"] != CORRELATION)
        unit = shown["column"].map(units).where(scaled, 1.0)
        labels = [
            shortened_pair(a, b) if b else f"{kind if in_units or kind != MEAN else 'share'} of {a}"
            for kind, a, b, in_units in zip(
                shown["kind"], shown["column"], shown["other"], scaled, strict=True
            )
        ]
        numbers = shown[["difference", "lower", "upper"]].div(unit, axis=0)
        drawn = forest(numbers.to_numpy().T, labels, ax)
        pair = f"{shortened(self.first, 16)} minus {shortened(self.second, 16)}"
        scale = "in standard deviations; of shares and correlations as they are"
        words = f"difference, with {100 * self.level:g} % interval\n{scale}"
        return with_words(drawn, f"The surest differences: {pair}", words)

    def _repr_html_(self) -> str:
        found = self.discoveries().set_index("column").drop(columns="one_population")
        return html_table(found.head(20), f"{repr(self)[1:-1]}; the surest differences:")

    def __repr__(self) -> str:
        names = f"{self.first} and {self.second}"
        found = f"{len(self.discoveries())} of {len(self._table)} differ"
        return f"<Comparison of {names}: {found} (false discovery rate 0.05)>"
