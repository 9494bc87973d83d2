"""The directions in which the columns of a release vary, and the noise in each of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Directions:
    """The principal directions of the columns about their means, the largest variance first."""

    variance: Array  # of the denoised matrix in scaled columns; shape (p,)
    # standard deviation of the noise in that of the released matrix; and in that of a matrix that
    # is drawn without a metric, for the same budget; shape (p,) and a number
    noise: Array
    plain: float

    @property
    def seen(self) -> tuple[int, int]:
        """Numbers of directions with a variance above twice the noise: with a metric, without."""
        with_metric, without = (
            int((self.variance > 2 * each).sum()) for each in (self.noise, self.plain)
        )
        return with_metric, without


def directions(release: ReleaseBundle) -> Directions | None:
    """The directions of a release in a metric; None if there is no metric, or no weight is known.

    A direction v is one of the columns about their means, extended by an intercept. The noise
    G E G^T has in it the variance of E's diagonal times |G^T v|^4.
    """
    facts, root, matrix = release.manifest, release.root, release.repaired
    scaling = facts.scaling
    if root is None or scaling is None or not facts.intercept or not matrix[0, 0] > 0:
        return None
    square = (facts.radius or math.nan) ** 2
    means = matrix[0, 1:] / matrix[0, 0]
    about_means = matrix[1:, 1:] - matrix[0, 0] * np.outer(means, means)
    values, vectors = np.linalg.eigh(about_means)
    order = np.argsort(-values, kind="stable")
    extended = np.vstack([-means @ vectors, vectors])[:, order]
    lengths = ((root.T @ extended) ** 2).sum(axis=0)
    of_matrix = facts.noise.sd_diagonal * square
    left = 1 - scaling.spent
    plain = of_matrix * math.sqrt(left / (left + scaling.share_of_pilot))
    return Directions(values[order] * square, of_matrix * lengths, plain)
