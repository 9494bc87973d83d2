"""The matrices of a release with their errors, as released and in the columns' own units."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.api.frames import Frame, Quantity, check_between, chosen, in_ranges
from gramercy.api.habits import WithHabits
from gramercy.common.notation import shortened_pair
from gramercy.common.plotting import Picture, draws, forest, matrix, with_words
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import RequestError, UnitRows
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.api.caveats import Caveats
    from gramercy.estimators.table_units import TableUnits
    from gramercy.estimators.uncertainty.entries import EntryKind
    from gramercy.estimators.uncertainty.entry_estimates import Entries, Target
    from gramercy.schemas.manifest import ReleaseManifest

_WIDE = 0.12  # half width of an interval of a correlation that is uncertain


class WithErrors:
    """Values with errors: what a labelled matrix and a labelled column have in common."""

    _plain: Callable[[NDArray[np.float64]], Any]  # the values as a plain pandas object
    _unchanged_entries: Callable[[], Entries]
    _kinds: Callable[[], Mapping[str, str]]  # the kinds of the caveats of columns that have some

    def _keep(self, entries: Callable[[], Entries], kinds: Callable[[], Mapping[str, str]]) -> None:
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
        object.__setattr__(self, "_kinds", kinds)

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
        return chosen(unknown[0], known)  # raises

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

    @property
    def caveats(self) -> pd.Series:
        """The kinds of each column's caveats, such as ``tail; hidden cells``; empty if none.

        Their words are in `ReleaseMatrices.warnings`.
        """
        kinds, names = self._kinds(), list(self.index)  # type: ignore[attr-defined]
        return pd.Series([kinds.get(name, "") for name in names], names, dtype="str")

    def interval(
        self, level: float = 0.95, target: Target = "population"
    ) -> tuple[pd.DataFrame | pd.Series, ...]:
        """Lower and upper bounds of every entry; the full range if it is not estimable.

        Parameters
        ----------
        level
            Confidence level of each interval, greater than 0.5 and less than 1; not simultaneous.
        target
            ``population``: of which the rows are a sample, with the sampling error; ``table``: the
            value that the table itself has, without it. Both contain the noise, and what is not
            known of the rows that were clipped, if the release publishes what clipping took away.

        Raises
        ------
        RequestError
            If `level` or `target` is out of range.
        """
        check_between("level", level, 0.5, 1, usual=0.95)
        if target not in ("population", "table"):
            raise families.ANALYSIS(
                "'target' must be 'population' or 'table', not '{target}'.", target=str(target)
            )
        lower, upper = self._entries.interval(level, target)
        return self._plain(lower), self._plain(upper)

    def _frame(self, values: NDArray[np.float64]) -> Any:
        return self._plain(np.where(self._entries.estimable, values, np.nan))


class Measured(WithErrors, Frame):
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
    entries, kinds
        Compute the errors, and the kinds of caveats by column, when they are first needed.
    quantity
        What the entries are, such as ``correlation``.

    Examples
    --------
    >>> import gramercy
    >>> matrix = gramercy.open(archive).latest("toy").second_moment
    >>> matrix.standard_error.shape
    (3, 3)
    >>> lower, upper = matrix.interval(0.99)
    >>> list(matrix.listed().columns)
    ['row', 'column', 'estimate', 'standard_error', 'lower', 'upper', 'caveat']
    """

    def __init__(
        self,
        matrix: NDArray[np.float64],
        names: Sequence[str],
        entries: Callable[[], Entries],
        kinds: Callable[[], Mapping[str, str]],
        quantity: str,
    ) -> None:
        super().__init__(np.array(matrix), index=list(names), columns=list(names))
        self._keep(entries, kinds)
        object.__setattr__(self, "_quantity", quantity.replace("-", " "))

    def listed(self, level: float = 0.95, target: Target = "population") -> pd.DataFrame:
        """One row per pair of columns, including each column with itself.

        Parameters
        ----------
        level, target
            See `interval`.

        Returns
        -------
        DataFrame
            ``row``, ``column``, ``estimate``, ``standard_error``, ``lower``, ``upper`` and
            ``caveat``, the kinds of the caveats of both columns; of correlations of a population
            also ``p_value`` and ``adjusted``, see `pvalues` and `discoveries`.
        """
        i, j = np.triu_indices(len(self))
        labels = self.index.to_numpy(dtype=object)
        bounds = zip(("lower", "upper"), self.interval(level, target), strict=True)
        estimate = self._frame(self._entries.estimate)
        error = self._frame(self._entries.error(target))
        frames = {"estimate": estimate, "standard_error": error, **dict(bounds)}
        if self._entries.tail is not None and target == "population":
            frames |= {"p_value": self.pvalues, "adjusted": self._adjusted}
        numbers = {name: frame.to_numpy()[i, j] for name, frame in frames.items()}
        kinds = self.caveats.to_numpy()
        caveat = ["; ".join(_each_once(pair)) for pair in zip(kinds[i], kinds[j], strict=True)]
        found = {"row": labels[i], "column": labels[j], **numbers}
        return pd.DataFrame({**found, "caveat": pd.Series(caveat, dtype="str")})

    @property
    def pvalues(self) -> pd.DataFrame:
        """Two-sided p-values of no correlation, which agree with the intervals for the population.

        So they contain noise, sampling and what clipping may have moved: a p-value is below 0.05
        where `interval` excludes 0. NaN on the diagonal, and where a correlation is not estimable.

        Raises
        ------
        RequestError
            If these are not correlations or partial correlations.
        """
        if self._entries.tail is None:
            raise families.ANALYSIS(
                "Only correlations have p-values.",
                "Use .correlation.pvalues: a covariance is 0 where its correlation is.",
            )
        known = self._entries.estimable & ~np.eye(len(self), dtype=bool)
        return self._plain(np.where(known, self._entries.tail(), np.nan))

    def discoveries(self, rate: float = 0.05) -> pd.DataFrame:
        """The pairs of columns that are correlated, at a false discovery rate, the surest first.

        By the procedure of Benjamini and Hochberg (1995), which is valid for independent tests, and
        in practice for most others. A pair that is not estimable counts as tested and not found.
        Those of correlations without folds are the edges of the estimator ``discoveries``. That of
        partial correlations is for sparse graphs, and with folds it shares variances between pairs.

        Parameters
        ----------
        rate
            Upper bound on the expected share of false pairs among those that are found.

        Returns
        -------
        DataFrame
            The lines of `listed` whose ``adjusted`` is at most `rate`.

        Raises
        ------
        RequestError
            If these are not correlations or partial correlations, or `rate` is out of range.
        """
        check_between("rate", rate, 0, 1, usual=0.05)
        listed, adjusted = self.listed(), self._adjusted.to_numpy()[np.triu_indices(len(self))]
        found = listed[adjusted <= rate]
        strength = -(found["estimate"] / found["standard_error"]).abs()  # many p-values are 0
        return found.iloc[np.lexsort((strength, found["p_value"]))].reset_index(drop=True)

    @property
    def _adjusted(self) -> pd.DataFrame:
        """The least false discovery rate at which each pair is found; NaN as of `pvalues`."""
        import scipy

        pairs, adjusted = np.triu_indices(len(self), 1), self.pvalues
        tails = adjusted.to_numpy()[pairs]
        found = np.full((len(self),) * 2, np.nan)
        if tails.size:
            tests = np.where(np.isnan(tails), 1.0, tails)
            least = scipy.stats.false_discovery_control(tests)
            found[pairs] = np.where(np.isnan(tails), np.nan, least)
        return self._plain(found)

    @draws
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a heat map; unknown entries are grey, and uncertain ones hatched.

        A correlation is uncertain if the table's own value may be off by more than 0.12: see
        `plot_intervals`. `picture` shows every value on hover.
        """
        values, uncertain = self._known_and_uncertain()
        drawn = matrix(values, [str(name) for name in self.index], uncertain, ax)
        return with_words(drawn, self._quantity.capitalize())

    def picture(self) -> Picture:
        """A heat map for notebooks and pages, with names and values on hover, drawn as by `plot`.

        Uncertain entries are grey among more than 64 columns.

        Raises
        ------
        MissingPackages
            If the packages that draw are not installed.
        """
        values, uncertain = self._known_and_uncertain()
        return Picture.of_matrix(values, [str(name) for name in self.index], uncertain)

    def _known_and_uncertain(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The entries, NaN where unknown, and which of them are uncertain correlations."""
        lower, upper = self._entries.interval(0.95, "table")
        correlations = bool((self._entries.estimate.diagonal() == 1).all())
        values = self._frame(self._entries.estimate).to_numpy()
        return values, correlations & ((upper - lower) / 2 > _WIDE)

    def plot_intervals(
        self,
        ax: Axes | None = None,
        level: float = 0.95,
        pairs: int = 30,
        target: Target = "population",
    ) -> Axes:
        """Draw a forest plot of the entries off the diagonal that are largest in size.

        Those of a column with caveats are hollow.

        Parameters
        ----------
        ax
            Axes to draw on; None for a new figure.
        level, target
            See `interval`.
        pairs
            Number of pairs of columns to draw.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        """
        listed = self.listed(level, target)
        listed = listed[listed["row"] != listed["column"]]
        order = listed["estimate"].abs().sort_values(ascending=False, kind="stable").index
        listed = listed.loc[order[:pairs]]
        numbers = listed[["estimate", "lower", "upper"]].to_numpy().T
        labels = [shortened_pair(a, b) for a, b in listed[["row", "column"]].to_numpy()]
        drawn = forest(numbers, labels, ax, list(listed["caveat"] != ""))
        words = f"the {len(labels)} largest\nwith {100 * level:g} % intervals of the {target}"
        return with_words(drawn, f"{self._quantity.capitalize()}: {words}", self._quantity)

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
    entries, kinds
        The errors, and the kinds of caveats by column.
    quantity
        ``mean`` or ``standard deviation``.
    facts
        The public facts of the columns.
    """

    def __init__(
        self,
        values: NDArray[np.float64],
        names: Sequence[str],
        entries: Callable[[], Entries],
        kinds: Callable[[], Mapping[str, str]],
        quantity: Quantity,
        facts: Sequence[ColumnFacts | LevelsFacts | None],
    ) -> None:
        super().__init__(np.array(values), index=list(names))
        self._keep(entries, kinds)
        object.__setattr__(self, "_quantity", quantity)
        object.__setattr__(self, "_facts", facts)

    @property
    def _constructor(self) -> Any:
        return pd.Series

    @property
    def _constructor_expanddim(self) -> Any:
        return pd.DataFrame

    def __reduce__(self) -> tuple[Any, ...]:
        return pd.Series, (self.to_numpy(), self.index)

    def __repr__(self) -> str:
        """The numbers, and which of them have caveats."""
        shown = pd.Series.__repr__(self)
        kinds = self.caveats
        listed = [f"{name} ({kind})" for name, kind in kinds[kinds != ""].items()]
        return (
            f"{shown}\nCaveats, see .warnings of the release: {', '.join(listed)}"
            if listed
            else shown
        )

    def listed(self, level: float = 0.95, target: Target = "population") -> pd.DataFrame:
        """One row per column: its estimate, error and interval, and the kinds of its caveats.

        Parameters
        ----------
        level, target
            See `interval`.

        Returns
        -------
        DataFrame
            ``estimate``, ``standard_error``, ``lower``, ``upper`` and ``caveat``.
        """
        lower, upper = self.interval(level, target)
        numbers = {"estimate": self._frame(self._entries.estimate)}
        error = self._frame(self._entries.error(target))
        numbers |= {"standard_error": error, "lower": lower, "upper": upper}
        return pd.DataFrame({**numbers, "caveat": self.caveats})

    def plot(
        self, ax: Axes | None = None, level: float = 0.95, target: Target = "population"
    ) -> Axes:
        """Draw the intervals of all columns on one scale, and write them in the columns' units.

        The scale is the position of a mean in the range of its column, which the release states, or
        the share of the range that a standard deviation is; of a level, the share of the rows.
        Columns with caveats are hollow, and their kinds follow their names.

        Parameters
        ----------
        ax
            Axes to draw on; None for a new figure.
        level, target
            See `interval`.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        RequestError
            If `level` or `target` is out of range.
        """
        words = f"{100 * level:g} % intervals of the {target}"
        listed = self.listed(level, target)
        return in_ranges(listed, self.facts_of_columns, self._quantity, words, ax)

    @property
    def facts_of_columns(self) -> Sequence[ColumnFacts | LevelsFacts | None]:
        """The public facts of each of the columns."""
        facts: Sequence[ColumnFacts | LevelsFacts | None] = self._facts
        return facts[len(facts) - len(self) :]  # without the intercept

    def _plain(self, values: NDArray[np.float64]) -> pd.Series:
        return pd.Series(values, index=self.index)


def _each_once(kinds: Sequence[str]) -> list[str]:
    """The kinds in these lists, each once."""
    return list(dict.fromkeys(kind for each in kinds for kind in each.split("; ") if kind))


class ReleaseMatrices(WithHabits, ABC):
    """What a release, or a pool of releases, says about its columns; every number has an error.

    Parameters
    ----------
    id
        DATASET/RELEASE.
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self._entries: dict[str, Entries] = {}
        self._caveats: Caveats | None = None
        self._warned = False

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: errors are computed again when they are needed."""
        return vars(self) | {"_entries": {}, "_caveats": None}

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

    @property
    @abstractmethod
    def _manifests(self) -> tuple[ReleaseManifest, ...]:
        """The public facts of all releases that it is computed from."""

    def _needs_second_moment(self) -> None:
        """Refuse a release that has no second moment; a pool always has one."""

    @property
    def warnings(self) -> Caveats:
        """What the numbers do not say: caveats of columns, and of the whole release.

        Such as a long tail of which the noise hides a part; each has words, a code and facts. Of
        releases that have no means of columns, only whether the declared number of rows is off.
        """
        from gramercy.api.caveats import Caveats
        from gramercy.estimators.caveats import caveats, contradicted_count

        if self._caveats is None:
            find = caveats
            try:
                self._needs_second_moment()
            except RequestError:
                find = contradicted_count
            self._caveats = Caveats(find(self._all_evidence))
        return self._caveats

    @property
    def proposals(self) -> pd.DataFrame:
        """Functions of columns that would say more than the columns do, and are not published.

        Of columns whose published histogram is mostly zero or has a long tail. The curator can
        publish them in another release.

        Returns
        -------
        DataFrame
            ``column``, ``why``, the ``function``, and the ``line`` that says so in a contract.
        """
        from gramercy.estimators.proposals import of_release, proposals_table

        return proposals_table(of_release(self.evidence))

    @property
    def _all_evidence(self) -> Evidence:
        """The evidence of a release of any kind."""
        return self.evidence

    def _kinds(self) -> dict[str, str]:
        return self.warnings.kinds

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
        kind: EntryKind = "second moment"
        return Measured(
            self._released, self.names, lambda: self._entries_of(kind), self._kinds, kind
        )

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
        return self._in_own_units("mean")

    @property
    def standard_deviations(self) -> MeasuredColumn:
        """Standard deviation of every column in its own unit; NaN within the noise.

        For clipped rows and missing cells see `means`, which raises in the same cases.
        """
        return self._in_own_units("standard deviation")

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
        return self._labelled_entries(
            self._own_entries("covariance", units), units.names, "covariance"
        )

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
        known = replace(entries, estimable=entries.estimable & ~unknown)
        return self._labelled_entries(known, units.names, "correlation")

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

    def _in_own_units(self, quantity: Quantity) -> MeasuredColumn:
        from gramercy.estimators.table_units import table_units

        self._needs_second_moment()
        units = table_units(self.evidence)
        if units is None:
            raise wordings.no_own_units(self.id)
        entries = self._own_entries(f"{quantity}s", units)
        values = np.where(entries.estimable, entries.estimate, np.nan)
        names = units.names[len(units.names) - len(values) :]  # without the intercept
        facts = self.evidence.columns
        return MeasuredColumn(values, names, lambda: entries, self._kinds, quantity, facts)

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
        return self._labelled_entries(self._entries_of(kind), self.names, kind)

    def _labelled_entries(
        self, entries: Entries, names: Sequence[str], kind: EntryKind
    ) -> Measured:
        """The matrix of these entries; if they have no intercept, its name is left out."""
        values = np.where(entries.estimable, entries.estimate, np.nan)
        own = names[len(names) - len(values) :]
        return Measured(values, own, lambda: entries, self._kinds, kind)
