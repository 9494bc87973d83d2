"""Columns that are computed from others: in each row alone, with bounds from public facts."""

from __future__ import annotations

import copy
import math
import pickle
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa

import gramercy
from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.common.home import Home
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.checking import check_table
from gramercy.pipeline.publish.internal_record import read_record
from gramercy.pipeline.publish.private_table import (
    PrivateCounts,
    PrivateSums,
    accumulate,
    copied_contract,
    copy_folder,
    copy_table,
)
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.column import Derived
from gramercy.schemas.contract import Contract
from gramercy.schemas.derived import TRANSFORMS, Derivation, Input, transform_of
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.steps import StepDays
from gramercy.tables import batches
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.reader import cell_batches
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.period_filter import PeriodFilter
from tests.support.cumulative import TERMS, publish_steps, visits
from tests.support.factories import contract_facts, read_plan, run_release, write_request
from tests.support.problems import raises

ROWS = 3000
COLUMNS: dict[str, Any] = {
    "income": {"lower": 0.0, "upper": 1e6, "missing": [-9.0]},
    "age": {"lower": 18.0, "upper": 98.0},
    "sex": {"levels": ["F", "M"]},
    "income_log": {"from": "income", "transform": "log1p"},
    "earns": {"from": "income", "transform": "is not zero"},
    "rich": {"from": "income", "transform": "> 100000"},
    "unknown": {"from": "income", "transform": "is missing"},
    "age_sex": {"from": ["age", "sex"], "transform": "product"},
    "knots": {"from": "age", "transform": "spline", "knots": [30.0, 50.0, 65.0, 80.0]},
    "powers": {"from": "age", "transform": "polynomial", "degree": 3},
    "ratio": {"from": ["income", "age"], "transform": "ratio"},
    "visits_root": {"from": "visits", "transform": "sqrt", "lower": 0.0, "upper": 5.0},
}
BUDGET = {"epsilon": 50.0, "delta": 1e-5}
NAMES = [
    *("income", "age", "sex", "income_log", "earns", "rich", "unknown", "age_sex=F", "age_sex=M"),
    *("knots_1", "knots_2", "powers_2", "powers_3", "ratio", "visits_root"),
]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    income = np.where(rng.random(ROWS) < 0.5, 0.0, rng.lognormal(10, 2, ROWS))
    income[:3] = -9, np.nan, 2e6
    return pd.DataFrame(
        {
            "income": income,
            "age": rng.integers(10, 110, ROWS),
            "sex": rng.choice(["F", "M", "x"], ROWS),
            "visits": rng.integers(0, 40, ROWS),
        }
    )


def contract_of(columns: Any = None, **changes: Any) -> Contract:
    facts = contract_facts(rows=ROWS) | {"columns": columns or COLUMNS} | changes
    return Contract.model_validate(facts)


def cells_of(contract: Contract) -> np.ndarray[Any, np.dtype[np.float64]]:
    """All rows, shape (columns, rows)."""
    read = cell_batches(
        open_source(contract.source),
        contract.codings,
        MalformedLines(),
        missing_codes=contract.missing_codes,
    )
    return np.concatenate(list(read), axis=1)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_derived_cells_are_functions_of_clamped_inputs(tmp_path: Path, kind: str) -> None:
    frame = table()
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.to_parquet(tmp_path / "table.parquet")
    contract = contract_of(source=str(tmp_path / f"table.{kind}"))
    assert contract.names == NAMES
    cells = dict(zip(contract.names, cells_of(contract), strict=True))
    income = frame["income"].replace(-9.0, np.nan).clip(0, 1e6).to_numpy()
    age, absent = frame["age"].clip(18, 98).to_numpy(np.float64), np.isnan(income)
    np.testing.assert_allclose(cells["income_log"], np.log1p(income), rtol=1e-15)
    np.testing.assert_array_equal(cells["earns"], np.where(absent, np.nan, income != 0))
    np.testing.assert_array_equal(cells["rich"], np.where(absent, np.nan, income > 1e5))
    np.testing.assert_array_equal(cells["unknown"], absent)
    np.testing.assert_array_equal(cells["age_sex=M"], age * (frame["sex"] == "M"))
    np.testing.assert_array_equal(cells["ratio"], income / age)
    np.testing.assert_array_equal(cells["visits_root"], np.sqrt(frame["visits"]))
    line = np.polyfit(age, cells["powers_2"], 2)
    np.testing.assert_allclose(np.polyval(line, age), cells["powers_2"], atol=1e-9)
    for name, column in contract.columns.items():
        lower, upper = column.limits
        if isinstance(column, Derived) and name != "visits_root":
            assert np.nanmin(cells[name]) >= lower
            assert np.nanmax(cells[name]) <= upper
    check = check_table(contract)
    clamped = {column.name: column.clamped for column in check.columns}
    assert clamped["income_log"] == clamped["knots_1"] == 0
    assert clamped["visits_root"] == (frame["visits"] > 25).sum()


