"""Which cells of two columns are present together, from the published matrix of missing cells.

Missing cells are zero in scaled units, so that a second moment of two columns is divided by the
share of rows in which both are present. Without the matrix, this share is the product of two
published shares, as if cells were missing independently. With it, a measured difference from the
product is added, shrunk by its noise. The matrix also shows how far the mean of a column is shifted
in the rows where another column is present: then the correlation of the rows in which both are
present is not that of all rows, and no number in the release says how much their spread differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.evidence import Evidence, MissingMatrix

Array = NDArray[np.float64]

_DISTINCT = 2.5  # standard deviations of the noise
_TINY = 1e-300  # no divisor is zero
_LEAST = 1e-3  # smaller shares of rows count as zero
_MOST_FACTOR = 10.0  # by which few rows with both cells multiply an entry and its noise


@dataclass(frozen=True)
class Presence:
    """Shares of rows in which two cells are present; q columns without the intercept."""

    # of two columns, on the diagonal of one; shape (q, q)
    share: Array
    sd: Array  # of the noise in `share`, after shrinkage; zero for columns without missing cells
    # excess of the sum of column i over the rows in which j is missing, relative to rows like all
    # others, by the number of rows, in scaled units; shape (q, q)
    excess: Array
    excess_sd: Array

    @cached_property
    def shift(self) -> Array:
        """Mean of column i where j is present, minus its mean, in scaled units; shape (q, q)."""
        shift: Array = -self.excess / self.share
        return shift

    def noise(self, second: Array, means: Array) -> Array:
        """Deviation of the noise of `share` and `excess` in a covariance; shape (q, q).

        `second`: second moments of the cells that are present. Both are in scaled units.
        """
        of_means = (means[None, :] * self.excess_sd / self.share) ** 2
        noise: Array = np.sqrt((self.sd * second / self.share) ** 2 + (of_means + of_means.T))
        return noise

    def as_independent(self, matrix: Array) -> Array:
        """A second moment as it would be if the same cells were missing independently.

        `matrix`: with the intercept first, like the released one; shape (q + 1, q + 1). Methods
        that divide by products of shares then have the covariances of rows with both cells. Where
        these are less than a tenth of what independence gives, they are taken as a tenth: hardly
        anything is known of such a pair. The noise changes as the entries do: see `more_noise`.
        """
        weight = float(matrix[0, 0])
        if not weight > 0:
            return matrix
        present = np.diag(self.share)
        products = np.outer(present, present)
        share = np.maximum(self.share, products / _MOST_FACTOR)
        means = matrix[0, 1:] / weight / present
        shifted = means[:, None] - self.excess / share
        added = weight * (np.outer(means, means) - shifted * shifted.T)
        adjusted: Array = matrix.copy()
        adjusted[1:, 1:] = products * (matrix[1:, 1:] / share + added)
        diagonal = np.diag_indices(len(matrix))
        adjusted[diagonal] = matrix[diagonal]
        return adjusted

    def more_noise(self, matrix: Array, deviations: Array) -> Array:
        """What is added to the variances of the entries of `matrix` by `as_independent`.

        `deviations`: standard deviations of their noise. The noise changes as the entries do, and
        the shares have noise of their own. Negative for cells that are missing together; symmetric,
        shape (q + 1, q + 1).
        """
        added, weight = np.zeros_like(matrix), float(matrix[0, 0])
        if not weight > 0:
            return added
        present = np.diag(self.share)
        products = np.outer(present, present)
        share = np.maximum(self.share, products / _MOST_FACTOR)
        means = matrix[0, 1:] / weight / present
        of_shares = products * weight * self.noise(matrix[1:, 1:] / weight / share, means)
        added[1:, 1:] = ((products / share) ** 2 - 1) * deviations[1:, 1:] ** 2 + of_shares**2
        np.fill_diagonal(added, 0.0)
        return added


def independent(present: Array) -> Presence:
    """The shares if cells are missing independently; `present` are those of the columns."""
    share, none = np.outer(present, present), np.zeros((len(present), len(present)))
    np.fill_diagonal(share, present)
    return Presence(share, none, none, none)


def presence(evidence: Evidence, present: Array) -> Presence | None:
    """The shares of a release; None if it does not publish which cells are missing together.

    `present`: published share of rows with a value of every column without the intercept.
    """
    missing, radius = evidence.missing, evidence.radius
    if missing is None or radius is None:
        return None
    holes = np.array(missing.columns) - 1
    weight = max(float(evidence.raw[0, 0]) * radius**2, _LEAST)
    means = evidence.raw[0, 1:] * radius**2 / weight / present
    return measured(present, holes, missing, means)


def measured(
    present: Array,
    holes: NDArray[np.intp],
    missing: MissingMatrix,
    means: Array,
) -> Presence:
    """The shares with what the matrix of missing cells adds to independent ones.

    `holes`: the columns with missing cells. `means`: of the cells that are present, in scaled
    units.
    """
    products = independent(present).share
    absent, cells = 1 - present[holes], np.ix_(holes, holes)
    # Rows with very many missing cells were cut; the trace tells by how much, on average.
    cut = max(float(np.trace(missing.together) / absent.sum()), 1 / len(holes))
    sd = missing.sd / cut
    together = missing.together / cut - np.outer(absent, absent)
    np.fill_diagonal(together, 0.0)
    trust = _trust(together, sd, np.triu_indices(len(holes), 1))
    low = np.maximum(np.add.outer(present[holes], present[holes]) - 1, _LEAST)
    high = np.minimum.outer(present[holes], present[holes])
    share, deviations = products.copy(), np.zeros_like(products)
    share[cells] = np.clip(products[cells] + trust * together, np.minimum(low, high), high)
    deviations[cells] = np.sqrt(trust) * sd
    np.fill_diagonal(share, present)
    np.fill_diagonal(deviations, 0.0)

    # The corner says which part of the rows with a missing cell is left after cut and clipping.
    kept = max(float(missing.products[0].sum() / absent.sum()), 1 / len(holes))
    other_sd = missing.products_sd / kept
    never = present[:, None] - share[:, holes]  # column i is present and j missing
    moved = missing.products[1:] / kept - means[:, None] * never
    moved[holes, np.arange(len(holes))] = 0.0
    pairs = np.nonzero(np.arange(len(present))[:, None] != holes)
    of_moved = _trust(moved, other_sd, pairs)
    excess, excess_sd = np.zeros_like(products), np.zeros_like(products)
    excess[:, holes] = of_moved * moved  # zero on the diagonal
    excess_sd[:, holes] = np.sqrt(of_moved) * other_sd
    np.fill_diagonal(excess_sd, 0.0)
    return Presence(share, deviations, excess, excess_sd)


def _trust(values: Array, sd: float, entries: tuple[NDArray[np.intp], ...]) -> Array:
    """How far noisy values are kept, each from 0 to 1: by their spread, or by their own size."""
    spread = max(float((values[entries] ** 2).mean()) - sd * sd, 0.0)
    distinct = 1 - (_DISTINCT * sd / np.maximum(np.abs(values), 1e-12)) ** 2
    trust: Array = np.maximum(spread / max(spread + sd * sd, _TINY), distinct)
    return trust
