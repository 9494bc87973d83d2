"""Principal components of a noisy second moment: eigenvalues, shares and loadings with errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BeforeValidator

from gramercy.common.metric import congruence
from gramercy.common.similar_names import most_similar_first
from gramercy.estimators.estimator import Estimate, Estimator, names_of
from gramercy.estimators.intervals import Level
from gramercy.estimators.noise.draws import draw_noise, stream
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.entry_covariance import EntryCovariance
from gramercy.estimators.uncertainty.jackknife import (
    describe_sampling,
    has_jackknife,
    jackknife,
    student_quantile,
)
from gramercy.estimators.uncertainty.moment_errors import (
    completed_moments,
    correlations,
    has_intercept,
    inverse_shares,
    moment_errors,
    tail_factor,
)
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec

Array = NDArray[np.float64]
Scale = Literal["correlation", "covariance"]

_CLEAR = 3.0  # standard deviations of the noise that a variance must exceed to be divided by


@dataclass(frozen=True)
class ColumnMoments:
    """Moments about the means of the columns in use; q of them."""

    # indices of these columns among the columns of the release without the intercept, shape (q,)
    used: NDArray[np.intp]
    # indices of the columns that were left out because noise hides their variances
    lost: NDArray[np.intp]
    matrix: Array  # as released, in squared units of `scale`; may be indefinite. Shape (q, q).
    # L of the first-order error L E L^T, shape (q, p), for the noise E of the release
    linear: Array
    # covariances of the entries of `matrix` by noise and by sampling, of rows of the assumed law.
    # For correlations, those of the second moments of columns divided by their released standard
    # deviations.
    noise: EntryCovariance
    sampling: EntryCovariance
    # by which columns were divided: their released standard deviations, or 1; shape (q,)
    divisor: Array
    scale: Scale  # what the matrix is

    def of(self, evidence: Evidence, matrix: Array) -> Array:
        """The same moments of another second moment of all columns, such as that of some folds.

        NaN where they are not defined.
        """
        moments = _in_units(evidence, matrix)[np.ix_(self.used, self.used)]
        return correlations(moments) if self.scale == "correlation" else moments


def column_moments(evidence: Evidence, wanted: Sequence[int], scale: Scale) -> ColumnMoments:
    """Moments of the wanted columns, in their own units if the release determines these.

    `wanted`: indices among the columns without the intercept. `scale`: ``covariance``, or
    ``correlation``: then columns whose variance is within three standard deviations of its noise
    are left out.
    """
    errors = moment_errors(evidence)
    chosen = np.array(wanted, dtype=np.intp)
    units = np.diag(inverse_shares(evidence)) * _scales(evidence, evidence.raw)[:, None]
    moments = _in_units(evidence, evidence.raw)
    known = np.isfinite(np.diag(moments)) & (inverse_shares(evidence) > 0)
    known &= not errors.weight_lost
    if scale == "correlation" and known.any():
        deviation = np.sqrt(np.maximum(np.diag(errors.mapped(units).variances()[1]), 0.0))
        known &= np.diag(moments) > np.maximum(_CLEAR * deviation, 0.0)
    used, lost = chosen[known[chosen]], chosen[~known[chosen]]
    matrix = moments[np.ix_(used, used)]
    divisor = np.ones(len(used))
    if scale == "correlation":
        divisor = np.sqrt(np.diag(matrix))
        matrix = correlations(matrix)
    mapped = errors.mapped(units[used] / divisor[:, None])
    return ColumnMoments(
        used, lost, matrix, mapped.linear, mapped.noise, mapped.sampling, divisor, scale
    )


def functional_variance(covariance: EntryCovariance, weights: Array) -> float:
    """Variance of sum_ij A_ij S_ij for symmetric weights A; shape (q, q)."""
    total = 0.0
    for left, right in covariance.products:
        total += 2 * float(((weights @ left) * (right @ weights).T).sum())
    for c, matrix in covariance.rank_one:
        total += c * float((weights * matrix).sum()) ** 2
    for c, linear in covariance.quartic:
        total += c * float((((weights @ linear) * linear).sum(axis=0) ** 2).sum())
    return max(total, 0.0)


def _in_units(evidence: Evidence, matrix: Array) -> Array:
    """Moments about the means in the columns' own units, or else in those of the release."""
    scales = _scales(evidence, matrix)
    return completed_moments(evidence, matrix) * np.outer(scales, scales)