def test_bounds_follow_from_those_of_the_inputs() -> None:
    limits = {name: column.limits for name, column in contract_of().columns.items()}
    assert limits["income_log"] == (0.0, pytest.approx(math.log1p(1e6)))
    assert limits["rich"] == limits["earns"] == (0.0, 1.0)
    assert limits["age_sex=F"] == (0.0, 98.0)
    assert limits["ratio"] == (0.0, 1e6 / 18)
    assert limits["powers_2"] == (-0.5, 1.0)
    assert limits["visits_root"] == (0.0, 5.0)
    unbounded = contract_of(
        {"a": {"from": "x", "transform": "log1p"}, "b": {"from": ["x", "y"], "transform": "ratio"}}
    )
    assert unbounded.columns_without_bounds == ["a", "b"]
    wide = {"a": {"from": "age", "transform": "sqrt", "lower": 0.0, "upper": 99.0}}
    narrowed = contract_of({"age": {"lower": 1.0, "upper": 4.0}} | wide)
    assert narrowed.columns["a"].limits == (1.0, 2.0)


@pytest.mark.parametrize(
    ("columns", "family"),
    [
        (
            {"b": {"from": "a", "transform": "sqrt"}, "a": {"from": "x", "transform": "sqrt"}},
            "COLUMNS",
        ),
        ({"a": {"from": "a", "transform": "sqrt"}}, "COLUMNS"),
        ({"q_*": {"from": "a", "transform": "sqrt"}}, "COLUMNS"),
        ({"a": {"from": "b", "transform": "root"}}, "COLUMNS"),
        ({"a": {"from": "b", "transform": "product"}}, "COLUMNS"),
        ({"a": {"from": "b", "transform": "log1p 3"}}, "COLUMNS"),
        ({"a": {"from": "b", "transform": "spline", "knots": [1.0, 2.0]}}, "COLUMNS"),
        ({"a": {"from": "b", "transform": "spline", "knots": [3.0, 2.0, 1.0]}}, "COLUMNS"),
        ({"a": {"from": "b", "transform": "polynomial", "degree": 3}}, "BOUNDS"),
        ({"a": {"from": "s", "transform": "sqrt"}, "s": {"levels": ["A"]}}, "LEVELS"),
        ({"a": {"from": "s=B", "transform": "sqrt"}, "s": {"levels": ["A"]}}, "LEVELS"),
        ({"a": {"from": "b", "transform": "> 9"}, "b": {"lower": 0.0, "upper": 5.0}}, "BOUNDS"),
        (
            {
                "a": {"from": "b", "transform": "sqrt", "lower": 7.0, "upper": 9.0},
                "b": {"lower": 0.0, "upper": 4.0},
            },
            "BOUNDS",
        ),
    ],
)
def test_a_column_that_cannot_be_derived_is_refused(columns: Any, family: str) -> None:
    with raises(getattr(families, family)):
        contract_of(columns)


def test_inputs_may_be_declared_by_patterns() -> None:
    columns = {
        "am*": {"lower": 0.0, "upper": 3.0},
        "l*": {"levels": ["A", "B"]},
        "root": {"from": "amount", "transform": "sqrt"},
        "both": {"from": ["amount", "level"], "transform": "product"},
        "powers": {"from": "amount", "transform": "polynomial", "degree": 2},
    }
    contract = contract_of(columns)
    assert not contract.columns["root"].has_bounds
    whole = contract.with_columns(
        {"am*": ["amount"], "l*": ["level"], "root": ["root"], "both": ["both"]}
        | {"powers": ["powers"]}
    )
    assert whole.columns["root"].limits == (0.0, math.sqrt(3.0))
    assert [*whole.columns][3:] == ["both=A", "both=B", "powers_2"]
    assert whole.columns["both=B"].limits == (0.0, 3.0)


