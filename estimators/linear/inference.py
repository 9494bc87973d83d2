"""The table of coefficients: tests and intervals from the errors of a regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.estimators.linear.regression import Regression
from gramercy.estimators.uncertainty.jackknife import (
    reach_tail,
    squared_reaches,
    student_quantile,
    student_tail,
)
from gramercy.estimators.uncertainty.tails import critical_value, tail_probability

Array = NDArray[np.float64]

LOST = "noise hides the outcome"
HIDDEN = "noise or other terms hide it"


def inference(result: Regression | None, terms: Sequence[str], level: float) -> pd.DataFrame:
    """One line for each term, the intercept first.

    Parameters
    ----------
    result
        None if nothing is known.
    terms
        Names of the 1 + k terms.
    level
        Confidence level of the intervals.

    Returns
    -------
    DataFrame
        See `estimators.regression.LinearRegression.fit`. NaN for what is unknown, and the
        ``reason``.
    """
    numbers = ("coefficient", "standard_error", "t", "p_value", "lower", "upper", "bias")
    if result is None:
        table = pd.DataFrame({"term": list(terms), **dict.fromkeys(numbers, np.nan)})
        return table.assign(fitted=np.nan, known="no", reason=LOST)
    known = result.known
    error = np.hypot(result.noise_error, result.sampling_error)
    estimate = result.coefficients
    share = np.divide(result.noise_error**2, error**2, out=np.zeros_like(error), where=error > 0)
    beyond = np.maximum(np.abs(estimate) - result.bias, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        t, distance = estimate / error, np.where(beyond > 0, beyond / error, 0.0)
    if result.by_folds:
        tail = reach_tail(distance, result.freedom, share)
    else:
        tail = student_tail(distance, result.freedom)
    p_value = np.maximum(tail_probability(distance, share, result.shape), tail)
    reach = result.bias + error * _quantile(level, share, result)
    values = (estimate, error, t, p_value, estimate - reach, estimate + reach, result.bias)
    columns = {
        name: np.where(known, each, np.nan) for name, each in zip(numbers, values, strict=True)
    }
    return pd.DataFrame(
        {
            "term": list(terms),
            **columns,
            "fitted": result.fitted,
            "known": np.where(known, "yes", "no"),
            "reason": np.where(known, "", HIDDEN),
        }
    )


def standardised(result: Regression | None, table: pd.DataFrame) -> pd.DataFrame:
    """Coefficients in standard deviations of the outcome for one of the regressor.

    Parameters
    ----------
    result, table
        A regression, and the table of `inference`.

    Returns
    -------
    DataFrame
        ``term``, ``estimate``, ``lower`` and ``upper``, without the intercept; NaN where a
        coefficient, or the variance of its regressor, is unknown.
    """
    factor = np.nan if result is None else result.standardised[1:]
    numbers = {"estimate": "coefficient", "lower": "lower", "upper": "upper"}
    scaled = {name: table[source].iloc[1:] * factor for name, source in numbers.items()}
    return pd.DataFrame({"term": table["term"].iloc[1:], **scaled}).reset_index(drop=True)


def _quantile(level: float, share: Array, result: Regression) -> Array:
    """Half the width of an interval of this level, in standard errors."""
    if result.by_folds:
        return np.sqrt(sum(squared_reaches(level, result.freedom, 1 - share, share, result.shape)))
    normal = critical_value(1 - level, share, result.shape)
    return np.maximum(normal, student_quantile(level, result.freedom))