def _scales(evidence: Evidence, matrix: Array) -> Array:
    """Factors to the columns' own units; 1 if the release does not determine these."""
    units = table_units(evidence)
    if units is None:
        return np.ones(len(inverse_shares(evidence)))
    weight = matrix[0, 0] if matrix[0, 0] > 0 else np.nan
    scales: Array = units.scale / np.sqrt(weight)
    return scales


# Principal components with intervals: which of them are above the noise, and how sure they are.
#
# With l_k and u_k the eigenvalues and eigenvectors of the noisy matrix C of q columns,
#
# * components are above the noise if l_k exceeds the 95 % quantile of its largest eigenvalue in the
#   directions of u_k and of all u_j of smaller l_j;
# * noise raises eigenvalues. With v_k = sum_j Var(u_k^T N u_j) for the noise N (q + 1 times the
#   variance of an entry, for Gaussian noise), the corrected one is lambda = (l + sqrt(l^2 - 4 v_k))
#   / 2;
# * shares are over the released trace, which is unbiased. They are linear in C to first order, so
#   noise and sampling give their standard error exactly: for covariances that of u^T C u / tr C,
#   which is 2 t^2 (1 - 2 s + q s^2) / (tr C)^2 for Gaussian noise of deviation t;
# * eigenvectors mix where eigenvalues are close. With s_kj^2 = Var(u_k^T (C - E C) u_j) by noise
#   and sampling, a_k = sqrt(sum_j s_kj^2 / ((l_k - l_j)^2 + s_kj^2)) is about the sine of the angle
#   between u_k and its true direction. Loadings are unknown where a_k > 0.3. Where a_k > 0.6,
#   single shares are unknown too, and the component is tied to its neighbour: the share of the
#   group is known.
#
# Intervals are widened by a bound on the bias of second order,
# sum_j s_kj^2 / max(|l_k - l_j|, s_kj) / 2 over the members k of a group and all other j.

MOST_MIXING, MOST_TIED = 0.3, 0.6  # of the resolution a_k, for loadings and for single shares
_ROUNDING = 1e-10  # relative to the largest eigenvalue
_MOST, _FEWEST, _ENOUGH, _LARGE = 400, 30, 200, 8  # numbers of draws
_SMALL, _SIMULATED = 40, 300  # numbers of columns
_NORMAL_95 = 1.645


@dataclass(frozen=True)
class Group:
    """A component, or neighbouring components whose single shares are unknown."""

    # index of the first component, and the number of components
    first: int
    size: int
    # of the variance of all columns in use, with an interval
    share: float
    standard_error: float
    lower: float
    upper: float
    resolution: float  # the largest a_k within the group, without its other members


@dataclass(frozen=True)
class PrincipalComponents:
    """Principal components of q columns; k of them are above the noise."""

    eigenvalues: Array  # as released, largest first; shape (q,)
    corrected: Array  # without the mean effect of noise, shape (q,); NaN for those within the noise
    # the largest eigenvalue that noise alone has in 95 % of releases, apart from the directions of
    # the components above it
    edge: float
    groups: tuple[Group, ...]  # the known shares, in order
    resolution: Array  # a_k of each component, shape (k,)
    # eigenvectors in columns; NaN where they are unknown. The largest loading is positive. Shape
    # (q, k).
    loadings: Array
    loading_errors: Array  # their standard errors, shape (q, k)
    total: float  # the released variance of all columns


def principal_components(
    evidence: Evidence, moments: ColumnMoments, level: float
) -> PrincipalComponents:
    """Components of the columns in use; `level` is the confidence level of the intervals."""
    q = len(moments.used)
    if q < 2:  # one column is its own component
        own, none = np.diag(moments.matrix), np.empty((q, 0))
        total = float(own.sum())
        return PrincipalComponents(own, own * np.nan, 0.0, (), np.empty(0), none, none, total)
    values, vectors = (each[..., ::-1] for each in np.linalg.eigh(moments.matrix))
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(q)]
    vectors = vectors * np.where(largest < 0, -1.0, 1.0)
    total = float(np.trace(moments.matrix))
    number, edge = components_above(evidence, vectors.T @ moments.linear, values)
    noise, sampling = (
        np.maximum(each.transformed(vectors.T).variance(q), 0.0)
        for each in (moments.noise, moments.sampling)
    )
    variances = noise + tail_factor(evidence) * sampling
    folds = jackknife(evidence, lambda each: vectors.T @ moments.of(evidence, each) @ vectors)
    if folds is not None and np.isfinite(folds.standard_error).all():
        variances = np.maximum(folds.standard_error**2, noise)
    raised = noise.sum(axis=1)
    corrected = (values + np.sqrt(np.maximum(values**2 - 4 * raised, 0.0))) / 2
    corrected[number:] = np.nan
    gaps = np.subtract.outer(values, values)
    mixing = variances / np.where(variances > 0, gaps**2 + variances, 1.0)
    np.fill_diagonal(mixing, 0.0)
    if not total > 0:
        number = 0
    resolution = np.sqrt(mixing[:number].sum(axis=1))
    spectrum = _Spectrum(evidence, moments, values, vectors, corrected, variances, total)
    # Errors of loadings are s_kj / (l_k - l_j); none for j = k and where eigenvalues are equal.
    squares = gaps**2
    np.fill_diagonal(squares, np.inf)
    over = np.divide(variances, squares, out=np.zeros_like(squares), where=squares > 0)
    errors = np.sqrt(vectors**2 @ over[:number].T)
    return PrincipalComponents(
        values,
        corrected,
        edge,
        spectrum.groups(_grouped(mixing, number), mixing, level),
        resolution,
        np.where(resolution > MOST_MIXING, np.nan, vectors[:, :number]),
        np.where(resolution > MOST_MIXING, np.nan, errors),
        total,
    )


