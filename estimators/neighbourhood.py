"""Neighbourhood selection: a graph from the lasso of each column on all others.

Meinshausen and Buehlmann (2006), "High-dimensional graphs and variable selection with the lasso".
For every column j, with R the correlation matrix:

minimise over b with b_j = 0:  b^T R b / 2 - R_j^T b + penalty sum |b_i|

The columns whose coefficients are not zero are the neighbours of j.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gramercy.estimators.about_means import DependenceEstimator
from gramercy.estimators.estimator import Estimate
from gramercy.estimators.input_matrix import correlation_matrix, retained_share
from gramercy.estimators.solvers.columnwise import columnwise
from gramercy.schemas import wordings
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.model import Positive

Array = NDArray[np.float64]

Rule = Literal["and", "or"]


class NeighbourhoodSelection(DependenceEstimator):
    """``neighbourhood``: a graph, with a weight for every edge.

    It works on the denoised matrix with the same diagonal floor as the graphical lasso: a tenth of
    the noise's standard deviation.

    Parameters
    ----------
    rule
        ``and``: an edge if each column is a neighbour of the other; its weight is the smaller of
        the two coefficients. ``or``: an edge if one is a neighbour of the other; its weight is the
        larger.
    penalty
        A positive number, on the scale of correlations: at 1 or more the graph is empty. ``auto``:
        from the noise law and the number of rows.
    """

    name: Literal["neighbourhood"] = "neighbourhood"
    rule: Rule = "and"
    penalty: Literal["auto"] | Positive = "auto"

    def fit_columns(self, evidence: Evidence) -> Estimate:
        penalty = auto_penalty(evidence) if self.penalty == "auto" else self.penalty
        coefficients = neighbourhood_coefficients(correlation_matrix(evidence)[0], penalty)
        weights = symmetrised(coefficients, self.rule)
        return Estimate(
            "graph", {"neighbours": weights}, {"penalty": penalty}, edges=weights.copy()
        )


def neighbourhood_coefficients(R: Array, penalty: float) -> Array:
    """Coefficients of every column on the others; not symmetric.

    `R`: correlation matrix, positive semidefinite, shape (p, p). `penalty`: positive. Returns shape
    (p, p): column j has the coefficients of column j, with exact zeros; zero on the diagonal.
    Raises ValueError, RequestError: see `columnwise`; and if the penalty is not positive and
    finite.
    """
    if not 0 < penalty < math.inf:
        raise wordings.not_positive("penalty")
    penalties = np.full(R.shape, penalty)
    np.fill_diagonal(penalties, math.inf)
    return columnwise(R, R, penalties).coefficients


def symmetrised(coefficients: Array, rule: Rule) -> Array:
    """One weight for every pair, from its two coefficients; symmetric, shape (p, p).

    With ``and`` it is the one of smaller magnitude, which is zero if either is; with ``or`` the
    larger one. The sign is kept.
    """
    transposed = coefficients.T
    smaller = np.abs(coefficients) <= np.abs(transposed)
    selected = smaller if rule == "and" else ~smaller
    # Take the upper triangle: a tie of opposite signs must be symmetric, too.
    upper = np.triu(np.where(selected, coefficients, transposed), 1)
    return upper + upper.T + 0.0  # no negative zeros


def auto_penalty(evidence: Evidence) -> float:
    """A penalty from public facts: the noise law, the number of rows, the release.

    As for the graphical lasso: the 95 % quantile of the largest of the p (p - 1) / 2 correlations
    if there were only noise and sampling error, multiplied by the retained share to the power 2.
    The power was found by simulation (AR, banded, hub and random graphs; 10, 30, 100 columns, of
    equal and unequal variance; 500 to 50,000 rows; noise on an entry from 0.001 to 0.5 of the
    average diagonal; 288 releases).

    On 288 other releases of the same kinds, compared with the best penalty of each (which requires
    the truth): the mean F1 of the edges is 0.64 against 0.71, with either rule (Matthews
    correlation 0.60 against 0.68). By noise on an entry: 0.96 against 0.99 (0.001 of the average
    diagonal), 0.88 against 0.96 (0.02), 0.54 against 0.65 (0.1), 0.17 against 0.23 (0.5). For SCIO
    on the unit diagonal it is 0.61 against 0.70; without scaling, the best was lower by 0.01, and
    by 0.03 for columns of unequal variance.
    """
    p = len(evidence.raw)
    average = float((correlation_matrix(evidence)[1] ** 2).mean())
    sampling = 1 / math.sqrt(max(evidence.rows, 1.0))
    level = float(ndtri(1 - 0.05 / max(p * (p - 1), 1)))
    error = math.hypot(evidence.typical_noise / average, sampling)
    return level * retained_share(evidence) ** 2 * error
