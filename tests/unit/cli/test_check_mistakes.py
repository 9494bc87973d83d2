"""Likely mistakes that a check shows before the charge, each with the line that corrects it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from gramercy.pipeline.validation import mistakes
from gramercy.schemas import families
from tests.support.factories import run_command, write_request

ROWS = 600
BOUNDS = {"lower": -1e6, "upper": 1e6}
Column = Sequence[Any] | np.ndarray


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def some(values: Column, other: Any, share: float = 0.02) -> list[Any]:
    """Values of which every few are another one."""
    step = round(1 / share)
    return [other if k % step == 1 else value for k, value in enumerate(values)]


AGES = rng().integers(0, 96, ROWS)
MONEY = np.round(rng().lognormal(6, 1.5, ROWS), 2)
NOISE = np.round(rng().normal(0, 1, ROWS), 6)
LIKERT = rng().integers(1, 6, ROWS)


def check(
    folder: Path,
    table: Mapping[str, Column],
    capsys: pytest.CaptureFixture[str],
    columns: Mapping[str, Any] | None = None,
    **changes: Any,
) -> list[dict[str, Any]]:
    """The mistakes that a check shows."""
    data = {"other": NOISE, **table}
    pd.DataFrame(data).to_csv(
        folder / "table.csv", index=False, sep=changes.pop("separator", ","), na_rep=""
    )
    declared = {name: BOUNDS for name in data if name != changes.get("privacy_unit")}
    facts = {"columns": declared | dict(columns or {}), "rows": ROWS} | changes
    _, out, _ = run_command("check", write_request(folder, **facts), "--json", capsys=capsys)
    found = json.loads(out)
    mistakes: list[dict[str, Any]] = found["mistakes"]
    # Each is said once.
    assert not {each["message"] for each in mistakes} & {x["message"] for x in found["problems"]}
    return mistakes


def as_read(line: str) -> Any:
    """A line of a contract."""
    return yaml.safe_load(f"{{{line}}}")


def facts_of(mistakes: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str], Any]]:
    """Facts of mistakes, with their lines as a contract reads them."""
    lines = (each["line"] and as_read(each["line"]) for each in mistakes)
    return [(x["mistake"], x["columns"], line) for x, line in zip(mistakes, lines, strict=True)]


@pytest.mark.parametrize(
    ("values", "column", "line"),
    [
        (some(MONEY, -666666666), {}, "missing: [-666666666]"),
        (some(AGES, 999), BOUNDS, "missing: [999]"),
        (some(AGES, 9999, 0.005), {}, "missing: [9999]"),
        (some(some(AGES, -9), 999, 0.011), {}, "missing: [-9, 999]"),
        (some(AGES, 200), {"lower": 0, "upper": 100}, "missing: [200]"),
        (some(AGES, -1), {"lower": 0, "upper": 100}, "missing: [-1]"),
        (some(LIKERT, 9), {"lower": 1, "upper": 5}, "missing: [9]"),
        (some(LIKERT, 99), {"lower": 1, "upper": 5}, "missing: [99]"),
        (some(some(AGES // 4, 98), 99, 0.011), {"missing": [-7]}, "missing: [-7, 98, 99]"),
        (some(NOISE, -999.9), {}, "missing: [-999.9]"),
        (some(MONEY, 99999999), {}, "missing: [99999999]"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_codes_of_missing_values(
    values: Column,
    column: dict[str, Any],
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (found,) = check(tmp_path, {"x": values}, capsys, {"x": column})
    assert facts_of([found]) == [("sentinel", ["x"], as_read(line))]
    assert found["code"] == families.MANY_CELLS.code


def german(number: float) -> str:
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


@pytest.mark.parametrize(
    ("write", "line"),
    [
        (lambda x: f"{x:,.2f}", 'thousands: ","'),
        (lambda x: f"{x:,.2f}".replace(",", "'"), 'thousands: "\'"'),
        (german, 'decimal: ",", thousands: "."'),
        (lambda x: f"{x:.1f}".replace(".", ","), 'decimal: ","'),
        (lambda x: f"€ {x:.2f}", 'units: ["€"]'),
        (lambda x: f"{x:,.1f} kg", 'thousands: ",", units: ["kg"]'),
        (lambda x: f"{x / 100:.1f} %", "percent: true"),
        (lambda x: f"({x:.2f})", "accounting: true"),
    ],
    ids=range(8),
)
def test_numbers_in_another_notation(
    write: Any, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line that is proposed reads the cells; the check shows their shapes."""
    table = {"x": [write(each) for each in MONEY]}
    source: dict[str, Any] = {"path": "table.csv", "separator": ";"}
    options: Any = {"source": source, "separator": ";"}
    columns = {"other": {"levels": ["none"]}}  # whose decimal points would be other numbers
    (found,) = (
        each
        for each in check(tmp_path, table, capsys, columns, **options)
        if each["columns"] == ["x"]
    )
    assert facts_of([found]) == [("notation", ["x"], as_read(line))]
    others = (cell for cell in table["x"] if set(cell) & set("012345678"))
    assert not any(cell in found["message"] for cell in others)
    options["source"] = source | as_read(line)
    corrected = check(tmp_path, table, capsys, columns, **options)
    assert not [each for each in corrected if each["columns"] == ["x"]]


