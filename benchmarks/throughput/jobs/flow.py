"""A release as a Prefect flow on a running server, against the same steps without Prefect."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import inputs

_MECHANISM = {"name": "gaussian", "epsilon": 1.0, "delta": 1e-9}


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    path = folder / "table.parquet"
    pq.write_table(inputs.arrow(inputs.table(cell.rows, cell.columns)), path)
    of = inputs.facts(str(path), cell.rows, cell.columns)
    os.environ["GRAMERCY_HOME"] = str(folder / "home")
    os.environ["PREFECT_LOGGING_LEVEL"] = "CRITICAL"
    from prefect.testing.utilities import prefect_test_harness

    from gramercy.flows.release import release
    from gramercy.pipeline.context import Context
    from gramercy.pipeline.plan.checking import check_table_header
    from gramercy.pipeline.plan.planning import make_plan
    from gramercy.pipeline.plan.request_files import read_request
    from gramercy.pipeline.publish.charging import publish, replay
    from gramercy.pipeline.publish.private_table import accumulate
    from gramercy.tasks.policy import typed_errors_only

    versions = itertools.count()

    def asked() -> Path:
        return inputs.request(folder, of, _MECHANISM, f"v{next(versions)}")

    def steps() -> None:
        context = Context.default()
        plan = make_plan(context, read_request(asked()))
        typed_errors_only(replay)(context, plan)
        typed_errors_only(check_table_header)(plan.contract)
        typed_errors_only(publish)(context, plan, typed_errors_only(accumulate)(plan))

    with prefect_test_harness(server_startup_timeout=120):
        yield {
            "Prefect flow": Contender(lambda: release(read_request(asked()))),
            "its steps alone": Contender(steps),
        }