def _grouped(mixing: Array, number: int) -> list[tuple[int, int]]:
    """First index and size of each group among the components above the noise.

    A group grows towards the neighbour with which it mixes most, until a_k of its members without
    each other is at most 0.6. Groups that would contain components within the noise are left out,
    and so is the group of all components, whose share is 1.
    """
    groups: list[tuple[int, int]] = []
    q, start = len(mixing), 0
    while start < number:
        first, last = start, start + 1
        while _mixed(mixing, first, last) > MOST_TIED and last - first < q:
            before = mixing[first:last, first - 1].sum() if first else -1.0
            after = mixing[first:last, last].sum() if last < q else -1.0
            if before > after:
                first -= 1
            else:
                last += 1
        while groups and groups[-1][1] > first:  # an earlier group is part of this one
            first = min(first, groups.pop()[0])
        groups.append((first, last))
        start = last
    return [(i, j - i) for i, j in groups if j <= number and j - i < q]


def _mixed(mixing: Array, first: int, last: int) -> float:
    """The largest a_k of the members of a group, without the other members."""
    within = mixing[first:last]
    outside = within.sum(axis=1) - within[:, first:last].sum(axis=1)
    return math.sqrt(max(float(outside.max()), 0.0))


@dataclass(frozen=True)
class _Spectrum:
    evidence: Evidence
    moments: ColumnMoments
    values: Array
    vectors: Array
    corrected: Array
    variances: Array
    total: float

    def groups(
        self, sizes: list[tuple[int, int]], mixing: Array, level: float
    ) -> tuple[Group, ...]:
        """The share of each group with its interval."""
        if not sizes:
            return ()
        weights = [self._weights(first, first + size) for first, size in sizes]
        errors = self._errors(sizes, weights)
        freedom = len(self.evidence.folds) - 1 if has_jackknife(self.evidence) else math.inf
        z = student_quantile(level, freedom)
        found = []
        for (first, size), error in zip(sizes, errors, strict=True):
            share = float(self.corrected[first : first + size].sum()) / self.total
            reach = z * error + self._bias(first, first + size) / self.total
            lower, upper = max(share - reach, 0.0), min(share + reach, 1.0)
            resolution = _mixed(mixing, first, first + size)
            found.append(Group(first, size, min(share, 1.0), error, lower, upper, resolution))
        return tuple(found)

    def _weights(self, first: int, last: int) -> Array:
        """A of the share's first-order error, sum_ij A_ij E_ij for errors E of the moments."""
        inside = self.vectors[:, first:last]
        projection = inside @ inside.T
        if self.moments.scale == "correlation":
            # R = D^-1/2 C D^-1/2 has the error E - (diag(E) R + R diag(E)) / 2, and its trace none.
            weights = projection - np.diag(inside**2 @ self.values[first:last])
        else:
            share = float(self.values[first:last].sum()) / self.total
            weights = projection - share * np.eye(len(projection))
        return weights / self.total

    def _errors(self, sizes: list[tuple[int, int]], weights: list[Array]) -> list[float]:
        """Standard errors of the shares: by the jackknife, or for rows of the assumed law."""
        noise = np.array([functional_variance(self.moments.noise, each) for each in weights])
        folds = jackknife(self.evidence, lambda matrix: self._shares(matrix, sizes))
        if folds is not None:
            known = np.where(np.isfinite(folds.standard_error), folds.standard_error, 1.0)
            return [float(each) for each in np.maximum(known, np.sqrt(noise))]
        law = self.moments.sampling
        sampling = np.array([functional_variance(law, each) for each in weights])
        return [float(each) for each in np.sqrt(noise + tail_factor(self.evidence) * sampling)]

    def _shares(self, matrix: Array, sizes: list[tuple[int, int]]) -> Array:
        """Shares of the variance in the released directions, for another second moment."""
        moments = self.moments.of(self.evidence, matrix)
        along = ((moments @ self.vectors) * self.vectors).sum(axis=0)
        shares = [along[first : first + size].sum() for first, size in sizes]
        result: Array = np.array(shares) / np.trace(moments)
        return result

    def _bias(self, first: int, last: int) -> float:
        outside = np.ones(len(self.values), dtype=bool)
        outside[first:last] = False
        variances = self.variances[first:last][:, outside]
        gaps = np.abs(np.subtract.outer(self.values[first:last], self.values[outside]))
        least = np.maximum(gaps, np.sqrt(variances))
        return float((variances / np.where(variances > 0, least, 1.0)).sum()) / 2


