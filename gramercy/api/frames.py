"""Tables of a release that draw themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.common.notation import to_precision
from gramercy.common.plotting import axes, forest, over_time, with_words
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Array = NDArray[np.float64]
Quantity = Literal["mean", "standard deviation"]
_STEPS = 32  # of a histogram
SCALES: Mapping[Quantity, str] = {
    "mean": "by its place in the column's range\n0 %: lower bound, 100 %: upper; levels: shares",
    "standard deviation": "in per cent of the column's range",
}


class Frame(pd.DataFrame):  # type: ignore[misc]
    """A DataFrame with methods of its own; slices, products and copies are plain DataFrames."""

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def __reduce__(self) -> tuple[Any, ...]:
        return pd.DataFrame, (pd.DataFrame(self),)


class SummaryFrame(Frame):
    """A DataFrame of numbers, shown with the digits that their errors leave.

    Slices, products and copies are plain DataFrames.

    Parameters
    ----------
    numbers
        The table.
    texts
        How each number is shown; of the same shape and labels.
    """

    texts: pd.DataFrame

    def __init__(self, numbers: pd.DataFrame, texts: pd.DataFrame) -> None:
        super().__init__(numbers.copy())
        # A plain assignment would make pandas look for a column of this name.
        object.__setattr__(self, "texts", texts)

    def __repr__(self) -> str:
        return repr(self.texts)

    def _repr_html_(self) -> str:
        html: str = self.texts.to_html()
        return html


def check_between(name: str, number: object, low: float, high: float, usual: float) -> None:
    """Raise RequestError unless an argument is a number between two others."""
    if not isinstance(number, Real) or not low < float(number) < high:
        raise families.ANALYSIS(
            "'{name}' must be greater than {low} and less than {high}.",
            "{usual} is usual.",
            name=name,
            low=low,
            high=high,
            usual=usual,
        )


def chosen(name: object, known: Sequence[str]) -> str:
    """A name that is known.

    Raises
    ------
    RequestError
        If it is unknown, with the names that exist.
    """
    if name not in known:
        raise families.UNKNOWN_NAME(
            "'{column}' is not one of the columns to choose from.",
            "Columns, most similar first: {known}.",
            column=str(name),
            known=most_similar_first(str(name), known),
        )
    return str(name)


def all_chosen(names: object, known: Sequence[str]) -> list[str]:
    """Names that are known: of one column, or of several; None for all. Raises as `chosen`."""
    if names is None:
        return list(known)
    several = pd.api.types.is_list_like(names)
    return [chosen(each, known) for each in (names if several else [names])]  # type: ignore[attr-defined]


def in_ranges(
    numbers: pd.DataFrame,
    facts: Sequence[ColumnFacts | LevelsFacts | None],
    quantity: Quantity,
    words: str,
    ax: Axes | None,
) -> Axes:
    """Draw one number of each column on one scale: by the range of the column.

    Parameters
    ----------
    numbers
        ``estimate``, ``standard_error``, ``lower``, ``upper`` and ``caveat`` of q columns.
    facts
        Of the q columns.
    quantity
        Of a mean, the position in the range is drawn; of a standard deviation, its share of it.
    words
        What the intervals are, for the title.
    ax
        Axes to draw on; None for a new figure.
    """
    values = numbers[["estimate", "lower", "upper"]].to_numpy(dtype=np.float64).T
    texts = [
        _in_own_unit(each, error, column, quantity)
        for each, error, column in zip(values.T, numbers["standard_error"], facts, strict=True)
    ]
    kinds = numbers["caveat"].to_numpy()
    labels = [
        f"{name} ({kind})" if kind else str(name)
        for name, kind in zip(numbers.index, kinds, strict=True)
    ]
    drawn = forest(in_range(values, facts, quantity), labels, ax, kinds != "", texts)
    drawn.xaxis.set_major_formatter("{x:g} %")
    title = f"{quantity.capitalize()}s, with {words}\nin units of the columns at the right"
    return with_words(drawn, title, f"{quantity}, {SCALES[quantity]}")


def in_range(
    values: Array, facts: Sequence[ColumnFacts | LevelsFacts | None], quantity: Quantity
) -> Array:
    """Numbers of columns, shape (3, q), in per cent of the ranges of the columns."""
    ranges = [(x.lower, x.upper) if isinstance(x, ColumnFacts) else (0.0, 1.0) for x in facts]
    low, high = np.array(ranges, dtype=np.float64).reshape(-1, 2).T
    return 100 * (values - low * (quantity == "mean")) / (high - low)


def _in_own_unit(
    numbers: Array, error: float, column: ColumnFacts | LevelsFacts | None, quantity: Quantity
) -> str:
    """An estimate and its interval, with the digits that the error leaves; empty if unknown."""
    if not np.isfinite(numbers).all():
        return ""
    shown = [to_precision(each, error) for each in numbers]
    cells = column.dates if isinstance(column, ColumnFacts) else None
    if cells is not None:
        is_day = quantity == "mean"
        shown = [cells.in_words(x) if is_day else f"{x:.3g} {cells.name}" for x in numbers]
    return f"{shown[0]}  [{shown[1]}, {shown[2]}]"


class NumbersOverTime(Frame):
    """Numbers of periods or steps, which are named by the first column, with intervals."""

    def plot(
        self,
        column: str,
        other: str = "",
        kind: Literal["mean", "standard deviation", "correlation"] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw one number over time, with its intervals.

        Parameters
        ----------
        column, other
            Names of columns: of one the mean, of two their correlation.
        kind
            Which number, if not these.
        ax
            Axes to draw on; None for a new figure.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        RequestError
            If there is no such number.
        """
        kind = kind or ("correlation" if other else "mean")
        own = self[self["kind"] == kind]
        chosen(column, [*dict.fromkeys([*own["column"], *own["other"]])])
        pairs = [{column, other}, {column}][not other]
        lines = own[
            [{a, b} - {""} == pairs for a, b in zip(own["column"], own["other"], strict=True)]
        ]
        if lines.empty:
            chosen(other, [each for each in dict.fromkeys(own["column"]) if each != column])
        drawn, named = axes(ax), str(self.columns[0])
        labels = [str(each) for each in lines[named]]
        over_time(labels, lines[["estimate", "lower", "upper"]].to_numpy().T, drawn)
        words = f"{kind} of {column}" + (f" and {other}" if other else "")
        title = f"{words[:1].upper()}{words[1:]}, with intervals"  # columns keep their case
        return with_words(drawn, title, named, words)


