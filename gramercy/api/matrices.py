"""The matrices of a release with their errors, as released and in the columns' own units."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.common.plotting import Picture
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import UnitRows
from gramercy.schemas.evidence import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.estimators.table_units import TableUnits
    from gramercy.estimators.uncertainty.entries import EntryKind
    from gramercy.estimators.uncertainty.entry_estimates import Entries


class WithErrors:
    """Values with errors: what a labelled matrix and a labelled column have in common."""

    _plain: Callable[[NDArray[np.float64]], Any]  # the values as a plain pandas object
    _unchanged_entries: Callable[[], Entries]

    def _keep(self, entries: Callable[[], Entries]) -> None:
        """Keep the errors of the values as they are now: those of others are unknown."""
        frame: Any = self
        original, labels = frame.to_numpy().copy(), [list(axis) for axis in frame.axes]

        def unchanged_entries() -> Entries:
            same_labels = [list(axis) for axis in frame.axes] == labels
            if not same_labels or not np.array_equal(frame.to_numpy(), original, equal_nan=True):
                raise families.ESTIMATE(
                    "This matrix was changed, so its errors are unknown now.",
                    "Take the matrix from the release again, and change a .copy().",
                )
            return entries()

        # A plain assignment would make pandas look for a column of this name.
        object.__setattr__(self, "_unchanged_entries", unchanged_entries)

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
        super().__init__(np.array(matrix), index=list(names), columns=list(names))
        self._keep(entries)

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
        from gramercy.common.plotting import forest

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
        super().__init__(np.array(values), index=list(names))
        self._keep(entries)

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
        from gramercy.common.plotting import forest, stacked_axes

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


class ReleaseMatrices(ABC):
    """What a release, or a pool of releases, says about its columns; every number has an error.

    Parameters
    ----------
    id
        DATASET/RELEASE.
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self._entries: dict[str, Entries] = {}
        self._warned = False

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: errors are computed again when they are needed."""
        return vars(self) | {"_entries": {}}

    @property
    @abstractmethod
    def evidence(self) -> Evidence:
        """The input of estimators.

        Raises
        ------
        RequestError
            If there is no matrix.
        """

    @property
    def names(self) -> list[str]:
        """Names of the columns of the matrix, in order."""
        return list(self.evidence.names)

    def _needs_second_moment(self) -> None:  # noqa: B027
        """Refuse a release that has no second moment; a pool always has one."""

    @property
    def _released(self) -> NDArray[np.float64]:
        """The second moment as released, with the mean of the noise."""
        return self.evidence.raw

    @property
    def second_moment(self) -> Measured:
        """The second moment as released, noise included; shape (p, p), may be indefinite.

        Its intervals are for the second moment of the population about zero. If the noise has a
        mean (``noise.mean``, on the diagonal), they are centred at the matrix minus that mean.

        Raises
        ------
        RequestError
            If the release is a precision matrix.
        """
        self._needs_second_moment()
        return Measured(self._released, self.names, lambda: self._entries_of("second moment"))

    @property
    def means(self) -> MeasuredColumn:
        """Mean of every column in its own unit; for a level, its share of the rows.

        If rows were clipped, row z counts with the weight min(1, radius / |z|)^2. If the release
        states which share of each column's cells is present, they are the means of these cells,
        for cells that are missing completely at random. Otherwise a missing cell counts as the
        column's centre.

        Raises
        ------
        RequestError
            If the release is a precision matrix, has no intercept, or is of unit rows.
        """
        return self._in_own_units("means")

    @property
    def standard_deviations(self) -> MeasuredColumn:
        """Standard deviation of every column in its own unit; NaN within the noise.

        For clipped rows and missing cells see `means`, which raises in the same cases.
        """
        return self._in_own_units("standard deviations")

    @property
    def covariance(self) -> Measured:
        """Unbiased covariances about the means, in the columns' own units; may be indefinite.

        For clipped rows and missing cells see `means`; the cells of two columns must be missing
        independently of each other. If the release has no intercept, they are second moments about
        the public centres, in the units of `second_moment`.

        Of unit rows they are second moments about the means, or the centres, of *directions*, in
        the units of `second_moment`; a `UnitRows` warning says so once. Raises as `second_moment`
        does.
        """
        units = self._warn_or_own_units()
        if units is None:
            return self._measured("covariance")
        return measured(self._own_entries("covariance", units), units.names)

    @property
    def correlation(self) -> Measured:
        """Correlations of the same rows, about the same means as `covariance`.

        NaN if the noise is too large. Of unit rows they are associations of directions, not Pearson
        correlations of the table, and a `UnitRows` warning says so once. Raises as `second_moment`
        does.
        """
        units = self._warn_or_own_units()
        if units is None:
            return self._measured("correlation")
        entries, evidence = self._entries_of("correlation"), self.evidence
        unknown = units.unknown(evidence.raw, evidence.deviations, evidence.terms)
        unknown &= ~np.eye(len(unknown), dtype=bool)
        return measured(replace(entries, estimable=entries.estimable & ~unknown), units.names)

    @property
    def partial_correlation(self) -> Measured:
        """Correlations of two columns given all others, about the same means as `covariance`.

        From the inverse of the matrix, corrected for the bias from noise. If the smallest
        eigenvalues may be due to noise, from a lasso of every column on the others, with NaN where
        noise leaves no residual. NaN also for one level of every column of levels, the reference:
        given all others, it is known. Of unit rows see `correlation`. Raises as `second_moment`
        does.
        """
        self._warn_or_own_units()
        return self._measured("partial-correlation")

    def _warn_or_own_units(self) -> TableUnits | None:
        """The columns' own units if the release has them; a warning, once, for unit rows."""
        from gramercy.estimators.table_units import table_units

        self._needs_second_moment()
        evidence = self.evidence
        if evidence.unit and not self._warned:
            self._warned = True
            warnings.warn(str(wordings.unit_rows(self.id)), UnitRows, stacklevel=3)
        return table_units(evidence)

    def _in_own_units(self, kind: str) -> MeasuredColumn:
        from gramercy.estimators.table_units import table_units

        self._needs_second_moment()
        units = table_units(self.evidence)
        if units is None:
            raise wordings.no_own_units(self.id)
        entries = self._own_entries(kind, units)
        values = np.where(entries.estimable, entries.estimate, np.nan)
        names = units.names[len(units.names) - len(values) :]  # without the intercept
        return MeasuredColumn(values, names, lambda: entries)

    def _own_entries(self, kind: str, units: TableUnits) -> Entries:
        """Entries in own units with their errors, computed once."""
        from gramercy.estimators.uncertainty import table_entries as own_entries

        functions = {
            "means": own_entries.table_means,
            "standard deviations": own_entries.table_deviations,
            "covariance": own_entries.table_covariance,
        }
        if kind not in self._entries:
            self._entries[kind] = functions[kind](self.evidence, units)
        return self._entries[kind]

    def _entries_of(self, kind: EntryKind) -> Entries:
        """Entries with their errors, computed once; see `estimators.uncertainty.entries`."""
        from gramercy.estimators.uncertainty.entries import entries

        if kind not in self._entries:
            self._entries[kind] = entries(self.evidence, kind)
        return self._entries[kind]

    def _measured(self, kind: EntryKind) -> Measured:
        return measured(self._entries_of(kind), self.names)
