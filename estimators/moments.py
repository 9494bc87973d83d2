"""Means, class sizes and class means from a second moment with an intercept.

With a row (1, x, levels) before normalisation and w the factor that normalises it, the released
matrix has the entries E[w^2], E[w^2 x] and, for every level, E[w^2; level] and E[w^2 x; level]. So
means are quotients of entries. Rows within the radius of ``clip`` all have the same w, so these are
the plain means; ``unit`` weights a row by one over its squared length.

Standard deviations assume one noise scale on the diagonal and one off it. That holds for all laws
except ``noisy-rows``, for which nothing is returned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CentredMoment:
    """Second moments about the means, of all columns but the intercept; shape (p - 1, p - 1).

    Parameters
    ----------
    matrix
        In the units of the released matrix.
    sd
        Standard deviation of the noise in each entry, to first order.
    """

    matrix: Array
    sd: Array


def schur_complement(matrix: Array) -> Array:
    """The Schur complement S_ij - S_0i S_0j / S_00 of the first column; shape (p - 1, p - 1)."""
    complement: Array = matrix[1:, 1:] - np.outer(matrix[0, 1:], matrix[0, 1:]) / matrix[0, 0]
    return complement


def centred_moment(raw: Array, law: NoiseLaw) -> CentredMoment | None:
    """Second moments about the means, from a matrix whose first column is the intercept.

    Parameters
    ----------
    raw
        Second moment, shape (p, p), p > 1.
    law
        Its noise law.

    Returns
    -------
    CentredMoment or None
        None if the weight of all rows is lost in the noise, and for noisy rows.

    Notes
    -----
    With m_i = S_0i / S_00 the first-order noise of `schur_complement` is
    E_ij - m_j E_0i - m_i E_0j + m_i m_j E_00.
    """
    overall = means(raw, law, 0)
    if overall is None:
        return None
    m = overall.value[1:]
    off, diagonal = law.sd_off_diagonal**2, law.sd_diagonal**2
    variance = off * (1 + np.add.outer(m**2, m**2)) + diagonal * np.outer(m, m) ** 2
    np.fill_diagonal(variance, diagonal * (1 + m**4) + 4 * off * m**2)
    return CentredMoment(schur_complement(raw), np.sqrt(variance))


@dataclass(frozen=True)
class Means:
    """Weighted means of every column, given that one indicator column is 1.

    Parameters
    ----------
    value
        In scaled units, shape (p,); for the column of a level, its share.
    sd
        Standard deviation of the noise in each mean, to first order; shape (p,).
    """

    value: Array
    sd: Array


def means(raw: Array, law: NoiseLaw, indicator: int) -> Means | None:
    """Means over the rows where an indicator column is 1 (for the intercept, over all rows).

    Parameters
    ----------
    raw
        Released second moment, shape (p, p).
    law
        Its noise law.
    indicator
        Index of the intercept, or of a level's column.

    Returns
    -------
    Means or None
        None if the weight of these rows is lost in the noise (within three standard deviations of
        zero), and for noisy rows.
    """
    weight = float(raw[indicator, indicator])
    if law.family == "noisy-rows" or weight <= 3 * law.sd_diagonal:
        return None
    value = raw[indicator] / weight
    noise = np.full(value.shape, law.sd_off_diagonal)
    sd = np.hypot(noise, value * law.sd_diagonal) / weight
    value[indicator], sd[indicator] = 1.0, 0.0
    return Means(value, sd)
