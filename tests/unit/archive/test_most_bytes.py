"""How much space a release may need is known before it is charged, from public facts alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramercy.archive.bundles.bundle_kinds import most_bytes
from gramercy.pipeline.context import Context
from tests.support.factories import (
    MECHANISM,
    contract_facts,
    read_plan,
    run_release,
    write_request,
    write_table,
)

pytestmark = pytest.mark.slow

SMALLEST = 16 << 20
BUDGET = {"budget": {"epsilon": 3.0, "delta": 1e-6}}
CLIP = {"kind": "clip", "radius": 1.0}
LONG = {f"{'long' * 100} {k}": {"lower": -5.0, "upper": 5.0} for k in range(60)}
RELEASES: dict[str, tuple[int, int, dict[str, Any], dict[str, Any]]] = {
    "matrix": (300, 120, {}, {}),
    "add-remove": (300, 60, {}, {"neighbours": "add-remove"}),
    "folds": (300, 60, {"folds": 5}, {}),
    "large": (600, 510, {}, {}),  # above 500 columns there is no CSV
    "long names": (300, 60, {}, {"columns": LONG}),
    "rows": (20_000, 6, {"mechanism": MECHANISM | {"name": "rows"}}, {}),
    "reports": (2_000, 40, {"mechanism": MECHANISM | {"name": "local"}}, {}),
    "marginals": (2_000, 60, {"mechanism": MECHANISM | {"name": "marginals"}}, {}),
    "private": (60_000, 5, {"scaling": "private", "normalisation": "clip"}, {"intercept": True}),
    "pilot": (20_000, 60, {"scaling": "private"}, {"intercept": True}),
    "groups": (
        300,
        60,
        {"by": "c0", "normalisation": CLIP, "folds": 3},
        {"columns": contract_facts(p=60)["columns"] | {"c0": {"levels": list(range(20))}}},
    ),
}


@pytest.mark.parametrize("kind", list(RELEASES))
def test_bundles_are_smaller_than_what_is_required(kind: str, tmp_path: Path) -> None:
    rows, p, request, terms = RELEASES[kind]
    table = write_table(tmp_path / "table.csv", rows, p)
    if kind == "long names":
        lines = table.read_text().split("\n", 1)
        table.write_text("\n".join([",".join(LONG), lines[1]]))
    facts = contract_facts(rows=rows, p=p) | BUDGET | terms
    path = write_request(tmp_path, request={"estimates": []} | request, **facts)
    plan = read_plan(path)
    most = most_bytes(plan.spec, plan.mechanism.publishes)
    release = Context.default().archive.release("toy", run_release(path))
    size = sum(each.stat().st_size for each in release.iterdir())
    assert size < most - SMALLEST < 4 * size + (6 << 20)