def components_above(evidence: Evidence, linear: Array, values: Array) -> tuple[int, float]:
    """The number of components above the noise, and the edge that the next one does not exceed.

    `linear`: L of the first-order error L E L^T in the directions of the components, for the noise
    E of a release; shape (q, p). `values`: their eigenvalues, largest first.

    Component k is above it if its eigenvalue exceeds the 95 % quantile of the largest eigenvalue of
    the noise in the directions of this and of all smaller components: the noise may be larger in
    those of the components before. Directions in which the rows do not vary exceed it in 5 % of
    releases at most.
    """
    least = _ROUNDING * float(np.abs(values).max(initial=0.0))
    first = number = 0
    edge = noise_edge(evidence, linear)
    while number < len(values) and values[number] > max(edge, least):
        # The edge of fewer directions is not larger.
        number = first + int(np.argmin(np.append(values[first:] > max(edge, least), False)))
        if number < len(values):
            first, edge = number, noise_edge(evidence, linear[number:])
    return number, edge


def noise_edge(evidence: Evidence, linear: Array) -> float:
    """The 95 % quantile of the largest eigenvalue of L E L^T, for the noise E of a release.

    `linear`: L, shape (q, p).

    Draws have a public seed. From fewer than 200 draws, it is the mean plus 1.645 standard
    deviations. Eigenvalues of the matrix without noise are not negative, so of a direction in which
    the rows do not vary, noise produces more than this in 5 % of releases at most.
    """
    if not evidence.law.has_noise or not len(linear):
        return 0.0
    source, moment = stream(), evidence.repaired
    draws = (draw_noise(source, evidence, moment) for _ in range(_draws(len(moment))))
    largest = np.array([np.linalg.eigvalsh(congruence(linear, each))[-1] for each in draws])
    if len(largest) >= _ENOUGH:
        return float(np.quantile(largest, 0.95))
    return float(largest.mean() + _NORMAL_95 * largest.std(ddof=1))


def _draws(p: int) -> int:
    """Number of matrices to draw in about a second."""
    if p > _SIMULATED:
        return _LARGE
    return min(_MOST, max(_FEWEST, int(_MOST * (_SMALL / p) ** 1.5)))


class Components(Estimator):
    """``pca``: principal components that are above the noise, with intervals of their shares.

    Parameters
    ----------
    scale
        ``correlation``: of columns divided by their standard deviations; or ``covariance``: of
        columns in their own units. The former suits columns in different units.
    columns
        Names of columns of the table: a list, or a text with commas. Default: all numeric columns,
        or all columns if there are none.
    level
        Confidence level of the intervals.

    Notes
    -----
    Tables: ``eigenvalues``, as released and corrected for noise; ``shares`` of the variance, of
    each component or of components that cannot be separated, with intervals; ``loadings``, unknown
    (NaN) where noise or sampling mixes a component with others; ``columns``, with the means and the
    standard deviations by which they are divided. In releases without an intercept, moments are
    about the public centres; of unit rows, components are those of directions.

    Coverage of 95 % intervals of shares in simulations: docs/analyses/components.md.
    """

    name: Literal["pca"] = "pca"
    scale: Scale = "correlation"
    columns: Annotated[tuple[str, ...], BeforeValidator(names_of)] | None = None
    level: Level = 0.95

    def check(self, spec: ReleaseSpec) -> None:
        known = tuple(column.name for column in spec.columns)
        check_names(self.columns, known)

    def fit(self, evidence: Evidence) -> Estimate:
        """Raises RequestError if one of `columns` is not a column of the release."""
        names, wanted = names_of_columns(evidence), wanted_columns(evidence, self.columns)
        moments = column_moments(evidence, wanted, self.scale)
        found = principal_components(evidence, moments, self.level)
        tables = {
            "eigenvalues": _eigenvalues(found),
            "shares": _shares(found, describe_sampling(evidence)),
            "loadings": _loadings(found, [names[k] for k in moments.used]),
            "columns": _columns(evidence, moments, names),
        }
        tuning = {
            "level": self.level,
            "noise_edge": found.edge,
            "total_variance": found.total,
            "components": float(len(found.resolution)),
            "left_out": float(len(moments.lost)),
        }
        return Estimate("components", {}, tuning, tables)


