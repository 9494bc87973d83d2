"""Sparse precision matrix, column by column: SCIO.

Liu and Luo (2015), "Fast and adaptive sparse precision matrix estimation in high dimensions": for
every column i

minimise over b:  b^T S b / 2 - b_i + penalty sum |b_j|

and of the two numbers that this gives for a pair, keep the smaller in magnitude.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from gramercy.estimators.estimator import (
    Estimate,
    Estimator,
    partial_correlations,
    precision_estimate,
)
from gramercy.estimators.neighbourhood import auto_penalty, combined
from gramercy.estimators.repaired import correlations
from gramercy.estimators.solvers.columnwise import columnwise
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_LARGEST = 0.9  # automatic penalty; at 1 nothing is left
_ROUNDING = float(np.finfo(np.float64).eps)


class Scio(Estimator):
    """``scio``: a sparse precision matrix; its zeros are a graph's missing edges.

    It takes the repaired matrix with the graphical lasso's floor on its diagonal, divides it to a
    unit diagonal, so that one penalty suits columns of unlike power, and turns the result back.

    Columns that are estimated apart need not make a positive definite matrix. `tuning` has the
    smallest eigenvalue, on the unit diagonal (over 288 simulated releases it was never below 0.14).
    If it is not positive the result is no precision matrix, and is not called one: its kind is
    ``graph``, its matrix ``coefficients``. The edges, -T_ij / sqrt(T_ii T_jj), are the same formula
    either way: T_ii is always positive.

    Parameters
    ----------
    penalty
        A number between 0 and 1, without a unit; at 1 every column would be zero. ``auto``: that of
        neighbourhood selection, from the noise law and the number of rows. It shrinks the diagonal
        too, by a factor of 1 - penalty where there are no edges.
    """

    name: Literal["scio"] = "scio"
    penalty: Literal["auto"] | Annotated[float, Field(strict=True, gt=0, lt=1)] = "auto"

    def fit(self, evidence: Evidence) -> Estimate:
        """See `Estimator.fit`."""
        asked = self.penalty
        penalty = min(auto_penalty(evidence), _LARGEST) if asked == "auto" else asked
        unit, root = correlations(evidence)
        found = scio(unit, penalty)
        matrix = found / np.outer(root, root)
        smallest = _smallest_eigenvalue(found)
        if smallest > _ROUNDING * len(found):
            return precision_estimate(matrix, penalty=penalty, smallest_eigenvalue=smallest)
        tuning = {"penalty": penalty, "smallest_eigenvalue": smallest}
        edges = partial_correlations(matrix)
        return Estimate("graph", {"coefficients": matrix}, tuning, edges=edges)


def scio(S: Array, penalty: float) -> Array:
    """The symmetrised minimisers, not always positive definite.

    Parameters
    ----------
    S
        Symmetric, positive semidefinite, with a positive diagonal; shape (p, p).
    penalty
        Between 0 and 1, on the scale of S T.

    Returns
    -------
    ndarray, shape (p, p)
        Symmetric, with exact zeros and a positive diagonal: b_i = b^T S b + penalty sum |b_j| at
        the minimum, and b = 0 is none below a penalty of 1.

    Raises
    ------
    ValueError
        If the penalty is not between 0 and 1, or S is not what it must be.
    RequestError
        If the columns did not settle: S is singular, or nearly so, and the penalty too small.
    """
    if not 0 < penalty < 1:
        raise ValueError("the penalty must lie between 0 and 1")
    p = len(S)
    found = columnwise(S, np.eye(p), np.full((p, p), penalty)).coefficients
    symmetric: Array = combined(found, "and") + np.diag(np.diagonal(found))
    return symmetric


def _smallest_eigenvalue(matrix: Array) -> float:
    """Of the matrix on its unit diagonal."""
    root = np.sqrt(np.diagonal(matrix))
    return float(np.linalg.eigvalsh(matrix / np.outer(root, root))[0])