def test_expansions_are_bounded() -> None:
    many = {"levels": [f"l{k}" for k in range(100)]}
    columns = {"a": many, "b": many, "c": {"from": ["a", "b"], "transform": "product"}}
    with raises(families.COLUMNS, column="c"):
        contract_of(columns)


def test_cells_of_persons_and_single_cells_are_not_computed_from() -> None:
    columns = {"a": {"from": "who", "transform": "sqrt"}, "age": {"lower": 0.0, "upper": 9.0}}
    with raises(families.PERSONS, input="who"):
        contract_of(columns, privacy_unit="who", persons=20)
    with raises(families.COLUMNS, column="a"):
        contract_of(columns, privacy_unit="cell")


def test_a_spline_is_a_line_far_from_its_knots() -> None:
    """The cubes of cells would cancel each other there, and leave nothing but rounding errors."""
    knots = (1.0, 10.0, 30.0)
    spline, x = transform_of("spline knots 1 10 30 term 1"), [5.0, 10.0, 29.0, 30.0, 1e3, 1e9, 1e15]

    def exact(cell: Fraction) -> Fraction:
        first, before, last = (max(cell - Fraction(knot), Fraction(0)) ** 3 for knot in knots)
        return (first - before * Fraction(29, 20) + last * Fraction(9, 20)) / 29**2

    expected = [float(exact(Fraction(each))) for each in x]
    np.testing.assert_allclose(spline.apply(np.array(x)), expected, rtol=1e-14)
    assert spline.limits((0.0, 1e15)) == (0.0, pytest.approx(expected[-1], rel=1e-14))
    far = transform_of("spline knots -1e300 0 1e300 term 1")
    assert Derivation((Input("x", None, (-1e100, 1e100)),), far).limits == (0.0, math.inf)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_value_depends_on_its_row_alone_to_the_last_bit(transform: str) -> None:
    """NumPy's log1p and arcsinh do not, for arrays in reverse order or on other processors."""
    parameters = {"spline": " knots -5 0 7 term 1", "polynomial": " degree 4 between -9 and 90"}
    parameters["rank"] = " knots -5 0 7 scores -2 0.5 1"
    own = f" {1:d}" if transform in (">", ">=", "<", "<=") else parameters.get(transform, "")
    function, rng = transform_of(transform + own), np.random.default_rng(1)
    x = np.concatenate([rng.normal(0, 30, 2000), rng.lognormal(0, 40, 2000), [0.0, -0.0, 1e308]])
    inputs = [x, x[::-1].copy()][: function.inputs]
    with np.errstate(all="ignore"):
        whole = function.apply(*inputs)
        strided = function.apply(*(np.repeat(each, 3)[::3] for each in inputs))
        parts = [function.apply(*(each[k : k + 1] for each in inputs)) for k in range(500)]
        shifted = function.apply(*(each[3:] for each in inputs))
        reverse = function.apply(*(each[::-1] for each in inputs))
    np.testing.assert_array_equal(strided, whole)
    np.testing.assert_array_equal(np.concatenate(parts), whole[:500])
    np.testing.assert_array_equal(shifted, whole[3:])
    np.testing.assert_array_equal(reverse, whole[::-1])


def written(folder: Path, **keys: Any) -> Path:
    """A request for a table in a folder."""
    table().to_csv(folder / "table.csv", index=False)
    return asked(folder, **keys)


def asked(folder: Path, **keys: Any) -> Path:
    """A request for the table that a folder has."""
    keys = {"mechanism": {"name": "gaussian", "epsilon": 4.0, "delta": 1e-6}} | keys
    facts = {"source": "table.csv", "rows": ROWS, "columns": COLUMNS, "budget": BUDGET}
    facts |= {"intercept": True}
    return write_request(folder, **facts | keys.pop("facts", {}), request=keys)