def wanted_columns(evidence: Evidence, columns: tuple[str, ...] | None) -> list[int]:
    """Indices, without the intercept, of these columns of the table; all numeric ones by default.

    All columns if none is numeric. Raises RequestError if the release does not have a column.
    """
    names, facts = names_of_columns(evidence), evidence.columns[int(has_intercept(evidence)) :]
    sources = [column.name for column in facts if column is not None] or names
    check_names(columns, tuple(dict.fromkeys(sources)))
    if columns is None:
        numeric = [k for k, each in enumerate(facts) if not isinstance(each, LevelsFacts)]
        return numeric or list(range(len(names)))
    return [k for k, source in enumerate(sources) if source in columns]


def check_names(wanted: tuple[str, ...] | None, known: tuple[str, ...]) -> None:
    """Refuse names of columns that a release does not have: RequestError."""
    unknown = tuple(name for name in wanted or () if name not in known)
    if unknown:
        raise families.ANALYSIS(
            "'columns' names columns that the release does not have: {unknown}.",
            "Its columns, most similar first: {known}.",
            unknown=unknown,
            known=most_similar_first(unknown[0], known),
        )


def names_of_columns(evidence: Evidence) -> list[str]:
    """Names of the matrix columns without the intercept."""
    offset = int(has_intercept(evidence))
    names = evidence.names or tuple(f"x{k}" for k in range(len(evidence.raw)))
    return list(names[offset:])


def _eigenvalues(found: PrincipalComponents) -> pd.DataFrame:
    number, q = len(found.resolution), len(found.eigenvalues)
    resolution = np.concatenate([found.resolution, np.full(q - number, np.nan)])
    above = np.arange(q) < number
    return pd.DataFrame(
        {
            "component": np.arange(1, q + 1),
            "eigenvalue": found.eigenvalues,
            "corrected": found.corrected,
            "above_noise": pd.Series(np.where(above, "yes", "no"), dtype="str"),
            "resolution": resolution,
        }
    )


def _shares(found: PrincipalComponents, law: str) -> pd.DataFrame:
    ends = [(g.first + 1, g.first + g.size) for g in found.groups]
    labels = [str(i) if i == j else f"{i} to {j}" for i, j in ends]
    return pd.DataFrame(
        {
            "components": pd.Series(labels, dtype="str"),
            "first": np.array([g.first + 1 for g in found.groups], dtype=np.int64),
            "size": np.array([g.size for g in found.groups], dtype=np.int64),
            "share": np.array([g.share for g in found.groups]),
            "standard_error": np.array([g.standard_error for g in found.groups]),
            "lower": np.array([g.lower for g in found.groups]),
            "upper": np.array([g.upper for g in found.groups]),
            "resolution": np.array([g.resolution for g in found.groups]),
            "law": pd.Series([law] * len(found.groups), dtype="str"),
        }
    )


def _loadings(found: PrincipalComponents, names: list[str]) -> pd.DataFrame:
    q, number = found.loadings.shape
    return pd.DataFrame(
        {
            "component": np.repeat(np.arange(1, number + 1), q),
            "column": pd.Series(names * number, dtype="str"),
            "loading": found.loadings.T.ravel(),
            "standard_error": found.loading_errors.T.ravel(),
        }
    )


def _columns(evidence: Evidence, moments: ColumnMoments, names: list[str]) -> pd.DataFrame:
    """The columns in use, then those that were left out."""
    units, chosen = table_units(evidence), np.concatenate([moments.used, moments.lost])
    mean = np.full(len(names), np.nan)
    if units is not None:
        mean = units.moments(evidence.raw).mean
    divisor = np.concatenate([moments.divisor, np.full(len(moments.lost), np.nan)])
    used = np.arange(len(chosen)) < len(moments.used)
    return pd.DataFrame(
        {
            "column": pd.Series([names[k] for k in chosen], dtype="str"),
            "mean": mean[chosen],
            "divisor": divisor,
            "used": pd.Series(np.where(used, "yes", "no"), dtype="str"),
        }
    )
