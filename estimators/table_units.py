"""Means, covariances and correlations in the columns' own units, from a matrix with an intercept.

With a row z = (1, (x - centre) / scale, indicators of levels), missing cells 0 in z, and its weight
w = min(1, r / |z|)^2, the released matrix S estimates E[w z z^T] / r^2. Divided by S_00 it is the
second moment of z about the public centres, weighted by w; r cancels. Rows within the radius all
have the weight 1, so without clipped rows these are the table's own moments. `mean_weight` tells
how far the rows were clipped.

Zeros in the place of missing cells shrink the moments. If a share o_j of the cells of column j is
present, T = S / S_00 is corrected to

m_j = T_0j / o_j,   M_ij = T_ij / (o_i o_j),   M_ii = T_ii / o_i,

for cells that are missing completely at random **and independently between columns**: then the
moments are those of the cells that are present. Where cells of two columns are missing together,
M_ij is too large: with 40 % of both missing jointly, a correlation of .5 becomes .83. So if it is
published which cells are missing together, the measured share of rows with both is the divisor of
T_ij, and covariances are about the means of these rows: see `estimators.missing_cells`. The
corrected matrix may be indefinite.

Unit rows have no such moments: their lengths are not published.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.missing_cells import Presence, independent, presence
from gramercy.schemas.evidence import Evidence, NoiseTerm
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]

_LOST = 3.0  # standard deviations from zero within which a number of rows is lost in the noise
_MIN_WEIGHT = 5.0  # standard deviations of the noise that S_00 must exceed
_FLOOR = 2.0  # standard deviations of the noise that a variance must exceed to be known
_MOST_NOISE = 0.3  # largest standard deviation of the noise in a correlation that is known


@dataclass(frozen=True)
class TableMoments:
    """Moments of the columns of a table; q columns without the intercept."""

    mean: Array  # in the columns' units; for a level, its share of the rows. Shape (q,).
    # about the means, in products of the columns' units; may be indefinite. Shape (q, q).
    covariance: Array

    @property
    def standard_deviation(self) -> Array:
        """In the columns' units; NaN for a variance that is not positive. Shape (q,)."""
        variance = np.diag(self.covariance)
        return np.sqrt(np.where(variance > 0, variance, np.nan))

    @property
    def correlation(self) -> Array:
        """Not clipped to [-1, 1]; NaN for variances that are not positive. Shape (q, q)."""
        deviation = self.standard_deviation
        return self.covariance / np.outer(deviation, deviation)


