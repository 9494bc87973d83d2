"""Ridge precision matrix.

Su, Guo and Zhang (2020), Algorithm 1; Kuismin, Kemppainen and Sillanpää (2017):

minimise over positive definite T:  -log det T + tr(S T) + penalty ||T||_F^2

Noise that differs between directions hides the large ones, so S is taken in its metric.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.common.metric import congruence
from gramercy.estimators.about_means import DependenceEstimator, Source
from gramercy.estimators.estimator import Estimate, precision_estimate
from gramercy.estimators.noise.denoise import with_spectrum
from gramercy.estimators.noise.draws import symmetric_root
from gramercy.estimators.noise.nearest_metric import noise_metric
from gramercy.estimators.tuning.cross_validation import check_folds, cross_validation
from gramercy.estimators.tuning.penalty_rule import grid_around
from gramercy.schemas import wordings
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.model import Positive

Array = NDArray[np.float64]


class Ridge(DependenceEstimator):
    """``ridge``: a dense precision matrix.

    Parameters
    ----------
    penalty
        A positive number; ``auto``: from the noise law and the number of rows; or
        ``cross-validation``: for releases with folds. It is that of ||G T G||_F^2, where G G is the
        metric of the noise, divided by its mean eigenvalue: the identity for noise of one size.
    input
        ``denoised`` (the default) or ``raw``.
    """

    name: Literal["ridge"] = "ridge"
    penalty: Literal["auto", "cross-validation"] | Positive = "auto"
    input: Literal["denoised", "raw"] = "denoised"

    def check(self, spec: ReleaseSpec) -> None:
        if self.penalty == "cross-validation":
            check_folds(spec.folds)

    @property
    def source(self) -> Source:
        return self.input

    def fit_columns(self, evidence: Evidence) -> Estimate:
        tables = {}
        if isinstance(self.penalty, str):
            penalty = auto_penalty(evidence, self.input)
            if self.penalty == "cross-validation":
                choice = cross_validation(evidence, self.path, grid_around(penalty, ratio=1000.0))
                penalty, tables["tuning"] = choice.penalty, choice.table
        else:
            penalty = self.penalty
        matrix = next(self._path(evidence, (penalty,)))
        return replace(precision_estimate(matrix, penalty=penalty), tables=tables)

    def path(self, evidence: Evidence, grid: Array) -> list[Array | None]:
        return list(self._path(evidence, grid.tolist()))

    def _path(self, evidence: Evidence, penalties: Iterable[float]) -> Iterator[Array]:
        matrix = evidence.repaired if self.input == "denoised" else evidence.raw
        inverse = _inverse_root(evidence)
        if inverse is None:
            return ridge_path(matrix, penalties)
        found = ridge_path(congruence(inverse, matrix), penalties)
        return (congruence(inverse, each) for each in found)


def ridge_precision(matrix: Array, penalty: float) -> Array:
    """The ridge estimate, which is the unique minimiser, in closed form.

    `matrix`: S, symmetric, shape (p, p); may be indefinite. `penalty`: positive. Returns shape (p,
    p): symmetric, positive definite. Raises ValueError if the penalty is not positive and finite.

    With S = M diag(phi) M^T, T = M diag(t) M^T, t = 2 / (phi + sqrt(phi^2 + 8 penalty)); for
    phi < 0, the equal expression (sqrt(phi^2 + 8 penalty) - phi) / (4 penalty) avoids
    cancellation.
    """
    return next(ridge_path(matrix, (penalty,)))


def ridge_path(matrix: Array, penalties: Iterable[float]) -> Iterator[Array]:
    """`ridge_precision` for every penalty, from one eigendecomposition.

    `matrix`: S, symmetric, shape (p, p). `penalties`: positive, in any order. Returns shape (p, p):
    symmetric, positive definite; in the order of the penalties. Raises ValueError if a penalty is
    not positive and finite, before anything is computed.
    """
    grid = [float(penalty) for penalty in penalties]
    if not all(penalty > 0 and math.isfinite(penalty) for penalty in grid):
        raise wordings.not_positive("penalty")
    phi, vectors = np.linalg.eigh(matrix)
    return (_minimiser(phi, vectors, penalty) for penalty in grid)


def _minimiser(phi: Array, vectors: Array, penalty: float) -> Array:
    root = np.hypot(phi, math.sqrt(8 * penalty))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        t = np.where(phi > 0, 2 / (phi + root), (root - phi) / (4 * penalty))
        return with_spectrum(vectors, t)


def _inverse_root(evidence: Evidence) -> Array | None:
    """The inverse of G; None for the identity."""
    if not evidence.terms:
        return None
    metric = noise_metric(evidence.law, evidence.terms, len(evidence.raw))
    root = symmetric_root(metric * (len(metric) / np.trace(metric)))
    return np.asarray(np.linalg.inv(root), np.float64)


def auto_penalty(evidence: Evidence, source: Literal["denoised", "raw"]) -> float:
    """A penalty from public facts: the noise law, the shape, and the released trace.

    At phi = 0 the estimate is 1 / sqrt(2 penalty), so sqrt(2 penalty) is the smallest eigenvalue
    that the estimate resolves. It is set to a share of the error of an eigenvalue, from noise
    (sd sqrt p) and sampling (sqrt(p/n) times the average eigenvalue), and to at most a share of the
    average eigenvalue. The share is smaller for the denoised matrix, which has less noise. The
    shares were chosen by simulation (AR and Zipf spectra, 10 to 80 columns, 500 to 50,000 rows,
    epsilon 0.5 and 4): with the denoised matrix the Stein loss is within 6 % of its minimum.
    """
    p, inverse = len(evidence.raw), _inverse_root(evidence)
    denoised = evidence.repaired if inverse is None else congruence(inverse, evidence.repaired)
    metric = noise_metric(evidence.law, evidence.terms, p)
    noise = float(np.trace(metric)) / math.sqrt(p)
    average = max(float(np.trace(denoised)) / p, noise / p)
    if not average > 0:
        raise wordings.matrix_is_zero()
    error = math.hypot(noise, average * math.sqrt(p / max(evidence.rows, 1.0)))
    of_error, of_average = (0.4, 0.5) if source == "denoised" else (2.0, 2.0)
    floor = 1 / (1 / (of_error * error) + 1 / (of_average * average))
    return float(floor**2 / 2)
