"""Means, class sizes and class means from a second moment that carries a column of ones.

With a row (1, x, levels) before normalisation and w the factor that normalises it, the released
matrix holds E[w^2], E[w^2 x] and, for every level, E[w^2; level] and E[w^2 x; level]: means are
quotients of entries. Rows within the radius of ``clip`` all have the same w, so these are the plain
means; ``unit`` weighs a row by one over its squared length.

Deviations are those of laws with one deviation on the diagonal and one off it: all but
``noisy-rows``, whose entries differ, and for which nothing is told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Centred:
    """Second moments about the means, of all columns but the intercept; shape (p - 1, p - 1).

    Parameters
    ----------
    matrix
        In the units of the released matrix.
    sd
        Standard deviation of what the noise adds to each entry, to first order.
    """

    matrix: Array
    sd: Array


def without_means(matrix: Array) -> Array:
    """The Schur complement S_ij - S_0i S_0j / S_00 of the first column; shape (p - 1, p - 1)."""
    left: Array = matrix[1:, 1:] - np.outer(matrix[0, 1:], matrix[0, 1:]) / matrix[0, 0]
    return left


def centred(raw: Array, law: NoiseLaw) -> Centred | None:
    """Take the means out of a matrix whose first column is the intercept.

    Parameters
    ----------
    raw
        Second moment, shape (p, p), p > 1.
    law
        Its noise law.

    Returns
    -------
    Centred or None
        None where the weight of all rows is lost in the noise, and for noisy rows.

    Notes
    -----
    With m_i = S_0i / S_00 the first-order noise of `without_means` is
    E_ij - m_j E_0i - m_i E_0j + m_i m_j E_00.
    """
    found = means(raw, law, 0)
    if found is None:
        return None
    m = found.value[1:]
    off, diagonal = law.sd_off_diagonal**2, law.sd_diagonal**2
    variance = off * (1 + np.add.outer(m**2, m**2)) + diagonal * np.outer(m, m) ** 2
    np.fill_diagonal(variance, diagonal * (1 + m**4) + 4 * off * m**2)
    return Centred(without_means(raw), np.sqrt(variance))


@dataclass(frozen=True)
class Means:
    """Weighted means of every column, given one column of zeros and ones.

    Parameters
    ----------
    value
        Shape (p,), in scaled units: of a column of a level, its share.
    sd
        Standard deviation of what the noise adds to each, to first order; shape (p,).
    """

    value: Array
    sd: Array


def means(raw: Array, law: NoiseLaw, given: int) -> Means | None:
    """Means over the rows where column `given` is 1: all of them, for the intercept.

    Parameters
    ----------
    raw
        Released second moment, shape (p, p).
    law
        Its noise law.
    given
        Place of the intercept, or of a level's column.

    Returns
    -------
    Means or None
        None where the weight of these rows is lost in the noise (within three deviations of zero),
        and for noisy rows: see the module.
    """
    weight = float(raw[given, given])
    if law.family == "noisy-rows" or weight <= 3 * law.sd_diagonal:
        return None
    value = raw[given] / weight
    noise = np.full(value.shape, law.sd_off_diagonal)
    sd = np.hypot(noise, value * law.sd_diagonal) / weight
    value[given], sd[given] = 1.0, 0.0
    return Means(value, sd)
