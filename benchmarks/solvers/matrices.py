"""The test matrices: three kinds of graphs, without noise and with the noise of a release."""

from __future__ import annotations

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.graphs.releases import scale
from benchmarks.graphs.truths import KINDS, truth
from benchmarks.utility.matrices import goe
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.solvers.glasso_problem import feasible_multiple

EPSILON = 2.0
STEPS = 20
_ROWS = 20  # rows per column
_REACH = 20.0  # ratio of the largest penalty to the smallest
_CLEAR = 1.1  # times the least penalty at which soft-thresholding is positive definite
REGIMES = {
    "clean": "the second moment of 20 rows a column",
    "noisy": f"and the isotropic noise of a release at epsilon = {EPSILON:g}: indefinite",
    "debiased": "of rows with noise of their own length, minus its variance: often indefinite",
    "clipped": "the noisy one without its negative eigenvalues, and a floor",
}
DENSE = "clipped"  # the kind of matrix with dense graphs

__all__ = ["DENSE", "EPSILON", "KINDS", "REGIMES", "STEPS", "matrix", "penalties"]


def matrix(kind: str, regime: str, p: int, rng: Rng) -> Array:
    """Draw a symmetric matrix with mean diagonal 1, shape (p, p)."""
    rows = _ROWS * p
    moment = truth(kind, p, rng).moment
    if regime == "debiased":
        own = np.eye(p) / p
        S = _sample(moment + own, rows, rng) - own
    else:
        S = _sample(moment, rows, rng)
    if regime in {"noisy", "clipped"}:
        sd = scale("gaussian", p, EPSILON) / rows
        S = S + goe(rng, p, sd)
        if regime == "clipped":
            S = project(S) + 0.1 * sd * np.eye(p)
    S = (S + S.T) / 2
    result: Array = S / np.diagonal(S).mean()
    return result


def penalties(S: Array) -> Array:
    """Descending penalties from the empty graph to a dense graph, or to no minimiser."""
    p = len(S)
    off = S - np.diag(np.diagonal(S))
    largest = float(np.abs(off).max())
    least = max(largest / _REACH, _CLEAR * feasible_multiple(S, 1.0 - np.eye(p)))
    result: Array = np.geomspace(largest, min(least, largest), STEPS)
    return result


def _sample(moment: Array, rows: int, rng: Rng) -> Array:
    """Draw a second moment of `rows` Gaussian rows by Bartlett's decomposition."""
    p = len(moment)
    half = np.tril(rng.standard_normal((p, p)), -1)
    half[np.diag_indices(p)] = np.sqrt(rng.chisquare(rows - np.arange(p)))
    root = np.linalg.cholesky(moment) @ half
    result: Array = root @ root.T / rows
    return result
