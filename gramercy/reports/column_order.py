"""An order of columns in which related ones are next to each other, for figures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST = 13  # fewer columns stay in the order of the contract
_STEPS = 256  # strengths are rounded to multiples of 1/256
_MOST_REFINED = 200  # columns whose clusters are also turned so that neighbours agree best


def clustered(strength: Array) -> list[int]:
    """The columns in the order of a hierarchical clustering.

    Clusters are merged by their average strength (WPGMA). Strengths are rounded to dyadic
    fractions, whose averages are exact, so that the order is the same on every machine.

    Parameters
    ----------
    strength
        Symmetric and nonnegative, such as absolute correlations with zeros for entries within the
        noise; shape (p, p).

    Returns
    -------
    list
        A permutation of range(p): the identity for few columns, and if no strength is positive.
    """
    p = len(strength)
    above = np.triu_indices(p, 1)
    largest = float(strength[above].max(initial=0.0))
    if p < FEWEST or largest == 0:
        return list(range(p))
    from scipy.cluster.hierarchy import leaves_list, linkage

    distances = 1 - np.round(np.minimum(strength[above] / largest, 1) * _STEPS) / _STEPS
    merged = linkage(distances, "weighted", optimal_ordering=p <= _MOST_REFINED)
    order: list[int] = leaves_list(merged).tolist()
    return order
