"""All passes of a release in the metric of a pilot matrix, against those of one in one stage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import inputs
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.pipeline.publish.drawing import draw_counts
from gramercy.pipeline.publish.private_table import (
    PrivateCounts,
    accumulate,
    sum_further_rows,
    sum_rows,
)

_MECHANISM = {"name": "gaussian", "epsilon": 1.0, "delta": 1e-9}


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    path = folder / "table.parquet"
    pq.write_table(inputs.arrow(inputs.chain(cell.rows, cell.columns)), path)
    of = inputs.facts(str(path), cell.rows, cell.columns, intercept=True)
    os.environ["GRAMERCY_HOME"] = str(folder / "home")

    def plan(stages: Any) -> Plan:
        scaling = {"kind": "private", "stages": stages}
        asked = inputs.request(folder, of, _MECHANISM, f"v{stages}", scaling=scaling)
        return make_plan(Context.default(), read_request(asked))

    def release(planned: Plan) -> Any:
        counts = accumulate(planned)
        assert isinstance(counts, PrivateCounts)
        with closing(counts.kept) as kept:
            scaled, *_ = draw_counts(planned, counts)
            return sum_rows(scaled, counts.state, kept), sum_further_rows(
                scaled, counts.state, kept
            )

    yield {
        "Gramercy: in the metric": Contender(partial(release, plan("adaptive"))),
        "Gramercy: in one stage": Contender(partial(release, plan(1))),
    }
