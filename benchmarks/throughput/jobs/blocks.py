"""What a block of a table costs a worker of a cluster, and a task its scheduler."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import inputs
from benchmarks.throughput.jobs.cluster import local_workers, write_block
from gramercy.schemas.normalisation import Unit
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.streaming import GramJob

BLOCK, SUM, COPY, TASK = "read and sum a block", "add two sums", "copy a sum", "schedule a task"
_TASKS, _TIMES = 500, 100


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    from distributed import Client

    path = folder / "block.parquet"
    write_block(path, cell.rows, cell.columns, seed=0)
    terms = inputs.contract(str(path), cell.rows, cell.columns)
    lattice = inputs.lattice(cell.columns)
    summing, source = GramJob(terms, Unit(), lattice, threads=1), open_source(str(path))
    sums = summing.run(source)

    def schedule() -> None:
        """Two tasks a block, of which the second depends on the first: a sum and its addition."""
        leaves = [client.submit(int, pure=False) for _ in range(_TASKS // 2)]
        client.gather([client.submit(abs, leaf, pure=False) for leaf in leaves])

    with local_workers([1]) as (address,), Client(address, set_as_default=False) as client:
        yield {
            BLOCK: Contender(lambda: summing.run(source)),
            SUM: Contender(lambda: [sums + sums for _ in range(_TIMES)], _TIMES),
            COPY: Contender(
                lambda: [pickle.loads(pickle.dumps(sums)) for _ in range(_TIMES)], _TIMES
            ),
            TASK: Contender(schedule, _TASKS),
        }