def test_marks_between_thousands_that_are_read_as_decimals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = {"x": [f"{each:,.0f}".replace(",", ".") for each in MONEY]}
    options: Any = {"source": {"path": "table.csv", "separator": ";"}, "separator": ";"}
    columns = {"other": {"levels": ["none"]}}
    found = check(tmp_path, table, capsys, columns, **options)
    assert facts_of(found)[0] == ("notation", ["x"], {"decimal": ",", "thousands": "."})


def test_mixed_decimal_marks_cannot_be_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [f"{x:,.2f}" if k % 2 else german(x) for k, x in enumerate(MONEY)]
    (found,) = check(tmp_path, {"x": cells}, capsys)
    assert facts_of([found]) == [("mixed notations", ["x"], None)]


DATES = [f"20{k % 20:02d}-{k % 12 + 1:02d}-{k % 28 + 1:02d}" for k in range(ROWS)]
TOTAL = [*range(1, ROWS), sum(range(1, ROWS))]


@pytest.mark.parametrize(
    ("values", "mistake"),
    [
        ([5] * ROWS, "constant"),
        (NOISE, "copy"),
        (range(10_000, 10_000 + ROWS), "identifier"),
        (DATES, "dates"),
        ([int(day.replace("-", "")) for day in DATES], "dates"),
        ([x * 1000 if k % 5 else x for k, x in enumerate(rng().normal(70, 9, ROWS))], "two units"),
        (some(AGES, "unknown", 0.5), "words"),
    ],
    ids=range(7),
)
def test_columns_that_should_not_be_published_so(
    values: Column, mistake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = check(tmp_path, {"x": values}, capsys)
    assert found["mistake"] == mistake
    assert "x" in found["columns"]


@pytest.mark.parametrize("label", ["Total", "ward 3"])
def test_a_total_row(label: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = rng().integers(0, 9, (2, ROWS - 1))
    table = {name: [*each, each.sum()] for name, each in zip("xy", counts, strict=True)}
    wards = [*(f"ward {k % 3}" for k in range(ROWS - 1)), label]
    columns = {"ward": {"levels": ["ward 0", "ward 1", "ward 2"]}}
    found = check(tmp_path, table | {"ward": wards}, capsys, columns)
    assert [(each["mistake"], each["code"]) for each in found] == [
        ("total row", families.UNUSABLE_LINES.code)
    ]


def test_a_total_row_above_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sum is enough, next to a mean; the label is in a column that is not published."""
    shares = np.round(rng().random(ROWS - 2), 3)
    staff = np.round(rng().normal(25, 5, ROWS - 2), 1)
    table = {
        "home": [*(f"home {k}" for k in range(ROWS - 2)), "Total", "Source: registry"],
        "x": [*shares, shares.mean(), None],
        "other": [*staff, staff.sum(), None],
    }
    columns = {"x": {"lower": 0, "upper": 1}, "other": {"lower": 0, "upper": 100}}
    pd.DataFrame(table).to_csv(tmp_path / "table.csv", index=False)
    request = write_request(tmp_path, columns=columns, rows=ROWS)
    _, out, _ = run_command("check", request, "--json", capsys=capsys)
    assert [each["mistake"] for each in json.loads(out)["mistakes"]] == ["total row"]


@pytest.mark.parametrize("again", [1.0, 0.1])
def test_rows_that_are_there_twice(
    again: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = round(ROWS / (1 + again))
    values = [*MONEY[:first], *MONEY[: ROWS - first]]
    noise = [*NOISE[:first], *NOISE[: ROWS - first]]
    (found,) = check(tmp_path, {"x": values, "other": noise}, capsys)
    assert found["mistake"] == "duplicates"


@pytest.mark.parametrize(
    "spellings", [("P{:04d}", "P{}"), ("756{:07d}", "756.{:07d}"), ("A-{:03d}/7", "a{:03d}7")]
)
def test_ids_of_persons_that_differ_in_zeros_or_marks(
    spellings: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [spellings[k % 3 == 0].format(k % 200) for k in range(ROWS)]
    (found,) = check(tmp_path, {"who": ids}, capsys, privacy_unit="who", persons=400)
    assert (found["mistake"], found["code"]) == ("alike", families.PERSON_IDS.code)


def test_ids_with_a_mark_in_different_places_are_different(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [f"{k % 30 + 1}-{k % 20 + 1}" for k in range(ROWS)]
    assert check(tmp_path, {"who": ids}, capsys, privacy_unit="who", persons=60) == []


def test_levels_in_another_encoding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line that is proposed reads the cells, and no level with other bytes is proposed."""
    words = np.array(["männlich", "weiblich"])[AGES % 2]
    columns = {"x": {"levels": ["männlich", "weiblich"]}, "other": BOUNDS}
    data = pd.DataFrame({"x": words, "other": NOISE}).to_csv(index=False)
    (tmp_path / "table.csv").write_bytes(data.encode("cp1252"))
    for source, expected in (
        ({}, [("encoding", ["x"], {"encoding": "cp1252"})]),
        ({"encoding": "cp1252"}, []),
    ):
        request = write_request(
            tmp_path, columns=columns, rows=ROWS, source={"path": "table.csv"} | source
        )
        _, out, _ = run_command("check", request, "--json", capsys=capsys)
        facts = json.loads(out)
        assert facts_of(facts["mistakes"]) == expected


def test_a_mistake_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = check(tmp_path, {"x": some(AGES, 999)}, capsys)
    _, out, _ = run_command("check", tmp_path / "request.yaml", "--json", capsys=capsys)
    assert found["message"] not in {each["message"] for each in json.loads(out)["problems"]}


def test_limits_of_a_measurement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [f"{x:.1f}" if x > 100 else "<100.0" for x in MONEY]
    (found,) = check(tmp_path, {"x": cells}, capsys)
    assert facts_of([found]) == [("limits", ["x"], {"units": ["<"]})]


def test_declared_levels_in_two_spellings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = np.array(["Ja", "ja", "Nein"])[AGES % 3]
    (found,) = check(tmp_path, {"x": words}, capsys, {"x": {"levels": ["Ja", "ja", "Nein"]}})
    line = {"levels": {"Ja": ["Ja", "ja"], "Nein": ["Nein"]}}
    assert facts_of([found]) == [("levels alike", ["x"], line)]
    assert check(tmp_path, {"x": words}, capsys, {"x": line}) == []


def test_levels_that_are_not_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = np.array(["Süd", "Nord", "sud", "Süd ", "nord", "West", "Ost"])[AGES % 7]
    levels = {"x": {"levels": ["Süd", "Nord"]}}
    found = facts_of(check(tmp_path, {"x": words}, capsys, levels))
    assert [each[:2] for each in found] == [
        ("spelling of levels", ["x"]),
        ("unknown levels", ["x"]),
    ]
    assert found[0][2] == {"levels": {"Süd": ["Süd"], "Nord": ["Nord", "nord"]}}
    assert {"West", "Ost", "sud"} <= set(found[1][2]["levels"])
    # A list would replace the groups of codes.
    groups = {"x": {"levels": {"a": ["Süd"], "b": ["Nord"]}}}
    ((mistake, _, line),) = facts_of(check(tmp_path, {"x": words}, capsys, groups))
    assert (mistake, line) == ("unknown levels", None)


SPIKES = np.where(AGES < 80, 0, np.round(MONEY))
ORDINARY = {
    "age": AGES,
    "top coded age": np.minimum(AGES, 90),
    "adult": np.maximum(AGES, 18),
    "answer": LIKERT,
    "zero or one": AGES % 2,
    "rare": (AGES == 3).astype(int),
    "count": rng().negative_binomial(1, 0.1, ROWS),
    "children": rng().poisson(0.8, ROWS),
    "money": MONEY,
    "mostly zero": SPIKES,
    "top coded": np.minimum(np.round(40 * MONEY, -3), 90_000),
    "top means": np.where(40 * MONEY > 90_000, 145_000, np.round(40 * MONEY, -3)),
    "year": 1990 + AGES // 3,
    "hours": np.where(AGES < 50, 40, AGES),
    "tail": np.round(1000 / rng().random(ROWS) ** 0.9),
    "heavy": rng().standard_t(1.5, ROWS),
    "weight": np.round(rng().normal(70, 12, ROWS), 1),
    "score": rng().integers(-2, 3, ROWS),
    "dose": np.array([0, 5, 10, 20, 40, 80])[AGES % 6],
    "percentage": rng().integers(0, 101, ROWS),
    "price": np.array([4.99, 9.99, 19.99, 99.99, 199.99])[AGES % 5],
    "zip": rng().integers(10_000, 99_999, ROWS),
    "cents": rng().integers(0, 2_000_000, ROWS),
    "gaps": [None if k % 4 else x for k, x in enumerate(MONEY)],
}


@pytest.mark.parametrize("bounded", [True, False])
def test_ordinary_tables_raise_no_alarm(
    bounded: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = {name: BOUNDS if bounded else {} for name in ORDINARY}
    assert facts_of(check(tmp_path, ORDINARY, capsys, columns)) == []


def test_a_failure_of_the_search_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("private")

    monkeypatch.setattr(mistakes, "LOOKS", (fail, mistakes.LOOKS[0]))
    assert check(tmp_path, {"x": some(AGES, 999)}, capsys)[0]["mistake"] == "sentinel"
    monkeypatch.setattr(mistakes, "raw_samples", fail)
    assert check(tmp_path, {"x": some(AGES, 999)}, capsys) == []
