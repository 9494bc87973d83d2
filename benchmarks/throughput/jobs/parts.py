"""Folds and groups, which are summed separately, against one sum of all rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import inputs
from gramercy.mechanisms.sampling.sampler import uniform_integers
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.normalisation import Unit
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.exact_sums import ONE_PART, Parts
from gramercy.tables.sums.streaming import accumulate

COUNT = 20


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    path = folder / "table.parquet"
    levels = tuple(f"ward {k}" for k in range(COUNT - 1))  # and the rows of none of them
    wards = np.random.default_rng(1).choice(levels, cell.rows)
    table = inputs.arrow(inputs.table(cell.rows, cell.columns))
    pq.write_table(table.append_column("ward", pa.array(wards)), path)
    terms = inputs.contract(str(path), cell.rows, cell.columns)
    lattice = inputs.lattice(cell.columns)
    draw = partial(uniform_integers, COUNT)

    def run(parts: Parts, assign: Any = None) -> Any:
        source = open_source(str(path))
        return accumulate(source, terms, Unit(), lattice, parts=parts, assign=assign)

    by = LevelsFacts(name="ward", levels=levels)
    yield {
        "Gramercy: 20 folds": Contender(lambda: run(Parts(folds=COUNT), draw)),
        "Gramercy: 20 groups": Contender(lambda: run(Parts(by=by))),
        "Gramercy: one sum": Contender(lambda: run(ONE_PART)),
    }
