"""How far unknown missing cells can move correlations, if each counts as its column's centre."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.own_units import OwnMoments, OwnUnits

Array = NDArray[np.float64]


def effect_of_missing_cells(moments: OwnMoments, units: OwnUnits, share: float) -> Array:
    """The largest change of each correlation that a share of missing cells can explain.

    Parameters
    ----------
    moments
        Computed as if no cell were missing.
    units
        The columns' own units.
    share
        Share of the cells of a column that are missing at random, between 0 and 1.

    Returns
    -------
    ndarray, shape (q, q)
        The largest absolute difference between the given correlation and that of the cells that are
        present, if such a share is missing in one of the two columns, in both independently, or in
        both at the same rows. 1 where the whole variance can be due to missing cells, and where it
        is not positive.

    Notes
    -----
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