@pytest.mark.slow
def test_a_release_states_what_it_computed(tmp_path: Path) -> None:
    request = written(tmp_path)
    release = run_release(request)
    manifest = read_release(Context.default().archive.release("toy", release)).manifest
    facts = {column.name: column for column in manifest.columns}
    derived = {name: facts[name].derived for name in NAMES if name != "sex"}
    assert derived["age_sex=F"].inputs == ("age", "sex=F")
    assert derived["income_log"].transform == "log1p"
    assert derived["rich"].in_words == "income > 100000"
    assert derived["age"] is None
    record = read_record(Context.default().home, "toy", release)
    assert record["clamped_cells"]["income_log"] == 0
    assert record["filled_cells"]["income_log"] == 2
    assert record["filled_cells"]["unknown"] == 0


# One column of every transform, of inputs without bounds.
ALL_KINDS: dict[str, Any] = {
    name: COLUMNS[name] for name in ("age", "sex", "age_sex", "knots", "powers")
} | {
    f"d{k}": {"from": list(("income", "visits")[: transform.inputs]), "transform": name + own}
    for k, (name, transform) in enumerate(TRANSFORMS.items())
    if (own := " 3" if name in (">", ">=", "<", "<=") else "") is not None
    and name not in ("spline", "polynomial")
}


