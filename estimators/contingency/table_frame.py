"""Cells and margins of a noisy table in long form, with intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.estimators.contingency.noisy_table import Indices, noisy_table
from gramercy.estimators.uncertainty.jackknife import (
    describe_sampling,
    jackknife,
    student_quantile,
)
from gramercy.estimators.uncertainty.tails import critical_value, gamma_shape
from gramercy.schemas.column import level_names
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import LevelsFacts

Array = NDArray[np.float64]

ALL, OTHER = "(all)", "(no declared level)"  # lines of margins, and of other cells


def table_frame(
    evidence: Evidence, rows: LevelsFacts, columns: LevelsFacts | None, level: float
) -> pd.DataFrame:
    """The cells of two columns of levels, or of one, and their margins.

    Parameters
    ----------
    evidence
        A release with an intercept, in which rows were not divided by their own length.
    rows, columns
        The columns of levels.
    level
        Confidence level of the intervals.

    Returns
    -------
    DataFrame
        ``row`` and ``column``, the levels; ``count`` with ``count_lower`` and ``count_upper``, an
        interval that covers the noise alone; ``share`` with ``standard_error``, ``lower`` and
        ``upper``, which cover noise and sampling; and ``law``, what is assumed about sampling. NaN
        if noise hides the weight of all rows.
    """
    table = noisy_table(evidence, level_indices(evidence, rows), level_indices(evidence, columns))
    sums, labels = _lines(table.shape, rows, columns)
    share, unbiased = sums @ table.share.ravel(), sums @ table.unbiased.ravel()
    noise = np.sqrt(np.maximum(((sums @ table.noise) * sums).sum(axis=1), 0.0))
    entry = gamma_shape(evidence.law, np.eye(len(evidence.raw))[:2])[:1, 1]
    z = float(critical_value(1 - level, np.ones(1), entry)[0])  # sums have lighter tails
    n = evidence.rows
    reach = z * np.hypot(noise, unbiased * evidence.rows_sd / max(n, 1.0))
    count_lower, count_upper = (n * each for each in _bounds(unbiased, reach, share, np.inf))
    error = np.hypot(noise, np.sqrt(np.maximum(share * (1 - share), 0.0) / max(n, 1.0)))
    folds = jackknife(evidence, lambda matrix: sums @ table.shares_of(matrix))
    if folds is not None:
        error = np.maximum(folds.standard_error, noise)
        z = max(z, student_quantile(level, folds.freedom))
    lower, upper = _bounds(unbiased, z * error, share, 1.0)
    return pd.DataFrame(
        {
            "row": pd.Series([row for row, _ in labels], dtype="str"),
            "column": pd.Series([column for _, column in labels], dtype="str"),
            "count": share * n,
            "count_lower": count_lower,
            "count_upper": count_upper,
            "share": share,
            "standard_error": error,
            "lower": lower,
            "upper": upper,
            "law": pd.Series([describe_sampling(evidence)] * len(labels), dtype="str"),
        }
    )


def level_indices(evidence: Evidence, facts: LevelsFacts | None) -> Indices:
    """Matrix columns of the levels of a column; none for None."""
    return [k for k, column in enumerate(evidence.columns) if facts and column == facts]


def _bounds(unbiased: Array, reach: Array, share: Array, largest: float) -> tuple[Array, Array]:
    """Bounds that contain the share, and are not a point where noise made `unbiased` negative."""
    lower = np.clip(unbiased - reach, 0.0, largest)
    upper = np.clip(np.maximum(unbiased, 0.0) + reach, 0.0, largest)
    return np.minimum(lower, share), np.maximum(upper, share)


def _lines(
    shape: tuple[int, int], rows: LevelsFacts, columns: LevelsFacts | None
) -> tuple[Array, list[tuple[str, str]]]:
    """Which cells each line sums, and its labels: the cells, then the margins and the total."""
    cells = np.eye(shape[0] * shape[1]).reshape(*shape, -1)
    everything = cells.sum(axis=(0, 1))[None]
    *first, all_rows = _labels(rows)
    if columns is None:
        labels = [(name, "") for name in (*first, all_rows)]
        return np.concatenate([cells[:, 0], everything]), labels
    *second, all_columns = _labels(columns)
    margins = (cells.sum(axis=1), cells.sum(axis=0), everything)
    labels = [(row, column) for row in first for column in second]
    labels += [(row, all_columns) for row in first]
    labels += [(all_rows, column) for column in (*second, all_columns)]
    return np.concatenate([cells.reshape(shape[0] * shape[1], -1), *margins]), labels


def _labels(column: LevelsFacts) -> list[str]:
    """The levels, then those of other cells and of the margin: in more parentheses than a level."""
    names = level_names(column.levels)
    for label in (OTHER, ALL):
        depth = next(k for k in range(len(names) + 1) if _enclosed(label, k) not in names)
        names.append(_enclosed(label, depth))
    return names


def _enclosed(label: str, depth: int) -> str:
    return "(" * depth + label + ")" * depth
