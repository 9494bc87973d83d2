"""The cells (mechanism, epsilon, rows) and their results file."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from benchmarks.arrays import Array
from benchmarks.utility.matrices import haar
from gramercy.estimators.noise.denoise import denoise, project, project_spectrum
from gramercy.estimators.noise.draws import draw
from gramercy.mechanisms import registry
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.noise import NoiseLaw

DELTA = 1e-6
PURE = ("matrix-laplace", "k-norm", "laplace")
MECHANISMS = ("gaussian", "gaussian-iid", "wishart", *PURE)
_DEFAULTS = ("gaussian", "matrix-laplace")  # the least noise, with and without delta
EPSILONS = (0.2, 1.0, 4.0)
# Eigenvalues of the population, largest first.
SPECTRA: dict[str, Callable[[Array], Array]] = {
    "flat": lambda k: np.ones(k.size),
    "slow": lambda k: np.power(k, -0.5),
    "decaying": lambda k: 1 / k,
    "fast": lambda k: np.power(k, -2.0),
    "spiked": lambda k: np.where(k <= 5, k.size / 5, 1.0),
    "low rank": lambda k: np.where(k <= 10, 1.0, 1e-9),
}
ROWS = 2000


@dataclass(frozen=True)
class Cell:
    """The unit of measurement.

    Parameters
    ----------
    mechanism, epsilon
        The noise; replace-one neighbours.
    p
        Number of columns.
    spectrum
        A key of `SPECTRA`.
    radius
        Radius in units of the root mean square length at which rows are clipped; 0 for unit rows.
    """

    mechanism: str
    epsilon: float
    p: int
    spectrum: str
    radius: float = 0.0


@dataclass(frozen=True)
class Result:
    """Mean Frobenius errors over releases, and processor seconds of one denoising."""

    cell: Cell
    repetitions: int
    seconds: float
    zero: float
    projected: float
    denoised: float
    best: float


def plan(quick: bool) -> Iterator[tuple[Cell, int]]:
    """All cells with their numbers of releases."""
    if quick:
        yield Cell("gaussian", 1.0, 320, "slow"), 1
        return
    for mechanism, epsilon, spectrum in product(MECHANISMS, EPSILONS, SPECTRA):
        yield Cell(mechanism, epsilon, 400, spectrum), 3 if mechanism in _DEFAULTS else 1
    for mechanism, epsilon, spectrum in product(_DEFAULTS, EPSILONS, SPECTRA):
        yield Cell(mechanism, epsilon, 400, spectrum, 3.0), 1
        for p, times in ((100, 6), (300, 2), (750, 1), (1000, 1)):
            yield Cell(mechanism, epsilon, p, spectrum), times


def missing(quick: bool, held: dict[Cell, Result]) -> list[tuple[Cell, int]]:
    """The cells that have not been measured yet."""
    return [(cell, times) for cell, times in plan(quick) if cell not in held]


@lru_cache(maxsize=4)
def second_moment(p: int, spectrum: str, radius: float) -> Array:
    """The second moment of Gaussian rows with these eigenvalues, in a random basis."""
    rng = np.random.default_rng([p, zlib.crc32(spectrum.encode())])
    values = SPECTRA[spectrum](np.arange(1.0, p + 1))
    deviations = np.sqrt(values / values.sum())
    rows = (rng.standard_normal((ROWS, p)) * deviations) @ haar(rng, p).T
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.maximum(lengths, radius) if radius else lengths
    moment: Array = rows.T @ rows / ROWS
    return moment


def noise_law(cell: Cell) -> NoiseLaw:
    """The law of the noise on the second moment."""
    delta = None if cell.mechanism in PURE else DELTA
    made = registry[cell.mechanism].calibrated(
        p=cell.p, n=ROWS, neighbours=Neighbours.REPLACE_ONE, epsilon=cell.epsilon, delta=delta
    )
    law: NoiseLaw = made.law
    return law.divided_by(ROWS)


def measure(cell: Cell, times: int) -> Result:
    """Measure `times` releases; the seed depends on the cell only."""
    truth, law = second_moment(cell.p, cell.spectrum, cell.radius), noise_law(cell)
    source = np.random.RandomState(zlib.crc32(repr(cell).encode()))
    errors, seconds = [], 0.0
    for _ in range(times):
        noisy = truth + draw(source, cell.p, law)
        started = time.process_time()
        denoised = denoise(noisy, law, 1.0, ROWS, unit=cell.radius == 0)
        seconds += time.process_time() - started
        forms = (project(noisy), denoised, best(noisy, truth))
        errors.append([np.linalg.norm(form - truth) for form in forms])
    values = (np.linalg.norm(truth), *np.mean(errors, axis=0))
    zero, projected, denoised_error, best_error = (float(f"{value:.5g}") for value in values)
    spent = float(f"{seconds / times:.2g}")
    return Result(cell, times, spent, zero, projected, denoised_error, best_error)


def best(noisy: Array, truth: Array) -> Array:
    """The best matrix with the eigenvectors of `noisy`, which only the truth determines."""
    vectors = np.linalg.eigh(noisy)[1]
    values = project_spectrum(((truth @ vectors) * vectors).sum(axis=0), 1.0)
    product_: Array = (vectors * values) @ vectors.T
    return product_


def loss(result: Result) -> float:
    """The error relative to the best one, minus one; not a number if both vanish."""
    return result.denoised / result.best - 1 if result.best else math.nan
