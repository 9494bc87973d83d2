"""Means, deviations and correlations of tables, and tests whether they differ between tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from gramercy.estimators.equal_terms import EqualTerms, on_equal_terms, with_common_bias
from gramercy.estimators.series_steps import noise_correlations, same_series
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.entries import correlation
from gramercy.estimators.uncertainty.entry_estimates import Bias, Bounds, Entries
from gramercy.estimators.uncertainty.jackknife import has_jackknife
from gramercy.estimators.uncertainty.moment_errors import has_intercept, release_noise
from gramercy.estimators.uncertainty.table_entries import table_deviations, table_means
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.manifest import ReleaseManifest

Array = NDArray[np.float64]
Choice = tuple[NDArray[np.int64], ...]

MEAN, DEVIATION, CORRELATION = "mean", "standard deviation", "correlation"
NUMBER = ["kind", "column", "other"]  # what a number is; `other` is for correlations
_ARRAYS = ("estimate", "standard_error", "lower", "upper")


@dataclass(frozen=True)
class Measurements:
    """What one release, or a pool, says about its table; all arrays have shape (m,)."""

    # each number with its standard error by noise and sampling, and its interval, which contains
    # the bias of clipping too; NaN where it is unknown
    estimate: Array
    standard_error: Array
    lower: Array
    upper: Array
    freedom: float  # degrees of freedom of the standard errors: those of the jackknife, or infinity
    bias: Bias  # what is not known of the bias
    noise: Array  # the part of the standard errors that is due to the noise

    @property
    def arrays(self) -> dict[str, Array]:
        """Estimate, standard error and interval by name."""
        return {name: getattr(self, name) for name in _ARRAYS}

    def reordered(self, places: NDArray[np.intp]) -> Measurements:
        """The numbers at these places; unknown where the place is -1."""

        def taken(array: Array) -> Array:
            return np.where(places >= 0, array[places], np.nan)

        estimate, error, lower, upper = (taken(array) for array in self.arrays.values())
        bias, noise = self.bias.of(taken), taken(self.noise)
        return Measurements(estimate, error, lower, upper, self.freedom, bias, noise)

    @property
    def ends(self) -> Bounds:
        """The numbers between which the bias may have moved the estimates."""
        below, above = self.bias.shift
        return self.estimate - below, self.estimate + above

    @property
    def errors(self) -> Bounds:
        """Standard deviations of all errors below and above the ends."""
        below, above = self.bias.deviation
        return np.hypot(self.standard_error, below), np.hypot(self.standard_error, above)


def is_in_own_units(evidence: Evidence) -> bool:
    """Whether a release has means, standard deviations and correlations of its table."""
    return table_units(evidence) is not None


def numbers(evidence: Evidence) -> pd.DataFrame:
    """The m numbers that `measure` gives for releases with these columns.

    Returns ``kind`` (`MEAN`, of a level its share; `DEVIATION`, of numeric columns; `CORRELATION`),
    ``column`` and, for a correlation, ``other``. Without an intercept, and for unit rows, there are
    correlations only.
    """
    units = table_units(evidence)
    names = _names(evidence) if units is None else units.names
    lines = [
        (CORRELATION, names[i], names[j])
        for i, j in zip(*np.triu_indices(len(names), 1), strict=True)
    ]
    if units is not None:
        numeric = np.array(names)[_numeric(evidence)].tolist()
        own = [(MEAN, name, "") for name in names] + [(DEVIATION, name, "") for name in numeric]
        lines = own + lines
    return pd.DataFrame(lines, columns=NUMBER)


def measure(evidence: Evidence, level: float = 0.95) -> Measurements:
    """The numbers of one release, or of a pool, in the order of `numbers`."""
    parts = [_parts(each, level, choice) for each, choice in _chosen(evidence)]
    arrays = [np.concatenate(part) for part in zip(*parts, strict=True)]
    freedom = np.inf
    if has_jackknife(evidence):
        freedom = len(evidence.folds) - len({fold.stratum for fold in evidence.folds})
    estimate, error, noise, lower, upper, *bias = arrays
    of_bias = Bias((bias[0], bias[1]), (bias[2], bias[3]))
    return Measurements(estimate, error, lower, upper, float(freedom), of_bias, noise)


def _names(evidence: Evidence) -> tuple[str, ...]:
    """The columns of the correlations: all but an intercept."""
    names = evidence.names or tuple(str(i) for i in range(len(evidence.raw)))
    return names[1:] if has_intercept(evidence) else names


def _numeric(evidence: Evidence) -> NDArray[np.bool_]:
    return np.array([isinstance(column, ColumnFacts) for column in evidence.columns[1:]], bool)


def _chosen(evidence: Evidence) -> Iterator[tuple[Entries, Choice]]:
    """Entries of each kind, and which of them are numbers of their own."""
    units, correlations = table_units(evidence), correlation(evidence, "correlation")
    if units is not None:
        # Correlations are not estimable where noise hides the columns.
        hidden = units.unknown(evidence.raw, evidence.deviations, evidence.terms)
        correlations = replace(correlations, estimable=correlations.estimable & ~hidden)
        yield table_means(evidence, units), (np.arange(len(units.names)),)
        yield table_deviations(evidence, units), np.nonzero(_numeric(evidence))
    yield correlations, np.triu_indices(len(correlations.estimate), 1)


def _parts(entries: Entries, level: float, choice: Choice) -> tuple[Array, ...]:
    lower, upper = entries.interval(level)
    known, bias = entries.estimable[choice], entries.bias
    errors = (entries.standard_error, entries.noise_error)
    arrays = (entries.estimate, *errors, lower, upper, *bias.shift, *bias.deviation)
    return tuple(np.where(known, array[choice], np.nan) for array in arrays)


# Tests whether numbers of disjoint tables are equal: of periods of the data, or groups of rows.
#
# The tables have different rows, and most have independent noise, so all errors are independent:
# those of the noise and those of sampling. Whether a number is the same in all tables is tested by
# Welch's analysis of variance, for the populations behind the tables. With T tables, estimates x_t
# and standard errors s_t, weights w_t = 1 / s_t^2 and m = sum w_t x_t / sum w_t,
#
# F = sum w_t (x_t - m)^2 / (T - 1) / (1 + 2 (T - 2) A / (T^2 - 1)),  A = sum (1 - w_t / w)^2 / f_t,
#
# has about the F distribution with T - 1 and (T^2 - 1) / (3 A) degrees of freedom. Here w = sum
# w_t, and f_t are the degrees of freedom of s_t: those of the jackknife, or infinity. Of two
# tables, this is Welch's test of the difference, with Satterthwaite's 1 / A degrees of freedom.
#
# What is not known of the bias of clipping is worst for the finding: x_t may be anywhere between
# its ends x_t - a_t and x_t + b_t, and beyond them what is not known adds to the variance s_t^2 on
# that side. The number m is that for which F is least; if an interval contains m, its table adds
# nothing. So tables of one population are seldom found to differ, however differently their
# releases clip them. See also `estimators.equal_terms`. The interval of a difference of two tables
# has the differences that this test does not reject: p < 0.05 if that at 95 % is without 0.
#
# Releases with the same constants and the same radius, such as those of a series or groups of one
# release, have the same bias if their tables are of one population. So means and correlations of
# their clipped rows test this stronger hypothesis without bounds of the bias, with more power. They
# do not test that a number is the same: it may be while other columns, or its tails, differ, and
# then clipping moves it differently.
#
# Noise of windows of one cumulative series is correlated. They have no folds, so their sum of
# squares is that of generalized least squares, with a chi-squared law.
#
# Welch (1951), "On the comparison of several mean values", Biometrika 38.


@dataclass(frozen=True)
class OverTime:
    """The numbers of several periods."""

    # one line for each period and number: ``period``, ``kind``, ``column``, ``other``,
    # ``estimate``, ``standard_error``, ``lower`` and ``upper``; NaN where noise hides a number
    series: pd.DataFrame
    # one line for each number: ``kind``, ``column``, ``other``, as in `changes`, and
    # ``one_population`` as in `differences`
    changes: pd.DataFrame


def comparable_measurements(
    evidences: Sequence[Evidence], level: float = 0.95
) -> list[Measurements]:
    """The numbers of each release as `measure` gives them, with what comparing them adds.

    Unknown are the numbers of a release that cannot be compared with the others, and those of
    columns that have another meaning in it; see `estimators.equal_terms`.
    """
    return [
        _compared(each, terms, level)
        for each, terms in zip(evidences, on_equal_terms(evidences), strict=True)
    ]


def _of_one_population(
    evidences: Sequence[Evidence], stated: Sequence[Measurements]
) -> Sequence[Measurements]:
    """The numbers that are the same if all tables are of one population.

    Standard deviations are those that are stated: the sampling error of clipped ones is known from
    the tails of a column alone, which only the first release of a series publishes.
    """
    alike = with_common_bias(evidences)
    if alike is None:
        return stated
    return [_as_clipped(each, own) for each, own in zip(alike, stated, strict=True)]


def _as_clipped(evidence: Evidence, stated: Measurements) -> Measurements:
    """Means and correlations of clipped rows, and the other numbers as they are stated."""
    clipped, known = measure(evidence), np.isfinite(stated.estimate)
    known &= numbers(evidence)["kind"].ne(DEVIATION).to_numpy()

    def unknown_bias(array: Array) -> Array:
        return np.where(known, 0.0, array)

    error = np.maximum(clipped.standard_error, stated.standard_error)
    return replace(
        stated,
        estimate=np.where(known, clipped.estimate, stated.estimate),
        standard_error=np.where(known, error, stated.standard_error),
        bias=stated.bias.of(unknown_bias),
    )


def _compared(evidence: Evidence, terms: EqualTerms, level: float) -> Measurements:
    measured, lines = measure(terms.evidence or evidence, level), numbers(evidence)
    unknown = lines[["column", "other"]].isin(terms.apart).any(axis=1).to_numpy()
    if terms.evidence is None:
        unknown = np.ones_like(unknown)
    estimate = np.where(unknown, np.nan, measured.estimate)
    if terms.moved is None:
        return replace(measured, estimate=estimate)
    moved, (below, above) = terms.moved, (each.copy() for each in measured.bias.shift)
    numeric, pairs = _numeric(evidence), np.triu_indices(len(moved.correlations), 1)
    of_kind = {kind: lines["kind"].eq(kind).to_numpy() for kind in (MEAN, DEVIATION, CORRELATION)}
    for shift, of_means, of_variances, side in zip(
        (below, above), moved.means, moved.variances, (-1.0, 1.0), strict=True
    ):
        shift[of_kind[MEAN]] += of_means
        shift[of_kind[CORRELATION]] += moved.correlations[pairs]
        centre = measured.estimate[of_kind[DEVIATION]]
        square = (centre + side * shift[of_kind[DEVIATION]]) ** 2 + side * of_variances[numeric]
        shift[of_kind[DEVIATION]] = side * (np.sqrt(np.maximum(square, 0.0)) - centre)
    bias = replace(measured.bias, shift=(below, above))
    return replace(measured, estimate=estimate, bias=bias)


def over_time(periods: Mapping[str, Evidence], level: float = 0.95) -> OverTime:
    """The numbers of several periods, in the order of the last one.

    `periods`: releases by the labels of their periods; at least one. A number that one of them
    lacks is unknown there. Raises RequestError for windows of one series with a common step.
    """
    evidences = [*periods.values()]
    stated, (wanted, places) = comparable_measurements(evidences, level), _aligned(evidences)
    found = wanted.to_frame(index=False).join(_tested(evidences, stated, places))
    return OverTime(_series(periods, stated, wanted, places), found)


def _tested(
    evidences: Sequence[Evidence],
    stated: Sequence[Measurements],
    places: Sequence[NDArray[np.intp]],
) -> pd.DataFrame:
    """`changes` of the numbers that are stated, and ``one_population``; see `differences`."""
    joint = noise_correlations(evidences)
    found, of_one = (
        changes([each.reordered(own) for each, own in zip(numbers, places, strict=True)], joint)
        for numbers in (stated, _of_one_population(evidences, stated))
    )
    return found.assign(one_population=of_one["p_value"])


def numbers_over_time(tables: Mapping[str, Evidence], level: float = 0.95) -> pd.DataFrame:
    """The `series` of `over_time`, also of tables with rows in common, which are not tested."""
    evidences = [*tables.values()]
    return _series(tables, comparable_measurements(evidences, level), *_aligned(evidences))


def _aligned(evidences: Sequence[Evidence]) -> tuple[pd.MultiIndex, list[NDArray[np.intp]]]:
    """The numbers of the last release, and their places among those of each release."""
    lines = [pd.MultiIndex.from_frame(numbers(each)) for each in evidences]
    return lines[-1], [each.get_indexer(lines[-1]) for each in lines]


def _series(
    periods: Mapping[str, Evidence],
    stated: Sequence[Measurements],
    wanted: pd.MultiIndex,
    places: Sequence[NDArray[np.intp]],
) -> pd.DataFrame:
    lines = wanted.to_frame(index=False)
    parts = {
        label: lines.assign(**each.reordered(own).arrays)
        for label, each, own in zip(periods, stated, places, strict=True)
    }
    series = pd.concat(parts, names=["period", None]).reset_index("period")
    return series.reset_index(drop=True)


def differences(first: Evidence, second: Evidence, level: float = 0.95) -> pd.DataFrame:
    """The numbers of two groups of one release, or of two releases, and their differences.

    A number of the first that the second lacks is unknown there. Returns one line for each number:
    ``kind``, ``column``, ``other`` (of correlations), ``first``, ``second``, ``difference`` (the
    first minus the second), its ``standard_error`` by noise and sampling, ``lower`` and ``upper``,
    which contain the bias of clipping too, the ``p_value`` of no difference, which is below
    1 - `level` if that interval is without 0, and ``adjusted`` as in `changes`. NaN where noise
    hides a number, or the two cannot be compared.

    ``one_population`` is the p-value of another hypothesis: that both tables are of one population.
    It is from this number too, of the clipped rows where both clip alike. It may be small although
    the number is the same.
    """
    lines = [pd.MultiIndex.from_frame(numbers(each)) for each in (first, second)]
    places = lines[1].get_indexer(lines[0])
    stated = comparable_measurements([first, second], level)
    a, b = stated[0], stated[1].reordered(places)
    joint = noise_correlations([first, second])
    shared = np.zeros_like(a.noise) if joint is None else joint[0, 1] * a.noise * b.noise

    def of_difference(one: Array, other: Array) -> Array:
        return np.sqrt(np.maximum(one**2 + other**2 - 2 * shared, 0.0))

    def reach(one: Array, other: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):  # without folds, the normal law
            freedom = (one**2 + other**2) ** 2 / (one**4 / a.freedom + other**4 / b.freedom)
        quantile: Array = scipy.stats.t.isf((1 - level) / 2, freedom)
        return of_difference(one, other) * quantile

    error = of_difference(a.standard_error, b.standard_error)
    below = a.ends[0] - b.ends[1] - reach(a.errors[0], b.errors[1])
    above = a.ends[1] - b.ends[0] + reach(a.errors[1], b.errors[0])
    difference = a.estimate - b.estimate
    named = {"first": a.estimate, "second": b.estimate, "difference": difference}
    errors = {"standard_error": error, "lower": below, "upper": above}
    found = numbers(first).assign(**named, **errors)
    tests = _tested([first, second], stated, [np.arange(len(places)), places])
    return found.join(tests.drop(columns="periods"))


def changes(tables: Sequence[Measurements], joint: Array | None = None) -> pd.DataFrame:
    """Whether each number is the same in all tables.

    `tables`: the same numbers of at least one table. `joint`: the correlations of their noise, see
    `noise_correlations`; None if it is independent. Returns one line for each number: ``periods``
    in which it is known, ``p_value`` of no change, and ``adjusted``, the least false discovery rate
    (Benjamini and Hochberg 1995) at which the change is found among all numbers; NaN if it is known
    in fewer than two.
    """
    freedom = np.array([each.freedom for each in tables])[:, None]
    distances = _Distances.of(tables)
    count = distances.known.sum(axis=0)
    centre = distances.nearest
    weight = distances.weights(centre)
    total = np.maximum(weight.sum(axis=0), 1e-300)
    squares = (weight * distances.beyond(centre) ** 2).sum(axis=0)
    loss = (np.where(distances.known, (1 - weight / total) ** 2, 0.0) / freedom).sum(axis=0)
    between = np.maximum(count - 1, 1)
    square = np.maximum(count**2 - 1, 1)
    quotient = squares / between / (1 + 2 * (count - 2) * loss / square)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_f = scipy.stats.f.sf(quotient, between, square / (3 * loss))
    if joint is not None:
        squares = distances.joint_squares(centre, np.array([each.noise for each in tables]), joint)
    p_value = np.where(loss > 0, of_f, scipy.stats.chi2.sf(squares, between))
    p_value = np.where(count >= 2, p_value, np.nan)
    found = {"periods": count, "p_value": p_value, "adjusted": adjusted(p_value)}
    return pd.DataFrame(found)


def adjusted(p_values: Array) -> Array:
    """Least false discovery rates at which hypotheses are rejected; NaN where unknown.

    The least of them is the p-value of all hypotheses together: Simes (1986).
    """
    found = p_values.copy()
    if (tested := np.isfinite(p_values)).any():
        found[tested] = scipy.stats.false_discovery_control(p_values[tested])
    return found


_HALVINGS = 80  # of the range of a number


@dataclass(frozen=True)
class _Distances:
    """Distances of T tables from a common number; shape (T, m)."""

    known: NDArray[np.bool_]
    # the ends between which the bias may have moved each number, and the errors below and above
    low: Array
    high: Array
    below: Array
    above: Array

    @classmethod
    def of(cls, tables: Sequence[Measurements]) -> _Distances:
        """Of the same numbers of all tables."""
        x = np.array([each.estimate for each in tables])
        errors = np.array([each.standard_error for each in tables])
        known = np.isfinite(x) & np.isfinite(errors) & (errors > 0)
        low, high = (np.array(each) for each in zip(*[each.ends for each in tables], strict=True))
        below, above = (
            np.array(each) for each in zip(*[each.errors for each in tables], strict=True)
        )
        zeros, ones = np.zeros_like(x), np.ones_like(x)
        return cls(
            known,
            np.where(known, low, zeros),
            np.where(known, high, zeros),
            np.where(known, below, ones),
            np.where(known, above, ones),
        )

    def beyond(self, centre: Array) -> Array:
        """How far a number is from the ends; negative below them."""
        return np.maximum(centre - self.high, 0.0) - np.maximum(self.low - centre, 0.0)

    def weights(self, centre: Array) -> Array:
        """1 / s^2, with the error on the side of the number; zero where unknown."""
        error = np.where(centre > (self.low + self.high) / 2, self.above, self.below)
        return np.where(self.known, 1 / error**2, 0.0)

    def joint_squares(self, centre: Array, noise: Array, correlations: Array) -> Array:
        """The least sum of squared distances, in errors with correlated noise; shape (m,).

        `centre`: a number from which distances are measured, shape (m,). With r the distances, C
        the covariance of all errors, and o a vector of ones, r' C^-1 r - (o' C^-1 r)^2 / o' C^-1 o.
        """
        beyond, weight = self.beyond(centre), self.weights(centre)
        between = correlations - np.eye(len(correlations))
        squares = np.zeros_like(centre)
        for k in np.flatnonzero(self.known.sum(axis=0) >= 2):
            at = self.known[:, k]
            own = noise[at, k]
            covariance = np.diag(1 / weight[at, k]) + between[np.ix_(at, at)] * np.outer(own, own)
            both = np.column_stack([beyond[at, k], np.ones(own.size)])
            of_all, crossed, _, of_ones = (both.T @ np.linalg.solve(covariance, both)).ravel()
            squares[k] = of_all - crossed**2 / of_ones
        return squares

    @property
    def nearest(self) -> Array:
        """The numbers from which the sum of squared distances, in errors, is least; shape (m,)."""
        any_known = self.known.any(axis=0)
        start = np.where(any_known, np.where(self.known, self.low, np.inf).min(axis=0), 0.0)
        end = np.where(any_known, np.where(self.known, self.high, -np.inf).max(axis=0), 0.0)
        for _ in range(_HALVINGS):  # the sum is convex
            middle = (start + end) / 2
            slope = (self.weights(middle) * self.beyond(middle)).sum(axis=0)
            start, end = np.where(slope > 0, start, middle), np.where(slope > 0, middle, end)
        return np.asarray((start + end) / 2)


@dataclass(frozen=True)
class Change:
    """The difference of two released matrices with independent noise.

    This compares the two tables, not the populations behind them. Most of their rows may be the
    same, so their sampling errors are not independent, and are left out.
    """

    # the later matrix minus the earlier one, without the means of the noise; shape (p, p)
    difference: Array
    sd: Array  # standard deviation of the noise in each difference; shape (p, p)
    # whether both releases have Gaussian noise with independent entries, and divisors that are
    # public or known to a tenth: then the test has a chi-squared law
    gaussian: bool
    # errors of noisy divisors, each of which has all entries at once: their standard deviations;
    # shape (k, p, p). They are part of `sd`.
    shared: Array

    @property
    def deviations(self) -> Array:
        """The difference in standard deviations of its noise; 0 where the noise is zero."""
        noisy = self.sd > 0
        return np.divide(self.difference, self.sd, out=np.zeros_like(self.sd), where=noisy)

    @property
    def p_value(self) -> float | None:
        """P-value of x' C^-1 x if the table is unchanged; None if its law is unknown.

        Here x has the m differences with noise, and C = D + U U' is their covariance, with D that
        of independent errors and U the `shared` ones.
        """
        if not self.gaussian:
            return None
        i, j = np.triu_indices(len(self.sd))
        own = self.sd[i, j] ** 2 - (self.shared[:, i, j] ** 2).sum(axis=0)
        noisy = own > 0
        root = np.sqrt(own[noisy])
        x, u = self.difference[i, j][noisy] / root, self.shared[:, i, j][:, noisy] / root
        along = u @ x
        square = x @ x - along @ np.linalg.solve(np.eye(len(u)) + u @ u.T, along)
        return float(scipy.stats.chi2.sf(square, x.size))


_INDEPENDENT = {"gaussian-isotropic", "gaussian-iid"}
_LEAST_ROWS = 10.0  # standard deviations of a noisy number of rows, for errors of first order


def comparable(first: ReleaseManifest, second: ReleaseManifest) -> bool:
    """Whether two releases estimate one matrix: columns, groups, normalisation, penalty.

    Rows that are clipped in a metric of their own have another matrix than other rows. The steps of
    a cumulative series have rows in common, and their noise is not independent.
    """
    keys = ("kind", "columns", "intercept", "normalisation", "privacy_unit", "by")
    both = first, second
    penalties = {manifest.mechanism.get("penalty") for manifest in both}
    return (
        first.dataset.id == second.dataset.id
        and first.publication.has_matrix
        and all(getattr(first, key) == getattr(second, key) for key in keys)
        and not any(each.is_whitened for each in both)
        and not same_series(first, second)
        and len(penalties) == 1
    )


def change(later: Evidence, earlier: Evidence) -> Change:
    """The difference of two comparable releases; see `comparable`."""
    pair, p = (later, earlier), len(later.raw)
    noises = [release_noise(each) for each in pair]
    variances = [np.maximum(noise.variance(p), 0.0) for noise in noises]
    of_divisors = [term for noise in noises for term in noise.rank_one]
    shared = np.array([np.sqrt(max(c, 0.0)) * matrix for c, matrix in of_divisors])
    return Change(
        later.raw - earlier.raw,
        np.sqrt(sum(variances)),
        all(_is_gaussian(each) for each in pair),
        shared.reshape(-1, p, p),
    )


def _is_gaussian(evidence: Evidence) -> bool:
    known = evidence.divisor == "public" or (
        evidence.divisor == "noisy" and evidence.rows > _LEAST_ROWS * evidence.rows_sd
    )
    return known and evidence.law.family in _INDEPENDENT
