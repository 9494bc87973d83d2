"""Labelled matrices and columns of numbers, with the standard errors of their entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.common.plotting import Picture
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import RequestError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.estimators.uncertainty.entries import Entries


def _matrix_changed() -> RequestError:
    return families.ESTIMATE(
        "This matrix was changed, so its errors are unknown now.",
        "Take the matrix from the release again, and change a .copy().",
    )


class WithErrors:
    """Values with errors: what a labelled matrix and a labelled column have in common."""

    _plain: Callable[[NDArray[np.float64]], Any]  # the values as a plain pandas object
    _unchanged_entries: Callable[[], Entries]

    def __getitem__(self, key: Any) -> Any:
        """As in pandas; the error of an unknown column names those that exist."""
        try:
            return super().__getitem__(key)  # type: ignore[misc]
        except KeyError:
            known = list(self.index)  # type: ignore[attr-defined]
            wanted = key if isinstance(key, list) else [key]
            unknown = [each for each in wanted if isinstance(each, str) and each not in known]
            if not unknown:
                raise
            raise families.UNKNOWN_NAME(
                "There is no column '{column}'.",
                "Columns, most similar first: {known}.",
                column=unknown[0],
                known=most_similar_first(unknown[0], known),
            ) from None

    @property
    def _entries(self) -> Entries:
        return self._unchanged_entries()

    @property
    def standard_error(self) -> pd.DataFrame | pd.Series:
        """Standard error of every entry from noise and sampling; NaN if not estimable."""
        return self._frame(self._entries.standard_error)

    @property
    def noise_error(self) -> pd.DataFrame | pd.Series:
        """The part of `standard_error` that is due to the noise of the release."""
        return self._frame(self._entries.noise_error)

    @property
    def sampling_error(self) -> pd.DataFrame | pd.Series:
        """The part of `standard_error` that is due to sampling."""
        return self._frame(self._entries.sampling_error)

    @property
    def law(self) -> str:
        """What the errors assume about the rows: ``Gaussian rows``, or ``jackknife over K folds``.

        The jackknife assumes no law of the rows.
        """
        return self._entries.law

    def interval(self, level: float = 0.95) -> tuple[pd.DataFrame | pd.Series, ...]:
        """Lower and upper bounds of every entry; the full range if it is not estimable.

        Parameters
        ----------
        level
            Confidence level of each interval, greater than 0.5 and less than 1; not simultaneous.

        Raises
        ------
        RequestError
            If `level` is out of range.
        """
        if not 0.5 < level < 1:
            raise wordings.level_out_of_range()
        lower, upper = self._entries.interval(level)
        return self._plain(lower), self._plain(upper)

    def _frame(self, values: NDArray[np.float64]) -> Any:
        return self._plain(np.where(self._entries.estimable, values, np.nan))


class Measured(WithErrors, pd.DataFrame):  # type: ignore[misc]
    """A symmetric matrix as a DataFrame, with the error of every entry.

    The squared error is the sum of two variances: that of the noise added for privacy, from its
    exact law, and that of sampling, from an assumed law of the rows (see
    `estimators.uncertainty.entry_covariance`) or from the folds of the release. The estimand is the
    matrix of the population, for rows normalised in the same way. Slices, products and copies are
    plain DataFrames.

    Parameters
    ----------
    matrix
        Shape (q, q); NaN for entries that cannot be estimated.
    names
        Names of the q columns.
    entries
        Computes the errors when they are first needed.

    Examples
    --------
    >>> import gramercy
    >>> matrix = gramercy.open(archive).latest("toy").second_moment
    >>> matrix.standard_error.shape
    (3, 3)
    >>> lower, upper = matrix.interval(0.99)
    >>> list(matrix.listed().columns)
    ['row', 'column', 'estimate', 'standard_error', 'lower', 'upper']
    """

    def __init__(
        self, matrix: NDArray[np.float64], names: Sequence[str], entries: Callable[[], Entries]
    ) -> None:
        original = np.array(matrix)
        super().__init__(original.copy(), index=list(names), columns=list(names))

        def unchanged_entries() -> Entries:
            same_names = list(self.index) == list(names) == list(self.columns)
            if not same_names or not np.array_equal(self.to_numpy(), original, equal_nan=True):
                raise _matrix_changed()
            return entries()

        # A plain assignment would make pandas look for a column of this name.
        object.__setattr__(self, "_unchanged_entries", unchanged_entries)

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def __reduce__(self) -> tuple[Any, ...]:
        return pd.DataFrame, (self.to_numpy(), self.index, self.columns)

    def listed(self, level: float = 0.95) -> pd.DataFrame:
        """One row per pair of columns, including each column with itself.

        Parameters
        ----------
        level
            See `interval`.

        Returns
        -------
        DataFrame
            ``row``, ``column``, ``estimate``, ``standard_error``, ``lower`` and ``upper``.
        """
        i, j = np.triu_indices(len(self))
        labels = self.index.to_numpy(dtype=object)
        bounds = zip(("lower", "upper"), self.interval(level), strict=True)
        estimate = self._frame(self._entries.estimate)
        frames = {"estimate": estimate, "standard_error": self.standard_error, **dict(bounds)}
        numbers = {name: frame.to_numpy()[i, j] for name, frame in frames.items()}
        return pd.DataFrame({"row": labels[i], "column": labels[j], **numbers})

    def plot(self) -> Picture:
        """A heat map, with names and values on hover; unknown entries are grey.

        See `plot_intervals`. For a figure of matplotlib, ``imshow`` draws the same data frame.

        Raises
        ------
        MissingPackages
            If the packages that draw are not installed.
        """
        values = self._frame(self._entries.estimate).to_numpy()
        return Picture.of_matrix(values, [str(name) for name in self.index])

    def plot_intervals(self, ax: Axes | None = None, level: float = 0.95, pairs: int = 30) -> Axes:
        """Draw a forest plot of the entries off the diagonal that are largest in size.

        Parameters
        ----------
        ax
            Axes to draw on; None for a new figure.
        level
            See `interval`.
        pairs
            Number of pairs of columns to draw.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        """
        from gramercy.api.plotting import forest

        listed = self.listed(level)
        listed = listed[listed["row"] != listed["column"]]
        order = listed["estimate"].abs().sort_values(ascending=False, kind="stable").index
        listed = listed.loc[order[:pairs]]
        numbers = listed[["estimate", "lower", "upper"]].to_numpy().T
        return forest(numbers, [f"{a}, {b}" for a, b in listed[["row", "column"]].to_numpy()], ax)

    def _plain(self, values: NDArray[np.float64]) -> pd.DataFrame:
        return pd.DataFrame(values, index=self.index, columns=self.columns)


class MeasuredColumn(WithErrors, pd.Series):  # type: ignore[misc]
    """One number for each column of the table as a Series, with its error.

    See `Measured` for the errors. Slices, products and copies are plain Series.

    Parameters
    ----------
    values
        Shape (q,); NaN for numbers that cannot be estimated.
    names
        Names of the q columns.
    entries
        The errors.
    """

    def __init__(
        self, values: NDArray[np.float64], names: Sequence[str], entries: Callable[[], Entries]
    ) -> None:
        original = np.array(values)
        super().__init__(original.copy(), index=list(names))

        def unchanged_entries() -> Entries:
            same_names = list(self.index) == list(names)
            if not same_names or not np.array_equal(self.to_numpy(), original, equal_nan=True):
                raise _matrix_changed()
            return entries()

        object.__setattr__(self, "_unchanged_entries", unchanged_entries)

    @property
    def _constructor(self) -> Any:
        return pd.Series

    @property
    def _constructor_expanddim(self) -> Any:
        return pd.DataFrame

    def __reduce__(self) -> tuple[Any, ...]:
        return pd.Series, (self.to_numpy(), self.index)

    def listed(self, level: float = 0.95) -> pd.DataFrame:
        """One row per column: ``estimate``, ``standard_error``, ``lower`` and ``upper``.

        Parameters
        ----------
        level
            See `interval`.
        """
        lower, upper = self.interval(level)
        numbers = {"estimate": self._frame(self._entries.estimate)}
        numbers |= {"standard_error": self.standard_error, "lower": lower, "upper": upper}
        return pd.DataFrame(numbers)

    def plot(self, ax: Axes | None = None, level: float = 0.95) -> Sequence[Axes]:
        """Draw a forest plot: the interval of each column, in its own unit.

        Parameters
        ----------
        ax
            Axes to draw all columns on; None for a new figure with axes for each column.
        level
            See `interval`.

        Returns
        -------
        sequence of Axes
            One for each column, or `ax` alone.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        """
        from gramercy.api.plotting import forest
        from gramercy.common.plotting import stacked_axes

        listed = self.listed(level)
        numbers = listed[["estimate", "lower", "upper"]].to_numpy().T
        if ax is not None:
            return [forest(numbers, list(listed.index), ax)]
        separate = stacked_axes(len(self), 6.0, min(40.0, 0.65 * len(self) + 0.4))
        return [
            forest(numbers[:, k : k + 1], [name], each)
            for k, (name, each) in enumerate(zip(listed.index, separate, strict=True))
        ]

    def _plain(self, values: NDArray[np.float64]) -> pd.Series:
        return pd.Series(values, index=self.index)


def measured(entries: Entries, names: Sequence[str]) -> Measured:
    """The matrix of these entries; if they have no intercept, its name is left out."""
    values = np.where(entries.estimable, entries.estimate, np.nan)
    return Measured(values, names[len(names) - len(values) :], lambda: entries)


def measured_column(entries: Entries, names: Sequence[str]) -> MeasuredColumn:
    """One number for each column, from entries of shape (q,); the intercept is left out."""
    values = np.where(entries.estimable, entries.estimate, np.nan)
    return MeasuredColumn(values, names[len(names) - len(values) :], lambda: entries)
