"""The summary table of a release, and its tables of counts, as analysts read them."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pandas as pd
from scipy.stats import norm

from gramercy.api.frames import SummaryFrame, in_ranges
from gramercy.api.habits import OF_TABLES, WithHabits
from gramercy.api.notebook import html_table, paragraph
from gramercy.common.notation import shortened, to_precision
from gramercy.common.plotting import axes, draws, forest, with_words
from gramercy.estimators.contingency import ALL
from gramercy.schemas import families
from gramercy.schemas.cells import DayCells
from gramercy.schemas.facts import ColumnFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.estimators import Estimate


UNKNOWN = "unknown"
_QUARTILES = (0.25, 0.5, 0.75)
_BOUNDS = ("lower_bound", "upper_bound")
_LENGTHS = ("error of the mean", "clipping", "std")  # in the units of the columns
_SHOWN = {  # lines of the table: the number, and the error that tells its digits
    "mean": ("mean", "mean_error"),
    "error of the mean": ("mean_error", "mean_error"),
    "clipping": ("clipping", "mean_error"),
    "std": ("deviation", "deviation_error"),
}


class Description(WithHabits):
    """Means, standard deviations, shares and quantiles of the columns of a release.

    Parameters
    ----------
    estimate
        Of the estimator ``moments``: see `estimators.summary_table`.

    Attributes
    ----------
    columns
        DataFrame, one line for each numeric column: ``missing`` share, ``mean`` and ``deviation``
        (the standard deviation), each with its error and interval, ``clipping``, by which the mean
        may at most differ from that of equally weighted rows, the bounds to which cells are
        clamped, and ``caveat``, the kinds of what no interval covers (`ReleaseMatrices.warnings`
        has their words). ``target`` says whose means and standard deviations the intervals contain.
        NaN where noise hides the value, or it is not published.
    levels
        DataFrame of counts and shares of the levels; None without columns of levels.
    quantiles
        DataFrame of quantiles with intervals; None if the release publishes no histograms. Those of
        a derived column such as ``log1p(income)`` are in its own units; if income is not released,
        also in its units, in the columns that begin with ``back_``.
    derived
        DataFrame of what derived columns say in the units of their inputs, such as the geometric
        mean of 1 + income; None if there are none.
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

    habits = OF_TABLES

    def __init__(self, estimate: Estimate) -> None:
        tables = estimate.tables
        self.level = estimate.tuning["level"]
        self.rows = estimate.tuning["number_of_rows"]
        self.mean_weight: float | None = estimate.tuning.get("mean_weight")

        def indexed(name: str, *by: str) -> pd.DataFrame | None:
            return tables[name].set_index(list(by)) if name in tables else None

        columns = tables.get("columns")
        self.columns = None if columns is None else columns.set_index("column")
        self.levels = indexed("levels", "column", "level")
        self.quantiles = indexed("quantiles", "column", "probability")
        self.derived = indexed("derived", "column", "quantity")
        self.groups = indexed("groups", "level", "column")

    def table(self) -> SummaryFrame:
        """Means, standard deviations and the median of the numeric columns.

        Like ``DataFrame.describe``, one column for each column of the release. It is shown with the
        digits that errors leave; its numbers are those of `columns` and `quantiles`.
        """
        if self.columns is None:
            return SummaryFrame(pd.DataFrame(), pd.DataFrame())
        numbers, errors = {}, {}
        for name, (source, error) in _SHOWN.items():
            numbers[name], errors[name] = self.columns[source], self.columns[error]
        if self.quantiles is not None:
            widths = (self.quantiles["upper"] - self.quantiles["lower"]).unstack()[[*_QUARTILES]]
            # Equal decimals keep the order: .9990 after a rounded 1.00 would look like a fall.
            error = widths.where(widths > 0).min(axis=1).fillna(0.0).loc[self.columns.index] / 4
            for probability in _QUARTILES:
                at = self.quantiles.xs(probability, level="probability").loc[self.columns.index]
                name = _percent(probability)
                numbers[name], errors[name] = at["value"], error
        numbers["missing"], errors["missing"] = (
            self.columns[name] for name in ("missing", "missing_error")
        )
        for name in _BOUNDS:
            numbers[name], errors[name] = self.columns[name], 0 * self.columns[name]
        texts = {name: _texts(values, errors[name]) for name, values in numbers.items()}
        for name in texts.keys() - {"missing"}:
            texts[name] = self._as_dates(numbers[name], texts[name], is_length=name in _LENGTHS)
        if self.columns["missing"].isna().all():
            texts["missing"] = texts["missing"].replace(UNKNOWN, "not published")
        return SummaryFrame(pd.DataFrame(numbers).T, pd.DataFrame(texts).T)

    def _as_dates(self, numbers: pd.Series, texts: pd.Series, *, is_length: bool) -> pd.Series:
        """The texts with dates in place of the numbers that stand for them, or with their unit."""
        shown = texts.copy()
        units = pd.Series() if self.columns is None else self.columns.get("unit", pd.Series())
        for name, unit in units[(units != "") & (texts != UNKNOWN)].items():
            cells = DayCells.of_unit(unit)
            length = f"{texts[name]} {cells.name}"
            shown[name] = length if is_length else cells.in_words(numbers[name])
        return shown

    def summary(self) -> str:
        """The tables as text."""
        parts = [self._head(), self.table().texts.T.to_string(), *self._caveats()]
        parts += [texts.to_string() for _, texts in self._further_texts()]
        return "\n\n".join(parts)

    def _further_texts(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Captions and texts of the levels and the means by level."""
        if self.levels is not None:
            error, columns = self.levels["standard_error"], ["share", "lower", "upper"]
            shares = _all_texts(self.levels[columns], error)
            counts = self.levels["count"]
            whole = counts.map("{:.0f}".format).mask(counts.isna(), UNKNOWN)
            yield "Levels", pd.DataFrame({"count": whole}).join(shares)
        if self.derived is not None:
            shown = self.derived[["value", "lower", "upper"]]
            percent = self.derived["unit"] == "share"
            shown = shown.where(~percent, 100 * shown)
            error = (shown["upper"] - shown["lower"]) / 4
            unit = self.derived["unit"].mask(percent, "%")
            yield "Derived columns, in units of their inputs", _all_texts(shown, error).join(unit)
        if self.groups is not None:
            error, columns = self.groups["standard_error"], ["mean", "lower", "upper"]
            yield "Means by level", _all_texts(self.groups[columns], error)

    def _caveats(self) -> list[str]:
        """A line that names the columns with caveats, if there are some."""
        if self.columns is None or not (self.columns["caveat"] != "").any():
            return []
        shown = self.columns["caveat"][self.columns["caveat"] != ""]
        return [f"Caveats: {', '.join(f'{name} ({kinds})' for name, kinds in shown.items())}"]

    def _head(self) -> str:
        weight = self.mean_weight
        if weight is None:
            return f"{self.rows:,.0f} rows"
        head = f"{self.rows:,.0f} rows, mean weight of a row {weight:.4g}"
        moved = self.columns is not None and (self.columns["clipping"] > 0).any()
        return f"{head}; clipping moved no mean by more than 'clipping'" if moved else head

    def __repr__(self) -> str:
        return f"<Description>\n{self.summary()}"

    def _repr_html_(self) -> str:
        tables = [(self._head(), self.table().texts.T), *self._further_texts()]
        for _, texts in tables:
            if isinstance(texts.index, pd.MultiIndex):  # lines of two labels become lines of one
                texts.index = pd.Index([" ".join(map(str, each)) for each in texts.index])
        shown = "".join(html_table(texts, caption) for caption, texts in tables)
        return shown + "".join(map(paragraph, self._caveats()))

    def plot(self, column: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw the means of all columns, or of one column within the levels that were given.

        Parameters
        ----------
        column
            None for all columns, drawn as by ``release.means.plot()``: positions in the ranges of
            the columns, and shares of levels.
        ax
            Axes to draw on; None for a new figure.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        RequestError
            If there are no means by level of this column.
        """
        if column is None:
            words = f"{100 * self.level:g} % intervals"
            return in_ranges(*self._all_means(), "mean", words, ax)
        groups = pd.DataFrame() if self.groups is None else self.groups
        known = tuple(dict.fromkeys(groups.index.get_level_values(-1))) if len(groups) else ()
        if column not in known:
            raise families.ANALYSIS(
                "There are no means by level of '{column}'.",
                "Use .describe(by=...) with a column of levels. Columns with means: {known}.",
                column=column,
                known=known,
            )
        means = groups.xs(column, level="column")
        numbers = means[["mean", "lower", "upper"]].to_numpy().T
        drawn = forest(numbers, [str(name) for name in means.index], ax)
        title = f"Means of {column} by level, with {100 * self.level:g} % intervals"
        return with_words(drawn, title, f"mean of {column}")

    def _all_means(self) -> tuple[pd.DataFrame, list[ColumnFacts | None]]:
        """Means and shares as `in_ranges` draws them, and the facts of numeric columns."""
        frames, facts = list[pd.DataFrame](), list[ColumnFacts | None]()
        names = ["estimate", "standard_error", "lower", "upper"]
        if self.columns is not None:
            chosen = self.columns[["mean", "mean_error", "mean_lower", "mean_upper"]]
            frames.append(chosen.set_axis(names, axis=1).assign(caveat=self.columns["caveat"]))
            for each in self.columns.reset_index().to_dict("records"):
                low, high = (each[name] for name in _BOUNDS)
                bounds = {"lower": low, "upper": high, "centre": low, "scale": 1.0}
                unit = each.get("unit") or None
                facts.append(ColumnFacts(name=each["column"], **bounds, unit=unit))
        if self.levels is not None:
            shares = self.levels[["share", "standard_error", "lower", "upper"]]
            labels = [f"{column}={level}" for column, level in shares.index]
            frames.append(shares.set_axis(names, axis=1).set_axis(labels, axis=0).assign(caveat=""))
            facts += [None] * len(shares)
        return pd.concat(frames), facts


def _percent(probability: float) -> str:
    return f"{100 * probability:g}%"


def _texts(values: pd.Series, errors: pd.Series) -> pd.Series:
    """Numbers with the digits that their errors leave."""
    texts = [to_precision(value, error) for value, error in zip(values, errors, strict=True)]
    return pd.Series(texts, index=values.index).mask(values.isna(), UNKNOWN)


def _all_texts(values: pd.DataFrame, errors: pd.Series) -> pd.DataFrame:
    return pd.DataFrame({name: _texts(values[name], errors) for name in values})


Value = Literal["count", "count_lower", "count_upper", "share", "standard_error", "lower", "upper"]


class CrossTable(WithHabits):
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
        Series with the test of independence of the declared levels: ``chi_squared``, ``freedom``,
        ``p_value``, ``cramers_v``, and ``left_out``, the levels that noise hides; None for one
        column.
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

    habits = OF_TABLES

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

    def table(
        self,
        value: Value = "count",
        margins: bool = False,
        normalize: Literal["index", "columns", "all"] | None = None,
    ) -> pd.DataFrame:
        """One value of `cells`, rows by columns.

        Parameters
        ----------
        value
            A column of `cells`.
        margins
            Whether to include the margins, and the cells of no declared level.
        normalize
            As in ``pandas.crosstab``: with ``index``, the shares ``share``, ``lower`` and ``upper``
            are those within each row, with ``columns`` those within each column; ``all`` for shares
            of all rows. Intervals within a row or a column take the noise of the cell and of the
            total at their worst, so they are too wide rather than too narrow.

        Raises
        ------
        RequestError
            If `value` or `normalize` is unknown, or there are no shares of this value.
        """
        cells = self.cells
        known = ("share", "lower", "upper") if normalize else get_args(Value)
        if value not in known or normalize not in (None, "index", "columns", "all"):
            raise families.ANALYSIS(
                "There is no table of '{value}' with 'normalize' {normalize}.",
                "Values: {known}. 'normalize' may be 'index', 'columns' or 'all'.",
                value=str(value),
                normalize=str(normalize),
                known=known,
            )
        if normalize in ("index", "columns"):
            cells = self._shares_within("row" if normalize == "index" else "column")
        rows, columns = cells["row"].unique(), cells["column"].unique()
        if not margins:
            rows = rows[:-2]
            columns = columns[:-2] if self._names[1] else columns
        pivoted = cells.pivot(index="row", columns="column", values=value)
        table = pivoted.loc[list(rows), list(columns)]
        if not self._names[1]:
            table.columns = pd.Index([value])
        return table.rename_axis(index=self._names[0], columns=self._names[1] or None)

    def _shares_within(self, by: Literal["row", "column"]) -> pd.DataFrame:
        """`cells` with the shares within each row, or column, which is a line or a whole margin."""
        across = "column" if by == "row" else "row"
        counts = self.cells[["count", "count_lower", "count_upper"]]
        is_total = self.cells[across].isin([ALL, ""])
        if not self._names[1] and by == "column":
            is_total = self.cells["row"] == ALL
        totals = counts[is_total].set_axis(self.cells.loc[is_total, by], axis=0)
        total = totals.loc[self.cells[by]].set_axis(counts.index, axis=0)
        total = total.where(total["count_lower"] > 0)  # otherwise the share may be anything
        share = (counts["count"] / total["count"]).clip(0, 1)
        by_noise = pd.concat(
            [
                share - counts["count_lower"] / total["count_upper"],
                counts["count_upper"] / total["count_lower"] - share,
            ],
            axis=1,
        ).max(axis=1)
        z = float(norm.isf((1 - self.level) / 2))
        reach = np.hypot(by_noise, z * np.sqrt(share * (1 - share) / total["count"]))
        lower, upper = (share - reach).clip(lower=0), (share + reach).clip(upper=1)
        return self.cells.assign(share=share, lower=lower, upper=upper)

    def summary(self) -> str:
        """Counts with their margins, and the test, as text."""
        lines = [self._texts().to_string(), self._caption()]
        if self.mean_weight is not None:
            lines.append(f"Mean weight of a row: {self.mean_weight:.4g}.")
        if self.test is not None:
            lines.append(self._test_text())
        return "\n".join(lines)

    def _texts(self, separator: str = " ") -> pd.DataFrame:
        """Counts with their margins and intervals."""
        count, lower, upper = (
            self.table(value, margins=True).map("{:.0f}".format)
            for value in ("count", "count_lower", "count_upper")
        )
        texts = count + f"{separator}[" + lower.to_numpy() + ", " + upper.to_numpy() + "]"
        return texts.mask(self.table("count", margins=True).isna(), UNKNOWN)

    def _caption(self) -> str:
        names = " by ".join(name for name in self._names if name)
        return f"Counts of {names}, with {100 * self.level:g} % intervals that cover the noise"

    def _test_text(self) -> str:
        if self.test is None:
            return ""
        return (
            f"Independence: chi-squared {self.test['chi_squared']:.2f}, "
            f"{self.test['freedom']:.0f} degrees of freedom, p = {self.test['p_value']:.3g}; "
            f"Cramer's V {self.test['cramers_v']:.2f}"
            + (f"; left out: {self.test['left_out']}" if self.test["left_out"] else "")
        )

    @draws
    def plot(self, ax: Axes | None = None) -> Axes:
        """Counts with their intervals: bars of one column, a heat map of two.

        Both also have the cells of no declared level, in grey or beyond a line.
        """
        count, lower, upper = (
            self.table(value, margins=True).drop(index=ALL)
            for value in ("count", "count_lower", "count_upper")
        )
        names, (rows, columns) = [str(each) for each in count.index], self._names
        if not columns:
            values = count["count"].to_numpy()
            reach = np.abs([values - lower.to_numpy().ravel(), upper.to_numpy().ravel() - values])
            drawn = axes(ax, height=1.2 + 0.3 * len(names))
            colours = ["C0"] * (len(names) - 1) + ["0.7"]
            drawn.barh(range(len(names)), values, xerr=reach, capsize=3, color=colours)
            drawn.set_yticks(range(len(names)), [*map(shortened, names)], parse_math=False)
            drawn.invert_yaxis()
            return with_words(drawn, self._caption(), "count", rows)
        values = count.drop(columns=ALL).to_numpy()
        height, width = values.shape
        drawn = axes(ax, min(24.0, 3.4 + 1.1 * width), min(24.0, 1.6 + 0.45 * height))
        image = drawn.imshow(values, aspect="auto", cmap="Blues", vmin=0)
        texts = self._texts("\n").loc[count.index].drop(columns=ALL).to_numpy()
        for (i, j), text in np.ndenumerate(texts):
            colour = "w" if values[i, j] > np.nanmax(values) / 2 else "k"
            drawn.text(j, i, text, ha="center", va="center", color=colour, fontsize="small")
        drawn.axhline(height - 1.5, color="0.6", lw=1)
        drawn.axvline(width - 1.5, color="0.6", lw=1)
        heads = [fill(shortened(str(each)), 14) for each in count.columns.drop(ALL)]
        drawn.set_xticks(range(width), heads, parse_math=False)
        drawn.set_yticks(range(height), [*map(shortened, names)], parse_math=False)
        drawn.figure.colorbar(image, ax=drawn, label="count")
        return with_words(drawn, self._caption(), columns, rows)

    def __repr__(self) -> str:
        names = " by ".join(name for name in self._names if name)
        return f"<CrossTable of {names}>\n{self.summary()}"

    def _repr_html_(self) -> str:
        return html_table(self._texts(), self._caption()) + paragraph(self._test_text())
