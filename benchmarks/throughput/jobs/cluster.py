"""A local Dask cluster with one worker and with two, and the speed-up of two processes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import inputs
from gramercy.schemas.normalisation import Unit
from gramercy.tables.cluster import Cluster
from gramercy.tables.source import open_source
from gramercy.tables.streaming import accumulate

_FILES = 8


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    import dask
    from distributed import LocalCluster

    each = cell.rows // _FILES
    for k in range(_FILES):
        frame = inputs.arrow(inputs.table(each, cell.columns, seed=k).astype(np.float32))
        pq.write_table(frame, folder / f"{k}.parquet", use_dictionary=False, compression="none")
    url = str(folder / "*.parquet")
    terms = inputs.contract(url, each * _FILES, cell.columns)

    def run(*engine: Cluster) -> Any:
        more: Any = {"engine": engine[0]} if engine else {}
        lattice = inputs.lattice(cell.columns)
        return accumulate(open_source(url), terms, Unit(), lattice, **more)

    memory = {"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}
    with ExitStack() as open_, dask.config.set(memory):
        options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": "4GB"}
        engines = {
            n: Cluster(open_.enter_context(LocalCluster(n_workers=n, **options)).scheduler_address)
            for n in (2, 1)
        }
        pools = {
            n: open_.enter_context(ProcessPoolExecutor(n, mp_context=get_context("spawn")))
            for n in (2, 1)
        }
        yield {
            "Dask: 2 workers": Contender(lambda: run(engines[2])),
            "Dask: 1 worker": Contender(lambda: run(engines[1])),
            "Gramercy: one process": Contender(run),
            "numpy: products, 2 processes": Contender(lambda: _products(pools[2], cell.columns)),
            "numpy: products, 1 process": Contender(lambda: _products(pools[1], cell.columns)),
        }


def _products(pool: ProcessPoolExecutor, columns: int) -> None:
    """Run sixteen independent jobs, to measure the speed-up that a second core can give."""
    list(pool.map(_product, [columns] * 16))


def _product(columns: int) -> float:
    with threadpool_limits(1):
        X = np.ones((4000, columns))
        return float(sum((X.T @ X)[0, 0] for _ in range(4)))
