"""The inverse of a positive definite matrix from its Cholesky factor, at the speed of products.

LAPACK inverts the triangle block column by block column, at half the speed or less of the products
that it could be made of. Halved again and again it is nearly all products:

inverse of (A 0; B C) = (a 0; -c B a, c), with a and c the inverses of A and C
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dlauum, dtrtri

from estimators.solvers import kernels
from estimators.solvers.kernels import compiled

Array = NDArray[np.float64]

_WHOLE = 64  # columns that are not halved


def inverse(factor: Array) -> Array:
    """Of the matrix whose lower Cholesky factor it is; symmetric, shape (p, p).

    Parameters
    ----------
    factor
        In columns (Fortran order), shape (p, p). It is overwritten; what is above its diagonal is
        not read.
    """
    _invert(factor)
    W: Array = dlauum(factor, lower=1, overwrite_c=1)[0].T
    compiled(kernels.mirrored)(W)
    return W


def _invert(L: Array) -> None:
    """The lower triangle, in place."""
    p = len(L)
    if p <= _WHOLE:
        L[:] = dtrtri(L, lower=1)[0]
        return
    half = p // 2
    A, B, C = L[:half, :half], L[half:, :half], L[half:, half:]
    _invert(A)
    _invert(C)
    B[:] = dtrmm(-1.0, C, dtrmm(1.0, A, B, side=1, lower=1), lower=1, overwrite_b=1)
