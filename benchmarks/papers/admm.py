"""ADMM of the graphical lasso with a fixed number of steps, as two of the papers use it.

It does not detect that a problem has no minimiser. Then its iterates grow with every step along the
most negative eigenvalues of the noisy matrix, and the papers print the last iterate.

Every step maps W = rho (Z - U) - S to T = (W + (W^2 + 4 rho I)^(1/2)) / (2 rho). The paper computes
it from the eigenvalues of W. Here the eigenbasis of an earlier step is reused, in which W is nearly
diagonal. The first-order formula for a function of a nearly diagonal matrix gives a start for the
root. Newton's method for R^2 = W^2 + 4 rho I corrects it with matrix products only: its linear
equation is solved as if R were diagonal.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.arrays import Array
from gramercy.estimators.solvers.admm import proximal

RHO = 100.0
STEPS = 1000
_TOLERANCE = 1e-12  # error of the root, relative to its largest entry
_REFRESH = 50  # steps per eigenbasis; then one correction per step suffices
_CORRECTIONS = 6  # limit per step; then a new eigenbasis is computed


def plain(S: Array, penalty: float, steps: int = STEPS, rho: float = RHO) -> Array:
    """Return Z after `steps` steps from zero, with one eigendecomposition each as in the paper."""
    Z, U = np.zeros_like(S), np.zeros_like(S)
    for _ in range(steps):
        Z, U = _shrunk(proximal(Z - U - S / rho, rho), U, penalty / rho)
    return Z


def iterate(S: Array, penalty: float, steps: int = STEPS, rho: float = RHO) -> Array:
    """Return the same matrix as `plain` in half the time."""
    Q = np.linalg.eigh(S)[1]
    Z, U = np.zeros_like(S), np.zeros_like(S)
    for step in range(1, steps + 1):
        W = rho * (Z - U) - S
        if step % _REFRESH == 0:
            Q = np.linalg.eigh(W)[1]
        inner = Q.T @ W @ Q
        root = _root(inner, rho)
        if root is None:
            Q = np.linalg.eigh(W)[1]
            inner = Q.T @ W @ Q
            root = _root(inner, rho)
            if root is None:
                raise ArithmeticError("the matrix root did not converge in a new eigenbasis")
        inner += root
        inner /= 2 * rho
        Z, U = _shrunk(Q @ inner @ Q.T, U, penalty / rho)
    return Z


def _shrunk(T: Array, U: Array, threshold: float) -> tuple[Array, Array]:
    """Soft-threshold T + U: return the result Z and the remainder, which is the new U."""
    whole = T + U
    taken = np.clip(whole, -threshold, threshold)
    return whole - taken, taken


def _root(W: Array, rho: float) -> Array | None:
    """Return (W^2 + 4 rho I)^(1/2), or None if W is not diagonal enough to converge."""
    w = np.diagonal(W)
    r: Array = np.sqrt(w * w + 4 * rho)
    shares = 1 / np.add.outer(r, r)
    R = np.add.outer(w, w)
    R *= W
    R *= shares
    np.fill_diagonal(R, r)
    square = W @ W
    square.flat[:: len(W) + 1] += 4 * rho
    # Each correction multiplies the error by at most this rate plus the error itself.
    rate = math.sqrt(max(float(np.vdot(R, R) - r @ r), 0.0)) / float(r.min())
    for _ in range(_CORRECTIONS):
        change = square - R @ R
        change *= shares
        R += change
        size = float(np.abs(change).max() / r.max())
        if size * (rate + size) < _TOLERANCE:
            return R
    return None
