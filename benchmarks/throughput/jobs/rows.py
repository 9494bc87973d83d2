"""Rows with noise, from Parquet to Parquet, against OpenDP's sampler alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import making, noise
from gramercy.application.accumulation import Collected
from gramercy.application.context import Context
from gramercy.application.drawing import draw_into
from gramercy.application.planning import make_plan
from gramercy.application.public_parameters import normalised
from gramercy.application.yaml_files import read_request
from gramercy.archive.rows_file import read_rows
from gramercy.mechanisms.rowwise import RowWise
from gramercy.tables.source import open_source
from gramercy.tables.streaming import accumulate
from gramercy.tables.unchanged import state


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    path = folder / "table.parquet"
    cells = making.table(cell.rows, cell.columns)
    pq.write_table(making.arrow(cells), path)
    del cells
    asked = {"name": "rows", "epsilon": 8.0, "delta": 1e-9}
    of = making.facts(str(path), cell.rows, cell.columns)
    plan = make_plan(Context.default(), read_request(making.request(folder, of, asked, "v1")))
    turns = itertools.count()
    mechanism = plan.mechanism
    assert isinstance(mechanism, RowWise)

    def ours() -> None:
        place = folder / f"release-{next(turns)}"
        place.mkdir()
        source = open_source(str(path))
        opened = state(source)
        sums = accumulate(
            source, plan.contract, normalised(plan.asked), mechanism.lattice, in_place=True
        )
        draw_into(place, plan, Collected(sums, source.fingerprint(), opened), "a-release")

    def arrow() -> None:
        rng, place = np.random.default_rng(0), folder / f"arrow-{next(turns)}.parquet"
        read = pq.read_table(path)
        for column in range(cell.columns):
            noisy = read.column(column).to_numpy() + rng.standard_normal(cell.rows)
            read = read.set_column(column, f"c{column}", [noisy])
        pq.write_table(read, place)

    def moment() -> Any:
        file = folder / "release-0" / "rows.parquet"
        names = making.names(cell.columns)
        return sum(mechanism.gram(noisy) for noisy in read_rows(file, names, cell.rows))

    sampler = noise.opendp(cell.rows * cell.columns)
    yield {
        "Gramercy: Parquet to noisy Parquet": Contender(ours),
        "numpy: normal doubles, pyarrow: read, write": Contender(arrow),
        "Gramercy: second moment from noisy rows": Contender(moment),
        **{f"{name}, alone": each for name, each in list(sampler.items())[:1]},
    }
