"""Public draws of noise: what the law of a release looks like without any data."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]
Stream = np.random.RandomState


def stream() -> Stream:
    """A stream with a public seed: post-processing needs no secrecy, only repeatability.

    RandomState, not Generator: its stream is frozen, so a verifier recomputes the same numbers.
    """
    return Stream(20160301)


def draw(source: Stream, p: int, law: NoiseLaw) -> Array:
    """One draw of a law about its mean, shape (p, p).

    Of ``noisy-rows`` the nominal law, as of a GOE matrix; see `of_rows`.
    """
    dof = law.dof or math.nan
    if law.family == "wishart":
        centred: Array = wishart(source, p, dof) - dof * np.eye(p)
        return centred * (law.sd_off_diagonal / math.sqrt(dof))
    if law.family == "matrix-laplace":
        difference: Array = wishart(source, p, dof) - wishart(source, p, dof)
        return difference * (law.sd_off_diagonal / math.sqrt(2 * dof))
    if law.family in {"gaussian-iid", "laplace"}:
        return _independent(source, p, law)
    half = source.standard_normal((p, p)) * (law.sd_off_diagonal / math.sqrt(2))
    white: Array = half + half.T
    if law.family == "k-norm":
        dimension = p * (p + 1) // 2
        length = law.sd_diagonal / math.sqrt(dimension + 1) * source.standard_gamma(dimension)
        white *= length / np.linalg.norm(white)
    return white


def rows_like(moment: Array, rows: int) -> Array:
    """The fewest rows whose sum of x x^T is that of so many rows; shape (p, min(rows, p)).

    Parameters
    ----------
    moment
        Second moment, positive semidefinite; shape (p, p).
    rows
        How many.
    """
    values, vectors = np.linalg.eigh(moment)
    rest = len(moment) - min(rows, len(moment))
    found: Array = vectors[:, rest:] * np.sqrt(rows * np.maximum(values[rest:], 0.0))
    if rest == 0:
        found = found @ vectors.T  # the same whatever signs, and turns of ties, these come with
        return found
    ahead = found[np.abs(found).argmax(axis=0), np.arange(found.shape[1])]
    found = found * np.where(ahead < 0, -1.0, 1.0)
    return found


def of_rows(source: Stream, like: Array, variance: float, rows: int) -> Array:
    """What Gaussian noise on every row adds to the second moment, less its mean; shape (p, p).

    Parameters
    ----------
    source
        Random numbers.
    like
        See `rows_like`.
    variance
        Of the noise on a cell.
    rows
        How many.

    Notes
    -----
    (X^T Z + Z^T X + Z^T Z) / n - v I depends on X through X^T X alone, since rotations of the rows
    leave the law of Z as it is. So X may have min(n, p) rows that are not zero; the noise on the
    others makes a Wishart matrix.
    """
    p, first = like.shape
    noise = source.standard_normal((first, p)) * math.sqrt(variance)
    cross: Array = like @ noise
    added: Array = cross + cross.T + noise.T @ noise - rows * variance * np.eye(p)
    left = rows - first
    if left >= p:
        added += variance * wishart(source, p, left)
    elif left:
        more = source.standard_normal((left, p))
        added += variance * (more.T @ more)
    return added / rows


def wishart(source: Stream, p: int, dof: float) -> Array:
    """W_p(dof, I), by its Bartlett factor."""
    factor = np.tril(source.standard_normal((p, p)), -1)
    np.fill_diagonal(factor, np.sqrt(source.chisquare(dof - np.arange(p))))
    drawn: Array = factor @ factor.T
    return drawn


def _independent(source: Stream, p: int, law: NoiseLaw) -> Array:
    """Independent entries of unit variance, by the deviations of the law."""
    size = (p, p)
    drawn = (
        source.standard_normal(size)
        if law.family == "gaussian-iid"
        else source.laplace(scale=math.sqrt(0.5), size=size)
    )
    upper = np.triu(drawn)
    symmetric: Array = (upper + np.triu(drawn, 1).T) * law.deviations(p)
    return symmetric
