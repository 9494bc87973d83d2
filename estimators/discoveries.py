"""Edges of a graph, with a bound on the share of them that are false.

Every pair of columns is tested for no (partial) correlation, from the noisy matrix and its exact
noise law. Benjamini and Hochberg (1995) hold the expected share of false edges for tests that are
independent, and in practice for most others; Benjamini and Yekutieli (2001), for any dependence.
Intervals of the edges found are wider than those of pairs chosen beforehand: at level
1 - rate R / m for R edges of m pairs, of which on average no more than `rate` miss the truth
(Benjamini and Yekutieli 2005).
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field
from scipy.stats import false_discovery_control

from gramercy.estimators.estimator import Estimate, Estimator
from gramercy.estimators.intervals import laws, whole
from gramercy.estimators.uncertainty.correlation_errors import Relation
from gramercy.estimators.uncertainty.entry_errors import related
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
        The expected share of false edges among those found, at most.
    dependence
        ``independent`` (the default): by Benjamini and Hochberg. ``any``: by Benjamini and
        Yekutieli, with fewer edges.

    Notes
    -----
    See `estimators.intervals.Intervals` for what the errors are reckoned by. A pair of which
    nothing is known has the p-value 1: with partial correlations, that is every pair where noise
    may have made the smallest eigenvalues; a correlation can be tested even where the powers of
    its columns are unknown.
    """

    name: Literal["discoveries"] = "discoveries"
    of: Literal["correlation", "partial-correlation"] = "partial-correlation"
    rate: Rate = 0.05
    dependence: Literal["independent", "any"] = "independent"

    def fit(self, evidence: Evidence) -> Estimate:
        """See `Estimator.fit`."""
        found, p = related(evidence, self.of), len(evidence.raw)
        p_values = found.p_values
        adjusted = _adjusted(p_values, self.dependence)
        chosen = np.triu(adjusted <= self.rate, 1)
        pairs = max(len(chosen) * (len(chosen) - 1) // 2, 1)
        tuning = {
            "rate": self.rate,
            "edges": float(chosen.sum()),
            "largest_p_value": float(p_values[chosen].max(initial=0.0)),
            "untested": float(len(chosen) * (len(chosen) - 1) // 2 - _tested(found)),
        }
        level = 1 - self.rate * max(float(chosen.sum()), 1.0) / pairs
        names = evidence.names or tuple(str(i) for i in range(p))
        table = _table(found, chosen, adjusted, level, names[p - len(chosen) :])
        edges = whole(np.where(chosen | chosen.T, found.estimate, 0.0), p, 0.0, 0.0)
        matrices = {
            "p_values": whole(p_values, p, 1.0, 1.0),
            "adjusted": whole(adjusted, p, 1.0, 1.0),
        }
        tables = {"discoveries": table, "laws": laws(evidence)}
        return Estimate("graph", matrices, tuning, tables, edges)


def _tested(found: Relation) -> int:
    return int(np.triu(found.score != 0, 1).sum())


def _adjusted(p_values: Array, dependence: str) -> Array:
    """Smallest rates at which pairs are chosen, 1 on the diagonal; symmetric."""
    found = np.ones_like(p_values)
    pairs = np.triu_indices_from(p_values, 1)
    if pairs[0].size:
        method = "bh" if dependence == "independent" else "by"
        found[pairs] = false_discovery_control(p_values[pairs], method=method)
    return np.minimum(found, found.T)


def _table(
    found: Relation,
    chosen: NDArray[np.bool_],
    adjusted: Array,
    level: float,
    names: tuple[str, ...],
) -> pd.DataFrame:
    """The edges, surest first."""
    row, column = np.nonzero(chosen)
    order = np.argsort(found.p_values[row, column], kind="stable")
    here = row[order], column[order]
    lower, upper = found.interval(level)
    numbers = {
        "estimate": found.estimate,
        "lower": lower,
        "upper": upper,
        "p_value": found.p_values,
        "adjusted": adjusted,
    }
    return pd.DataFrame(
        {
            "row": [names[i] for i in here[0]],
            "column": [names[j] for j in here[1]],
            **{key: value[here] for key, value in numbers.items()},
        }
    )
