"""A year of weekly releases of a made-up table by the pipeline: time, memory and errors."""

from __future__ import annotations

import datetime
import math
import os
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.arrays import Array
from benchmarks.series.noise import entries
from benchmarks.series.strategies import CUMULATIVE
from benchmarks.throughput.jobs import inputs

WAYS = ("whole", "weeks", CUMULATIVE)
_ID, _COLUMNS, _BOUND = "visits", 20, 4.0
_START = datetime.date(2026, 1, 5)  # a Monday
_EPSILON, _DELTA = 1.0, 1e-6
_WEEK = datetime.timedelta(weeks=1)


@dataclass(frozen=True)
class Year:
    """The releases of a year.

    Parameters
    ----------
    epsilon
        Of a row, after all releases, at delta = 1e-6.
    seconds
        Of every release: plan, passes over the table, charge, noise and seal.
    verified
        Seconds of the verification of all releases, which found nothing wrong.
    peak
        Of the memory of the process, in megabytes.
    error
        Root mean square error of the sum over all rows that the releases of the year tell, relative
        to the stated noise of one release with the same guarantee.
    """

    epsilon: float
    seconds: list[float]
    verified: float
    peak: int
    error: float


def publish_year(way: str, weeks: int, weekly_rows: int) -> Year:
    """Publish a table that grows by so many rows a week, every week, in a home of its own."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRAMERCY_HOME"] = str(Path(folder) / "home")
        return _publish_year(Path(folder), way, weeks, weekly_rows)


def _publish_year(folder: Path, way: str, weeks: int, weekly_rows: int) -> Year:
    from gramercy.archive.bundles.bundle_kinds import read_release
    from gramercy.mechanisms.accounting.gdp import gdp_epsilon, gdp_mu
    from gramercy.mechanisms.gaussian import Gaussian
    from gramercy.pipeline.context import Context
    from gramercy.pipeline.plan.planning import make_plan
    from gramercy.pipeline.plan.request_files import read_request
    from gramercy.pipeline.publish.charging import publish
    from gramercy.pipeline.publish.private_table import accumulate
    from gramercy.pipeline.verify.verification import verify_release
    from gramercy.schemas.neighbours import Neighbours

    context, cells = Context.default(), inputs.chain(weeks * weekly_rows, _COLUMNS)
    path, of = folder / "table.parquet", _ID
    contract = _contract(way, str(path), weeks, weekly_rows)
    mu = gdp_mu(_EPSILON, _DELTA)
    mechanism = {"name": "gaussian", "mu": mu / math.sqrt(weeks) if way == "whole" else mu}
    more: dict[str, Any] = {"cumulative": _cumulative(weeks)} if way == CUMULATIVE else {}
    seconds, names = list[float](), list[str]()
    for week, label in enumerate(_labels(weeks), start=1):
        pq.write_table(_table(cells[:, : week * weekly_rows], weekly_rows), path)
        facts = {**mechanism, "delta": _DELTA}
        request = read_request(inputs.request(folder, contract, facts, label, **more))
        began = time.perf_counter()
        plan = make_plan(context, request)
        names.append(publish(context, plan, accumulate(plan)))
        seconds.append(round(time.perf_counter() - began, 3))
    began, peak = time.perf_counter(), _peak()
    for name in names:
        verify_release(context.archive, of, name, context.ledger)
    verified = round(time.perf_counter() - began, 1)
    last = names if way == "weeks" else names[-1:]
    found = np.zeros((_COLUMNS, _COLUMNS))
    for name in last:
        bundle = read_release(context.archive.release(of, name))
        found += bundle.evidence.raw * bundle.evidence.rows
    once = Gaussian.calibrated(
        p=_COLUMNS,
        n=weeks * weekly_rows,
        neighbours=Neighbours.ADD_REMOVE,
        publishes_noisy_count=True,
        mu=mu,
        delta=_DELTA,
    )
    errors = entries(found - _exact(cells)) / once.law.sd_diagonal
    spent = max(each.total.mu for each in context.ledger.statements(of))
    return Year(
        epsilon=float(f"{gdp_epsilon(spent, _DELTA):.6g}"),
        seconds=seconds,
        verified=verified,
        peak=peak,
        error=float(f"{np.sqrt((errors**2).mean()):.4g}"),
    )


def _labels(weeks: int) -> list[str]:
    days = [_START + week * _WEEK for week in range(weeks)]
    return [f"{day:%G-W%V}" for day in days]


def _cumulative(weeks: int) -> dict[str, Any]:
    return {"every": "week", "from": _START.isoformat(), "steps": weeks}


def _contract(way: str, source: str, weeks: int, weekly_rows: int) -> dict[str, Any]:
    """A contract with a budget for all weeks, or for each of them."""
    budget: dict[str, Any] = {"epsilon": 1.1 * _EPSILON, "delta": 2 * _DELTA}
    rows = weekly_rows * weeks
    more: dict[str, Any] = {"id": _ID, "neighbours": "add-remove"}
    if way == "weeks":
        rows, budget = weekly_rows, budget | {"per": "week"}
    if way != "whole":
        more |= {"period": {"column": "visited"}}
    return inputs.facts(source, rows, _COLUMNS, budget=budget, **more)


def _table(cells: Array, weekly_rows: int) -> pa.Table:
    """The rows so far with their dates, which are in order."""
    days = 7 * np.arange(cells.shape[1]) // weekly_rows
    dates = np.datetime64(_START, "D") + days.astype("timedelta64[D]")
    return inputs.arrow(cells).append_column("visited", pa.array(dates))


def _exact(cells: Array) -> Array:
    """The sum over the rows of unit length."""
    rows = np.clip(cells / _BOUND, -1, 1)
    rows /= np.linalg.norm(rows, axis=0)
    return rows @ rows.T


def _peak() -> int:
    """The peak of this process's resident memory, in megabytes."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