KINDS: dict[str, dict[str, Any]] = {
    "rows": {},
    "unit rows": {"normalisation": "unit"},
    "persons": {"facts": {"privacy_unit": "who", "persons": ROWS // 3, "neighbours": "add-remove"}},
    "noisy rows": {"mechanism": {"name": "rows", "epsilon": 4.0, "delta": 1e-6}},
    "local": {"mechanism": {"name": "local", "epsilon": 4.0, "delta": 1e-6}},
    "groups": {"by": "sex"},
    "marginals": {
        "mechanism": {"name": "marginals", "epsilon": 1.0, "delta": 1e-6},
        "scaling": "private",
    },
    "private constants": {"scaling": "private"},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_a_table_with_the_computed_columns(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells that are computed while reading are treated as if they were stored."""
    monkeypatch.setattr(batches, "BATCH_CELLS", 2000)
    frame, cells = table(), {}
    frame["who"] = [f"p{k // 3}" for k in range(ROWS)]
    frame.to_parquet(tmp_path / "table.parquet")
    declared = contract_of(source=str(tmp_path / "table.parquet"))
    for name, column in zip(declared.names, cells_of(declared), strict=True):
        cells[name] = frame.get(name, column)
    whole = pd.DataFrame(cells).assign(who=frame["who"])
    whole.to_parquet(tmp_path / "whole.parquet")
    plain = {
        name: COLUMNS[name] if name in frame else {"lower": limits[0], "upper": limits[1]}
        for name, limits in ((n, c.limits) for n, c in declared.columns.items())
    }
    found = []
    for source, columns in (("table", COLUMNS), ("whole", plain)):
        keys = copy.deepcopy(KINDS[kind])
        facts = {"source": f"{source}.parquet", "columns": columns} | keys.pop("facts", {})
        plan = read_plan(written(tmp_path, facts=facts, **keys))
        found.append(accumulate(plan))
    first, second = found
    if isinstance(first, PrivateCounts):
        pairs = zip(first.counts.counts, second.counts.counts, strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)
        return
    assert isinstance(first, PrivateSums)
    np.testing.assert_array_equal(first.sums.gram, second.sums.gram)
    np.testing.assert_array_equal(first.sums.repairs.filled, second.sums.repairs.filled)
    np.testing.assert_array_equal(first.sums.repairs.clamped, second.sums.repairs.clamped)


HOSTILE = [
    *("", "inf", "-inf", "nan", "-0.0", "1e308", "-1e308", "5e-324", "1e999", "F", "text", "0x1p3"),
    *("9999-12-31", "0000-00-00", "2024-02-30", "10000-01-01", "-9", "  7 ", "1,5", "\ufeff1"),
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_no_cell_changes_a_computed_cell_of_another_row(tmp_path: Path, seed: int) -> None:
    rng, path = np.random.default_rng(seed), tmp_path / "table.csv"
    lines = table().head(60).astype(str).to_csv(index=False).splitlines()
    contract = contract_of(ALL_KINDS, source=str(path))
    path.write_text("\n".join(lines) + "\n")
    before = cells_of(contract)
    for _ in range(20):
        changed = int(rng.integers(1, len(lines)))
        cells = [f'"{each}"' for each in rng.choice(HOSTILE, 4)]
        changed_lines = [*lines[:changed], ",".join(cells), *lines[changed + 1 :]]
        path.write_text("\n".join(changed_lines) + "\n")
        after = cells_of(contract)
        others = np.arange(before.shape[1]) != changed - 1
        np.testing.assert_array_equal(after[:, others], before[:, others])
        assert not np.isinf(after[:, ~others][3:]).any()


def test_a_database_is_read_like_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    url, frame = f"sqlite:///{tmp_path / 'clinic.db'}", table()
    frame.to_sql("visits", sa.create_engine(url), index=False)
    monkeypatch.setenv("CLINIC_DB", url)
    source = {"url": "env:CLINIC_DB", "table": "visits"}
    in_database = read_plan(written(tmp_path, facts={"source": source}))
    with copy_folder(Context.default().home, in_database.contract) as folder:
        assert folder is not None
        copied = accumulate(copy_table(in_database, folder))
    in_file = accumulate(read_plan(written(tmp_path)))
    assert isinstance(copied, PrivateSums)
    assert isinstance(in_file, PrivateSums)
    np.testing.assert_array_equal(copied.sums.gram, in_file.sums.gram)


BIRTHS = ["2000-02-29", "1999-12-31", "2026-01-01", "2026-01-02", "0001-01-01", "1900-01-01"]
DATES: dict[str, Any] = {
    "age": {"from": "birth", "transform": "age", "at": "2025-02-28", "missing": ["1900-01-01"]},
    "at_visit": {"from": ["birth", "visited"], "transform": "age", "lower": 0.0, "upper": 110.0},
    "waited": {"from": ["birth", "visited"], "transform": "days between"},
    "old": {"from": "birth", "transform": "< 1999-12-31"},
    "unknown": {"from": "birth", "transform": "is missing"},
}


@pytest.mark.parametrize("kind", ["csv", "parquet", "sqlite", "dates in parquet"])
def test_dates_are_read_as_days(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    frame = pd.DataFrame({"birth": [*BIRTHS, "2025-13-01", None], "visited": ["2026-01-01"] * 8})
    source: Any = str(tmp_path / f"table.{kind}")
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path / 'clinic.db'}"
        frame.to_sql("visits", sa.create_engine(url), index=False)
        monkeypatch.setenv("CLINIC_DB", url)
        source = {"url": "env:CLINIC_DB", "table": "visits"}
    elif kind == "csv":
        frame.to_csv(source, index=False)
    else:
        source = str(tmp_path / "table.parquet")
        if kind == "dates in parquet":
            for name in frame:
                frame[name] = pd.to_datetime(frame[name], errors="coerce").dt.date
        frame.to_parquet(source)
    contract = contract_of(DATES, source=source, rows=8)
    with copy_folder(Context.default().home, contract) as folder:
        local = contract if folder is None else copied_contract(contract, folder)
        age, visit, waited, old, unknown = cells_of(local)
    none = np.nan
    np.testing.assert_array_equal(age, [24, 25, none, none, 2024, none, none, none])
    np.testing.assert_array_equal(visit, [25, 26, 0, none, 2025, 126, none, none])
    assert waited[:4].tolist() == [9438, 9498, 0, -1]
    assert old[:4].tolist() == [0, 0, 0, 0]
    assert unknown[:4].tolist() == [0, 0, 0, 0]
    assert unknown[6:].tolist() == [1, 1]


def test_bounds_of_ages_follow_from_those_of_dates() -> None:
    years = {"unit": "years since 2000-01-01", "lower": "1950-06-30", "upper": "2025-12-31"}
    days = {"unit": "days since 1970-01-01", "lower": "2026-01-01", "upper": "2026-06-30"}
    contract = contract_of({"birth": years, "visited": days} | DATES)
    limits = {name: column.limits for name, column in contract.columns.items()}
    assert limits["age"] == (0.0, 74.0)
    assert limits["at_visit"] == (0.0, 76.0)
    assert limits["waited"] == (1.0, 27759.0)
    with raises(families.COLUMNS, input="birth"):
        contract_of({"birth": {"lower": 0.0, "upper": 9.0}} | DATES)


@pytest.mark.slow
def test_the_dates_of_a_series_may_be_computed_from(tmp_path: Path) -> None:
    """They decide the step of a row, and an age, by one read of the column."""
    columns = {"c0": {"lower": -5.0, "upper": 8.0}} | {
        "days": {"from": ["born", "visited"], "transform": "days between", "lower": 0.0}
        | {"upper": 40000.0}
    }
    frame = visits(900)
    frame["born"] = "1970-01-01"
    frame.to_csv(tmp_path / "table.csv", index=False)
    releases = publish_steps(tmp_path, {"columns": columns}, {})
    assert len(releases) == 3
    contract = contract_of(columns, source=str(tmp_path / "table.csv"), rows=900, **TERMS)
    with raises(families.PERIODS, input="visited"):
        contract_of(
            {"a": {"from": "visited", "transform": "sqrt"}}, **TERMS, source="x.csv", rows=900
        )
    steps = StepDays("month", (date(2026, 1, 1), date(2026, 2, 1), date(2026, 4, 1)), "2026-Q1")
    dated = contract.for_steps(steps, 2)
    period = PeriodFilter.of(dated)
    assert period is not None
    read = cell_batches(open_source(dated.source), dict([period]) | dated.codings, MalformedLines())
    step, _, days = np.concatenate(list(read), axis=1)
    stamps = pd.to_datetime(frame["visited"])
    since = (stamps - pd.Timestamp("1970-01-01")).dt.days.to_numpy(np.float64)
    np.testing.assert_array_equal(days, since)
    months = stamps.dt.month.where(stamps.dt.year == 2026, 0)
    np.testing.assert_array_equal(step, months.map({0: 0, 12: 0, 1: 1, 2: 2, 3: 2, 4: 0}))


def test_a_missing_input_is_named(tmp_path: Path) -> None:
    frame = table().drop(columns="visits")
    frame.to_parquet(tmp_path / "table.parquet")
    with raises(families.TABLE_COLUMNS, columns=("visits (for visits_root)",)):
        check_table(contract_of(source=str(tmp_path / "table.parquet")))
    frame.assign(visits="many").to_parquet(tmp_path / "table.parquet")
    with raises(families.TABLE_COLUMNS, columns=("visits (for visits_root) (text)",)):
        check_table(contract_of(source=str(tmp_path / "table.parquet")))


@pytest.mark.slow
def test_malformed_lines_are_not_counted_as_missing_cells(tmp_path: Path) -> None:
    """Under replace-one they stay as rows without cells, of which some columns have a value."""
    written(tmp_path)
    with (tmp_path / "table.csv").open("a") as file:
        file.write("1,2\n" * 5)
    release = run_release(asked(tmp_path, facts={"rows": ROWS + 5}))
    record = read_record(Context.default().home, "toy", release)
    missing = record["filled_cells"]
    assert missing["income_log"] == 2
    assert missing["unknown"] == missing["age_sex=F"] == 0


@pytest.mark.slow
def test_releases_are_verified(tmp_path: Path) -> None:
    """With a pilot matrix, with the constants of an earlier release, and of unit rows."""
    loud = {"name": "gaussian", "epsilon": 20.0, "delta": 1e-6}
    first = run_release(written(tmp_path, scaling="private", mechanism=loud))
    same = run_release(asked(tmp_path, scaling={"from": first}, version="v2"))
    unit = run_release(asked(tmp_path, normalisation="unit", version="v3"))
    archive = Context.default().archive
    assert read_release(archive.release("toy", first)).manifest.scaling.pilot > 0.0
    for release in (first, same, unit):
        verify_release(archive, "toy", release, None)


def test_workers_read_the_same_columns() -> None:
    """A contract is sent to the workers of a cluster with what is computed."""
    contract = contract_of()
    sent = pickle.loads(pickle.dumps(contract))
    assert sent.codings == contract.codings
    assert sent.terms() == contract.terms()


def test_bounds_of_columns_of_inputs_without_bounds_are_estimated(tmp_path: Path) -> None:
    """Also where one of both follows, such as 0 of a logarithm."""
    columns = {name: ALL_KINDS[name] for name in ALL_KINDS if "age" not in str(ALL_KINDS[name])}
    columns |= {"years": {"from": "birth", "transform": "age", "at": "2026-01-01"}}
    columns |= {"curve": {"from": "visits", "transform": "spline", "knots": [3.0, 9.0, 20.0]}}
    columns |= {"x": {}, "far": {"from": "x", "transform": "log1p", "lower": 0.0, "upper": 99.0}}
    facts = {"columns": columns}
    table().assign(birth="1980-02-29").to_csv(tmp_path / "table.csv", index=False)
    spec = read_plan(asked(tmp_path, facts=facts, scaling="private")).spec
    assert spec.scaling is not None
    known = dict(zip((column.name for column in spec.columns), spec.scaling.bounds, strict=True))
    assert known["years"] is known["curve_1"] is None
    with raises(families.SCALING):
        read_plan(asked(tmp_path, facts=facts))


@pytest.mark.parametrize("scaling", ["declared", "private"])
def test_a_forged_bound_is_refused(tmp_path: Path, scaling: str) -> None:
    """It would hide that cells were computed otherwise than the release states."""
    spec = read_plan(written(tmp_path, scaling=scaling)).spec
    facts = spec.model_dump(mode="json")
    assert ReleaseSpec.model_validate(facts) == spec
    for name, bounds in {"income_log": (0.0, 14.0), "ratio": (-1.0, 9.0)}.items():
        place = [column.name for column in spec.columns].index(name)
        forged = copy.deepcopy(facts)
        if scaling == "private":
            forged["scaling"]["bounds"][place] = bounds
        else:
            forged["columns"][place] |= {"lower": bounds[0], "upper": bounds[1]}
        with raises(families.INCOMPLETE_FACTS, column=name):
            ReleaseSpec.model_validate(forged)


def test_forged_units_and_codes_are_refused(tmp_path: Path) -> None:
    """Cells would be read otherwise than a release says."""
    born = {"unit": "days since 1970-01-01", "lower": "1900-01-01", "upper": "2020-01-01"}
    columns = {"sex": {"levels": {"woman": ["F"], "other": "*"}}, "born": born}
    facts = {"columns": columns, "source": "none.csv"}
    request = asked(
        tmp_path,
        facts=facts,
        normalisation="unit",
        mechanism={"name": "rows", "epsilon": 4.0, "delta": 1e-6},
    )
    facts = read_plan(request).spec.model_dump(mode="json")
    for key, value in {"zip": {"a": ["1"]}, "sex": {"woman": ["F"]}, "born": {"a": ["1"]}}.items():
        with raises(families.INCOMPLETE_FACTS, column=key):
            ReleaseSpec.model_validate(facts | {"codes": {key: {"groups": value}}})
    facts["columns"][1]["unit"] = "moons since 1970-01-01"
    with raises(families.VALUE, unit="days since 1970-01-01"):
        ReleaseSpec.model_validate(facts)


@pytest.mark.slow
def test_synthetic_cells_are_computed_from_synthetic_cells(tmp_path: Path) -> None:
    loud = {"name": "gaussian", "epsilon": 40.0, "delta": 1e-6}
    run_release(written(tmp_path, scaling="private", mechanism=loud))
    rows = gramercy.open(Home.default().archive).latest("toy").synthesize(200)
    income = rows["income"].to_numpy()
    np.testing.assert_array_equal(rows["unknown"], np.isnan(income))
    np.testing.assert_array_equal(rows["rich"], np.where(np.isnan(income), np.nan, income > 1e5))
    ages = np.where(rows["sex"] == "F", rows["age"], 0.0)
    facts = {column.name: column for column in read_plan(tmp_path / "request.yaml").spec.columns}
    assert facts["age_sex=F"].derived is not None
    np.testing.assert_array_equal(rows["age_sex=F"] == 0.0, ages == 0.0)


@pytest.mark.slow
def test_what_is_computed_is_fixed_by_the_first_charge(tmp_path: Path) -> None:
    run_release(written(tmp_path))
    other = {"unknown": {"from": "age", "transform": "is missing"}}
    with raises(families.TERMS, dataset="toy"):
        run_release(written(tmp_path, facts={"columns": COLUMNS | other}, version="v2"))
