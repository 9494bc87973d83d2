"""Simulated noise from a public seed, by the noise law of a release."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gramercy.common.metric import congruence
from gramercy.schemas.evidence import Evidence, NoiseTerm
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]
Stream = np.random.RandomState


def stream() -> Stream:
    """A random stream with a public seed: post-processing must be reproducible, not secret.

    RandomState, not Generator: its stream is frozen, so a verifier recomputes the same numbers.
    """
    return Stream(20160301)


def symmetric_root(moment: Array) -> Array:
    """The symmetric root of a positive semidefinite matrix; shape (p, p).

    It does not depend on the signs of the eigenvectors or on ties, so it is equal on all machines.
    """
    values, vectors = np.linalg.eigh(moment)
    root: Array = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def draw(source: Stream, p: int, law: NoiseLaw) -> Array:
    """One draw of the noise minus its mean, shape (p, p).

    ``noisy-rows`` is drawn from its nominal law, that of a GOE matrix; see `draw_row_noise`.
    """
    dof = law.dof or math.nan
    if law.family == "wishart":
        centred: Array = wishart(source, p, dof) - dof * np.eye(p)
        return centred * (law.sd_off_diagonal / math.sqrt(dof))
    if law.family == "matrix-laplace":
        difference: Array = wishart(source, p, dof) - wishart(source, p, dof)
        return difference * (law.sd_off_diagonal / math.sqrt(2 * dof))
    if law.family in {"gaussian-iid", "laplace"}:
        # A symmetric matrix with independent entries.
        size = (p, p)
        drawn = (
            source.standard_normal(size)
            if law.family == "gaussian-iid"
            else source.laplace(scale=math.sqrt(0.5), size=size)
        )
        upper = np.triu(drawn)
        return (upper + np.triu(drawn, 1).T) * law.deviations(p)
    half = source.standard_normal((p, p)) * (law.sd_off_diagonal / math.sqrt(2))
    white: Array = half + half.T
    if law.family == "k-norm":
        dimension = p * (p + 1) // 2
        length = law.sd_diagonal / math.sqrt(dimension + 1) * source.standard_gamma(dimension)
        white *= length / np.linalg.norm(white)
    return white


def draw_noise(source: Stream, evidence: Evidence, moment: Array) -> Array:
    """One draw of the noise of a release, or of a pool, minus its mean; shape (p, p).

    `moment`: second moment without noise, on which the noise of published rows depends.
    """
    law, p = evidence.law, len(moment)
    if law.cell_variance is not None:
        rows = max(round(evidence.rows), 1)
        return draw_row_noise(source, equivalent_rows(moment, rows), law.cell_variance, rows)
    noise = np.zeros((p, p))
    if not law.has_noise:
        return noise
    for term in evidence.terms or (NoiseTerm(law, np.eye(p)),):
        noise += congruence(term.linear, draw(source, term.linear.shape[1], term.law))
    return noise


def equivalent_rows(moment: Array, rows: int) -> Array:
    """The smallest set of rows with the same sum of x x^T; shape (p, min(rows, p)).

    `moment`: second moment, positive semidefinite; shape (p, p). `rows`: number of rows that the
    moment is the average of.
    """
    values, vectors = np.linalg.eigh(moment)
    omitted = len(moment) - min(rows, len(moment))
    root: Array = vectors[:, omitted:] * np.sqrt(rows * np.maximum(values[omitted:], 0.0))
    if omitted == 0:
        root = root @ vectors.T  # does not depend on the signs of the eigenvectors or on ties
        return root
    largest = root[np.abs(root).argmax(axis=0), np.arange(root.shape[1])]
    root = root * np.where(largest < 0, -1.0, 1.0)
    return root


def draw_row_noise(source: Stream, like: Array, variance: float, rows: int) -> Array:
    """Error of the second moment due to Gaussian noise on every row, minus its mean; shape (p, p).

    `variance`: variance of the noise on a cell.

    (X^T Z + Z^T X + Z^T Z) / n - v I depends on X through X^T X alone, since rotations of the rows
    do not change the law of Z. So X is replaced by min(n, p) rows; the noise on the other rows is a
    Wishart matrix.
    """
    noise, squares = draw_row_noise_parts(source, like.shape[0], variance, rows, like.shape[1])
    cross: Array = like @ noise
    return (cross + cross.T + squares) / rows


def draw_row_noise_parts(
    source: Stream, p: int, variance: float, rows: int, first: int
) -> tuple[Array, Array]:
    """The parts of `draw_row_noise` that do not depend on the rows.

    Returns the noise Z on the first rows, shape (first, p), and Z^T Z - n v I for all n
    rows, shape (p, p).
    """
    noise = source.standard_normal((first, p)) * math.sqrt(variance)
    squares: Array = noise.T @ noise - rows * variance * np.eye(p)
    remaining = rows - first
    if remaining >= p:
        squares += variance * wishart(source, p, remaining)
    elif remaining:
        others = source.standard_normal((remaining, p))
        squares += variance * (others.T @ others)
    return noise, squares


def wishart(source: Stream, p: int, dof: float) -> Array:
    """A draw of W_p(dof, I), by its Bartlett decomposition."""
    factor = np.tril(source.standard_normal((p, p)), -1)
    np.fill_diagonal(factor, np.sqrt(source.chisquare(dof - np.arange(p))))
    return factor @ factor.T
