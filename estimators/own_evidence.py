"""Evidence from an analyst's own matrix or rows, for those who have no release at hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramercy.estimators.noise.denoise import denoise
from gramercy.schemas.column import INTERCEPT, features
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]

_ROUNDING = 1e-10  # share of the largest entry by which a symmetric matrix may fail to be one


def of_matrix(
    S: ArrayLike,
    n_samples: float,
    law: NoiseLaw | None = None,
    *,
    names: Sequence[str] = (),
    columns: Sequence[ColumnFacts | LevelsFacts | None] = (),
    unit: bool = False,
    trace: float = math.inf,
) -> Evidence:
    """Evidence from a second moment and the law of its noise, repaired as a release's is.

    Parameters
    ----------
    S
        Symmetric, shape (p, p); may be indefinite. Noise included, its mean too.
    n_samples
        Number of rows behind it.
    law
        Of the noise, in the units of `S`; None for no noise.
    names
        Of the p columns.
    columns
        The table's column behind each column of the matrix, None for the intercept.
    unit
        Whether rows were divided by their own length.
    trace
        A public bound on the trace of the matrix without noise: 1 for rows of the unit ball.

    Raises
    ------
    ValueError
        If `S` is no finite symmetric matrix, or something else does not fit it.
    """
    given = np.array(S, dtype=np.float64)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or not given.size:
        raise ValueError("the matrix must be square, with at least one column")
    if not np.isfinite(given).all():
        raise ValueError("the matrix must be finite")
    if np.abs(given - given.T).max() > _ROUNDING * np.abs(given).max():
        raise ValueError("the matrix must be symmetric")
    p = len(given)
    if any(len(each) not in {0, p} for each in (names, columns)):
        raise ValueError(f"names and columns must be {p}, as the matrix has columns, or none")
    if not (0 < n_samples < math.inf and trace > 0):
        raise ValueError("the number of samples must be positive and finite, the trace positive")
    law = NoiseLaw.none() if law is None else law
    raw: Array = given / 2 + given.T / 2 - law.mean * np.eye(p)
    repaired = denoise(raw, law, trace, n_samples)
    known = (law, float(n_samples), tuple(names), tuple(columns), unit)
    return Evidence(raw, repaired, *known, trace=trace)


def of_rows(X: ArrayLike, *, names: Sequence[str] = ()) -> Evidence:
    """Evidence from rows that are not private: their second moment about zero, X^T X / n.

    Parameters
    ----------
    X
        Shape (n, p). Centre it beforehand for a covariance matrix.
    names
        Of the p columns.

    Raises
    ------
    ValueError
        If `X` is no finite table with at least one row and one column.
    """
    rows = np.array(X, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise ValueError("the rows must be a table with at least one row and one column")
    return of_matrix(rows.T @ rows / len(rows), len(rows), names=names)


def of_classes(
    X: ArrayLike, codes: NDArray[np.intp], count: int, *, names: Sequence[str] = ()
) -> Evidence:
    """Evidence from rows that are not private, and the class of each.

    The second moment of (1, x, zeros and ones of the classes), as a release has it that carries an
    intercept and a column of levels; x is scaled to mean 0 and deviation 1.

    Parameters
    ----------
    X
        Shape (n, p), finite.
    codes
        Class of each row, from 0 to `count` - 1; shape (n,). The levels are these numbers.
    count
        How many classes.
    names
        Of the p columns.
    """
    rows = np.array(X, dtype=np.float64)
    n, p = rows.shape
    centres, lows, highs = rows.mean(axis=0), rows.min(axis=0), rows.max(axis=0)
    spreads = rows.std(axis=0)
    spreads = np.where(spreads > 0, spreads, 1.0)
    called = list(names) or [f"x{i}" for i in range(p)]
    facts = [
        ColumnFacts(name=name, lower=float(a), upper=float(b), centre=float(c), scale=float(s))
        for name, a, b, c, s in zip(called, lows, highs, centres, spreads, strict=True)
    ]
    levels = LevelsFacts(name="class", levels=tuple(float(k) for k in range(count)))
    full = np.hstack([np.ones((n, 1)), (rows - centres) / spreads, np.eye(count)[codes]])
    return of_matrix(
        full.T @ full / n,
        n,
        names=[INTERCEPT, *called, *features(levels.name, levels.levels)],
        columns=[None, *facts, *([levels] * count)],
    )
