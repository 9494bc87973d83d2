"""A cumulative series of a small table, published step by step."""

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

QUARTERLY: dict[str, Any] = {
    "rows": 900,
    "budget": {"epsilon": 3.0, "delta": 1e-5, "per": "quarter"},
    "neighbours": "add-remove",
    "period": {"column": "visited"},
    "intercept": True,
}
MONTHLY: dict[str, Any] = {
    "version": "{period}",
    "cumulative": "month",
    "period": "2026-Q1-03",
    "mechanism": {"name": "gaussian", "epsilon": 2.0, "delta": 1e-6},
    "normalisation": {"kind": "clip", "radius": 2.0},
    "estimates": [],
}


def write_visits(path: Path, rows: int = 900, seed: int = 3) -> None:
    """Visits in the first quarter of 2026 and the days around it; wards 1 to 3."""
    rng = np.random.default_rng(seed)
    first = datetime.date(2026, 1, 1)
    days = [first + datetime.timedelta(int(k)) for k in rng.integers(-5, 95, rows)]
    columns: dict[str, Any] = {f"c{k}": rng.normal(size=rows) + k for k in range(3)}
    columns |= {"ward": rng.integers(1, 4, rows), "visited": days}
    pd.DataFrame(columns).to_csv(path, index=False)


def publish_steps(folder: Path, contract: dict[str, Any], request: dict[str, Any]) -> list[str]:
    """Publish all steps of a series of months up to the period of a request; their releases.

    Writes the table if there is none.
    """
    if not (folder / "table.csv").exists():
        write_visits(folder / "table.csv")
    path = write_request(folder, request=MONTHLY | request, **QUARTERLY | contract)
    context, plan = Context.default(), make_plan(Context.default(), read_request(path))
    return [
        replay(context, each) or publish(context, each, accumulate(each))
        for each in [*missing_steps(context, plan), plan]
    ]


def draw_again(folder: Path, step: str, release: str) -> str:
    """Publish a step under a new charge, in the place of a release that is closed."""
    request = folder / "request.yaml"
    stated = read_request(request).model_copy(update={"period": step})
    plan = make_plan(Context.default(), stated).with_new_charge(release)
    return publish(Context.default(), plan, accumulate(plan))
