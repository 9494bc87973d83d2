"""The passes of private constants, and the sum with them, against the sum with declared ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import inputs
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.pipeline.publish.drawing import draw_counts
from gramercy.pipeline.publish.private_table import PrivateCounts, accumulate, sum_rows

_MECHANISM = {"name": "gaussian", "epsilon": 1.0, "delta": 1e-9}


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    path = folder / "table.parquet"
    pq.write_table(inputs.arrow(inputs.table(cell.rows, cell.columns)), path)
    of = inputs.facts(str(path), cell.rows, cell.columns)
    os.environ["GRAMERCY_HOME"] = str(folder / "home")

    def plan(version: str, **more: Any) -> Plan:
        asked = inputs.request(folder, of, _MECHANISM, version, **more)
        return make_plan(Context.default(), read_request(asked))

    one_stage = {"kind": "private", "stages": 1}
    declared, private = plan("declared"), plan("private", scaling=one_stage)

    def estimated() -> Any:
        counts = accumulate(private)
        assert isinstance(counts, PrivateCounts)
        scaled, *_ = draw_counts(private, counts)
        return sum_rows(scaled, counts.state, counts.kept)

    yield {
        "Gramercy: private constants, sum": Contender(estimated),
        "Gramercy: one sum": Contender(lambda: accumulate(declared)),
    }
