"""Cumulative series of a small table: the months of the first quarter of 2026, published."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.mechanisms.sampling import sampler
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
QUARTERLY: dict[str, Any] = TERMS | {"rows": 900, "intercept": True}
MONTHLY: dict[str, Any] = {
    "cumulative": "month",
    "mechanism": {"name": "gaussian", "epsilon": 2.0, "delta": 1e-6},
}


def seed_noise(patch: pytest.MonkeyPatch, seed: int = 5) -> None:
    """Gaussian noise of the same scales from a seeded generator."""
    stream = np.random.default_rng(seed)

    def rounded(scale: float, size: int) -> Any:
        return np.rint(scale * stream.standard_normal(size)).astype(np.int64)

    patch.setattr(sampler, "rounded_gaussian", rounded)


def visits(rows: int = 900, seed: int = 3) -> pd.DataFrame:
    """Visits in the first quarter of 2026 and the days around it; wards 1 to 3."""
    rng, first = np.random.default_rng(seed), datetime.date(2026, 1, 1)
    days = [first + datetime.timedelta(int(k)) for k in rng.integers(-5, 95, rows)]
    columns: dict[str, Any] = {f"c{k}": rng.normal(size=rows) + k for k in range(3)}
    return pd.DataFrame(columns | {"ward": rng.integers(1, 4, rows), "visited": days})


def write_visits(path: Path, rows: int = 40, seed: int = 3) -> None:
    """Write a table of visits."""
    visits(rows, seed).to_csv(path, index=False)


def write_step(folder: Path, version: str, **keys: Any) -> Path:
    """Write a table, the contract and the request of a step; return the request's path."""
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


def publish_steps(folder: Path, contract: dict[str, Any], request: dict[str, Any]) -> list[str]:
    """Publish all steps of a series up to the period of a request, by default the last.

    Writes a table of 900 visits if there is none.
    """
    if not (folder / "table.csv").exists():
        write_visits(folder / "table.csv", 900)
    keys: dict[str, Any] = MONTHLY | {"version": "{period}", "period": STEPS[-1]}
    keys |= {"normalisation": {"kind": "clip", "radius": 2.0}, "estimates": []}
    return catch_up(write_request(folder, request=keys | request, **QUARTERLY | contract))


def draw_again(folder: Path, step: str, release: str) -> str:
    """Publish a step under a new charge, in the place of a release that is closed."""
    request = folder / "request.yaml"
    stated = read_request(request).model_copy(update={"period": step})
    plan = make_plan(Context.default(), stated).with_new_charge(release)
    return publish(Context.default(), plan, accumulate(plan))
