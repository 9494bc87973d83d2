"""The evidence of a release: everything that an estimator may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.noise import Family, NoiseLaw
from gramercy.schemas.request_parts import TailFacts

Array = NDArray[np.float64]
Divisor = Literal["public", "noisy", "itself"]
PooledRows = Literal["same", "disjoint"]  # whether all releases of a pool are of the same rows


@dataclass(frozen=True)
class Fold:
    """One of several disjoint parts of the rows, published with independent noise.

    Parameters
    ----------
    moment
        Second moment of the part, minus the mean of the noise; shape (p, p).
    rows
        Public or noisy number of its rows.
    stratum
        Number of the table that it is a part of, if several tables are pooled.
    """

    moment: Array
    rows: float
    stratum: int = 0


@dataclass(frozen=True)
class NoiseTerm:
    """A part L E L^T of the noise of a pool: the noise E of one release in common units.

    Parameters
    ----------
    law
        Noise law of E.
    linear
        L, shape (p, width of E).
    """

    law: NoiseLaw
    linear: Array

    @property
    def variance(self) -> Array:
        """Variance of every entry of L E L^T; shape (p, p)."""
        white, squares = self.linear @ self.linear.T, self.linear**2
        variance = np.outer(np.diag(white), np.diag(white)) + white**2
        variance *= self.law.sd_off_diagonal**2
        if not self.law.rotation_invariant:
            excess = self.law.sd_diagonal**2 - 2 * self.law.sd_off_diagonal**2
            variance += excess * (squares @ squares.T)
        return variance


_INDEPENDENT = {"gaussian-iid", "laplace"}


def noise_sum(terms: Sequence[NoiseTerm], p: int) -> tuple[NoiseLaw, tuple[NoiseTerm, ...]]:
    """The law of the sum, and the terms that are needed to describe it.

    `terms`: independent parts of the noise. Returns the law, and no terms if the law has the exact
    covariance of all entries. Otherwise the law has the root mean square of the variances, on the
    diagonal and off it.

    The sum of matrices of one family is not of this family, unless it is Gaussian or Wishart. Its
    tails are lighter than those of the family, which is kept, so that intervals are at least as
    wide as needed. Degrees of freedom are those of Satterthwaite.
    """
    if not terms:
        return NoiseLaw.none(), ()
    variances = [term.variance for term in terms]
    variance = np.sum(variances, axis=0)
    off = ~np.eye(p, dtype=bool)
    diagonal = float(np.diag(variance).mean())
    shares = [float(np.diag(each).mean()) for each in variances]
    # The Gaussian family of all terms, or else the largest term's that is not Gaussian.
    order = sorted(range(len(terms)), key=lambda k: -shares[k])
    families: list[Family] = [terms[k].law.family for k in order]
    known = [(share, term.law.dof) for share, term in zip(shares, terms, strict=True)]
    inverse = sum(share**2 / dof for share, dof in known if dof is not None)
    law = NoiseLaw(
        family=next((each for each in families if not each.startswith("gaussian")), families[0]),
        sd_diagonal=diagonal**0.5,
        sd_off_diagonal=float(variance[off].mean()) ** 0.5 if p > 1 else (diagonal / 2) ** 0.5,
        dof=sum(shares) ** 2 / inverse if inverse > 0 else None,
    )
    kinds = {term.law.family in _INDEPENDENT for term in terms}
    if len(kinds) == 1 and all(
        each.linear.shape == (p, p) and (each.linear == each.linear[0, 0] * np.eye(p)).all()
        for each in terms
    ):
        return law, ()
    return law, tuple(terms)


@dataclass(frozen=True)
class PoolPart:
    """One release of a pool.

    Parameters
    ----------
    release
        DATASET/RELEASE.
    weight
        Its weight; those of all parts add up to 1.
    rows
        Public or noisy number of its rows.
    noise, sampling
        Typical standard deviation of its noise and of its sampling error in an entry of the matrix,
        in the units of the pool: the geometric mean over all pairs of columns.
    """

    release: str
    weight: float
    rows: float
    noise: float
    sampling: float


@dataclass(frozen=True)
class PooledEvidence:
    """The evidence of one release within a pool; or of a pool, of all releases of one table.

    Parameters
    ----------
    evidence
        In its own units.
    weight
        Its weight; those of the pool add up to 1.
    name
        DATASET/RELEASE, if it is known.
    """

    evidence: Evidence
    weight: float
    name: str = ""


@dataclass(frozen=True)
class LostMatrix:
    """The second moment of what clipping took away: of (1 - w) y y^T, where y is a row z.

    Parameters
    ----------
    matrix
        Mean over rows in scaled units, with the intercept first; symmetric, shape (p, p).
    sd
        Standard deviation of its noise off the diagonal; on it, sqrt(2) times as large.
    intercept
        What y has in place of the intercept; 0 without one.
    cut
        Largest Frobenius norm of a row's contribution, in squares of the radius.
    rows_per_unit
        Mean number of rows that are clipped together, by the contract: 1, or that of a person.
    """

    matrix: Array
    sd: float
    intercept: float
    cut: float
    rows_per_unit: float = 1.0


@dataclass(frozen=True)
class MissingMatrix:
    """Which cells are missing together, and what is in the rows where they are.

    Parameters
    ----------
    together
        Share of rows in which the cells of two columns are missing, as far as rows with very many
        missing cells were not cut; symmetric, shape (holes, holes). On the diagonal, of one column.
    products
        Mean of a scaled column, the intercept first, times the indicator of a missing cell, over
        the rows or persons of `raw`, clipped as there; shape (p, holes).
    columns
        The matrix column of each column with missing cells.
    sd, products_sd
        Standard deviations of the noise of `together` off the diagonal, where on it it is sqrt(2)
        times as large; and of `products`.
    """

    together: Array
    products: Array
    columns: tuple[int, ...]
    sd: float
    products_sd: float


@dataclass(frozen=True)
class SeriesSteps:
    """The steps of a cumulative series whose rows a matrix is of.

    Parameters
    ----------
    series
        What identifies the series.
    draws
        Digests of the releases of all steps up to the last one, from which the matrix was decoded.
    first, last
        Its steps, as a half-open range from 0.
    total
        Number of steps of the series, T.
    group
        Name of the group of rows; None for all rows.
    """

    series: str
    draws: tuple[str, ...]
    first: int
    last: int
    total: int
    group: str | None = None


@dataclass(frozen=True)
class Evidence:
    """What a release has published: everything that an estimator may use.

    Parameters
    ----------
    raw
        Released second moment, minus the mean of the noise; symmetric, shape (p, p), possibly
        indefinite. Thresholds, intervals and tests use it, because its noise law is known.
    repaired
        Best positive semidefinite form of `raw`: denoised, or else projected; shape (p, p).
    law
        Noise law in the units of `raw`.
    rows
        Public or noisy number of rows, or of persons if they are protected.
    names
        Names of the p columns; may be empty.
    columns
        Table column of each matrix column, None for the intercept; may be empty.
    unit
        Whether rows were divided by their own length.
    folds
        Disjoint parts of the rows, if the release has them; `raw` is their weighted average.
    trace
        Public bound on the trace of the matrix without noise: 1 for rows of the unit ball.
    divisor
        Divisor of the matrix: a ``public`` number, a ``noisy`` one, or the noisy trace of the
        matrix ``itself``.
    rows_sd
        Standard deviation of a noisy number of rows.
    radius
        Radius at which rows were clipped, in scaled units; None if they were not. Of rows that were
        clipped in the metric of a pilot matrix, the unit of `raw`.
    present
        Published share of rows with a value, of each matrix column: 1 for the intercept and for
        levels. Empty if unknown. Missing cells are zero in scaled units.
    histograms
        Published noisy histograms of the columns and of the rows' lengths, if there are any.
    terms
        Of a pool of releases in different units, the exact noise of `raw` as a sum; `law` then has
        its root mean squares. Empty if the noise has the law `law`.
    parts
        The releases of a pool; empty for a single release.
    groups
        Name and evidence of every group of rows, if the release has groups; `raw` is of all rows.
    lost
        What clipping took away from `raw`, if it is published.
    signs
        Columns of which only is published which cells differ from the value that nearly all have.
    rows_each
        Public mean number of rows of one of the `rows`: more than 1 for persons only.
    persons
        Whether `rows` counts persons, who have all of their rows in `raw` and one in histograms.
    size
        Of a group of rows, their number by the sizes of all groups, and the deviation of its noise.
    missing
        Which cells are missing together, if it is published.
    bounds
        Declared bounds of each matrix column; None for the intercept, for levels, and for columns
        without bounds. Empty if unknown.
    declared
        The number of rows or persons that the contract states, if it is the divisor of the matrix.
    tails
        What is beyond the bounds in use by an earlier release; see `ScalingFacts.tails`.
    of_all
        Of a group of rows, the histograms of the columns of all rows.
    pooled
        Evidence and weight of each release of a pool, or of each table of several ones.
    metric_radius
        Radius at which rows were clipped in the metric of a pilot matrix; None if they were not
        clipped in it.
    same_rows
        Whether all of `pooled` are of the same rows; otherwise they have no row in common.
    steps
        The steps of a cumulative series whose rows these are; None without a series.
    """

    raw: Array
    repaired: Array
    law: NoiseLaw
    rows: float
    names: tuple[str, ...] = ()
    columns: tuple[ColumnFacts | LevelsFacts | None, ...] = ()
    unit: bool = True
    folds: tuple[Fold, ...] = ()
    trace: float = 1.0
    divisor: Divisor = "public"
    rows_sd: float = 0.0
    radius: float | None = None
    present: tuple[float, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    terms: tuple[NoiseTerm, ...] = ()
    parts: tuple[PoolPart, ...] = ()
    groups: tuple[tuple[str, Evidence], ...] = ()
    lost: LostMatrix | None = None
    signs: tuple[str, ...] = ()
    rows_each: float = 1.0
    persons: bool = False
    size: tuple[float, float] | None = None
    missing: MissingMatrix | None = None
    bounds: tuple[tuple[float, float] | None, ...] = ()
    declared: float | None = None
    tails: Mapping[str, TailFacts] = field(default_factory=dict)
    of_all: tuple[Histogram, ...] = ()
    pooled: tuple[PooledEvidence, ...] = ()
    same_rows: bool = False
    metric_radius: float | None = None
    steps: SeriesSteps | None = None

    @property
    def counted(self) -> tuple[float, float] | None:
        """Number of rows or persons by all published counts, and the deviation of its noise.

        The totals of all histograms, weighted by inverse variance; None without histograms.
        """
        weights = [1 / (each.count.size * each.sd**2) for each in self.histograms if each.sd]
        totals = [float(each.count.sum()) for each in self.histograms if each.sd]
        if not weights:
            return None
        return float(np.average(totals, weights=weights)), float(np.sum(weights)) ** -0.5

    @property
    def has_missing_matrix(self) -> bool:
        """Whether it is published which cells are missing together, by all releases of a pool."""
        if self.pooled:
            return all(each.evidence.has_missing_matrix for each in self.pooled)
        return self.missing is not None

    @property
    def marginals(self) -> tuple[Histogram, ...]:
        """The published histogram of every table column; empty if there are none."""
        return last_stage(self.histograms)

    def of_group(self, name: str | None) -> Evidence:
        """The evidence of one group of rows; None for all rows.

        Raises
        ------
        KeyError
            If there is no such group.
        """
        return self if name is None else dict(self.groups)[name]

    @property
    def lengths(self) -> Histogram | None:
        """The published histogram of the lengths of scaled rows, if there is one."""
        return self._of_lengths(ROW_LENGTHS)

    @property
    def turned_lengths(self) -> Histogram | None:
        """That of the lengths of rows in the metric of a pilot matrix, if there is one."""
        return self._of_lengths(TURNED_LENGTHS)

    def _of_lengths(self, name: str) -> Histogram | None:
        found = [each for each in self.histograms if each.column == name]
        return found[-1] if found else None

    def clips(self, length: float) -> bool:
        """Whether a scaled row of this length may have been clipped."""
        if self.metric_radius is not None:
            return True
        return self.radius is None or length > self.radius

    @property
    def deviations(self) -> Array:
        """Standard deviation of the noise on every entry of `raw`, shape (p, p).

        For noisy rows it depends on the matrix itself, and is approximated from `repaired`.
        """
        if self.terms:
            deviations: Array = np.sqrt(sum(term.variance for term in self.terms))
            return deviations
        return self.law.row_deviations(np.diag(self.repaired), self.rows)

    @property
    def typical_noise(self) -> float:
        """Standard deviation of the noise off the diagonal; for noisy rows, root mean square."""
        p = len(self.raw)
        if (self.law.cell_variance is None and not self.terms) or p == 1:
            return self.law.sd_off_diagonal
        return float(np.sqrt(np.mean(self.deviations[np.triu_indices(p, 1)] ** 2)))


@dataclass(frozen=True)
class ReleaseEvidence:
    """The evidence of a release with its name and its public facts; releases are pooled by these.

    Parameters
    ----------
    name
        DATASET/RELEASE.
    sha256
        Digest of its SHA256SUMS, which names its exact content.
    facts
        Its public facts.
    evidence
        What it has published.
    """

    name: str
    sha256: str
    facts: ReleaseSpec
    evidence: Evidence


# In place of a column's name: of scaled rows, and of rows in the metric of the pilot matrix.
ROW_LENGTHS = "(row lengths)"
TURNED_LENGTHS = "(row lengths in the metric)"
ALL_LENGTHS = (ROW_LENGTHS, TURNED_LENGTHS)


@dataclass(frozen=True)
class Histogram:
    """A noisy histogram of a table column, or of the lengths of scaled rows.

    Parameters
    ----------
    stage
        Stage of the release's histograms, from 1. The last stage has the published marginals, and
        the row lengths have a stage of their own after it.
    column
        Name of the table column, or one of `ALL_LENGTHS`.
    lower, upper
        Bounds of each bin, shape (bins,): a bin has the cells from `lower` up to, but not
        including, `upper`. NaN for a bin of a level, for the last bin of a column, which counts
        missing cells, and for an unbounded end.
    level
        The level of each bin, as text; None for the other bins.
    count
        Noisy number of rows or persons in each bin, shape (bins,); may be negative.
    sd
        Standard deviation of the noise of a count.
    """

    stage: int
    column: str
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    level: tuple[str | None, ...]
    count: NDArray[np.int64]
    sd: float

    @classmethod
    def of_lengths(
        cls, stage: int, name: str, edges: Array, count: NDArray[np.int64], sd: float
    ) -> Histogram:
        """A histogram of lengths, of which the last bin is unbounded."""
        return cls(
            stage, name, edges, np.append(edges[1:], np.nan), (None,) * count.size, count, sd
        )


_APART = 1e-9


def as_published(
    histograms: Sequence[Histogram], columns: Sequence[ColumnFacts | LevelsFacts]
) -> tuple[Histogram, ...]:
    """The histograms with bins of the values in the matrix: those of ranked numbers have scores.

    Edges that stages have in common stay equal, and others stay apart.
    """
    found = list(histograms)
    for facts in columns:
        own = [k for k, each in enumerate(found) if each.column == facts.name]
        if isinstance(facts, LevelsFacts) or not own:
            continue
        edges = np.concatenate([[*found[k].lower, *found[k].upper] for k in own])
        counted = np.unique(edges[np.isfinite(edges)])
        values = facts.published(counted)
        if values is counted:
            continue
        for k in range(1, len(values)):
            values[k] = max(values[k], values[k - 1] + _APART)
        known = dict(zip(counted.tolist(), values.tolist(), strict=True))
        for k in own:
            lower, upper = (
                np.array([known.get(edge, np.nan) for edge in each.tolist()])
                for each in (found[k].lower, found[k].upper)
            )
            found[k] = replace(found[k], lower=lower, upper=upper)
    return tuple(found)


def last_stage(histograms: Sequence[Histogram]) -> tuple[Histogram, ...]:
    """The marginals among the histograms of a release: those of all columns in the last stage."""
    columns = [each for each in histograms if each.column not in ALL_LENGTHS]
    return tuple(each for each in columns if each.stage == columns[-1].stage)
