"""Standard errors and intervals for every entry of a release.

With five folds or more, errors are those of the jackknife (see `uncertainty.jackknife`), for rows
of any law. Without folds they are for Gaussian rows, and the result says so next to its numbers.

Coverage of 95 % intervals without folds, of the estimable entries, in simulations with AR(1), hub
and random graphs; p = 10 to 40; n = 1,000 to 50,000; Gaussian rows, divided by their length or not;
noise with a standard deviation of 0 to 0.2 times the average variance of a column; partial
correlations from the inverse:

| noise | correlations | partial correlations |
|---|---|---|
| none | 94.8 % to 95.3 % | 94.7 % to 95.9 % |
| gaussian-isotropic, gaussian-iid, laplace | 94.7 % to 95.4 % | 94.8 % to 97.1 % |
| k-norm, matrix-laplace | 94.7 % to 95.7 % | 94.8 % to 97.1 % |
| wishart (its skewness is neglected) | 94.3 % to 96.1 % | 95.3 % to 97.6 % |

The errors of variances are skewed, so their intervals have less coverage with few rows: 91 % with
25 rows. Partial correlations have more than 96 % only near the noise level at which they stop being
estimable. If fewer than one in five correlations is estimable, because the variances of most
columns are lost in the noise, selection lowers the coverage of these few to 92 % to 95 %.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from gramercy.estimators.caveats import caveats, kinds_of
from gramercy.estimators.estimator import Estimate, Estimator
from gramercy.estimators.uncertainty.entries import (
    correlation,
    covariance,
    second_moment,
)
from gramercy.estimators.uncertainty.entry_estimates import Entries, Target
from gramercy.estimators.uncertainty.jackknife import (
    describe_sampling,
    has_jackknife,
    student_quantile,
)
from gramercy.estimators.uncertainty.moment_errors import has_intercept
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]
_CLEAREST_PAIRS = 25

Level = Annotated[float, Field(strict=True, gt=0.5, lt=1, allow_inf_nan=False)]


class Intervals(Estimator):
    """``intervals``: standard errors, and an interval for each entry.

    Parameters
    ----------
    of
        ``correlation`` (the default), ``partial-correlation``, or ``covariance``. About the means
        if the release has an intercept; about zero otherwise.
    level
        Confidence level of each interval.
    target
        Whose value an interval contains: that of the ``population`` of which the rows are a sample
        (the default), or that of the ``table`` itself.

    Notes
    -----
    The estimand is the second moment of the normalised rows, and what follows from it. Correlations
    of a release that publishes what clipping took away are those of the rows before clipping.
    With folds, noise and sampling errors together are estimated from them, by a jackknife; what
    clipping does to the rows is not an error of this estimand, and is not included. Otherwise noise
    errors follow the exact noise law, and sampling errors the law of Gaussian rows, since fourth
    moments are not released. The table ``laws`` names both laws, and so does the column ``law`` of
    the other tables. If the release states the shares of cells that are present, correlations are
    corrected for missing cells as in `estimators.table_units`.

    Partial correlations come from the inverse. If noise may have produced its smallest eigenvalues,
    they come from the lasso of every column on the others (see `uncertainty.partial_correlations`).

    Where the noise is too strong for an estimate, it is 0 with standard error 1, and the interval
    is [-1, 1]; ``unknown`` counts such pairs. The intercept has no correlations, and its entries
    are the same; among covariances they are the released ones.
    """

    name: Literal["intervals"] = "intervals"
    of: Literal["covariance", "correlation", "partial-correlation"] = "correlation"
    level: Level = 0.95
    target: Target = "population"

    def fit(self, evidence: Evidence) -> Estimate:
        bounds: tuple[Array, ...]
        if self.of == "covariance":
            entries = covariance(evidence)
            bounds = inner = _finite_bounds(entries, self.level, self.target)
            if has_intercept(evidence):
                bounds = _finite_bounds(second_moment(evidence), self.level, self.target)
                for outer, own in zip(bounds, inner, strict=True):
                    outer[1:, 1:] = own
        else:
            entries, p = correlation(evidence, self.of), len(evidence.raw)
            fills = ((0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, 1.0))  # for the intercept
            own_bounds = zip(_finite_bounds(entries, self.level, self.target), fills, strict=True)
            bounds = tuple(padded(matrix, p, *fill) for matrix, fill in own_bounds)
        names = ("estimate", "standard_error", "lower", "upper")
        folds = len(evidence.folds) if has_jackknife(evidence) else 0
        tuning = {
            "level": self.level,
            "critical_value": student_quantile(self.level, folds - 1 if folds else math.inf),
            "unknown": float(np.triu(~entries.estimable).sum()),
            **({"folds": float(folds)} if folds else {}),
        }
        matrices = dict(zip(names, bounds, strict=True))
        # The pairs with the largest ratio of estimate to standard error.
        row, column = np.triu_indices(len(evidence.raw), 1)
        labels = np.array(
            evidence.names or [str(i) for i in range(len(evidence.raw))], dtype=object
        )
        values = {key: matrix[row, column] for key, matrix in matrices.items()}
        ratio = np.abs(values["estimate"]) / np.maximum(values["standard_error"], 1e-300)
        top = np.argsort(-ratio, kind="stable")[:_CLEAREST_PAIRS]
        known, ends = caveats(evidence), (labels[row[top]], labels[column[top]])
        kinds = [
            "; ".join(dict.fromkeys(filter(None, (kinds_of(known, a), kinds_of(known, b)))))
            for a, b in zip(*ends, strict=True)
        ]
        clearest = {
            "row": ends[0],
            "column": ends[1],
            **{key: value[top] for key, value in values.items()},
            "caveat": pd.Series(kinds, dtype="str"),
            "law": describe_sampling(evidence),
            "target": self.target,
        }
        tables = {"clearest": pd.DataFrame(clearest), "laws": error_laws(evidence)}
        return Estimate("intervals", matrices, tuning, tables)


def error_laws(evidence: Evidence) -> pd.DataFrame:
    """The laws by which noise and sampling errors were computed."""
    rows = describe_sampling(evidence)
    if not has_jackknife(evidence):
        intercept = has_intercept(evidence)
        centre = "the means that the column of ones shows" if intercept else "mean zero"
        divided = ", divided by their length" if evidence.unit else ""
        rows = f"Gaussian rows with {centre}{divided}"
    return pd.DataFrame(
        {"error": ["noise", "sampling"], "law": [evidence.law.family, rows], "exact": ["yes", "no"]}
    )


def padded(matrix: Array, p: int, fill: float, diagonal: float) -> Array:
    """Add a row and column for the intercept, if it was left out; shape (p, p)."""
    offset = p - len(matrix)
    full = np.full((p, p), fill)
    full[offset:, offset:] = matrix
    np.fill_diagonal(full, diagonal)
    return full


def _finite_bounds(
    entries: Entries, level: float, target: Target
) -> tuple[Array, Array, Array, Array]:
    """Estimate, standard error and bounds; 0 with standard error 1 where not estimable."""
    lower, upper = entries.interval(level, target)
    estimate = np.where(entries.estimable, entries.estimate, 0.0)
    return estimate, np.where(entries.estimable, entries.error(target), 1.0), lower, upper
