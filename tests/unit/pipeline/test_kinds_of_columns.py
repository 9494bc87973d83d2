"""Truth values, dates and groups of codes, from a contract to reports and predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.verification import verify_release
from tests.support.factories import home_at, run_pipeline, write_request

ROWS = 4000
SIZE, SIZE_NFD = "Gr\xf6\xdfe", "Gro\u0308\xdfe"
KINDS: dict[str, Any] = {
    "born": {"unit": "days since 1970-01-01", "lower": "1940-01-01", "upper": "2010-01-01"},
    "smoker": {"levels": [True, False]},
    "icd": {"levels": {"infection": ["A", "B"], "neoplasm": ["C", "D0"], "other": "*"}},
    "age": {"lower": 0.0, "upper": 120.0},
    SIZE: {"lower": 100.0, "upper": 250.0},
}
KINDS["icd"]["prefix"] = True


def table(rows: int = ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    smoker = rng.random(rows) < 0.3
    days = pd.to_timedelta(rng.integers(0, 20_000, rows), "D")
    return pd.DataFrame(
        {
            "born": (pd.Timestamp("1950-01-01") + days).date,
            "smoker": smoker,
            "icd": rng.choice(["A01", "B99", "C34.1", "D09", "Z99"], rows),
            "age": 40 + 10 * smoker + rng.normal(size=rows) * 5,
            SIZE_NFD: rng.normal(size=rows) * 10 + 170,
        }
    )


def published(folder: Path, **request: Any) -> Any:
    """A release with estimates and a report, verified, and the text of the report."""
    folder.mkdir(exist_ok=True)
    table().to_parquet(folder / "t.parquet")
    (folder / "table.csv").write_text("")
    mechanism = {"name": "gaussian", "epsilon": 20.0, "delta": 1e-7}
    facts = {"columns": KINDS, "rows": ROWS, "intercept": True, "id": folder.name}
    path = write_request(
        folder,
        source=str(folder / "t.parquet"),
        **facts,
        budget={"epsilon": 100.0, "delta": 1e-5},
        request={"mechanism": mechanism} | request,
    )
    place = run_pipeline(path)
    context = Context.default()
    verified = verify_release(context.archive, folder.name, place.name, context.existing_ledger)
    assert not verified.unchecked
    pages = "".join(page.read_text() for page in place.rglob("*.html"))
    return gramercy.open(place.parent.parent)[f"{folder.name}/{place.name}"], pages


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("kinds")
    with home_at(folder / "home"):
        yield published(
            folder / "clip",
            normalisation={"kind": "clip", "radius": 3.0},
            estimates=[{"name": "moments", "by": "smoker"}],
        )


@pytest.mark.slow
def test_a_release_states_every_kind(found: Any) -> None:
    release, pages = found
    assert release.names == [
        *("(intercept)", "born", "smoker=true", "smoker=false"),
        *("icd=infection", "icd=neoplasm", "icd=other", "age", SIZE),
    ]
    born, *_ = release.manifest.columns
    assert (born.unit, born.dates.day(born.lower).isoformat()) == (
        KINDS["born"]["unit"],
        "1940-01-01",
    )
    stated = release.manifest.codes["icd"]
    assert stated.groups == {"infection": ("A", "B"), "neoplasm": ("C", "D0"), "other": ("*",)}
    assert "1940-01-01" in pages


def test_means_of_dates_are_dates(found: Any) -> None:
    release, _ = found
    described = release.describe()
    assert described.columns.loc["born", "unit"] == KINDS["born"]["unit"]
    texts = described.table().texts
    mean = pd.Timestamp(texts.loc["mean", "born"])
    assert abs(mean - pd.to_datetime(table()["born"]).mean()) < pd.Timedelta(days=200)
    assert texts.loc["upper_bound", "born"] == "2010-01-01"
    assert texts.loc["std", "born"].endswith(" days")
    shares = described.levels["share"]
    assert shares["smoker", "true"] == pytest.approx(0.3, abs=0.03)
    assert shares["icd", "other"] == pytest.approx(0.2, abs=0.03)


def test_predictions_take_rows_of_the_table(found: Any) -> None:
    release, _ = found
    fitted = release.regression(outcome="age", predictors=["smoker", "born", SIZE_NFD])
    rows = table(5)
    predicted = fitted.predict(rows)
    assert predicted.notna().all()
    difference = predicted[rows["smoker"]].mean() - predicted[~rows["smoker"]].mean()
    assert difference == pytest.approx(10, abs=2)
    first = pd.Timestamp("1970-01-01")
    numbers = rows.assign(
        smoker=rows["smoker"].map({True: "true", False: "false"}),
        born=(pd.to_datetime(rows["born"]) - first) / pd.Timedelta(days=1),
    )
    pd.testing.assert_series_equal(fitted.predict(numbers), predicted)


@pytest.mark.slow
@pytest.mark.parametrize(
    "request_of",
    [
        {"scaling": "private"},
        {"scaling": "private", "folds": 2},
        {"by": "smoker", "scaling": "private"},
        {"by": "icd", "normalisation": {"kind": "clip", "radius": 3.0}},
        {"mechanism": {"name": "marginals", "epsilon": 20.0, "delta": 1e-7}},
        {"mechanism": {"name": "rows", "epsilon": 20.0, "delta": 1e-7}},
    ],
    ids=lambda x: "-".join(map(str, x)),
)
def test_every_kind_of_request_takes_every_kind_of_column(
    request_of: dict[str, Any], tmp_path: Path, home: Path
) -> None:
    release, pages = published(tmp_path / "every", **request_of)
    columns = {each.name: each for each in release.manifest.columns}
    assert columns["born"].unit == KINDS["born"]["unit"]
    assert release.manifest.codes
    if "by" in request_of:
        sizes = [group.rows.value for group in release.manifest.groups]
        expected = [0.3, 0.7] if request_of["by"] == "smoker" else [0.4, 0.4, 0.2]
        np.testing.assert_allclose(np.array(sizes[:-1]) / ROWS, expected, atol=0.05)
    else:
        assert "19" in pages


@pytest.mark.slow
def test_constants_of_another_release_keep_the_unit(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "series"
    published(folder, mechanism={"name": "marginals", "epsilon": 20.0, "delta": 1e-7})
    release, _ = published(folder, version="v2", scaling={"from": "v1-r1"}, estimates=[])
    born, *_ = release.manifest.columns
    assert born.unit == KINDS["born"]["unit"]
    assert born.dates.day(born.centre).year in range(1970, 1985)
