"""The compared solvers. Each follows a path of penalties with its library's warm starts."""

from __future__ import annotations

import ctypes
import io
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass

import numpy as np
from sklearn.covariance import _graph_lasso

from benchmarks.arrays import Array
from gramercy.estimators.solvers.glasso import Solver, graphical_lasso_path

# For each penalty: the seconds, and the precision matrix of shape (p, p).
Steps = Iterator[tuple[float, Array]]
Run = Callable[[Array, Array, float], Steps]


_MOST_ITERATIONS = 1000  # Newton steps of QUIC


@dataclass(frozen=True)
class Peer:
    """A solver of the comparison.

    Parameters
    ----------
    title
        Name on the page.
    run
        Function of the matrix, descending penalties and the solver's own tolerance.
    tolerances
        Descending, in units of p times the requested accuracy. The first one at which every
        solution reaches that accuracy is measured.
    """

    title: str
    run: Run
    tolerances: tuple[float, ...]


def _ours(solver: Solver) -> Run:
    def run(S: Array, penalties: Array, tolerance: float) -> Steps:
        began = time.perf_counter()
        path = graphical_lasso_path(
            S, list(penalties), solver=solver, tol=tolerance / len(S), conditions=False
        )  # the gap alone, which is what all solvers are compared at
        each = (time.perf_counter() - began) / len(penalties)
        yield from ((each, result.precision) for result in path)

    return run


def _scikit_learn(S: Array, penalties: Array, tolerance: float) -> Steps:
    """Warm starts as in scikit-learn's `graphical_lasso_path`, which accepts rows only."""
    covariance = None
    for penalty in penalties:
        began = time.perf_counter()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # convergence warnings: the accuracy is measured here
            covariance, precision, *_ = _graph_lasso._graphical_lasso(
                S, float(penalty), cov_init=covariance, tol=tolerance,
                eps=np.finfo(np.float64).eps,
            )  # fmt: skip
        yield time.perf_counter() - began, precision


def _gglasso(S: Array, penalties: Array, tolerance: float) -> Steps:
    from gglasso.solver.single_admm_solver import ADMM_SGL

    start, dual = np.eye(len(S)), np.zeros_like(S)
    for penalty in penalties:
        began = time.perf_counter()
        with redirect_stdout(io.StringIO()):  # it prints a line for every penalty
            result, _ = ADMM_SGL(
                S, float(penalty), start, X_0=dual, tol=tolerance, rtol=tolerance, max_iter=5000
            )
        start, dual = result["Omega"], result["X"]
        yield time.perf_counter() - began, result["Theta"]


def _quic(library: ctypes.CDLL) -> Run:
    """QUIC (Hsieh et al. 2014), called as skggm does, started from the solution before."""

    def run(S: Array, penalties: Array, tolerance: float) -> Steps:
        p, (T, W) = len(S), np.array([np.eye(len(S)), np.eye(len(S))])
        S, numbers = np.ascontiguousarray(S), np.zeros((3, 1))
        for penalty in penalties:
            began = time.perf_counter()
            penalised = np.full((p, p), float(penalty)) - float(penalty) * np.eye(p)
            integers = [ctypes.c_uint32(x) for x in (p, 1, 0, _MOST_ITERATIONS, 0)]
            size, steps, messages, most, done = map(ctypes.byref, integers)
            objective, taken, gap = (_pointer(each) for each in numbers)
            library.QUIC(
                ctypes.c_char(b"D"), size, _pointer(S), _pointer(penalised), steps,
                _pointer(np.ones(1)), ctypes.byref(ctypes.c_double(tolerance)), messages, most,
                _pointer(T), _pointer(W), objective, taken, done, gap,
            )  # fmt: skip
            yield time.perf_counter() - began, T.copy()

    return run


def _pointer(array: Array) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


OURS = "newton"
PEERS = {
    OURS: Peer("proximal Newton", _ours("newton"), (1.0,)),
    "admm": Peer("accelerated ADMM", _ours("admm"), (1.0,)),
    "scikit-learn": Peer("scikit-learn", _scikit_learn, (10.0, 1.0, 0.1, 0.01)),
}
with suppress(ImportError):
    import gglasso  # noqa: F401

    PEERS["gglasso"] = Peer("GGLasso", _gglasso, tuple(10.0**-k for k in range(-1, 7)))
# g++ -O3 -shared -fPIC QUIC.C -o libquic.so -llapack, with the file of skggm's source.
if _LIBRARY := os.environ.get("QUIC_LIBRARY"):
    _run = _quic(ctypes.CDLL(_LIBRARY))
    PEERS["quic"] = Peer("QUIC", _run, tuple(10.0**-k for k in range(-5, 6)))
