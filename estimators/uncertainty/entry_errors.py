"""Errors of a release: what noise and sampling make of second moments and what follows from them.

The noise law is known exactly; the law of the rows is stated (see `uncertainty.row_law`). The
target is the population second moment of the rows as they were normalised; where a column of ones
was put first, moments are about the means it shows, to first order in them.

Partial correlations come from an inverse, which noise makes too large. With D(W) = E[E W E] for the
noise E, the inverse X of a matrix with noise is about that of S - D(X), S without noise (Dyson's
equation, exact as p grows); so the inverse of S is taken to be (X^-1 + D(X))^-1, which is the plain
inverse less its bias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.moments import without_means
from gramercy.estimators.uncertainty.correlation_errors import Relation, relation
from gramercy.estimators.uncertainty.entry_covariance import Spread, of_noise
from gramercy.estimators.uncertainty.row_law import of_rows
from gramercy.estimators.uncertainty.tails import shape_of
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]
Of = Literal["correlation", "partial-correlation"]

_CLEAR = 2.0  # deviations of the noise that the power of a column must be
_WEIGHT = 5.0  # and the weight of the column of ones
_BENT = 0.1  # largest share of an eigenvalue of the inverse that may be noise's doing


@dataclass(frozen=True)
class Moments:
    """A noisy second moment, about the means where these are known.

    Parameters
    ----------
    matrix, plain
        With noise, and its best positive semidefinite form; shape (q, q), q = p, or p - 1 about
        means.
    sampling, noise
        What varies in `plain` and in `matrix`.
    linear
        L of the first-order error L E L^T, shape (q, p).
    first
        1 about means, where the first column of the release is that of ones; else 0.
    lost
        Whether the weight of the column of ones is lost in the noise, so that nothing is known.
    """

    matrix: Array
    plain: Array
    sampling: Spread
    noise: Spread
    linear: Array
    first: int
    lost: bool

    def variances(self) -> tuple[Array, Array]:
        """Of every entry, by sampling and by noise; shape (q, q) each."""
        q = len(self.matrix)
        sampled, noisy = self.sampling.variance(q), self.noise.variance(q)
        return np.maximum(sampled, 0.0), np.maximum(noisy, 0.0)


def has_intercept(evidence: Evidence) -> bool:
    """Whether the first column is that of ones."""
    return bool(evidence.columns) and evidence.columns[0] is None


def of_all(evidence: Evidence) -> Moments:
    """Second moments of all columns about zero, and how they vary."""
    raw, plain, rows = evidence.raw, evidence.repaired, max(evidence.rows, 1.0)
    sampling = of_rows(plain, rows, unit=evidence.unit, intercept=has_intercept(evidence))
    noise = noise_of(evidence)
    return Moments(raw, plain, sampling, noise, np.eye(len(raw)), 0, lost=False)


def noise_of(evidence: Evidence) -> Spread:
    """Of the released matrix: its noise law, and what a noisy divisor adds to it.

    Notes
    -----
    Divided by a noisy number of rows of relative deviation d, S carries -S d besides. Divided by
    its own noisy trace, E becomes E - S tr E; where entries of E are uncorrelated, with variance
    t on the diagonal, its covariance gains t ((S - I) (S - I) - S S - I I) + p t S S.
    """
    law, plain, rows = evidence.law, evidence.repaired, max(evidence.rows, 1.0)
    found = of_noise(law, plain, rows)
    if evidence.divisor == "noisy":
        share = (evidence.rows_sd / rows) ** 2
        return replace(found, squares=(*found.squares, (share, plain)))
    if evidence.divisor == "itself" and law.cell_variance is None:
        t, one, whole = law.sd_diagonal**2, np.eye(len(plain)), plain / _size(plain)
        own = ((t, whole - one), ((len(plain) - 1) * t, whole), (-t, one))
        return replace(found, squares=(*found.squares, *own))
    return found


def _size(matrix: Array) -> float:
    return float(np.trace(matrix)) or 1.0


def moments(evidence: Evidence) -> Moments:
    """As `of_all`; about the means of all columns but the first, where that is of ones."""
    found = of_all(evidence)
    if not has_intercept(evidence):
        return found
    raw, plain = found.matrix, found.plain
    one = np.eye(len(raw))
    if min(raw[0, 0], plain[0, 0]) <= _WEIGHT * evidence.deviations[0, 0]:
        return Moments(raw[1:, 1:], plain[1:, 1:], Spread(), Spread(), one[1:], 1, lost=True)
    linear, about = (one[1:] - np.outer(m[1:, 0], one[0]) / m[0, 0] for m in (raw, plain))
    return Moments(
        without_means(raw),
        without_means(plain),
        found.sampling.through(about),
        found.noise.through(linear),
        linear,
        1,
        lost=False,
    )


def related(evidence: Evidence, of: Of) -> Relation:
    """Correlations or partial correlations; of shape (q, q), q = p, or p - 1 about means."""
    found = moments(evidence)
    if found.lost:
        return _nothing(len(found.matrix))
    shape = shape_of(evidence.law, found.linear)
    if of == "correlation":
        clear = np.diag(found.matrix) > _CLEAR * np.sqrt(np.diag(found.noise.variance(len(shape))))
        clear &= np.diag(found.plain) > 0
        return relation(found.matrix, found.plain, found.sampling, found.noise, shape, clear)
    return _partial(evidence, found)


def _partial(evidence: Evidence, found: Moments) -> Relation:
    """Correlations of the inverse; their signs are turned."""
    q, rows = len(found.matrix), max(evidence.rows, 1.0)
    freedom = rows - q - found.first
    denoised = None if freedom < 3 else without_bias(found.matrix, found.noise)
    if denoised is None:
        return _nothing(q)
    inverse = np.linalg.inv(denoised)
    inverse = (inverse + inverse.T) / 2
    plain = evidence.raw.copy()
    plain[found.first :, found.first :] += denoised - found.matrix
    sampling = moments(replace(evidence, repaired=plain)).sampling.through(inverse)
    noise = _less_bias(found.noise, inverse).through(inverse)
    shape = shape_of(evidence.law, inverse @ found.linear)
    every = np.ones(q, dtype=bool)
    return relation(inverse, inverse, sampling, noise, shape, every, rows / freedom).turned()


def _nothing(q: int) -> Relation:
    zero, never = np.zeros((q, q)), np.zeros((q, q), dtype=bool)
    return Relation(zero, zero, (zero, zero, zero), np.full((q, q), np.inf), never, zero, zero)


def _less_bias(noise: Spread, inverse: Array) -> Spread:
    """Noise also makes X P X too large, by X D(X P X) X: take that from P."""
    return replace(
        noise,
        products=tuple(
            (p - noise.bend(inverse @ p @ inverse), q - noise.bend(inverse @ q @ inverse))
            for p, q in noise.products
        ),
    )


def without_bias(matrix: Array, noise: Spread) -> Array | None:
    """The matrix whose inverse is that before noise, or None where noise may have made it.

    Parameters
    ----------
    matrix
        Noisy, symmetric, shape (p, p).
    noise
        Its spread.
    """
    values, vectors = np.linalg.eigh(matrix)
    if values.size == 0 or values[0] <= 1e-12 * values[-1]:
        return None
    bend = noise.bend((vectors / values) @ vectors.T)
    root = vectors / np.sqrt(values)
    if np.linalg.eigvalsh(root.T @ bend @ root)[-1] > _BENT:
        return None
    return matrix + bend
