"""Requests for the steps of a cumulative series: the months of the first quarter of 2026."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.pipeline.plan.step_charges import missing_steps
from gramercy.pipeline.publish.charging import publish, replay
from gramercy.pipeline.publish.private_table import accumulate
from tests.support.factories import write_request

STEPS = ("2026-Q1-01", "2026-Q1-02", "2026-Q1-03")
TERMS: dict[str, Any] = {
    "budget": {"epsilon": 3.0, "delta": 1e-5, "per": "quarter"},
    "neighbours": "add-remove",
    "period": {"column": "visited"},
}
MONTHLY: dict[str, Any] = {
    "cumulative": "month",
    "mechanism": {"name": "gaussian", "epsilon": 2.0, "delta": 1e-6},
}


def write_visits(path: Path, rows: int = 40) -> None:
    """Write a table of visits in the first quarter and the days around it."""
    rng, first = np.random.default_rng(3), datetime.date(2026, 1, 1)
    days = [first + datetime.timedelta(int(k)) for k in rng.integers(-5, 95, rows)]
    columns = {f"c{k}": rng.normal(size=rows) for k in range(3)}
    pd.DataFrame(columns | {"visited": days}).to_csv(path, index=False)


def write_step(folder: Path, version: str, **keys: Any) -> Path:
    """Write the table, the contract and the request of a step; return the request's path."""
    folder.mkdir(exist_ok=True)
    write_visits(folder / "table.csv")
    return write_request(folder, request=MONTHLY | {"version": version} | keys, **TERMS)


def catch_up(request: Path) -> list[str]:
    """Publish all missing steps of a request in order, and its own; the releases."""
    context = Context.default()
    plan = make_plan(context, read_request(request))
    return [
        replay(context, each) or publish(context, each, accumulate(each))
        for each in [*missing_steps(context, plan), plan]
    ]
