"""Normalisation row by row into the unit ball, with public constants only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schemas.request import Clip, Unit, Whole


def normalise(scaled: NDArray[np.float64], how: Unit | Clip | Whole) -> NDArray[np.float64]:
    """Bring every row into the unit ball; rows of whole numbers stay what they are.

    Parameters
    ----------
    scaled
        Shape (p, rows), finite.
    how
        ``Unit``: x / ||x||, and the zero row where nothing is left. ``Clip`` at radius r:
        x min(1, r/||x||) / r.

    Returns
    -------
    ndarray of float64, shape (p, rows)

    Notes
    -----
    A row's result must not depend on where it stands: the squares are summed in a fixed loop over
    columns (a BLAS or pairwise reduction would depend on position and memory layout), after
    division by the row's largest entry, so that 1e-170 and 1e200 neither vanish nor overflow.
    """
    if isinstance(how, Whole):
        return scaled
    largest = np.abs(scaled).max(axis=0, initial=0.0)
    within = scaled / np.where(largest > 0, largest, 1.0)
    squares = np.zeros(scaled.shape[1])
    for row in within:
        squares += row * row
    length = np.sqrt(np.maximum(squares, 1.0))  # at least 1: the largest entry; zero rows stay zero
    unit = within / length
    if isinstance(how, Unit):
        return unit
    with np.errstate(over="ignore"):
        beyond = largest * length > how.radius
    return np.where(beyond, unit, scaled / how.radius)
