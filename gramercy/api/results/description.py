"""The summary table of a release as analysts read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from gramercy.api.notebook import html_table
from gramercy.api.plotting import forest
from gramercy.schemas.problems.analyses import no_means_by_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.estimators import Estimate


class Description:
    """Means, standard deviations, shares and quantiles of the columns of a release.

    Parameters
    ----------
    estimate
        Of the estimator ``moments``: see `estimators.summary_table`.

    Attributes
    ----------
    columns
        DataFrame, one line for each numeric column: ``missing`` share, ``mean`` and ``deviation``
        (the standard deviation), each with its error and interval, and the bounds to which cells
        are clamped. NaN where noise hides the value, or it is not published.
    levels
        DataFrame of counts and shares of the levels; None without columns of levels.
    quantiles
        DataFrame of quantiles with intervals; None if the release publishes no histograms.
    groups
        DataFrame of means within the levels of a column; None unless it was given.
    rows
        Number of rows, public or noisy.
    mean_weight
        Mean weight of a row: 1 if none was clipped. Below 1, the numbers are closer to those of the
        shorter rows. None for releases that clip no rows.

    Examples
    --------
    >>> import gramercy
    >>> found = gramercy.open(survey).latest("toy").describe()
    >>> list(found.table().columns)
    ['income', 'age', 'hours']
    """

    def __init__(self, estimate: Estimate) -> None:
        tables = estimate.tables
        self.level = estimate.tuning["level"]
        self.rows = estimate.tuning["number_of_rows"]
        self.mean_weight: float | None = estimate.tuning.get("mean_weight")
        columns = tables.get("columns")
        self.columns = None if columns is None else columns.set_index("column")
        self.levels = _indexed(tables.get("levels"), ["column", "level"])
        self.quantiles = _indexed(tables.get("quantiles"), ["column", "probability"])
        self.groups = _indexed(tables.get("groups"), ["level", "column"])

    def table(self) -> pd.DataFrame:
        """Means, standard deviations and the median of the numeric columns.

        Like ``DataFrame.describe``, one column for each column of the release.
        """
        if self.columns is None:
            return pd.DataFrame()
        names = {"mean": "mean", "mean_error": "error of the mean", "deviation": "std"}
        table = self.columns[list(names)].rename(columns=names)
        if self.quantiles is not None:
            for probability in (0.25, 0.5, 0.75):
                at = self.quantiles["value"].xs(probability, level="probability")
                table[f"{100 * probability:g}%"] = at
        return table.join(self.columns[["missing", "lower_bound", "upper_bound"]]).T

    def summary(self) -> str:
        """The tables as text."""
        parts = [self._head(), self.table().T.to_string(float_format="{:.4g}".format)]
        if self.levels is not None:
            shares = self.levels[["count", "share", "lower", "upper"]]
            parts.append(shares.to_string(float_format="{:.4g}".format))
        if self.groups is not None:
            means = self.groups[["mean", "lower", "upper"]]
            parts.append(means.to_string(float_format="{:.4g}".format))
        return "\n\n".join(parts)

    def _head(self) -> str:
        weight = self.mean_weight
        clipped = "" if weight is None else f", mean weight of a row {weight:.4g}"
        return f"{self.rows:,.0f} rows{clipped}"

    def __repr__(self) -> str:
        return f"<Description>\n{self.summary()}"

    def _repr_html_(self) -> str:
        named = {"": self.table().T, "Levels": self.levels, "Means by level": self.groups}
        return "".join(
            html_table(_flat(table), caption or self._head())
            for caption, table in named.items()
            if table is not None
        )

    def plot(self, column: str, ax: Axes | None = None) -> Axes:
        """Means of a column within the levels that were given, with intervals.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        RequestError
            If there are no means by level of this column.
        """
        groups = pd.DataFrame() if self.groups is None else self.groups
        known = tuple(dict.fromkeys(groups.index.get_level_values(-1))) if len(groups) else ()
        if column not in known:
            raise no_means_by_level(column, known)
        chosen = groups.xs(column, level="column")
        numbers = chosen[["mean", "lower", "upper"]].to_numpy().T
        drawn = forest(numbers, [str(name) for name in chosen.index], ax)
        drawn.set_xlabel(f"mean of {column}")
        return drawn


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """Lines of two labels as lines of one."""
    if not isinstance(table.index, pd.MultiIndex):
        return table
    return table.set_index(pd.Index([" ".join(map(str, each)) for each in table.index]))


def _indexed(table: pd.DataFrame | None, by: list[str]) -> pd.DataFrame | None:
    return None if table is None else table.set_index(by)
