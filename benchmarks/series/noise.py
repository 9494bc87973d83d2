"""The noise of a year of weeks, measured: draws of the mechanism, combined as analysts would."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array
from benchmarks.series.strategies import (
    CUMULATIVE,
    LAST,
    STRATEGIES,
    WEEKS,
    combination,
    norm,
    windows,
)
from gramercy.common.lattice import Lattice
from gramercy.common.prefix_sums import PrefixSums
from gramercy.mechanisms.gaussian import Gaussian, GaussianSpec
from gramercy.schemas.neighbours import Neighbours

_COLUMNS, _ROWS = 10, 50  # of the table; of each week
_MU, _DELTA = 0.25, 1e-6
_AT_ONCE = 100  # years


@dataclass(frozen=True)
class Noise:
    """Root mean square errors, relative to the stated noise of one release.

    Parameters
    ----------
    one
        Of one release with the same guarantee.
    so_far, last, single
        By week: of all weeks so far, of the last thirteen, and of the last one.
    """

    one: float
    so_far: list[float]
    last: list[float]
    single: list[float]


def measure(way: str, years: int, weeks: int = WEEKS, last: int = LAST) -> Noise:
    """Errors of what the years tell about one table, in whole numbers as in a release.

    Every year adds noise of its own to every published sum.
    """
    once = Gaussian.calibrated(
        p=_COLUMNS, n=_ROWS, neighbours=Neighbours.ADD_REMOVE, mu=_MU, delta=_DELTA
    )
    sums, exact = STRATEGIES[way](weeks), _weekly_sums(weeks, once.lattice)
    if way == CUMULATIVE:
        prefixes = PrefixSums(weeks)
        mechanism = Gaussian.from_spec(
            GaussianSpec(mu=_MU, delta=_DELTA), replace(once.parameters, series=prefixes)
        )
        encoded = [prefixes.encode(list(exact[:week])) for week in range(1, weeks + 1)]
    else:
        mechanism = Gaussian.from_spec(
            GaussianSpec(mu=_MU / norm(sums), delta=_DELTA), once.parameters
        )
        encoded = list(np.tensordot(sums.astype(np.int64), exact, axes=1))
    totals = {
        name: windows(weeks, width)
        for name, width in (("so_far", None), ("last", last), ("single", 1))
    }
    combine = partial(_decoded if way == CUMULATIVE else _combined, sums)
    squares = {name: np.zeros(len(each)) for name, each in totals.items()}
    for start in range(0, years, _AT_ONCE):
        count = min(_AT_ONCE, years - start)
        published = [_noisy(mechanism, each, count) for each in encoded]
        for name, wanted in totals.items():
            truth = np.tensordot(np.array([each for each, _ in wanted]), exact, axes=1)
            errors = entries(combine(published, wanted) - truth[:, None])
            squares[name] += (errors**2).mean(axis=2).sum(axis=1)
    alone = entries(_noisy(once, exact[0], years) - exact[0]).astype(np.float64)
    unit = once.scale * once.lattice.squared_radius
    by_week = {
        name: [_rounded(x) for x in np.sqrt(each / years) / unit] for name, each in squares.items()
    }
    return Noise(one=_rounded(float(np.sqrt((alone**2).mean())) / unit), **by_week)


def _weekly_sums(weeks: int, lattice: Lattice) -> NDArray[np.int64]:
    """The sums over made-up rows of every week."""
    rows = np.random.default_rng(0).standard_normal((weeks, _ROWS, _COLUMNS))
    lengths = np.linalg.norm(rows, axis=2, keepdims=True)
    whole = np.rint(lattice.unit_length * rows / lengths).astype(np.int64)
    sums: NDArray[np.int64] = whole.transpose(0, 2, 1) @ whole
    return sums


def _noisy(mechanism: Gaussian, exact: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    return np.array([mechanism.perturb(exact, 0).gram for _ in range(count)])


def _decoded(_: Array, published: list[Array], wanted: list[tuple[Array, int]]) -> Array:
    by_week = PrefixSums(len(published)).decode(published)
    return np.tensordot(np.array([each for each, _ in wanted]), np.array(by_week), axes=1)


def _combined(sums: Array, published: list[Array], wanted: list[tuple[Array, int]]) -> Array:
    weights = np.array([combination(sums, *each) for each in wanted])
    return np.tensordot(weights, np.array(published, dtype=np.float64), axes=1)


def entries(matrices: Array) -> Array:
    """The entries of symmetric matrices, all with the noise of one on the diagonal."""
    first, second = np.triu_indices(matrices.shape[-1])
    factors = np.where(first == second, 1.0, np.sqrt(2))
    return matrices[..., first, second] * factors


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")
