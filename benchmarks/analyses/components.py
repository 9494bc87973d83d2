"""Principal components of the covariance of columns divided by their half widths."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from benchmarks.analyses.populations import Population
from benchmarks.analyses.releases import private_release, pure_release
from benchmarks.arrays import Array
from benchmarks.peers import OPENDP
from benchmarks.statistics.methods import middle_and_half
from benchmarks.statistics.peers import LENGTHS, SCRIPTS
from benchmarks.statistics.tables import Table
from gramercy.estimators.components import column_moments
from gramercy.schemas.evidence import Evidence

Scores = dict[str, dict[str, float]]
KEPT = 2  # components
SECONDS = 25  # of processor time, for two fits


def _units(table: Table) -> Table:
    """The table with bounds -1 and 1."""
    middle, half = middle_and_half(table)
    return Table((table.cells - middle) / half, np.stack([-np.ones(table.p), np.ones(table.p)]))


def private(population: Population, epsilon: float, rng: np.random.Generator, times: int) -> Scores:
    """Private constants, Gaussian noise."""
    samples = (_units(population.sample(rng)) for _ in range(times))
    return _scores(
        population, (_covariance(private_release(each, epsilon, rng)) for each in samples)
    )


def pure(population: Population, epsilon: float, rng: np.random.Generator, times: int) -> Scores:
    """Declared constants, matrix Laplace noise."""
    found = (pure_release(_units(population.sample(rng)), epsilon, rng) for _ in range(times))
    return _scores(population, (_covariance(each) for each in found))


def _covariance(evidence: Evidence) -> Array:
    """The matrix whose eigenvectors are Gramercy's components."""
    return column_moments(evidence, range(len(evidence.raw) - 1), "covariance").matrix


def opendp(population: Population, epsilon: float, rng: np.random.Generator, times: int) -> Scores:
    """OpenDP's components, for every length of rows that is fast."""
    result: Scores = {}
    for length in LENGTHS:
        table = _units(population.sample(rng))
        given = {"rows": table.cells, "length": np.array(length * math.sqrt(table.p))}
        script = SCRIPTS / "opendp_pca.py"
        try:
            found = OPENDP.run(script, given, epsilon, times, seconds=SECONDS)
        except TimeoutError:
            continue
        result |= {f"{length:g}": _scores(population, iter(found["covariances"]))[""]}
    return result


def _scores(population: Population, covariances: Iterator[Array]) -> Scores:
    """By how much the first components explain less variance than the best ones do.

    Returns
    -------
    dict
        ``lost``: share of all variance, on average. ``first``: the same for the first component
        alone. ``share``: root mean square error of the share of the first eigenvalue.
    """
    exact = np.cov(_units(population.table).cells, rowvar=False, ddof=0)
    total = float(np.trace(exact))
    values = np.linalg.eigvalsh(exact)[::-1] / total
    lost, first, share = [], [], []
    for each in covariances:
        found, vectors = np.linalg.eigh(each)
        along = np.einsum("ik,ij,jk->k", vectors, exact, vectors)[::-1] / total
        lost.append(values[:KEPT].sum() - along[:KEPT].sum())
        first.append(values[0] - along[0])
        whole = float(np.trace(each))
        share.append((found[-1] / whole if whole > found[-1] else 1.0) - values[0])
    error = float(np.sqrt(np.mean(np.square(share))))
    return {"": {"lost": float(np.mean(lost)), "first": float(np.mean(first)), "share": error}}
