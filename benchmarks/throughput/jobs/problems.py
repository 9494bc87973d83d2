"""Many estimations at once, as for folds and draws: by processes, and one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from joblib.externals.loky import get_reusable_executor
from numpy.typing import NDArray

from benchmarks.arrays import Array
from benchmarks.solvers.matrices import matrix, penalties
from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs.cluster import products
from gramercy.estimators.solvers.glasso import graphical_lasso_path
from gramercy.estimators.tuning.parallel import parallel_map
from gramercy.estimators.tuning.penalty_rule import edge_mask

BY_PROCESSES, ONE_BY_ONE = "Gramercy: by processes", "Gramercy: one after the other"


@contextmanager
def job(cell: Cell, _: Path) -> Iterator[dict[str, Contender]]:
    rng = np.random.default_rng(0)
    matrices = [matrix("random", "noisy", cell.columns, rng) for _ in range(cell.rows)]
    solve = partial(_graphs, grid=penalties(matrices[0]))

    def alone() -> Any:
        return [parallel_map(solve, [each]) for each in matrices]

    spawn = get_context("spawn")
    with (
        ProcessPoolExecutor(2, spawn) as two,
        ProcessPoolExecutor(1, spawn) as one,
        closing_processes(),
    ):
        yield {
            BY_PROCESSES: Contender(lambda: parallel_map(solve, matrices)),
            ONE_BY_ONE: Contender(alone),
            "numpy: products, 2 processes": Contender(lambda: products(two, 800)),
            "numpy: products, 1 process": Contender(lambda: products(one, 800)),
        }


@contextmanager
def closing_processes() -> Iterator[None]:
    """End the processes of `parallel_map`, which otherwise wait for more for minutes."""
    try:
        yield
    finally:
        get_reusable_executor().shutdown(wait=True)


def _graphs(S: Array, grid: Array) -> NDArray[np.uint8]:
    """The graphs of a path, with eight pairs in a byte, which is what stability asks of a draw."""
    path = graphical_lasso_path(S, list(grid), conditions=False)
    return np.packbits([edge_mask(solution.precision) for solution in path], axis=2)
