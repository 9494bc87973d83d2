"""Releases of one data set by period: each reads its rows, and is charged to its own budget."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.api.catalogue import Catalogue
from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release
from gramercy.archive.listing.contents import newest_of_periods
from gramercy.archive.store.layout import INDEX
from gramercy.common.home import Home
from gramercy.estimators import registry
from gramercy.pipeline.catalogue.catalogue_pages import period_series, write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import make_plan
from gramercy.pipeline.plan.request_files import read_contract, read_request
from gramercy.pipeline.publish.attachments import make_estimate
from gramercy.pipeline.publish.private_table import accumulate, copy_folder, copy_table
from gramercy.pipeline.verify.verification import verify_release
from gramercy.reports.period_series import series_facts
from gramercy.schemas import families
from gramercy.schemas.publications import publications
from tests.support.databases import KINDS
from tests.support.factories import MECHANISM, read_plan, run_release, write_request, write_table
from tests.support.problems import raises
from tests.support.source_tables import execute, new_url

pytestmark = pytest.mark.slow

MONTHLY = {"epsilon": 3.0, "delta": 1e-6, "per": "month"}
DATES: dict[str, Any] = {
    "budget": MONTHLY,
    "neighbours": "add-remove",
    "period": {"column": "visited", "timezone": "Europe/Berlin"},
}


def bundle(release: str) -> ReleaseBundle:
    return read_release(Context.default().archive.release("toy", release))


def requested(folder: Path, label: str, **changes: Any) -> Path:
    request = {"version": "{period}", "period": label} | changes.pop("request", {})
    return write_request(folder, request=request, **changes)


def test_files_of_a_month_are_charged_to_this_month(tmp_path: Path) -> None:
    for month, rows in (("10", 40), ("11", 50)):
        write_table(tmp_path / f"visits-2026-{month}.csv", rows=rows, seed=int(month))
    files = {"source": "visits-{year}-{month}.csv", "budget": MONTHLY}
    rows = {"rows_by_period": {"2026-11": 50}}
    assert run_release(requested(tmp_path, "2026-10", **files, **rows)) == "2026-10-r1"
    assert run_release(requested(tmp_path, "2026-11", **files, **rows)) == "2026-11-r1"
    first, second = bundle("2026-10-r1").manifest, bundle("2026-11-r1").manifest
    assert (first.rows.value, second.rows.value) == (40, 50)
    assert (second.period.label, second.period.column) == ("2026-11", None)
    assert "2026-11" in second.card["period"]
    ledger = Context.default().ledger
    assert [each.window for each in ledger.statements("toy")] == ["2026-10", "2026-11"]
    assert len({each.total.mu for each in ledger.statements("toy")}) == 1
    with raises(families.ROW_COUNT, rows=50, declared=40):
        run_release(requested(tmp_path, "2026-11", request={"folds": 2}, **files))
    # The same request is answered from the archive, in any month.
    assert run_release(requested(tmp_path, "2026-10", **files, **rows)) == "2026-10-r1"


def visits(rows: int = 400) -> pd.DataFrame:
    """Visits from October to December, a day apart in their time zone."""
    rng = np.random.default_rng(3)
    days = [datetime.date(2026, 10, 1) + datetime.timedelta(k % 92) for k in range(rows)]
    columns = {
        f"c{k}": rng.normal(size=rows) + days_shift for k, days_shift in enumerate((0, 1, 2))
    }
    return pd.DataFrame(columns | {"visited": days})


@pytest.mark.parametrize(
    "keys",
    [
        {"scaling": "private", "mechanism": {"name": "gaussian", "epsilon": 2.9, "delta": 1e-7}},
        {"folds": 3, "normalisation": {"kind": "clip", "radius": 3.0}},
    ],
    ids=["private", "folds"],
)
def test_dates_of_a_month_are_charged_to_this_month(tmp_path: Path, keys: Any) -> None:
    table = visits()
    table.to_csv(tmp_path / "table.csv", index=False)
    asked = {"mechanism": {"name": "gaussian", "epsilon": 2.9, "delta": 1e-7}} | keys
    facts = DATES | {"rows": 20_000 if "scaling" in keys else 130, "intercept": True}
    facts |= {"budget": MONTHLY | {"delta": 1e-6}}
    months = [f"2026-{month}" for month in (10, 11, 12)]
    names = [run_release(requested(tmp_path, each, request=asked, **facts)) for each in months]
    context = Context.default()
    in_berlin = [f"2026-{day.month:02}" for day in table["visited"]]
    for month, name in zip(months, names, strict=True):
        manifest = bundle(name).manifest
        assert abs(manifest.rows.observed - in_berlin.count(month)) < 15 * manifest.rows.sd
        assert manifest.period.label == month
        assert manifest.period.timezone == "Europe/Berlin"
        verify_release(context.archive, "toy", name, context.ledger)
    assert [each.window for each in context.ledger.statements("toy")] == months
    with raises(families.EXCEEDED, budget="toy, data of 2026-11"):
        again = asked | {"version": "{period}.again"}
        run_release(requested(tmp_path, "2026-11", request=again, **facts))


INSTANTS = [
    "2026-10-31 22:59:59+00:00",  # 23:59:59 in Berlin
    "2026-10-31 23:00:00+00:00",
    "2026-11-15 12:00:00.5+00:00",
    "2026-11-30 22:59:59+00:00",
    "2026-11-30 23:00:00+00:00",
]


@pytest.mark.parametrize("kind", KINDS)
def test_dates_of_a_database_decide_the_period(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_url(kind, tmp_path)
    monkeypatch.setenv("CLINIC_DB", url)
    seen = "TEXT" if kind == "sqlite" else "TIMESTAMPTZ"
    create = f"CREATE TABLE visits (c0 REAL, c1 REAL, c2 REAL, seen {seen})"
    insert = "INSERT INTO visits VALUES (:c, :c, 0, :seen)"
    rows = [{"c": float(k), "seen": each} for k, each in enumerate(INSTANTS)]
    execute(url, create, insert, rows=[*rows, {"c": 9.0, "seen": None}])
    facts = DATES | {"period": {"column": "seen", "timezone": "Europe/Berlin"}, "rows": 5}
    source = {"url": "env:CLINIC_DB", "table": "visits"}
    plan = read_plan(requested(tmp_path, "2026-11", source=source, **facts))
    with copy_folder(Context.default().home, plan.contract) as folder:
        assert folder is not None
        sums = accumulate(copy_table(plan, folder))
    assert sums.sums.rows == 3


def test_groups_of_a_month(tmp_path: Path) -> None:
    visits().assign(ward=lambda frame: np.where(frame.index % 3, "A", "B")).to_csv(
        tmp_path / "table.csv", index=False
    )
    columns = {"c0": {"lower": -5.0, "upper": 5.0}, "ward": {"levels": ["A", "B"]}}
    facts = DATES | {"rows": 130, "columns": columns, "intercept": True}
    asked = {"by": "ward", "normalisation": {"kind": "clip", "radius": 2.0}, "estimates": []}
    plan = read_plan(requested(tmp_path, "2026-11", request=asked, **facts))
    sums = accumulate(plan)
    table = pd.read_csv(tmp_path / "table.csv")
    of_month = table[table["visited"].str.startswith("2026-11")]
    counts = [part.rows for part in sums.sums.part_sums]
    assert counts == [(of_month["ward"] == ward).sum() for ward in ("A", "B", "no")]


def test_column_of_dates_is_fixed_with_the_first_release(tmp_path: Path) -> None:
    visits().assign(seen="2026-11-02").to_csv(tmp_path / "table.csv", index=False)
    facts = DATES | {"rows": 400}
    run_release(requested(tmp_path, "2026-11", **facts))
    for period in ({"column": "seen", "timezone": "Europe/Berlin"}, {"column": "visited"}):
        with raises(families.TERMS):
            run_release(requested(tmp_path, "2026-11", **facts | {"period": period}))


def test_request_of_a_plan_names_its_period(tmp_path: Path) -> None:
    visits().to_csv(tmp_path / "table.csv", index=False)
    request = read_request(requested(tmp_path, "2026-11", **DATES, rows=400), "2026-12")
    plan = make_plan(Context.default(), request)
    assert plan.request.version == "2026-12"
    assert plan.spec.period.label == "2026-12"


def test_folder_of_a_contract_has_no_placeholder(tmp_path: Path) -> None:
    folder = tmp_path / "{month}"
    folder.mkdir()
    write_request(folder)
    with raises(families.CONTRACT_FILE):
        read_contract(folder / "contract.yaml")


def published_months(folder: Path, months: int = 3, rows: int = 3000) -> Catalogue:
    """Releases of several months; the mean of c0 rises in the last one."""
    facts = {
        "source": "t-{year}-{month}.csv",
        "rows": rows,
        "intercept": True,
        "budget": {"epsilon": 100.0, "delta": 1e-6, "per": "month"},
    }
    asked = {
        "mechanism": {"name": "gaussian", "epsilon": 20.0, "delta": 1e-7},
        "normalisation": {"kind": "clip", "radius": 3.0},
        "estimates": [],
    }
    for month in range(1, months + 1):
        table = write_table(folder / f"t-2026-{month:02}.csv", rows=rows, seed=month)
        if month == months:
            pd.read_csv(table).assign(c0=lambda frame: frame["c0"] + 1).to_csv(table, index=False)
        run_release(requested(folder, f"2026-{month:02}", request=asked, **facts))
    return gramercy.open(Home.default().archive)


def listed(
    period: str, withdrawn: str | None = None, kind: str = "second-moment", column: str = "a"
) -> Any:
    facts = SimpleNamespace(
        period=period, step=None, publication=publications[kind], names=["(intercept)", column]
    )
    return SimpleNamespace(facts=facts, withdrawn=withdrawn, key=("toy", period))


def test_newest_release_of_each_period_that_can_be_used() -> None:
    releases = [
        *(listed("2026-02"), listed("2026-01"), listed("2026-02"), listed("2026-01", "wrong")),
        listed("2026-03", kind="marginals"),
        SimpleNamespace(facts=SimpleNamespace(period=None, kind="rows"), withdrawn=None),
    ]
    newest = newest_of_periods(releases)  # type: ignore[arg-type]
    assert newest == {"2026-01": releases[1], "2026-02": releases[2]}
    assert [*newest] == ["2026-01", "2026-02"]


def test_release_with_other_columns_does_not_break_its_month() -> None:
    one, other, two = listed("2026-01"), listed("2026-01", column="b"), listed("2026-02")
    assert newest_of_periods([one, other, two]) == {"2026-01": one, "2026-02": two}
    three = listed("2026-03", column="b")  # the only release of its month
    assert [*newest_of_periods([one, other, two, three]).values()] == [other, two, three]
    four = listed("2026-04")
    assert newest_of_periods([one, other, two, three, four])["2026-01"] is one
    assert newest_of_periods([]) == {}


def test_page_shows_the_last_periods_only() -> None:
    many = [listed(f"2026-01-{day:02}") for day in range(1, 31)]
    wide = [replace_names(each, 102) for each in many]
    series = period_series(Context.default().archive, wide)
    assert (len(series.releases), series.omitted, series.numbers) == (12, 18, None)
    assert [*series.releases][-1] == "2026-01-30"
    assert series_facts(series)["charts"] == []
    assert period_series(Context.default().archive, many[:1]) is None


def replace_names(release: Any, count: int) -> Any:
    release.facts.names = [f"c{k}" for k in range(count)]
    return release


def test_numbers_of_a_data_set_over_time(tmp_path: Path) -> None:
    catalogue = published_months(tmp_path)
    periods = catalogue.periods("toy")
    labels = ["2026-01", "2026-02", "2026-03"]
    assert list(periods) == labels == periods.table.index.tolist()
    assert periods.table["rows"].tolist() == [3000.0] * 3
    assert periods["2026-02"].period == "2026-02"
    with raises(families.UNKNOWN_NAME, period="2026-04") as raised:
        periods["2026-04"]
    assert isinstance(raised.value, KeyError)
    means = periods.over_time().query("kind == 'mean' and column == 'c0'")
    assert means["period"].tolist() == labels
    np.testing.assert_allclose(means["estimate"], [0, 0, 1], atol=0.15)
    for label, line in means.set_index("period").iterrows():
        own = periods[str(label)].means
        assert line["estimate"] == own["c0"]
        assert line["standard_error"] == own.standard_error["c0"]
    changed = periods.changes()
    assert changed.loc[0, ["kind", "column"]].tolist() == ["mean", "c0"]
    assert changed["adjusted"][0] < 1e-6
    assert periods.changes()["periods"].eq(3).all()
    pool = periods.pooled
    assert pool.rows == pytest.approx(9000, rel=0.02)
    assert pool.means["c0"] == pytest.approx(1 / 3, abs=0.1)
    # Pools know that periods have different rows; two versions of one period may share some.
    assert gramercy.pool([periods["2026-01"], periods["2026-02"]]).rows > 5000
    write_site(Context.default())
    page = (Home.default().archive / "toy" / INDEX).read_text()
    section = page[page.index("<h2>Over time</h2>") : page.index("<h2>Budget</h2>")]
    assert section.count("<svg") == 6
    assert re.findall('href="([^"]*)/index.html">', section) == [f"{x}-r1" for x in labels]
    assert "mean of c0" in section
    again = {"version": "2026-01.again", "mechanism": {**MECHANISM, "epsilon": 20.0}}
    again |= {"normalisation": {"kind": "clip", "radius": 3.0}, "estimates": []}
    facts = {"source": "t-{year}-{month}.csv", "rows": 3000, "intercept": True}
    budget = {"epsilon": 100.0, "delta": 1e-6, "per": "month"}
    name = run_release(write_request(tmp_path, request=again, budget=budget, **facts))
    with raises(families.POOL):
        gramercy.pool([*periods.values(), catalogue[f"toy/{name}"]])
    assert catalogue.periods("toy")["2026-01"].id == f"toy/{name}"


def test_graphs_of_periods(tmp_path: Path) -> None:
    """In Python, and as a sealed estimate of one release and the others."""
    months = published_months(tmp_path).periods("toy")
    settings = {"structure": "fused", "penalty": 1e-4, "shared": 0.5}
    found = months.graphs(**settings)
    assert list(found) == list(months)
    assert found.tables["status"].eq("used").all()
    first, *others = (each.id for each in months.values())
    named = {"name": "joint-graphical-lasso", "releases": others} | settings
    made = registry["joint-graphical-lasso"].model_validate(named)
    sealed = make_estimate(Context.default(), "toy", "2026-01-r1", made).tables
    assert sealed["tables"]["table"].tolist() == [first, *others]
    edges = sealed["edges"]
    assert not edges.empty
    names = {each.id: label for label, each in months.items()}
    assert edges.assign(table=edges["table"].map(names)).equals(found.edges)
    assert not verify_release(Context.default().archive, "toy", "2026-01-r1", None).unchecked
    again = registry["joint-graphical-lasso"].model_validate(named | {"releases": [first]})
    with raises(families.COMPARISON, name=first):
        make_estimate(Context.default(), "toy", "2026-01-r1", again)


def test_data_set_without_periods_is_refused(tmp_path: Path) -> None:
    run_release(write_request(tmp_path))
    catalogue = gramercy.open(Home.default().archive)
    assert catalogue["toy/v1-r1"].period is None
    with raises(families.PERIOD, dataset="toy"):
        catalogue.periods("toy")