@dataclass(frozen=True)
class TableUnits:
    """The public facts that carry a matrix to the columns' own units."""

    names: tuple[str, ...]  # the q columns without the intercept
    # constants of the numeric columns; 0 and 1 for levels. Shape (q,).
    centre: Array
    scale: Array
    # share of rows with a value, 1 for levels and where it is unknown; positive, shape (q,)
    present: Array
    measured: Presence | None = None  # of two cells together; None if it is not published

    @property
    def together(self) -> Presence:
        """Shares of rows in which two cells are present."""
        return independent(self.present) if self.measured is None else self.measured

    def moments(self, matrix: Array) -> TableMoments:
        """Means and covariances: a smooth function of the matrix.

        `matrix`: second moment with the intercept first, in any units; as released, denoised, or of
        some of the folds. Shape (q + 1, q + 1). NaN everywhere if the weight
        of all rows, S_00, is not positive.
        """
        m, second = self._about_centres(matrix)
        shifted = m[:, None] + self.together.shift
        covariance = second - shifted * shifted.T
        return TableMoments(self.centre + self.scale * m, self._scales * covariance)

    def noise(
        self, matrix: Array, deviations: Array, terms: tuple[NoiseTerm, ...] = ()
    ) -> TableMoments:
        """Standard deviations of the noise in `moments`, to first order.

        `deviations`: standard deviation of the noise on every entry of `matrix`; the entries of the
        noise are uncorrelated, as in all noise laws except ``noisy-rows``. Shape (q + 1, q + 1).
        `terms`: the noise of a pool, whose entries may be correlated; used instead of `deviations`.

        With E the noise divided by S_00 and o_ij the divisor of T_ij, the error of a covariance is
        E_ij / o_ij - m_j E_0i / o_i - m_i E_0j / o_j + (2 m_i m_j - M_ij) E_00.
        """
        if terms:
            return self._noise_of_terms(matrix, terms)
        m, second = self._about_centres(matrix)
        variance = (deviations / _positive(matrix[0, 0])) ** 2
        of_means = variance[0, 1:] / self.present**2
        products = np.outer(m, m)
        linear = np.outer(of_means, m**2)
        linear += linear.T
        np.fill_diagonal(linear, 2 * np.diag(linear))  # there both terms are the same error
        of_covariances = variance[1:, 1:] / self._divisors**2 + linear
        of_covariances += (2 * products - second) ** 2 * variance[0, 0]
        return TableMoments(
            self.scale * np.sqrt(of_means + m**2 * variance[0, 0]),
            self._scales * np.sqrt(of_covariances),
        )

    def _noise_of_terms(self, matrix: Array, terms: tuple[NoiseTerm, ...]) -> TableMoments:
        """The same for a noise E that is a sum of L E L^T.

        With b_i = e_i / o_i - m_i e_0 the error of a mean is b_i^T E e_0, and that of a covariance
        b_i^T E b_j - C_ij E_00; on the diagonal, e_i / o_i is divided by another root of o_i.
        """
        weight, (m, second) = _positive(matrix[0, 0]), self._about_centres(matrix)
        root = np.sqrt(self.present)
        covariance = second - np.outer(m, m)
        own_weight = np.diag(covariance) - m**2 + m**2 / self.present
        rows = np.column_stack([-m, np.diag(1 / self.present)])
        own_rows = np.column_stack([-m / root, np.diag(1 / root)])
        of_means, of_covariances = np.zeros(len(m)), np.zeros_like(second)
        for term in terms:
            b, own, first = rows @ term.linear, own_rows @ term.linear, term.linear[0]
            of_weight = NoiseTerm(term.law, first[None]).variance[0, 0]
            of_means += NoiseTerm(term.law, np.vstack([first, b])).variance[0, 1:]
            variance = NoiseTerm(term.law, b).variance
            variance += covariance**2 * of_weight - 2 * covariance * _with_square(
                term.law, b, first
            )
            of_own = np.diag(NoiseTerm(term.law, own).variance)
            of_own = of_own - 2 * own_weight * np.diag(_with_square(term.law, own, first))
            np.fill_diagonal(variance, of_own + own_weight**2 * of_weight)
            of_covariances += variance
        return TableMoments(
            self.scale * np.sqrt(of_means) / weight,
            self._scales * np.sqrt(np.maximum(of_covariances, 0.0)) / weight,
        )

    def unknown(
        self, matrix: Array, deviations: Array, terms: tuple[NoiseTerm, ...] = ()
    ) -> NDArray[np.bool_]:
        """Which covariances and correlations the noise hides; shape (q, q).

        On the diagonal, the columns whose variance is within two standard deviations of the noise:
        nothing is known of their correlations either. Off the diagonal, the pairs whose correlation
        has noise with a standard deviation above 0.3. Such an estimate is shown as unknown, never
        as a correlation of 1 or -1.

        `matrix`, `deviations`, `terms`: as in `noise`, of the matrix as released.
        """
        covariance = self.moments(matrix).covariance
        noise = self.noise(matrix, deviations, terms).covariance
        if weight_lost(matrix, deviations):
            return np.ones(covariance.shape, dtype=bool)
        lost = ~(np.diag(covariance) > _FLOOR * np.diag(noise))
        deviation = np.sqrt(np.where(lost, 1.0, np.diag(covariance)))
        hidden = ~(noise <= _MOST_NOISE * np.outer(deviation, deviation))
        hidden |= np.logical_or.outer(lost, lost)
        np.fill_diagonal(hidden, lost)
        return hidden

    @property
    def _scales(self) -> Array:
        return np.outer(self.scale, self.scale)

    @property
    def _divisors(self) -> Array:
        """The shares by which second moments were shrunk: o_ij, and o_i on the diagonal."""
        return self.together.share

    def _about_centres(self, matrix: Array) -> tuple[Array, Array]:
        """Means and second moments about the public centres, in scaled units."""
        scaled = matrix / _positive(matrix[0, 0])
        return scaled[0, 1:] / self.present, scaled[1:, 1:] / self._divisors


