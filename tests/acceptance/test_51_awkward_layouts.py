"""Layouts of files that programs write: released right, or with a remedy that works literally."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.acceptance.test_51_awkward_files import COLUMNS, CSV, MEANS, RNG, ROWS, TABLE, Steward
from tests.support.factories import run_command

DAYS = RNG.integers(0, 15_000, ROWS)
BORN = pd.to_datetime("1970-01-01") + pd.to_timedelta(DAYS, unit="D")
BOUNDS = "lower: 1960-01-01, upper: 2030-01-01}"
DATE = f"  born: {{unit: days since 1970-01-01, {BOUNDS}\n"


@pytest.fixture
def steward(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Steward:
    return Steward(tmp_path, capsys)


def said(steward: Steward) -> list[dict[str, Any]]:
    """The facts of all that a check says."""
    _, out, _ = steward.command("check", steward.folder / "request.yaml", "--json")
    found = json.loads(out)
    return [each["facts"] for each in [*found["problems"], *found["mistakes"]]]


def mistakes(steward: Steward, kind: str) -> list[dict[str, Any]]:
    """The facts of likely mistakes of a kind."""
    return [each for each in said(steward) if each.get("mistake") == kind]


@pytest.mark.parametrize(
    ("written", "dates"),
    [
        ("%d.%m.%Y", "day.month.year"),
        ("%m/%d/%Y", "month/day/year"),
        ("%d/%m/%Y", "day/month/year"),
        ("%d-%b-%Y", "day-month-year"),
        ("%d%b%Y", "daymonthyear"),
        ("%Y%m%d", "yearmonthday"),
        ("%d.%m.%Y %H:%M", "day.month.year"),
    ],
)
def test_dates_as_they_are_written_elsewhere(steward: Steward, written: str, dates: str) -> None:
    steward.write("table.csv", TABLE.assign(born=BORN.strftime(written)).to_csv(index=False))
    steward.columns = COLUMNS + DATE
    (found,) = mistakes(steward, "dates")
    assert (found["line"], found["doubt"]) == (f"dates: {dates}", "")
    # The same without a unit: both lines are given.
    steward.columns = COLUMNS + "  born: {lower: 0, upper: 100000}\n"
    (found,) = mistakes(steward, "dates")
    assert found["source"] == f"dates: {dates}"
    steward.columns = COLUMNS + f"  born: {found['line']}\n"
    steward.source = f"{{path: table.csv, {found['source']}}}"
    assert said(steward) == []


@pytest.mark.parametrize(
    ("number", "dates"),
    [
        (25569 + DAYS, "days since 1899-12-30"),
        (DAYS * 86_400 + 4e8, "seconds since 1970-01-01"),
        ((DAYS * 86_400 + 4e8) * 1000, "milliseconds since 1970-01-01"),
    ],
    ids=["Excel", "Unix", "JavaScript"],
)
def test_dates_that_are_numbers(steward: Steward, number: Any, dates: str) -> None:
    table = TABLE.assign(born=number.astype(np.int64))
    steward.columns = COLUMNS + DATE
    # A Parquet file states that they are numbers: this is refused before a charge.
    table.to_parquet(steward.folder / "table.parquet")
    steward.source = "table.parquet"
    refused = steward.plan()
    assert refused["code"] == "GRM-230"
    assert "dates: seconds since 1970-01-01" in refused["facts"]["remedy"]
    steward.write("table.csv", table.to_csv(index=False))
    steward.source = "table.csv"
    (found,) = mistakes(steward, "dates")
    assert found["line"] == f"dates: {dates}"
    assert bool(found["doubt"]) == (dates.startswith("days"))  # which day is 0?
    shift = 0 if dates.startswith("days") else 4e8 / 86_400
    steward.source = f"{{path: table.csv, {found['line']}}}"
    steward.columns = COLUMNS + DATE.replace("2030", "2040")
    steward.assert_right(born=DAYS.mean() + shift, **MEANS)


def test_days_and_months_in_either_order(steward: Steward) -> None:
    born = pd.to_datetime("1970-01-01") + pd.to_timedelta(RNG.integers(0, 12, ROWS), unit="D")
    steward.write("table.csv", TABLE.assign(born=born.strftime("%d/%m/%Y")).to_csv(index=False))
    steward.columns = COLUMNS + DATE
    (found,) = mistakes(steward, "dates")
    assert found["line"] == "dates: day/month/year"
    assert "month/day/year" in found["doubt"]
    # Declared in the other order, cells are read as other days where that is possible.
    steward.write("table.csv", TABLE.assign(born=BORN.strftime("%d/%m/%Y")).to_csv(index=False))
    steward.source = "{path: table.csv, dates: month/day/year}"
    (found,) = mistakes(steward, "dates")
    assert found["line"] == "dates: day/month/year"


def test_years_of_two_digits_are_missing(steward: Steward) -> None:
    steward.write("table.csv", TABLE.assign(born=BORN.strftime("%d.%m.%y")).to_csv(index=False))
    steward.columns = COLUMNS + DATE
    (found,) = mistakes(steward, "dates")
    assert found.get("line") is None
    assert "two digits" in found["remedy"]


def test_ages_at_dates_that_are_written_elsewhere(steward: Steward) -> None:
    steward.write("table.csv", TABLE.assign(born=BORN.strftime("%d.%m.%Y")).to_csv(index=False))
    steward.source = "{path: table.csv, dates: day.month.year}"
    steward.columns = COLUMNS.replace("  age:", "  old:").replace(
        "{lower: 0, upper: 120}",
        "{from: born, transform: age, at: 2026-01-01, lower: 0, upper: 99}",
    )
    ages = 2025 - BORN.year
    means = steward.release().means
    assert means["old"] == pytest.approx(np.mean(ages), abs=2)


def lines(text: str, change: Any) -> str:
    return "".join(f"{change(k, line)}\n" for k, line in enumerate(text.splitlines()))


@pytest.mark.parametrize(
    "text",
    [
        lines(CSV, lambda _, line: f"{line},"),
        lines(CSV, lambda _, line: f"{line},,,"),
        lines(CSV, lambda _, line: line.replace(",", " , ")),
        CSV.replace("income", "\u00a0income ", 1),
        TABLE.astype(str).replace("Nord", "\\N").to_csv(index=False),
        TABLE.assign(income=TABLE["income"].map("{:.8E}".format)).to_csv(index=False),
    ],
    ids=["trailing", "trailing thrice", "padded", "blank name", "NULL of MySQL", "exponents"],
)
def test_layouts_that_are_read(steward: Steward, text: str) -> None:
    steward.write("table.csv", text)
    assert "code" not in steward.plan()
    steward.assert_right(income=MEANS["income"], age=MEANS["age"])


PSQL = TABLE.to_csv(index=False, sep="|").replace("|", " | ").splitlines()
APART = {
    "two colons": CSV.replace(",", "::"),
    "tilde": CSV.replace(",", "~"),
    "apostrophes": lines(CSV, lambda _, line: "','".join(f",{line},".split(","))[2:-2]),
    "lines in quotes": lines(CSV, lambda _, line: f'"{line}"'),
    "carriage returns": CSV.replace("\n", "\r"),
}


@pytest.mark.parametrize("kind", APART)
def test_layouts_that_are_refused_with_a_command(steward: Steward, kind: str) -> None:
    steward.write("table.csv", APART[kind])
    refused = steward.plan()
    assert refused["code"] == "GRM-220"
    steward.run(refused["facts"]["command"])
    steward.source = refused["facts"]["target"]
    steward.assert_right()


UNREAD = {
    "trailing in rows": lines(CSV, lambda k, line: f"{line}," if k else line),
    "backslashes": lines(CSV, lambda k, line: line + (',"a \\" b, c"' if k else ",note")),
    "blank lines": lines(CSV, lambda k, line: f"{line}\n" if k % 50 == 0 else line),
    "line and count": f"{PSQL[0]}\n--------+-----+------\n"
    + "\n".join(PSQL[1:])
    + "\n(400 rows)\n\n",
}


@pytest.mark.parametrize("kind", UNREAD)
def test_lines_that_a_command_reads(steward: Steward, kind: str) -> None:
    steward.write("table.csv", UNREAD[kind])
    if "|" in UNREAD[kind]:
        steward.source = '{path: table.csv, separator: "|"}'
    (found,) = [each for each in said(steward) if "command" in each]
    assert found["faults"]
    steward.run(found["command"])
    steward.source = found["target"]
    assert said(steward) == []
    steward.assert_right()


@pytest.mark.parametrize(
    "below",
    [
        "EUR,years,\n",
        'What do you earn?,"How old, in years?",Where?\n{Q1},{Q2},{Q3}\n',
        "------,---,----\n",
    ],
    ids=["units", "questions", "line"],
)
def test_lines_below_the_header(steward: Steward, below: str) -> None:
    first, _, rows = CSV.partition("\n")
    steward.write("table.csv", f"{first}\n{below}{rows}")
    (found,) = mistakes(steward, "lines below the header")
    steward.source = f"{{path: table.csv, {found['line']}}}"
    assert said(steward) == []
    steward.assert_right()


def test_headers_among_rows_of_joined_files(steward: Steward) -> None:
    half = len(CSV.splitlines()) // 2
    head, *rows = CSV.splitlines(keepends=True)
    steward.write(
        "table.csv", "".join(["\ufeff", head, *rows[:half], "\ufeff", head, *rows[half:]])
    )
    (found,) = mistakes(steward, "repeated header")
    steward.run(found["command"])
    steward.source = found["target"]
    assert said(steward) == []
    steward.assert_right()


@pytest.mark.parametrize(
    ("mark", "shape"), [("<{}", "<99999.99"), ("{}*", "99999.99*"), ("~ {}", "~ 99999.99")]
)
def test_numbers_with_marks(steward: Steward, mark: str, shape: str) -> None:
    income = [mark.format(x) if k % 5 == 0 else x for k, x in enumerate(TABLE["income"])]
    steward.write("table.csv", TABLE.assign(income=income).to_csv(index=False))
    (found,) = mistakes(steward, "limits" if "<" in mark else "marked numbers")
    assert shape in found["shapes"]
    steward.source = f"{{path: table.csv, {found['line']}}}"
    assert said(steward) == []
    steward.assert_right()


@pytest.mark.parametrize("cell", ["#DIV/0!", "#VALUE!", "inf", "TRUE"])
def test_cells_without_numbers(steward: Steward, cell: str) -> None:
    income = [cell if k % 9 == 0 else x for k, x in enumerate(TABLE["income"])]
    steward.write("table.csv", TABLE.assign(income=income).to_csv(index=False))
    (found,) = mistakes(steward, "no numbers")
    assert found["columns"] == ["income"]


def test_a_draft_of_lines_of_old_macs(steward: Steward, capsys: pytest.CaptureFixture[str]) -> None:
    steward.write("table.csv", APART["carriage returns"])
    code, _, err = run_command("new", steward.folder / "table.csv", "--no-ask", capsys=capsys)
    assert code != 0
    assert "gramercy convert" in err
