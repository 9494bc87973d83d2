"""Groups of a release whose cells are missing, or far from the others, in one group above all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.common.home import Home
from tests.support.caveat_release import seeded_noise
from tests.support.factories import run_release, write_request

pytestmark = pytest.mark.slow

ROWS = 12_000
NAMES = ("a", "b", "c", "d")


def table() -> pd.DataFrame:
    """In ward A most cells of `a` and `b` are missing; ward B has long tails of `d`."""
    stream = np.random.default_rng(5)
    cells = 20 + stream.normal(size=(ROWS, 4)) + stream.normal(size=(ROWS, 1))
    ward = stream.choice(["A", "B"], ROWS, p=[0.4, 0.6])
    missing = stream.random(ROWS) < np.where(ward == "A", 0.6, 0.05)
    cells[np.ix_(missing, [0, 1])] = np.nan
    cells[ward == "B", 3] = 20 + 1.5 * stream.standard_t(3, size=int((ward == "B").sum()))
    return pd.DataFrame(cells, columns=list(NAMES)).assign(ward=ward)


def test_groups_have_their_own_shares_of_missing_cells(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "table.csv", index=False)
    request = {
        "mechanism": {"name": "gaussian", "epsilon": 4.0, "delta": 1e-6},
        "scaling": "private",
        "by": "ward",
        "estimates": [],
    }
    columns = {name: {"lower": -100.0, "upper": 200.0} for name in NAMES}
    facts = {"rows": ROWS, "columns": columns | {"ward": {"levels": ["A", "B"]}}}
    budget = {"epsilon": 20.0, "delta": 1e-5}
    with seeded_noise(1):
        name = run_release(
            write_request(tmp_path, request=request, budget=budget, intercept=True, **facts)
        )
    release = gramercy.open(Home.default().archive)[f"toy/{name}"]
    for ward, rows in table().groupby("ward"):
        group, own = release.groups[str(ward)], rows[list(NAMES)]
        present = dict(zip(group.names, group.evidence.present, strict=True))
        for column in ("a", "b"):
            assert present[column] == pytest.approx(own[column].notna().mean(), abs=0.03)
        assert present["c"] == 1
        for found, truth in (
            (group.means, own.mean()),
            (group.standard_deviations, own.std(ddof=0)),
        ):
            lower, upper = found.interval(0.99, "table")
            assert ((lower <= truth) & (truth <= upper)).all()
        assert group.correlation.loc["a", "b"] == pytest.approx(own.corr().loc["a", "b"], abs=0.1)
    widths = []
    for group in release.groups.values():
        lower, upper = group.standard_deviations.interval(0.95, "table")
        widths.append(float(upper["d"] - group.standard_deviations["d"]))
    assert min(widths) > 0
