"""Sparse precision matrix by a conjugate Wishart prior and a decision rule.

Kuismin and Sillanpää (2016), "Use of Wishart prior and simple extensions for sparse precision
matrix estimation". With a prior W_p(p + 1 + k, (k I)^-1) for the precision matrix of Gaussian rows
on the correlation scale, and n rows with the second moment S, the posterior is

W_p(p + 1 + k + n, V),  V = (k I + n S)^-1.

Its mode is (n + k) V, the inverse of the mean of S and the identity, weighted by n and k. An entry
is kept if zero is outside its credible interval.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import multigammaln, ndtri

from gramercy.estimators.about_means import DependenceEstimator
from gramercy.estimators.estimator import Estimate, precision_estimate
from gramercy.estimators.input_matrix import correlation_matrix, retained_share
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.model import Positive

Array = NDArray[np.float64]

_GRID = np.geomspace(1e-4, 1e4, 161)  # strengths of the prior, in rows of the release
_ROUNDING = float(np.finfo(np.float64).eps)


class WishartPrior(DependenceEstimator):
    """``wishart-prior``: a sparse precision matrix, in closed form.

    It works on the denoised matrix with the same diagonal floor as the graphical lasso, scaled to a
    unit diagonal. The rows count for fewer where the release has noise: see `effective_rows`.

    The paper does not keep the result positive definite. `tuning` has the smallest eigenvalue, on
    the unit diagonal. If it is not positive, the kind of the result is ``graph`` instead of
    ``precision``, and its matrix is ``coefficients``.

    Parameters
    ----------
    strength
        Number k of rows that the prior counts for; ``auto``: the one of largest marginal
        likelihood, by empirical Bayes.
    level
        Level of the credible intervals; 0 keeps all entries.
    """

    name: Literal["wishart-prior"] = "wishart-prior"
    strength: Literal["auto"] | Positive = "auto"
    level: Annotated[float, Field(strict=True, ge=0, lt=1)] = 0.95

    def fit_columns(self, evidence: Evidence) -> Estimate:
        unit, root = correlation_matrix(evidence)
        rows = effective_rows(evidence, root)
        strength = marginal_strength(unit, rows) if self.strength == "auto" else self.strength
        scaled = decided(unit, rows, strength, self.level)
        matrix = scaled / np.outer(root, root)
        smallest = float(np.linalg.eigvalsh(scaled)[0])
        definite = smallest > _ROUNDING * len(scaled) * float(np.abs(scaled).max())
        tuning = {"strength": strength, "rows": rows, "smallest_eigenvalue": smallest}
        return precision_estimate(matrix, definite=definite, **tuning)


def effective_rows(evidence: Evidence, root: Array) -> float:
    """The number of rows whose sampling error is that of the release's rows and noise together.

    `evidence`: with the denoised matrix. `root`: square roots of its diagonal, shape (p,).

    A correlation of independent columns has the sampling variance 1 / n. That of the noise is the
    mean over all pairs, reduced by the share of the noise that denoising leaves.
    """
    sampling = 1 / max(evidence.rows, 1.0)
    pairs = np.triu_indices(len(root), 1)
    if not pairs[0].size:
        return 1 / sampling
    noise = (evidence.deviations / np.outer(root, root))[pairs] * retained_share(evidence)
    return max(1 / (sampling + float(np.mean(noise**2))), 1.0)


def posterior_scale(S: Array, rows: float, strength: float) -> Array:
    """The scale matrix V of the posterior, shape (p, p).

    `S`: positive semidefinite, shape (p, p). `strength`: number k of rows that the prior counts
    for; positive.
    """
    values, vectors = np.linalg.eigh(S)
    scale = (vectors / (strength + rows * np.maximum(values, 0.0))) @ vectors.T
    symmetric: Array = (scale + scale.T) / 2
    return symmetric


def decided(S: Array, rows: float, strength: float, level: float) -> Array:
    """The posterior mode, with zeros for entries whose credible intervals contain zero.

    `level`: level of the intervals; at 0 nothing is set to zero. Returns shape (p, p): symmetric;
    positive definite at level 0.

    An entry of W_p(f, V) has the mean f V_ij and the variance f (V_ij^2 + V_ii V_jj); its interval
    is that of a normal variable.
    """
    V = posterior_scale(S, rows, strength)
    degrees = len(V) + 1 + strength + rows
    deviation = np.sqrt((V**2 + np.outer(np.diag(V), np.diag(V))) / degrees)
    kept = np.abs(V) > float(ndtri((1 + level) / 2)) * deviation
    np.fill_diagonal(kept, True)
    if level == 0:
        kept[:] = True
    return np.where(kept, (rows + strength) * V, 0.0)


def marginal_strength(S: Array, rows: float) -> float:
    """The strength of the prior with the largest marginal likelihood, on a grid.

    Between a ten-thousandth and ten thousand times the number of rows.
    """
    p, values = len(S), np.maximum(np.linalg.eigvalsh(S), 0.0)
    strengths = rows * _GRID
    prior = p + 1 + strengths
    log_likelihood = (
        multigammaln((prior + rows) / 2, p)
        - multigammaln(prior / 2, p)
        + prior / 2 * p * np.log(strengths)
        - (prior + rows) / 2 * np.log(strengths[:, None] + rows * values).sum(axis=1)
    )
    return float(strengths[np.argmax(log_likelihood)])
