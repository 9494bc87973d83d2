"""Noisy rows from Parquet to Parquet, against OpenDP's sampler without reading or writing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import inputs, noise
from gramercy.archive.bundles.number_files import read_rows
from gramercy.mechanisms.mechanism import RowWise
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import row_normalisation
from gramercy.pipeline.plan.planning import make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.pipeline.publish.drawing import draw_into
from gramercy.pipeline.publish.private_table import PrivateSums
from gramercy.tables.formats.source import open_source, store_digest
from gramercy.tables.sums.streaming import accumulate


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    path = folder / "table.parquet"
    cells = inputs.table(cell.rows, cell.columns)
    pq.write_table(inputs.arrow(cells), path)
    del cells
    asked = {"name": "rows", "epsilon": 8.0, "delta": 1e-9}
    of = inputs.facts(str(path), cell.rows, cell.columns)
    plan = make_plan(Context.default(), read_request(inputs.request(folder, of, asked, "v1")))
    turns = itertools.count()
    mechanism = plan.mechanism
    assert isinstance(mechanism, RowWise)

    def ours() -> None:
        place = folder / f"release-{next(turns)}"
        place.mkdir()
        source = open_source(str(path))
        opened = store_digest(source)
        sums = accumulate(
            source,
            plan.contract,
            row_normalisation(plan.spec),
            mechanism.lattice,
            in_order=True,
        )
        draw_into(place, plan, PrivateSums(sums, source.fingerprint(), opened), "a-release")

    def arrow() -> None:
        rng, place = np.random.default_rng(0), folder / f"arrow-{next(turns)}.parquet"
        read = pq.read_table(path)
        for column in range(cell.columns):
            noisy = read.column(column).to_numpy() + rng.standard_normal(cell.rows)
            read = read.set_column(column, f"c{column}", [noisy])
        pq.write_table(read, place)

    def moment() -> Any:
        file = folder / "release-0" / "rows.parquet"
        names = inputs.names(cell.columns)
        return sum(mechanism.gram(noisy) for noisy in read_rows(file, names, cell.rows))

    sampler = noise.opendp(cell.rows * cell.columns)
    yield {
        "Gramercy: Parquet to noisy Parquet": Contender(ours),
        "numpy: normal doubles, pyarrow: read, write": Contender(arrow),
        "Gramercy: second moment from noisy rows": Contender(moment),
        **{f"{name}, alone": each for name, each in list(sampler.items())[:1]},
    }
