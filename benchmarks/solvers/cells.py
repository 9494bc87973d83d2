"""One cell: the time of every solver on one matrix, for a path and for a single penalty."""

from __future__ import annotations

import math
import statistics
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from threadpoolctl import threadpool_limits

from benchmarks.arrays import Array
from benchmarks.solvers.matrices import KINDS, REGIMES, matrix, penalties
from benchmarks.solvers.peers import PEERS, Peer
from gramercy.estimators.solvers.glasso import graphical_lasso_path

What = Literal["path", "single"]

COLUMNS = (20, 50, 100, 200, 500, 1000, 2000, 5000)
ACCURACY = 1e-6  # largest certified suboptimality of any solution, per column
AT = 13  # index in the path of the penalty that is also solved alone
LIMIT = 60.0  # seconds after which a solver is stopped
_REPEATS, _ENOUGH = 5, 2.0  # a fast solver is repeated this often, or for this many seconds
_BEST, _BEST_OF_LARGE = 1e-10, 1e-8  # duality gap per column of the reference solutions
LARGE = 1000  # columns, with which slow solvers are run at their loosest tolerance only
_OF_MORE = ("newton", "quic")  # the others are slow, and not run with more columns
_ALONE = 5000  # columns, with which Gramercy's solver alone is run
_PATHS = (("ar1", "clean"), ("ar1", "debiased"), ("hub", "noisy"), ("random", "clean"))
_OF_LARGE = {
    1000: [(*each, "path") for each in _PATHS],
    2000: [(*each, "path") for each in (*_PATHS, ("ar1", "clipped"))],
    5000: [("ar1", "clean", "single"), ("ar1", "noisy", "path")],
}


@dataclass(frozen=True)
class Cell:
    """A matrix and a task; all solvers are measured in turn in one process."""

    kind: str
    regime: str
    p: int
    what: What


@dataclass(frozen=True)
class Measured:
    """The measurements of one solver.

    Parameters
    ----------
    seconds
        Median time; if the solver was stopped, the time of the part that it solved.
    accuracy
        Upper bound on the worst suboptimality per column on the path; infinite if a solution is
        not positive definite or missing.
    solved
        Number of penalties that it solved.
    """

    seconds: float
    accuracy: float
    solved: int


@dataclass(frozen=True)
class Result:
    """The measurements of one cell.

    Parameters
    ----------
    seconds
        Total time of the cell.
    density
        Share of pairs that are edges, at the last penalty.
    floor
        Seconds for one Cholesky factorisation and the inverse from it, in double precision.
    solvers
        Measurements by name of the solver.
    """

    cell: Cell
    seconds: float
    density: float
    floor: float
    solvers: dict[str, Measured]


def plan(quick: bool) -> Iterator[Cell]:
    """Yield all cells, with few of the largest size; about 45 minutes in total."""
    tasks: tuple[What, ...] = ("path", "single")
    for p in COLUMNS[:2] if quick else COLUMNS:
        for kind, regime, what in product(KINDS, REGIMES, tasks):
            if p < LARGE or (kind, regime, what) in _OF_LARGE[p]:
                yield Cell(kind, regime, p, what)


def measure(cell: Cell) -> Result:
    """Measure every solver on a cell, at the same accuracy."""
    began = time.perf_counter()
    rng = np.random.default_rng(zlib.crc32(repr((cell.kind, cell.regime, cell.p)).encode()))
    S = matrix(cell.kind, cell.regime, cell.p, rng)
    grid = penalties(S)
    if cell.what == "single":
        grid = grid[[AT]]
    with threadpool_limits(1):
        tol = _BEST if cell.p <= LARGE else _BEST_OF_LARGE
        best = graphical_lasso_path(S, list(grid), tol=tol, conditions=False)
        least = [objective(S, x.penalty, x.precision) - cell.p * x.gap for x in best]  # type: ignore[arg-type]
        solvers = {
            name: _measured(peer, S, grid, least, cell.p == LARGE and name not in _OF_MORE)
            for name, peer in PEERS.items()
            if cell.p <= LARGE or name in _OF_MORE[: 1 if cell.p >= _ALONE else None]
        }
    edges = np.count_nonzero(best[-1].precision) - cell.p
    density = edges / (cell.p * (cell.p - 1))
    seconds = round(time.perf_counter() - began, 2)
    return Result(cell, seconds, round(density, 4), _floor(best[-1].precision), solvers)


def objective(S: Array, penalty: float, T: Array) -> float:
    """Graphical lasso objective without diagonal penalty; infinite unless T is definite."""
    T = (T + T.T) / 2
    try:
        logs = np.log(np.diagonal(np.linalg.cholesky(T)))
    except np.linalg.LinAlgError:
        return math.inf
    off = np.abs(T).sum() - np.abs(np.diagonal(T)).sum()
    return float((S * T).sum() + penalty * off - 2 * logs.sum())


def _measured(
    peer: Peer, S: Array, grid: Array, least: list[float], only_loosest: bool = False
) -> Measured:
    """Measure a solver at its first tolerance that reaches the accuracy, or else at its last."""
    result, tolerance = Measured(0.0, math.inf, 0), 0.0
    tolerances = peer.tolerances[: 1 if only_loosest else None]
    for tolerance in tolerances:
        result = _once(peer, S, grid, least, tolerance, tolerance != tolerances[-1])
        if result.accuracy <= ACCURACY or result.seconds > LIMIT:
            break
    seconds = [result.seconds]
    while result.accuracy <= ACCURACY and len(seconds) < _REPEATS and sum(seconds) < _ENOUGH:
        seconds.append(_once(peer, S, grid, least, tolerance).seconds)
    return Measured(statistics.median(seconds), result.accuracy, result.solved)


def _once(
    peer: Peer,
    S: Array,
    grid: Array,
    least: list[float],
    tolerance: float,
    only_if: bool = False,
) -> Measured:
    """Run a solver once; with `only_if`, stop at the first solution that is not accurate."""
    seconds, worst, solved = 0.0, 0.0, 0
    try:
        for took, T in peer.run(S, grid, tolerance * ACCURACY * len(S)):
            over = objective(S, float(grid[solved]), T) - least[solved]
            seconds, worst, solved = seconds + took, max(worst, over / len(S)), solved + 1
            if seconds > LIMIT or (only_if and worst > ACCURACY):
                break
    except (ArithmeticError, ValueError, AssertionError):  # FloatingPointError, LinAlgError
        worst = math.inf
    return Measured(seconds, worst if solved == len(grid) else math.inf, solved)


def _floor(T: Array) -> float:
    with threadpool_limits(1):
        taken = []
        for _ in range(_REPEATS):
            began = time.perf_counter()
            dpotri(dpotrf(T, lower=1, clean=0)[0], lower=1)
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)
