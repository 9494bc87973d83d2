"""Steps of a cumulative series in memory: their public facts, and numbers with seeded noise."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gramercy.common.prefix_sums import PrefixSums
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.pipeline.plan.step_charges import missing_steps
from gramercy.pipeline.publish.charging import publish, replay
from gramercy.pipeline.publish.drawing import release_manifest
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.schemas.budget import Budget
from gramercy.schemas.facts import (
    BudgetFacts,
    ColumnFacts,
    CumulativeFacts,
    DatasetFacts,
    EarlierStep,
    LevelsFacts,
)
from gramercy.schemas.manifest import ReleaseManifest, ReleaseSpec
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.normalisation import Clip
from tests.support.factories import write_request

MONDAY = datetime.date(2026, 1, 5)


def step_spec(step: int = 2, steps: int = 4, **changes: Any) -> ReleaseSpec:
    """The facts of a step of a series of weeks, of a table of three columns."""
    starts = tuple(MONDAY + k * datetime.timedelta(days=7) for k in range(steps + 1))
    weights = PrefixSums(steps).weights[step - 1, :step]
    facts: dict[str, Any] = {
        "dataset": DatasetFacts(id="toy", title="toy", curator="toy", version="v1", rows=400),
        "columns": tuple(
            ColumnFacts(name=f"c{k}", lower=-5.0, upper=5.0, centre=0.0, scale=5.0)
            for k in range(3)
        ),
        "intercept": True,
        "neighbours": Neighbours.ADD_REMOVE,
        "privacy_unit": "row",
        "normalisation": Clip(radius=1.5),
        "mechanism": {"name": "gaussian", "epsilon": 2.0, "delta": 1e-6},
        "budget": BudgetFacts.of(Budget(epsilon=2.0, delta=1e-6)),
        "cumulative": CumulativeFacts(
            every="week",
            starts=starts,
            step=step,
            weights=tuple(weights.tolist()),
            draws=(1,) * step,
            earlier=tuple(
                EarlierStep(release=f"w{k}-r1", sha256=f"{k}" * 64) for k in range(1, step)
            ),
        ),
    }
    return ReleaseSpec(**facts | changes)


GROUPED = {"by": LevelsFacts(name="ward", levels=(1.0, 2.0))}


def step_manifest(spec: ReleaseSpec, release: str = "w2-r1") -> ReleaseManifest:
    """A manifest with 300 rows, all in the first group if there are groups."""
    groups = [[300.0], [0.0], [0.0]][: spec.groups_count]
    return release_manifest(
        spec,
        release=release,
        published="2026-11-01",
        row_counts=[300.0],
        group_counts=groups if spec.by else (),
        versions={},
    )


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
    """Publish all steps of a series of months up to the period of a request; their releases."""
    write_visits(folder / "table.csv")
    path = write_request(folder, request=MONTHLY | request, **QUARTERLY | contract)
    context, plan = Context.default(), make_plan(Context.default(), read_request(path))
    return [
        replay(context, each) or publish(context, each, accumulate(each))
        for each in [*missing_steps(context, plan), plan]
    ]
