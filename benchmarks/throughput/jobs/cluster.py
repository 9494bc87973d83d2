"""A local Dask cluster with one, two and four workers, and the speed-up of two processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.cluster import Cluster
from gramercy.tables.sums.streaming import accumulate

FILES = 8


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    each = cell.rows // FILES
    for k in range(FILES):
        write_block(folder / f"{k}.parquet", each, cell.columns, seed=k)
    url = str(folder / "*.parquet")
    terms = inputs.contract(url, each * FILES, cell.columns)

    def run(*engine: Cluster) -> Any:
        more: Any = {"engine": engine[0]} if engine else {}
        lattice = inputs.lattice(cell.columns)
        return accumulate(open_source(url), terms, Unit(), lattice, **more)

    with ExitStack() as open_:
        two, one, four = map(Cluster, open_.enter_context(local_workers([2, 1, 4])))
        pools = {
            n: open_.enter_context(ProcessPoolExecutor(n, mp_context=get_context("spawn")))
            for n in (2, 1)
        }
        yield {
            "Dask: 2 workers": Contender(lambda: run(two)),
            "Dask: 1 worker": Contender(lambda: run(one)),
            "Dask: 4 workers": Contender(lambda: run(four)),
            "Gramercy: one process": Contender(run),
            "numpy: products, 2 processes": Contender(lambda: products(pools[2], cell.columns)),
            "numpy: products, 1 process": Contender(lambda: products(pools[1], cell.columns)),
        }


def write_block(path: Path, rows: int, columns: int, seed: int) -> None:
    """Write a file with one row group, which a worker reads as one block."""
    frame = inputs.arrow(inputs.table(rows, columns, seed=seed).astype(np.float32))
    pq.write_table(frame, path, use_dictionary=False, compression="none")


@contextmanager
def local_workers(counts: Sequence[int]) -> Iterator[list[str]]:
    """The addresses of clusters with so many single-threaded workers, which spill nothing."""
    import dask
    from distributed import LocalCluster

    memory = {"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": "4GB"}
    with ExitStack() as open_, dask.config.set(memory):
        clusters = [open_.enter_context(LocalCluster(n_workers=n, **options)) for n in counts]
        yield [cluster.scheduler_address for cluster in clusters]


def products(pool: ProcessPoolExecutor, columns: int) -> None:
    """Run sixteen independent jobs, to measure the speed-up that a second core can give."""
    list(pool.map(_product, [columns] * 16))


def _product(columns: int) -> float:
    with threadpool_limits(1):
        X = np.ones((4000, columns))
        return float(sum((X.T @ X)[0, 0] for _ in range(4)))
