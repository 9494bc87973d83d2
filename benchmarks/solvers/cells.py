"""One cell: a matrix, and what every solver takes for its path and for one penalty of it."""

from __future__ import annotations

import math
import statistics
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri
from threadpoolctl import threadpool_limits

from benchmarks.measuring import read_lines
from benchmarks.solvers.matrices import KINDS, REGIMES, matrix, penalties
from benchmarks.solvers.peers import PEERS, Peer
from gramercy.estimators.solvers.path import graphical_lasso_path

Array = NDArray[np.float64]
What = Literal["path", "single"]

COLUMNS = (20, 50, 100, 200, 500, 1000)
ACCURACY = 1e-6  # largest certified suboptimality of any solution, per column
AT = 13  # of the path: the penalty that is solved alone
LIMIT = 60.0  # seconds, after which a solver is given up
_REPEATS, _ENOUGH = 5, 2.0  # a quick one is measured again, as often, or for so many seconds
_BEST = 1e-10  # gap per column of the solutions that the others are compared with
LARGE = 1000  # columns, from which on every solver has its loosest tolerance only
_OF_LARGE = {
    ("ar1", "clean", "path"),
    ("ar1", "debiased", "path"),
    ("hub", "noisy", "path"),
    ("random", "clean", "path"),
}


@dataclass(frozen=True)
class Cell:
    """What is measured together, in one process, one solver after the other."""

    kind: str
    regime: str
    p: int
    what: What


@dataclass(frozen=True)
class Measured:
    """One solver.

    Parameters
    ----------
    seconds
        Median; of the part that was done, where it was given up.
    accuracy
        The worst suboptimality per column on the path, at most; infinite where a solution is not
        positive definite, or there is none.
    solved
        Penalties that it went through.
    """

    seconds: float
    accuracy: float
    solved: int


@dataclass(frozen=True)
class Result:
    """A cell measured.

    Parameters
    ----------
    seconds
        All of it took.
    density
        Share of pairs that are edges, at the last penalty.
    floor
        Seconds of one Cholesky factorisation and one inverse from it, in double precision.
    solvers
        By name.
    """

    cell: Cell
    seconds: float
    density: float
    floor: float
    solvers: dict[str, Measured]


def plan(quick: bool) -> Iterator[Cell]:
    """Some 45 minutes in all; of the largest, a few."""
    for p in COLUMNS[:2] if quick else COLUMNS:
        for kind, regime, what in product(KINDS, REGIMES, ("path", "single")):
            if p < LARGE or (kind, regime, what) in _OF_LARGE:
                yield Cell(kind, regime, p, what)


def measure(cell: Cell) -> Result:
    """Every solver, at the same accuracy."""
    began = time.perf_counter()
    rng = np.random.default_rng(zlib.crc32(repr((cell.kind, cell.regime, cell.p)).encode()))
    S = matrix(cell.kind, cell.regime, cell.p, rng)
    grid = penalties(S)
    if cell.what == "single":
        grid = grid[[AT]]
    with threadpool_limits(1):
        best = graphical_lasso_path(S, list(grid), tol=_BEST)
        least = [objective(S, x.penalty, x.precision) - cell.p * x.gap for x in best]  # type: ignore[arg-type]
        solvers = {name: _measured(peer, S, grid, least) for name, peer in PEERS.items()}
    edges = np.count_nonzero(best[-1].precision) - cell.p
    density = edges / (cell.p * (cell.p - 1))
    seconds = round(time.perf_counter() - began, 2)
    return Result(cell, seconds, round(density, 4), _floor(best[-1].precision), solvers)


def objective(S: Array, penalty: float, T: Array) -> float:
    """Of the lasso with a free diagonal; infinite unless T is positive definite."""
    T = (T + T.T) / 2
    try:
        logs = np.log(np.diagonal(np.linalg.cholesky(T)))
    except np.linalg.LinAlgError:
        return math.inf
    off = np.abs(T).sum() - np.abs(np.diagonal(T)).sum()
    return float((S * T).sum() + penalty * off - 2 * logs.sum())


def _measured(peer: Peer, S: Array, grid: Array, least: list[float]) -> Measured:
    """At the first of its tolerances that does; if none does, at the last."""
    result, tolerance = Measured(0.0, math.inf, 0), 0.0
    tolerances = peer.tolerances if len(S) < LARGE else peer.tolerances[:1]
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
    """One run; `only_if` it is accurate, else it ends with the first solution that is not."""
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


def read(path: Path) -> dict[Cell, Result]:
    """Results in the file."""
    result: dict[Cell, Result] = {}
    for fields in read_lines(path):
        cell = Cell(**fields["cell"])
        solvers = {name: Measured(**each) for name, each in fields["solvers"].items()}
        facts = (fields[name] for name in ("seconds", "density", "floor"))
        result[cell] = Result(cell, *facts, solvers)
    return result
