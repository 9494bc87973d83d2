"""Means of the numeric columns within each level of a column, with intervals.

With the weights of level k, S_0k and S_kk, which estimate the same number, the mean of column x in
level k is S_kx / w_k for their average w_k by inverse variances. If a share o of the cells of x is
present, it is divided by o: missing cells are zero in scaled units.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.estimators.contingency.table_frame import level_indices
from gramercy.estimators.own_units import OwnUnits
from gramercy.estimators.uncertainty.jackknife import (
    describe_sampling,
    jackknife,
    student_quantile,
)
from gramercy.schemas.column import level_names
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]

_CLEAR = 3.0  # standard deviations of the noise that the weight of a level must exceed


def group_means(evidence: Evidence, units: OwnUnits, by: LevelsFacts, level: float) -> pd.DataFrame:
    """One line for each level and numeric column, in the columns' own units.

    Parameters
    ----------
    evidence, units
        A release, and the columns' own units.
    by
        The column of levels.
    level
        Confidence level of the intervals.

    Returns
    -------
    DataFrame
        ``level``, ``column``, ``mean``, ``standard_error``, ``lower``, ``upper``, ``law``. NaN for
        levels whose weight is within three standard deviations of the noise.

    Notes
    -----
    Standard errors cover noise and sampling. Without folds, sampling errors take the variance
    within each level to be that of the whole column.
    """
    levels = level_indices(evidence, by)
    numeric = [k for k, each in enumerate(evidence.columns) if isinstance(each, ColumnFacts)]
    scaled = np.array(numeric, dtype=np.intp) - 1
    centre, scale, present = (each[scaled] for each in (units.centre, units.scale, units.present))
    variances = evidence.deviations**2
    pair = np.array([variances[0, levels], np.diag(variances)[levels]])
    inverse = 1 / np.where(pair > 0, pair, 1.0)
    of_weight = 1 / inverse.sum(axis=0) if evidence.law.has_noise else np.zeros(len(levels))

    def weights(matrix: Array) -> Array:
        both = np.array([matrix[0, levels], np.diag(matrix)[levels]])
        averaged: Array = (both * inverse).sum(axis=0) / inverse.sum(axis=0)
        return averaged

    def means(matrix: Array) -> Array:
        of_levels = weights(matrix)[:, None]
        positive = np.where(of_levels > 0, of_levels, np.nan)
        result: Array = centre + scale * matrix[np.ix_(levels, numeric)] / positive / present
        return result

    weight = weights(evidence.raw)
    clear = weight > np.maximum(_CLEAR * np.sqrt(of_weight), 0.0)
    safe = np.where(clear, weight, np.nan)[:, None]
    estimate = np.where(clear[:, None], means(evidence.raw), np.nan)
    ratio = (estimate - centre) / scale
    noise_variance = variances[np.ix_(levels, numeric)] / present**2
    noise = scale * np.sqrt(noise_variance + ratio**2 * of_weight[:, None]) / safe
    spread = np.maximum(np.diag(units.moments(evidence.repaired).covariance)[scaled], 0.0)
    share = np.clip(safe / evidence.raw[0, 0], 0.0, 1.0)
    sampling = np.sqrt(spread / present / (share * max(evidence.rows, 1.0)))
    error, z = np.hypot(noise, sampling), student_quantile(level, np.inf)
    folds = jackknife(evidence, means)
    if folds is not None:
        error, z = np.maximum(folds.standard_error, noise), student_quantile(level, folds.freedom)
    names = [units.names[k] for k in scaled]
    labels = [name for name in level_names(by.levels) for _ in names]
    return pd.DataFrame(
        {
            "level": pd.Series(labels, dtype="str"),
            "column": pd.Series(names * len(levels), dtype="str"),
            "mean": estimate.ravel(),
            "standard_error": error.ravel(),
            "lower": (estimate - z * error).ravel(),
            "upper": (estimate + z * error).ravel(),
            "law": pd.Series([describe_sampling(evidence)] * len(labels), dtype="str"),
        }
    )
