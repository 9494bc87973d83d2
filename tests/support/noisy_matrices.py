"""Second moments with noise: populations, samples and laws that tests of estimators share."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.denoise import denoise
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import Family, NoiseLaw

Array = NDArray[np.float64]


def family_law(family: Family, sd: float, p: int = 0) -> NoiseLaw:
    """Noise of p columns with the deviation `sd` off the diagonal."""
    if family == "none":
        return NoiseLaw.none()
    diagonal = sd if family in {"gaussian-iid", "laplace"} else sd * math.sqrt(2)
    dof = p + 1.0 if family in {"matrix-laplace", "wishart"} else None
    return NoiseLaw(family=family, sd_diagonal=diagonal, sd_off_diagonal=sd, dof=dof)


def gaussian_law(sd: float) -> NoiseLaw:
    return family_law("gaussian-isotropic", sd)


def goe(rng: np.random.Generator, p: int, sd: float) -> Array:
    """A draw of isotropic Gaussian noise."""
    half = rng.normal(size=(p, p)) * sd / math.sqrt(2)
    return half + half.T


def off(matrix: Array) -> Array:
    return matrix - np.diag(np.diagonal(matrix))


def ar(p: int, by: float = 0.6) -> Array:
    """The covariance matrix of an autoregressive process."""
    covariance: Array = by ** np.abs(np.subtract.outer(range(p), range(p)))
    return covariance


def hub(p: int) -> Array:
    """A precision matrix whose first column is connected to the next five."""
    precision = np.eye(p)
    precision[0, 1:6] = precision[1:6, 0] = 0.3
    return precision


def sample(rng: np.random.Generator, covariance: Array, n: int) -> Array:
    """The second moment of Gaussian rows."""
    rows = rng.normal(size=(n, len(covariance))) @ np.linalg.cholesky(covariance).T
    moment: Array = rows.T @ rows / n
    return moment


def hub_release(seed: int, p: int, n: int, sd: float) -> Evidence:
    """A release of unit rows from a graph with one hub of five."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, p)) @ np.linalg.cholesky(np.linalg.inv(hub(p))).T
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    raw = rows.T @ rows / n + goe(rng, p, sd)
    return Evidence(raw, denoise(raw, gaussian_law(sd)), gaussian_law(sd), float(n))


def f1(found: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    return float(2 * (found & truth).sum() / max(found.sum() + truth.sum(), 1))