class Quantiles(SummaryFrame):
    """Quantiles of columns with intervals, one line each; those of dates are shown as dates."""

    def plot(self, column: str, ax: Axes | None = None) -> Axes:
        """Draw the quantiles of a column with their intervals, in its own unit.

        Parameters
        ----------
        column
            Name of a numeric column.
        ax
            Axes to draw on; None for a new figure.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        RequestError
            If the column has no quantiles.
        """
        own = self[self["column"] == chosen(column, [*dict.fromkeys(self["column"])])]
        labels = [f"{100 * each:g} %" for each in own["probability"]]
        drawn = forest(own[["value", "lower", "upper"]].to_numpy().T, labels, ax)
        return with_words(drawn, f"Quantiles of {column}, with intervals", column, "probability")


class Histograms(Frame):
    """The published histograms of columns, one line for each bin."""

    def plot(self, column: str, ax: Axes | None = None) -> Axes:
        """Draw the shares of the rows by levels or by equal steps of a column, with their errors.

        The published bins have several widths, so that steps combine bins or have a part of one.
        Half a per cent of the rows is left out at each end.

        Parameters
        ----------
        column
            Name of a column.
        ax
            Axes to draw on; None for a new figure.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        RequestError
            If the column has no histogram.
        """
        own = self[self["column"] == chosen(column, [*dict.fromkeys(self["column"])])]
        drawn, bins = axes(ax), own[own["upper"] > own["lower"]]
        title = f"Distribution of {column}, with standard errors"
        if bins.empty:
            levels = [str(each) for each in own["level"].fillna("(others and missing)")]
            places = np.arange(len(own))
            drawn.barh(places, own["share"], xerr=own["standard_error"], color="C0", ecolor="0.3")
            drawn.set_yticks(places, levels, parse_math=False)
            drawn.invert_yaxis()
            return with_words(drawn, title, "share of the rows", column)
        lower, upper, share, error = (
            bins[each].to_numpy(dtype=np.float64)
            for each in ("lower", "upper", "share", "standard_error")
        )
        below = np.append(0.0, np.cumsum(share)) / share.sum()
        ends = np.interp([0.005, 0.995], below, np.append(lower[0], upper))
        edges = np.linspace(ends[0], ends[1], _STEPS + 1)
        part = np.diff(np.clip((edges[:, None] - lower) / (upper - lower), 0, 1), axis=0)
        drawn.bar(edges[:-1], part @ share, np.diff(edges), align="edge", color="C0", alpha=0.7)
        middle, reach = (edges[:-1] + edges[1:]) / 2, np.sqrt(part**2 @ error**2)
        drawn.errorbar(middle, part @ share, reach, fmt="none", ecolor="0.3", elinewidth=0.8)
        return with_words(drawn, title, column, "share of the rows")
