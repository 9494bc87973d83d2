"""ADMM of the graphical lasso, stopped after a fixed number of steps: what two papers publish.

It never says that a problem has no minimiser: its iterates grow by the noise's most negative
eigenvalues, step by step, and the last of them is what is printed.

Every step takes W = rho (Z - U) - S to T = (W + (W^2 + 4 rho I)^(1/2)) / (2 rho), which the paper
finds from the eigenvalues of W. But W stays nearly diagonal in the eigenbasis that it had some
steps before: there the first-order formula for a function of a nearly diagonal matrix is a good
start for the root, and Newton's method for R^2 = W^2 + 4 rho I, its linear equation solved as if R
were diagonal, corrects the rest with matrix products only.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.solvers.admm import proximal

Array = NDArray[np.float64]
RHO = 100.0
STEPS = 1000
_TOLERANCE = 1e-12  # of the root, relative to its largest entry
_REFRESH = 50  # steps from one eigenbasis to the next: then one correction a step does
_CORRECTIONS = 6  # of the root in one step; if they do not do, another eigenbasis


def plain(S: Array, penalty: float, steps: int = STEPS, rho: float = RHO) -> Array:
    """Z after so many steps from zero: an eigendecomposition each, as the paper writes it."""
    Z, U = np.zeros_like(S), np.zeros_like(S)
    for _ in range(steps):
        Z, U = _shrunk(proximal(Z - U - S / rho, rho), U, penalty / rho)
    return Z


def iterate(S: Array, penalty: float, steps: int = STEPS, rho: float = RHO) -> Array:
    """The same matrix in half the time."""
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
                raise ArithmeticError("no root in its own eigenbasis")
        inner += root
        inner /= 2 * rho
        Z, U = _shrunk(Q @ inner @ Q.T, U, penalty / rho)
    return Z


def _shrunk(T: Array, U: Array, threshold: float) -> tuple[Array, Array]:
    """Z and the new U: what the threshold takes away is what U becomes."""
    whole = T + U
    taken = np.clip(whole, -threshold, threshold)
    return whole - taken, taken


def _root(W: Array, rho: float) -> Array | None:
    """(W^2 + 4 rho I)^(1/2) of a nearly diagonal matrix; None where it is not near enough."""
    w = np.diagonal(W)
    r: Array = np.sqrt(w * w + 4 * rho)
    shares = 1 / np.add.outer(r, r)
    R = np.add.outer(w, w)
    R *= W
    R *= shares
    np.fill_diagonal(R, r)
    square = W @ W
    square.flat[:: len(W) + 1] += 4 * rho
    # Each correction shrinks the error by this, and by the error itself.
    rate = math.sqrt(max(float(np.vdot(R, R) - r @ r), 0.0)) / float(r.min())
    for _ in range(_CORRECTIONS):
        change = square - R @ R
        change *= shares
        R += change
        size = float(np.abs(change).max() / r.max())
        if size * (rate + size) < _TOLERANCE:
            return R
    return None
