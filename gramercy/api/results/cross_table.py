"""A table of counts of a release as analysts read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from gramercy.api.notebook import html_table, paragraph
from gramercy.common.plotting import axes, draws

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.estimators import Estimate

Value = Literal["count", "count_lower", "count_upper", "share", "standard_error", "lower", "upper"]


class CrossTable:
    """Counts of one or two columns of levels, consistent and with intervals.

    Parameters
    ----------
    estimate
        Of the estimator ``tables``, for one table: see `estimators.cross_tables`.

    Attributes
    ----------
    cells
        DataFrame in long form: cells and margins, counts with intervals that cover the noise, and
        shares with intervals that cover noise and sampling.
    test
        Series with the test of independence: ``chi_squared``, ``freedom``, ``p_value``, and
        ``cramers_v``; None for one column.
    mean_weight
        Mean weight of a row: 1 if none was clipped. Below 1, longer rows count less than others.
        None for releases that clip no rows.

    Examples
    --------
    >>> import gramercy
    >>> found = gramercy.open(survey).latest("toy").crosstab("ward", "sex")
    >>> found.counts.shape, bool(found.test["p_value"] < 0.01)
    ((3, 2), True)
    """

    def __init__(self, estimate: Estimate) -> None:
        cells = estimate.tables["cells"]
        self.level = estimate.tuning["level"]
        self.mean_weight: float | None = estimate.tuning.get("mean_weight")
        self._names = (str(cells["rows"].iloc[0]), str(cells["columns"].iloc[0]))
        self.cells = cells.drop(columns=["rows", "columns"])
        tests = estimate.tables.get("tests")
        self.test = None if tests is None else tests.drop(columns=["rows", "columns"]).iloc[0]

    @property
    def counts(self) -> pd.DataFrame:
        """Counts of the declared levels, rows by columns."""
        return self.table("count")

    @property
    def shares(self) -> pd.DataFrame:
        """Shares of all rows, of the declared levels."""
        return self.table("share")

    def conf_int(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Lower and upper bounds of `counts`; they cover the noise alone."""
        return self.table("count_lower"), self.table("count_upper")

    def table(self, value: Value = "count", margins: bool = False) -> pd.DataFrame:
        """One value of `cells`, rows by columns.

        Parameters
        ----------
        value
            A column of `cells`.
        margins
            Whether to include the margins, and the cells of no declared level.
        """
        rows, columns = self.cells["row"].unique(), self.cells["column"].unique()
        if not margins:
            rows = rows[:-2]
            columns = columns[:-2] if self._names[1] else columns
        pivoted = self.cells.pivot(index="row", columns="column", values=value)
        table = pivoted.loc[list(rows), list(columns)]
        if not self._names[1]:
            table.columns = pd.Index([value])
        return table.rename_axis(index=self._names[0], columns=self._names[1] or None)

    def summary(self) -> str:
        """Counts with their margins, and the test, as text."""
        lines = [self.table("count", margins=True).to_string(float_format="{:.0f}".format)]
        reach = (self.table("count_upper") - self.table("count_lower")).to_numpy() / 2
        if reach.size and np.isfinite(reach).any():
            percent = f"{100 * self.level:g} %"
            text = (
                f"Half of the counts of levels are within {np.nanmedian(reach):.0f} in {percent}."
            )
            lines.append(text)
        if self.mean_weight is not None:
            lines.append(f"Mean weight of a row: {self.mean_weight:.4g}.")
        if self.test is not None:
            lines.append(self._test_text())
        return "\n".join(lines)

    def _test_text(self) -> str:
        if self.test is None:
            return ""
        return (
            f"Independence: chi-squared {self.test['chi_squared']:.2f}, "
            f"{self.test['freedom']:.0f} degrees of freedom, p = {self.test['p_value']:.3g}; "
            f"Cramer's V {self.test['cramers_v']:.2f}"
        )

    @draws
    def plot(self, ax: Axes | None = None) -> Axes:
        """Heat map of the counts of two columns, or bars with intervals of one."""
        drawn, counts = axes(ax), self.counts
        rows, columns = self._names
        if not columns:
            values = counts["count"].to_numpy()
            lower, upper = (each.to_numpy().ravel() for each in self.conf_int())
            reach = np.abs([values - lower, upper - values])
            drawn.bar([str(x) for x in counts.index], values, yerr=reach, capsize=3)
            drawn.set(xlabel=rows, ylabel="count")
            return drawn
        drawn.imshow(counts, aspect="auto", cmap="Blues", vmin=0)
        for i, line in enumerate(counts.to_numpy()):
            for j, value in enumerate(line):
                dark = value > np.nanmax(counts.to_numpy()) / 2
                drawn.text(
                    j, i, f"{value:.0f}", ha="center", va="center", color="w" if dark else "k"
                )
        drawn.set_xticks(range(counts.shape[1]), list(counts.columns))
        drawn.set_yticks(range(counts.shape[0]), list(counts.index))
        drawn.set(xlabel=columns, ylabel=rows)
        return drawn

    def __repr__(self) -> str:
        names = " by ".join(name for name in self._names if name)
        return f"<CrossTable of {names}>\n{self.summary()}"

    def _repr_html_(self) -> str:
        names = " by ".join(name for name in self._names if name)
        counts = html_table(self.table("count", margins=True).round(), f"Counts of {names}")
        return counts + paragraph(self._test_text())