def table_units(evidence: Evidence) -> TableUnits | None:
    """The way from a release to the columns' own units.

    None if rows were divided by their own length, or if there is no intercept: then the matrix does
    not determine means and covariances of the table.
    """
    if evidence.unit or not evidence.columns or evidence.columns[0] is not None:
        return None
    columns = evidence.columns[1:]
    numeric = [column if isinstance(column, ColumnFacts) else None for column in columns]
    shares = np.array(evidence.present[1:] or [1.0] * len(columns))
    present = np.where(shares > 0, shares, np.nan)  # nothing is known of an empty column
    return TableUnits(
        tuple(evidence.names[1:]) or tuple(str(i) for i in range(1, len(columns) + 1)),
        np.array([0.0 if column is None else column.centre for column in numeric]),
        np.array([1.0 if column is None else column.scale for column in numeric]),
        present,
        presence(evidence, present),
    )


def _with_square(law: NoiseLaw, left: Array, right: Array) -> Array:
    """Cov(l_i^T E l_j, r^T E r) for the rows l of `left`, shape (k, p), and r, shape (p,)."""
    products = left @ right
    covariance: Array = 2 * law.sd_off_diagonal**2 * np.outer(products, products)
    if not law.rotation_invariant:
        excess = law.sd_diagonal**2 - 2 * law.sd_off_diagonal**2
        covariance += excess * ((left * right**2) @ left.T)
    return covariance


def weight_lost(matrix: Array, deviations: Array) -> bool:
    """Whether the noise hides the weight of all rows, S_00, by which all moments are divided."""
    return not matrix[0, 0] > _MIN_WEIGHT * deviations[0, 0]


def rows_lost(group: Evidence) -> bool:
    """Whether the noise hides the number of rows of a group, or their weight."""
    if group.rows <= _LOST * group.rows_sd:
        return True
    matrices = (group.raw, group.repaired) if group.columns[:1] == (None,) else ()
    return any(weight_lost(matrix, group.deviations) for matrix in matrices)


def mean_weight(evidence: Evidence) -> float | None:
    """The noisy mean of the weights min(1, r / |z|)^2 of clipped rows; None if none were clipped.

    1 if no row is longer than the radius; the further it is below 1, the more the moments are those
    of the shorter rows. The rows of a person are clipped together, by the length of all.
    """
    weight = total_weight(evidence)
    return None if weight is None else weight / evidence.rows_each


def total_weight(evidence: Evidence) -> float | None:
    """The same for all rows of a person together: without clipping, their mean number."""
    if evidence.radius is None or not evidence.columns or evidence.columns[0] is not None:
        return None
    return float(evidence.radius**2 * evidence.raw[0, 0])


def _positive(value: float) -> float:
    return float(value) if value > 0 else float("nan")


def effect_of_missing_cells(moments: TableMoments, units: TableUnits, share: float) -> Array:
    """The largest change of each correlation that a share of missing cells can explain.

    `moments`: computed as if no cell were missing. `units`: the columns' own units. `share`: share
    of the cells of a column that are missing at random, between 0 and 1. Returns shape (q, q): the
    largest absolute difference between the given correlation and that of the cells that are
    present, if such a share is missing in one of the two columns, in both independently, or in both
    at the same rows. 1 where the whole variance can be due to missing cells, and where it is not
    positive.

    With o = 1 - share, and m the means of the present cells minus the centres, zeros in the place
    of missing cells turn a variance V into o V + o (1 - o) m^2, and a covariance C into o C (one
    column), o^2 C (independently) or o C + o (1 - o) m_i m_j (at the same rows).
    """
    o = 1 - share
    m = (moments.mean - units.centre) / o
    variance = np.diag(moments.covariance)
    present = variance / o - (1 - o) * m**2
    explained = ~(present > 0)
    present, variance = np.where(explained, 1.0, (present, variance))
    one, both = (np.sqrt(np.outer(present, x)) for x in (variance, present))
    covariance = moments.covariance
    possible = np.array(
        [
            covariance / o / one,
            covariance / o / one.T,
            covariance / o**2 / both,
            (covariance / o - (1 - o) * np.outer(m, m)) / both,
        ]
    )
    given = covariance / np.sqrt(np.outer(variance, variance))
    change: Array = np.abs(np.clip(possible, -1, 1) - given).max(axis=0)
    change[np.logical_or.outer(explained, explained)] = 1.0
    np.fill_diagonal(change, 0.0)
    return change
