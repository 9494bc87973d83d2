"""Reports show loadings and reliability with intervals, and what is unknown as such."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.api.release import Release
from tests.support.factories import home_at, run_pipeline, write_request

LONG = "satisfaction_with_the_treatment_at_visit"  # 40 characters
NAMES = (LONG, *(f"q{k}" for k in range(2, 9)))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """One factor; the first column is the sum of two, which leaves it no uniqueness."""
    folder, rng = tmp_path_factory.mktemp("factors"), np.random.default_rng(3)
    values = rng.normal(size=(2000, 8))
    values[:, 1:3] += 0.6 * rng.normal(size=(2000, 1))
    values[:, 0] = values[:, 1:3].sum(axis=1)
    pd.DataFrame(values, columns=NAMES).to_csv(folder / "table.csv", index=False)
    request = write_request(
        folder,
        rows=len(values),
        intercept=True,
        budget={"epsilon": 200.0, "delta": 1e-5},
        columns={name: {"lower": -8.0, "upper": 8.0} for name in NAMES},
        request={
            "mechanism": {"name": "gaussian", "epsilon": 100.0, "delta": 1e-6},
            "normalisation": {"kind": "clip", "radius": 3.0},
            "estimates": [
                {"name": "factors", "n_factors": 1},
                {"name": "reliability", "columns": NAMES[:4], "reverse": ["q4"]},
            ],
        },
    )
    with home_at(folder / "home") as home:
        run_pipeline(request)
        return gramercy.open(home / "archive").latest("toy")


def part(release: Release, name: str) -> str:
    assert release.report is not None
    text = Path(release.report).read_text(encoding="utf-8")
    return text[text.index(f"<h3>{name}") :].partition("Files:")[0]


@pytest.fixture
def page(release: Release) -> str:
    return part(release, "factors")


@pytest.mark.slow
def test_unknown_intervals_are_left_out(page: str) -> None:
    assert f"(Heywood cases): {LONG}." in page
    rows = {name: row for row, name in re.findall(r'(<td class="pair">([^<]+).*?</tr>)', page)}
    assert " to " not in rows[LONG]
    assert rows["q5"].count(" to ") == 2  # the loading and the communality
    assert "–" not in page
    assert "(" not in "".join(rows.values())


def test_long_names_have_room(page: str) -> None:
    assert f'<td class="pair">{LONG}</td>' in page


@pytest.mark.slow
def test_reliability_of_a_report_is_that_of_python(release: Release) -> None:
    page = part(release, "reliability")
    found = release.reliability(NAMES[:4], reverse=["q4"])
    assert found.reverse == ["q4"]
    assert "the sum of 4 items" in page
    assert '<td class="pair">q4 (reversed)</td>' in page
    lower, upper = found.conf_int().loc["alpha"]
    shown = re.findall(r'<td class="n">([^<]+)<br><span class="interval">([^<]+) to ([^<]+)<', page)
    values = [float(each) for each in shown[0]]
    np.testing.assert_allclose(values, [found.alpha, lower, upper], atol=(upper - lower) / 50)
    assert len(shown) == 3 + 2 * 4  # alpha, the standardised one and omega; two of each item
