"""The inverse of a positive definite matrix from its Cholesky factor, at the speed of products.

LAPACK inverts the triangle block column by block column, at half the speed or less of the products
that it could be made of. Halved again and again it is nearly all products:

inverse of (A 0; B C) = (a 0; -c B a, c), with a and c the inverses of A and C
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm, strmm
from scipy.linalg.lapack import dlauum, dtrtri, slauum, strtri

from gramercy.estimators.solvers import kernels
from gramercy.estimators.solvers.kernels import compiled

Array = NDArray[np.float64]

_WHOLE = 64  # columns that are not halved


def inverse(factor: Array, *, roughly: bool = False) -> Array:
    """Of the matrix whose lower Cholesky factor it is; symmetric, shape (p, p).

    Parameters
    ----------
    factor
        In columns (Fortran order), shape (p, p). It is overwritten; what is above its diagonal is
        not read.
    roughly
        Whether the digits of single precision will do, in half the time.
    """
    L = factor.astype(np.float32) if roughly else factor
    _invert(L)
    squared = slauum if roughly else dlauum
    W: Array = squared(L, lower=1, overwrite_c=1)[0].T.astype(np.float64, copy=False)
    compiled(kernels.mirrored)(W)
    return W


def _invert(L: NDArray[Any]) -> None:
    """The lower triangle, in place."""
    p, single = len(L), L.dtype == np.float32
    trtri, trmm = (strtri, strmm) if single else (dtrtri, dtrmm)
    if p <= _WHOLE:
        L[:] = trtri(L, lower=1)[0]
        return
    half = p // 2
    A, B, C = L[:half, :half], L[half:, :half], L[half:, half:]
    _invert(A)
    _invert(C)
    B[:] = trmm(-1.0, C, trmm(1.0, A, B, side=1, lower=1), lower=1, overwrite_b=1)
