"""The paper's protocol: noise levels in decibels, the debiased graphical lasso, competitors.

Penalties are .5 sqrt(log p / n), times the power of the rows (the mean square of a cell) if the
matrix is not scaled to a unit diagonal. If a method has no solution, its penalty is doubled until
there is one. If no penalty has a solution, all pairs rank equally, and the area is 0.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.neighbourhood import neighbourhood_coefficients, symmetrised
from gramercy.estimators.scio import scio
from gramercy.estimators.solvers.glasso import graphical_lasso
from gramercy.schemas.errors import NoMinimiser, RequestError

Array = NDArray[np.float64]
Edges = NDArray[np.bool_]
Rng = np.random.Generator
_DOUBLINGS = 12


@dataclass(frozen=True)
class Noisy:
    """A published moment, and the facts that the paper's analyst uses.

    Parameters
    ----------
    moment
        Y^T Y / n of the noisy rows, shape (p, p).
    variance
        Variance of the noise on a cell.
    rows
        Number of rows.
    power
        Mean square of a cell without noise; private, but treated as known.
    """

    moment: Array
    variance: float
    rows: int
    power: float

    @property
    def debiased(self) -> Array:
        """The moment minus the expected noise; often not positive semidefinite."""
        return self.moment - self.variance * np.eye(len(self.moment))

    @property
    def penalty(self) -> float:
        """The penalty on the scale of correlations."""
        return penalty(self.rows, len(self.moment))


@dataclass(frozen=True)
class Estimate:
    """The estimate of a method.

    Parameters
    ----------
    weights
        Weights whose absolute values rank the pairs, shape (p, p); all zero without a solution.
    doublings
        Number of doublings of the penalty until a solution; -1 if there was none.
    """

    weights: Array
    doublings: int

    @property
    def edges(self) -> Edges:
        """The pairs with nonzero weight, without the diagonal."""
        result: Edges = self.weights != 0
        np.fill_diagonal(result, False)
        return result


@dataclass(frozen=True)
class Method:
    """A method, with its title on the page."""

    title: str
    find: Callable[[Noisy], Estimate]


def penalty(n: int, p: int) -> float:
    return 0.5 * math.sqrt(math.log(p) / n)


def spread(power: float, decibels: float) -> float:
    """Standard deviation of the noise on a cell; 0 at infinite decibels."""
    return math.sqrt(power) * 10 ** (-decibels / 20)


def published(rows: Array, decibels: float, rng: Rng) -> Noisy:
    """Add Gaussian noise to every cell of centred rows, and return the noisy moment."""
    power = float(np.mean(rows**2))
    sigma = spread(power, decibels)
    noisy = rows + sigma * rng.standard_normal(rows.shape)
    return Noisy(noisy.T @ noisy / len(rows), sigma**2, len(rows), power)


def lasso(matrix: Array, asked: float) -> Estimate:
    """The graphical lasso without a penalty on the diagonal."""
    p = len(matrix)
    return _smallest_feasible(
        lambda at: graphical_lasso(matrix, at, solver="admm").precision, asked, p
    )


def vanilla(rows: Array) -> Estimate:
    """The graphical lasso of the rows without noise, called vanilla in the paper."""
    exact = published(rows, math.inf, np.random.default_rng(0))
    return lasso(exact.moment, exact.penalty * exact.power)


def _debiased(noisy: Noisy) -> Estimate:
    return lasso(noisy.debiased, noisy.penalty * noisy.power)


def _without_debiasing(noisy: Noisy) -> Estimate:
    return lasso(noisy.moment, noisy.penalty * noisy.power)


def _neighbourhoods(noisy: Noisy) -> Estimate:
    unit = _unit(noisy.moment)
    p = len(unit)
    return _smallest_feasible(
        lambda at: symmetrised(neighbourhood_coefficients(unit, at), "and"), noisy.penalty, p
    )


def _scio(noisy: Noisy) -> Estimate:
    unit = _unit(noisy.moment)
    return _smallest_feasible(lambda at: scio(unit, at), noisy.penalty, len(unit))


def _smallest_feasible(answer: Callable[[float], Array], asked: float, p: int) -> Estimate:
    for doublings in range(_DOUBLINGS):
        try:
            return Estimate(answer(asked * 2**doublings), doublings)
        except NoMinimiser as none:
            if not none.feasible > 0:  # a variance is not positive: no penalty has a solution
                break
        except RequestError:  # the matrix is nearly singular
            continue
    return Estimate(np.zeros((p, p)), -1)


def _unit(moment: Array) -> Array:
    root = np.sqrt(np.diagonal(moment))
    made: Array = moment / np.outer(root, root)
    np.fill_diagonal(made, 1.0)
    return made


METHODS = {
    "debiased": Method("graphical lasso, debiased (the paper's)", _debiased),
    "plain": Method("graphical lasso, noise not subtracted", _without_debiasing),
    "neighbourhoods": Method("neighbourhood selection", _neighbourhoods),
    "scio": Method("SCIO", _scio),
}
