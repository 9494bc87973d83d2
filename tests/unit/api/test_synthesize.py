"""Synthetic rows of a release: for analysts, sealed, verified, in a report, on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.estimators import registry
from gramercy.estimators.synthetic import Synthetic
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_estimate, make_report
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from tests.support.caveat_release import seeded_noise
from tests.support.factories import run_command, run_release, write_request
from tests.support.problems import raises, refuses
from tests.support.survey import SEXES, WARDS, survey_release, survey_table


@pytest.mark.slow
def test_synthetic_rows_of_a_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = survey_release(tmp_path)
    code, _, _ = run_command(
        *("estimate", f"toy/{release}", "--estimator", "synthetic"),
        *("--set", "rows=2000", "--set", "integers=age"),
        capsys=capsys,
    )
    assert code == 0
    spec = Synthetic(rows=2000, integers=("age",))
    context, archive = Context.default(), open_archive(Home.default().archive)
    bundle = make_estimate(context, "toy", release, spec)  # reads what the command sealed
    assert bundle.manifest.kind == "synthetic"
    opened = gramercy.open(archive.root)["toy/" + release]
    rows = opened.synthesize(2000, integers=["age"])
    assert rows.attrs == {"synthetic": True, "release": opened.id}
    pd.testing.assert_frame_equal(rows, bundle.tables["rows"], check_dtype=False)
    assert list(rows) == ["income", "age", "hours", "ward", "sex"]
    assert set(rows["ward"].dropna()) == set(WARDS)
    assert set(rows["sex"].dropna()) == set(SEXES)
    table = survey_table()
    expected, found = (each[["income", "hours"]].corr().iloc[0, 1] for each in (table, rows))
    assert found == pytest.approx(expected, abs=0.15)
    page = make_report(context, "toy", release, [spec.id]).page
    assert "<h3>synthetic: 2,000 rows</h3>" in page
    assert page.count("</svg>") > 3
    result = verify_release(archive, "toy", release, None)
    assert not result.unchecked
    assert any(each.startswith("estimate") for each in result.checks)


def test_request_without_means_is_refused_before_the_charge(tmp_path: Path) -> None:
    request = {"mechanism": {"name": "gaussian", "epsilon": 0.5, "delta": 1e-6}}
    request |= {"estimates": [{"name": "synthetic"}]}
    with raises(families.ANALYSIS, estimator="synthetic"):
        run_release(write_request(tmp_path, request=request))


@pytest.mark.parametrize("rows", [0, 100_001])
def test_number_of_sealed_rows_is_limited(rows: int) -> None:
    with refuses("rows"):
        registry["synthetic"].model_validate({"rows": rows})


@pytest.mark.slow
def test_private_constants_give_distributions(tmp_path: Path) -> None:
    """Of a skewed column with wide bounds; missing cells are there in their share."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"x": rng.normal(size=20_000)})
    table["y"] = np.exp(0.8 * (0.6 * table["x"] + 0.8 * rng.normal(size=20_000)))
    table.loc[rng.random(20_000) < 0.3, "y"] = np.nan
    table.to_csv(tmp_path / "table.csv", index=False)
    request = {"mechanism": {"name": "gaussian", "epsilon": 4.0, "delta": 1e-6}}
    facts = {
        "rows": 20_000,
        "columns": {"x": {}, "y": {"lower": 0.0, "upper": 1e3}},
        "budget": {"epsilon": 8.0, "delta": 1e-5, "per": "lifetime"},
        "intercept": True,
    }
    with seeded_noise(42):  # by chance, the histogram has counts far out
        release = run_release(
            write_request(tmp_path, request={**request, "scaling": "private"}, **facts)
        )
    context = Context.default()
    bundle = make_estimate(context, "toy", release, Synthetic(rows=20_000))
    rows = bundle.tables["rows"]
    assert rows["y"].isna().mean() == pytest.approx(0.3, abs=0.03)
    assert rows["y"].max() < 100
    assert rows["y"].median() == pytest.approx(table["y"].median(), rel=0.1)
    assert rows.corr().iloc[0, 1] == pytest.approx(table.corr().iloc[0, 1], abs=0.1)
    page = make_report(context, "toy", release, [bundle.manifest.estimate]).page
    assert page.count('stroke="var(--warm)"') >= 2
