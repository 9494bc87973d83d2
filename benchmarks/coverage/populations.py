"""The sampled populations: their second moments, correlations and graphs are known."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array
from benchmarks.graphs.truths import KINDS, Truth, truth
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.estimators.noise.draws import Stream, draw, draw_row_noise, equivalent_rows, wishart
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import Family, NoiseLaw

Rows = Literal["gaussian", "unit"]
Quantity = Literal["covariance", "correlation", "partial-correlation"]
QUANTITIES: tuple[Quantity, ...] = ("covariance", "correlation", "partial-correlation")
RELATIONS: tuple[Quantity, ...] = QUANTITIES[1:]
ROWS: dict[Rows, str] = {"gaussian": "Gaussian", "unit": "unit"}
GRAPHS = KINDS
POWER = {"gaussian": 0.5, "unit": 1.0}  # E |x|^2; Gaussian rows are rarely longer than 1
_NONE = 1e-9  # a correlation below this is rounding error


@dataclass(frozen=True)
class Population:
    """A population of rows with one distribution.

    Parameters
    ----------
    targets
        The population's second moment, and its correlations, by quantity; shape (p, p) each.
    related
        Pairs of columns that are truly related, by kind of correlation; shape (p, p). For unit
        rows, the pairs of the Gaussian rows before normalisation.
    moments
        Endless stream of second moments of n rows.
    """

    targets: dict[Quantity, Array]
    related: dict[Quantity, NDArray[np.bool_]]
    moments: Callable[[int, int], Iterator[Array]]

    @property
    def power(self) -> float:
        """The average diagonal entry of the second moment."""
        moment = self.targets["covariance"]
        return float(np.trace(moment)) / len(moment)

    @property
    def correlation_kinds(self) -> list[Quantity]:
        """The kinds of correlation that are zero for some pairs."""
        pairs = len(self.targets["covariance"]) * (len(self.targets["covariance"]) - 1)
        return [of for of, related in self.related.items() if related.sum() < pairs]

    def stray(self, of: Quantity) -> float:
        """Return the largest correlation of an unrelated pair, which is 0 for Gaussian rows."""
        off = ~self.related[of] & ~np.eye(len(self.related[of]), dtype=bool)
        return float(np.abs(self.targets[of][off]).max(initial=0.0))


def population(graph: str, p: int, rows: Rows) -> Population:
    """Build the population of a graph; the random graph has a fixed seed."""
    made = truth(graph, p, np.random.default_rng(zlib.crc32(f"{graph} {p}".encode())))
    covariance = made.root @ made.root.T * (POWER["gaussian"] / p)
    plain = _targets(covariance)
    related = {of: np.abs(plain[of]) > _NONE for of in RELATIONS}
    for each in related.values():
        np.fill_diagonal(each, False)
    if rows == "unit":
        return Population(_targets(made.moment), related, _unit(made))
    return Population(plain, related, _gaussian(covariance))


def _targets(moment: Array) -> dict[Quantity, Array]:
    return {
        "covariance": moment,
        "correlation": _correlations(moment),
        "partial-correlation": -_correlations(np.asarray(np.linalg.inv(moment), dtype=np.float64)),
    }


def _correlations(matrix: Array) -> Array:
    root = np.sqrt(np.diag(matrix))
    result: Array = matrix / np.outer(root, root)
    return result


def _gaussian(covariance: Array) -> Callable[[int, int], Iterator[Array]]:
    """Draw second moments of Gaussian rows directly, as Wishart matrices."""
    root = np.linalg.cholesky(covariance)

    def moments(n: int, seed: int) -> Iterator[Array]:
        source = Stream(seed)
        while True:
            yield root @ wishart(source, len(root), n) @ root.T / n

    return moments


def _unit(made: Truth) -> Callable[[int, int], Iterator[Array]]:
    def moments(n: int, seed: int) -> Iterator[Array]:
        rng = np.random.default_rng(seed)
        while True:
            rows = made.rows(n, rng)
            yield rows.T @ rows / n

    return moments


FAMILIES: tuple[Family, ...] = ("none", *(each for each in get_args(Family) if each != "none"))
STRENGTHS = (0.001, 0.01, 0.02, 0.05, 0.2)
WEAK = 0.015  # below it use the projection: denoising is slow and changes little


def kinds() -> Iterator[tuple[Family, float]]:
    """Yield every noise law with every strength."""
    yield "none", 0.0
    yield from product(FAMILIES[1:], STRENGTHS)


def law_of(family: Family, p: int, n: int, power: float, strength: float) -> NoiseLaw:
    """Noise law whose off-diagonal deviation is `strength` times the average diagonal entry.

    Parameters
    ----------
    family
        Family of the law. Wishart matrices have p + 1 degrees of freedom, the fewest that a
        mechanism uses.
    p, n
        Numbers of columns and rows.
    power
        The average diagonal entry.
    strength
        Relative deviation. For noisy rows, the variance v of a cell solves
        2 v power + v^2 = n sd^2, which holds for uncorrelated columns.
    """
    if family == "none":
        return NoiseLaw.none()
    sd = strength * power
    wide = 1.0 if family in {"gaussian-iid", "laplace"} else math.sqrt(2)
    dof = p + 1.0 if family in {"wishart", "matrix-laplace"} else None
    cell = None
    if family == "noisy-rows":
        cell = power * (math.sqrt(1 + n * strength**2) - 1)
    return NoiseLaw(
        family=family, sd_diagonal=wide * sd, sd_off_diagonal=sd, dof=dof, cell_variance=cell
    )


def release(moment: Array, n: int, law: NoiseLaw, source: Stream, *, unit: bool) -> Evidence:
    """Release the second moment of n rows with noise, and add the repaired matrix."""
    raw = moment
    if law.cell_variance is not None:
        raw = moment + draw_row_noise(source, equivalent_rows(moment, n), law.cell_variance, n)
    elif law.family != "none":
        raw = moment + draw(source, len(moment), law)
    weak = law.sd_off_diagonal <= WEAK * np.trace(moment) / len(moment)
    repaired = project(raw) if weak else denoise(raw, law, 1.0, float(n), unit=unit)
    return Evidence(raw, repaired, law, float(n), unit=unit)
