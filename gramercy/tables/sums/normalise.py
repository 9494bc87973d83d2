"""Normalise rows into the unit ball, each row separately, with public constants only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.normalisation import Clip, Unit, Whole

# Exponents k for which 2^-k is finite and not zero in double precision.
MIN_EXPONENT, MAX_EXPONENT = -1021, 1024

# Sums of squares in which no term overflows, and a term that vanishes is below any rounding error.
LEAST, LARGEST = 2.0**-800, 2.0**800


def normalise(
    scaled: NDArray[np.float64], normalisation: Unit | Clip | Whole
) -> NDArray[np.float64]:
    """Bring every row into the unit ball; with `Whole`, rows stay as they are.

    Parameters
    ----------
    scaled
        Shape (p, rows), finite.
    normalisation
        ``Unit``: x / ||x||, and zero for the zero row. ``Clip`` with radius r:
        x min(1, r/||x||) / r.

    Returns
    -------
    ndarray of float64, shape (p, rows)

    Notes
    -----
    A row's result must not depend on its position, so squares are summed in a fixed loop over
    columns: a BLAS or pairwise reduction would depend on position and memory layout. A row that its
    sum of squares shows to be very long or short is first multiplied by the power of two that
    brings its largest entry between 1/2 and 1, so that squares of 1e-170 or 1e200 neither vanish
    nor overflow.
    """
    if isinstance(normalisation, Whole):
        return scaled
    squares, power = _sums_of_squares(scaled), np.ones(scaled.shape[1])
    far = np.flatnonzero(~((squares >= LEAST) & (squares <= LARGEST)))
    if far.size:
        largest = np.abs(scaled[:, far]).max(axis=0)
        exponents = np.frexp(largest)[1]
        power[far] = np.ldexp(1.0, -np.clip(exponents, MIN_EXPONENT, MAX_EXPONENT))
        squares[far] = _sums_of_squares(scaled[:, far] * power[far])
    length = np.sqrt(np.where(squares > 0, squares, 1.0))  # zero rows stay zero
    inverse = 1.0 / length
    moderate = scaled * power if far.size else scaled
    if isinstance(normalisation, Unit):
        unit: NDArray[np.float64] = moderate * inverse
        return unit
    with np.errstate(over="ignore"):
        clipped = np.flatnonzero(length / power > normalisation.length)
    inside: NDArray[np.float64] = scaled / normalisation.length
    inside[:, clipped] = moderate[:, clipped] * inverse[clipped]
    return inside


def _sums_of_squares(scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of squares of every row, column after column; infinite where it overflows."""
    sums = np.zeros(scaled.shape[1])
    with np.errstate(over="ignore", under="ignore"):
        for column in scaled * scaled:
            sums += column
    return sums
