"""Evidence from an analyst's own matrix or rows, for use of the estimators without a release."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.solvers.block import checked_symmetric
from gramercy.schemas import families, wordings
from gramercy.schemas.column import INTERCEPT, matrix_columns
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]


def evidence_from_matrix(
    S: ArrayLike,
    n_samples: float,
    law: NoiseLaw | None = None,
    *,
    names: Sequence[str] = (),
    columns: Sequence[ColumnFacts | LevelsFacts | None] = (),
    unit: bool = False,
    trace: float = math.inf,
) -> Evidence:
    """Evidence from a second moment and its noise law; denoised in the same way as a release.

    Parameters
    ----------
    S
        Symmetric, shape (p, p); may be indefinite. It includes the noise with its mean.
    n_samples
        Number of rows that it is computed from.
    law
        Noise law in the units of `S`; None for no noise.
    names
        Names of the p columns.
    columns
        The table's column for each column of the matrix, None for the intercept.
    unit
        Whether rows were divided by their own length.
    trace
        A public upper bound on the trace without noise: 1 for rows in the unit ball.

    Raises
    ------
    ValueError
        If `S` is not a finite symmetric matrix, or another argument does not fit it.
    """
    given = checked_symmetric(S)
    p = len(given)
    for argument, entries in (("names", names), ("columns", columns)):
        if len(entries) not in {0, p}:
            raise families.MATRIX(
                "{argument} must have one entry for each of the {columns} columns of the matrix, "
                "or be empty.",
                argument=argument,
                columns=p,
            )
    if not 0 < n_samples < math.inf:
        raise wordings.not_positive("n_samples")
    if not trace > 0:
        raise families.MATRIX("{argument} must be positive.", argument="trace")
    law = NoiseLaw.none() if law is None else law
    raw: Array = given - law.mean * np.eye(p)
    return Evidence(
        raw,
        denoise(raw, law, trace, n_samples, unit=unit),
        law,
        float(n_samples),
        tuple(names),
        tuple(columns),
        unit,
        trace=trace,
    )


def evidence_from_rows(X: ArrayLike, *, names: Sequence[str] = ()) -> Evidence:
    """Evidence from rows that are not private: their second moment about zero, X^T X / n.

    Parameters
    ----------
    X
        Shape (n, p). Centre it beforehand for a covariance matrix.
    names
        Names of the p columns.

    Raises
    ------
    ValueError
        If `X` is not a finite table with at least one row and one column.
    """
    rows = np.array(X, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise families.MATRIX("{argument} must have at least one row and one column.", argument="X")
    return evidence_from_matrix(rows.T @ rows / len(rows), len(rows), names=names)


def evidence_from_classes(
    X: ArrayLike, codes: NDArray[np.intp], count: int, *, names: Sequence[str] = ()
) -> Evidence:
    """Evidence from rows that are not private, and their classes.

    The second moment of (1, x, indicators of the classes), like that of a release with an intercept
    and a column of levels; x is scaled to mean 0 and standard deviation 1.

    Parameters
    ----------
    X
        Shape (n, p), finite.
    codes
        Class of each row, from 0 to `count` - 1; shape (n,). The levels are these numbers.
    count
        Number of classes.
    names
        Names of the p columns.
    """
    rows = np.array(X, dtype=np.float64)
    n, p = rows.shape
    centres, lows, highs = rows.mean(axis=0), rows.min(axis=0), rows.max(axis=0)
    spreads = rows.std(axis=0)
    spreads = np.where(spreads > 0, spreads, 1.0)
    column_names = list(names) or [f"x{i}" for i in range(p)]
    facts = [
        ColumnFacts(name=name, lower=float(a), upper=float(b), centre=float(c), scale=float(s))
        for name, a, b, c, s in zip(column_names, lows, highs, centres, spreads, strict=True)
    ]
    levels = LevelsFacts(name="class", levels=tuple(float(k) for k in range(count)))
    full = np.hstack([np.ones((n, 1)), (rows - centres) / spreads, np.eye(count)[codes]])
    return evidence_from_matrix(
        full.T @ full / n,
        n,
        names=[INTERCEPT, *column_names, *matrix_columns(levels.name, levels.levels)],
        columns=[None, *facts, *([levels] * count)],
    )
