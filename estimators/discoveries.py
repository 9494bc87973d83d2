"""Edges of a graph with a controlled false discovery rate.

For each pair of columns the hypothesis of no (partial) correlation is tested, with the noisy matrix
and its exact noise law. Partial correlations are those of the lasso of every column on the others,
with their bias corrected (see `uncertainty.partial_correlations`), so that stronger noise hides
weak edges first. The procedure of Benjamini and Hochberg (1995) controls the expected share of
false edges for independent tests, and in practice for most others; that of Benjamini and Yekutieli
(2001) for any dependence. Intervals of the discovered edges are adjusted for selection: with R
edges of m pairs their level is 1 - rate R / m, and the expected share of them that miss the truth
is at most `rate` (Benjamini and Yekutieli 2005).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray
from pydantic import Field

from gramercy.estimators.estimator import Estimate, Estimator
from gramercy.estimators.intervals import error_laws, padded
from gramercy.estimators.uncertainty.correlation_errors import CorrelationErrors
from gramercy.estimators.uncertainty.entries import CorrelationKind, correlation, edge_errors
from gramercy.estimators.uncertainty.jackknife import describe_sampling, has_jackknife
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

Rate = Annotated[float, Field(strict=True, gt=0, lt=0.5, allow_inf_nan=False)]


class Discoveries(Estimator):
    """``discoveries``: edges at a stated false discovery rate.

    Parameters
    ----------
    of
        ``partial-correlation`` (the default) or ``correlation``.
    rate
        Upper bound on the expected share of false edges among the discovered ones.
    dependence
        ``independent`` (the default): Benjamini and Hochberg. ``any``: Benjamini and Yekutieli,
        with fewer edges.

    Notes
    -----
    See `estimators.intervals.Intervals` for how errors are computed. Without folds, the interval of
    a correlation at the level 1 - p ends at 0. With folds, the variances of pairs are moderated, as
    few folds cannot tell the far tails of one pair. A pair that cannot be
    tested has the p-value 1. Partial correlations are given the columns whose variances exceed the
    noise, and are tested where the noise is small against what other columns leave unexplained. Of
    the levels of a column the first known one is the reference, which has no edges. A correlation
    can be tested even if the variances of its columns are unknown.
    """

    redrawn: ClassVar[bool] = True

    name: Literal["discoveries"] = "discoveries"
    of: Literal["correlation", "partial-correlation"] = "partial-correlation"
    rate: Rate = 0.05
    dependence: Literal["independent", "any"] = "independent"

    def fit(self, evidence: Evidence) -> Estimate:
        errors, p = edge_errors(evidence, self.of), len(evidence.raw)
        p_values = _p_values(evidence, errors, self.of)
        # The smallest rate at which each pair is discovered; symmetric, 1 on the diagonal.
        adjusted = np.ones_like(p_values)
        upper = np.triu_indices_from(p_values, 1)
        if upper[0].size:
            method = "bh" if self.dependence == "independent" else "by"
            adjusted[upper] = scipy.stats.false_discovery_control(p_values[upper], method=method)
        adjusted = np.minimum(adjusted, adjusted.T)
        discovered = np.triu(adjusted <= self.rate, 1)
        q, count = len(discovered), float(discovered.sum())
        pairs = q * (q - 1) // 2
        tuning = {
            "rate": self.rate,
            "edges": count,
            "largest_p_value": float(p_values[discovered].max(initial=0.0)),
            "untested": float(pairs - np.triu(errors.testable, 1).sum()),
        }
        level = 1 - self.rate * max(count, 1.0) / max(pairs, 1)
        names = evidence.names or tuple(str(i) for i in range(p))
        table = _edge_table(errors, discovered, (p_values, adjusted), level, names[p - q :])
        edges = padded(np.where(discovered | discovered.T, errors.estimate, 0.0), p, 0.0, 0.0)
        matrices = {
            "p_values": padded(p_values, p, 1.0, 1.0),
            "adjusted": padded(adjusted, p, 1.0, 1.0),
        }
        table = table.assign(law=describe_sampling(evidence))
        tables = {"discoveries": table, "laws": error_laws(evidence)}
        return Estimate("graph", matrices, tuning, tables, edges)


def _p_values(evidence: Evidence, errors: CorrelationErrors, of: CorrelationKind) -> Array:
    """Without folds, p-values of correlations are those with which their intervals agree."""
    entries = correlation(evidence) if of == "correlation" and not has_jackknife(evidence) else None
    if entries is None or entries.tail is None:
        return errors.p_values
    known = entries.estimable & ~np.eye(len(entries.estimate), dtype=bool)
    return np.where(known, entries.tail(), errors.p_values)


def _edge_table(
    errors: CorrelationErrors,
    discovered: NDArray[np.bool_],
    tests: tuple[Array, Array],
    level: float,
    names: tuple[str, ...],
) -> pd.DataFrame:
    """The edges, by ascending p-value. `tests`: p-values, and adjusted ones."""
    (row, column), (p_values, adjusted) = np.nonzero(discovered), tests
    order = np.argsort(p_values[row, column], kind="stable")
    edges = row[order], column[order]
    lower, upper = errors.interval(level)
    numbers = {
        "estimate": errors.estimate,
        "lower": lower,
        "upper": upper,
        "p_value": p_values,
        "adjusted": adjusted,
    }
    return pd.DataFrame(
        {
            "row": [names[i] for i in edges[0]],
            "column": [names[j] for j in edges[1]],
            **{key: value[edges] for key, value in numbers.items()},
        }
    )
