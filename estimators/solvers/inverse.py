"""The inverse of a positive definite matrix from its Cholesky factor, by matrix products.

LAPACK inverts the triangle by block columns, at half the speed of matrix products or less. Divided
recursively into halves, nearly all of the work is matrix products:

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

_LEAF = 64  # columns that are not divided further


def inverse(factor: Array, *, single_precision: bool = False) -> Array:
    """Inverse of the matrix with this lower Cholesky factor; symmetric, shape (p, p).

    Parameters
    ----------
    factor
        Fortran order, shape (p, p). It is overwritten; entries above the diagonal are not read.
    single_precision
        Whether to use single precision, in half the time.
    """
    L = factor.astype(np.float32) if single_precision else factor
    _invert(L)
    squared = slauum if single_precision else dlauum
    W: Array = squared(L, lower=1, overwrite_c=1)[0].T.astype(np.float64, copy=False)
    compiled(kernels.mirror_upper)(W)
    return W


def _invert(L: NDArray[Any]) -> None:
    """Invert the lower triangle, in place."""
    p, single = len(L), L.dtype == np.float32
    trtri, trmm = (strtri, strmm) if single else (dtrtri, dtrmm)
    if p <= _LEAF:
        L[:] = trtri(L, lower=1)[0]
        return
    half = p // 2
    A, B, C = L[:half, :half], L[half:, :half], L[half:, half:]
    _invert(A)
    _invert(C)
    B[:] = trmm(-1.0, C, trmm(1.0, A, B, side=1, lower=1), lower=1, overwrite_b=1)
