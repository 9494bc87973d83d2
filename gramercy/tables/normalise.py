"""Normalisation row by row into the unit ball, with public constants only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.normalisation import Clip, Unit, Whole

# Of two, at which the inverse is a number in double precision.
LEAST_POWER, MOST_POWER = -1021, 1024


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
    columns (a BLAS or pairwise reduction would depend on position and memory layout), times the
    power of two that brings the row's largest entry between 1/2 and 1, so that 1e-170 and 1e200
    neither vanish nor overflow.
    """
    if isinstance(how, Whole):
        return scaled
    exponents = np.frexp(np.abs(scaled).max(axis=0, initial=0.0))[1]
    power = np.ldexp(1.0, -np.clip(exponents, LEAST_POWER, MOST_POWER))
    within = scaled * power
    squares = np.zeros(scaled.shape[1])
    for row in within:
        squares += row * row
    length = np.sqrt(np.where(squares > 0, squares, 1.0))  # zero rows stay zero
    unit: NDArray[np.float64] = within * (1.0 / length)
    if isinstance(how, Unit):
        return unit
    with np.errstate(over="ignore"):
        beyond = length / power > how.radius
    return np.where(beyond, unit, scaled / how.radius)
