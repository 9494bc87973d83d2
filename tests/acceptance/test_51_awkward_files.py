"""Awkward files, by their kind: released right, or refused with a remedy that works literally.

A test that is refused takes the remedy from the message's facts, applies it as it is written, and
releases. Means are compared with those that the table has, through noise that is far smaller.
"""

from __future__ import annotations

import gzip
import json
import shlex
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ruamel.yaml import YAML

import gramercy
from tests.support.factories import run_command, run_release

ROWS = 400
RNG = np.random.default_rng(51)
TABLE = pd.DataFrame(
    {
        "income": RNG.normal(30_000, 8_000, ROWS).round(2),
        "age": RNG.integers(18, 90, ROWS),
        "ward": RNG.choice(["Süd", "Nord"], ROWS),
    }
)
CSV = TABLE.to_csv(index=False)
COLUMNS = """  income: {lower: 0, upper: 100000}
  age: {lower: 0, upper: 120}
  ward: {levels: [Süd, Nord]}
"""
REQUEST = """dataset: contract.yaml
version: "VERSION"
mechanism: {name: gaussian, epsilon: 80, delta: 1e-7}
normalisation: {kind: clip, radius: 4}
"""
MEANS = {
    "income": TABLE["income"].mean(),
    "age": TABLE["age"].mean(),
    "ward=Süd": (TABLE["ward"] == "Süd").mean(),
}
# Several standard errors of the noise, in units of the bounds.
CLOSE = {"income": 1500.0, "age": 2.0, "ward=Süd": 0.04, "ward=true": 0.04}
CLOSE |= {"Größe (cm)": 2.0, "born": 1000.0}


class Steward:
    """A folder with a contract and a request, and the commands on them."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.source, self.columns, self.rest = "table.csv", COLUMNS, ""
        self.rows = ROWS

    def write(self, name: str, content: str | bytes) -> None:
        (self.folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    def command(self, *words: object) -> tuple[int, str, str]:
        (self.folder / "contract.yaml").write_text(
            f"id: toy\ntitle: T\ncurator: me\nsource: {self.source}\nrows: {self.rows}\n"
            f"budget: {{epsilon: 900, delta: 1e-6}}\ncolumns:\n{self.columns}{self.rest}"
        )
        request = self.folder / "request.yaml"
        request.write_text(REQUEST.replace("VERSION", "1"))
        return run_command(*words, capsys=self._capsys)

    def plan(self) -> dict[str, Any]:
        """The plan, or the refusal."""
        _, out, _ = self.command("plan", self.folder / "request.yaml", "--json")
        facts: dict[str, Any] = json.loads(out)
        return facts

    def check(self) -> list[dict[str, Any]]:
        """What a check says."""
        _, out, _ = self.command("check", self.folder / "request.yaml", "--json")
        problems: list[dict[str, Any]] = json.loads(out)["problems"]
        return problems

    def run(self, line: str) -> None:
        """A command line of a message."""
        code, _, err = self.command(*shlex.split(line)[1:])
        assert code == 0, err

    def release(self) -> gramercy.Release:
        """Publish, and open the release."""
        self.command("plan", self.folder / "request.yaml", "--json")
        name = run_release(self.folder / "request.yaml")
        return gramercy.open(str(self.folder / "home" / "archive"))[f"toy/{name}"]

    def assert_right(self, **truth: float) -> None:
        """Publish, and compare means with those of the table."""
        means = self.release().means
        for name, mean in (truth or MEANS).items():
            assert means[name] == pytest.approx(mean, abs=CLOSE[name]), name


@pytest.fixture
def steward(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Steward:
    return Steward(tmp_path, capsys)


def keys_of(refused: dict[str, Any]) -> str:
    """What the message adds to the source."""
    assert refused["code"] == "GRM-220", refused
    return str(refused["facts"]["keys"])


@pytest.mark.parametrize(
    "text",
    [
        f"# extract of 2026-11-01\n# source: registry\n{CSV}",  # a preamble
        f"Hospital episodes 2026,,\n,,\n{CSV}",  # rows of a title
        f"sep=;\n{TABLE.to_csv(index=False, sep=';')}",
        TABLE.to_csv(index=False, sep="\t"),
    ],
    ids=["comments", "title", "semicolons", "tabs"],
)
def test_a_header_that_is_not_where_it_is_declared(steward: Steward, text: str) -> None:
    steward.write("table.csv", text)
    steward.source = f"{{path: table.csv, {keys_of(steward.plan())}}}"
    steward.assert_right()


def test_text_with_line_breaks(steward: Steward) -> None:
    notes = TABLE.assign(note=["one\ntwo" if k % 20 == 0 else "fine" for k in range(ROWS)])
    steward.write("table.csv", notes.to_csv(index=False))
    (found,) = [each["facts"] for each in steward.check() if "command" in each["facts"]]
    assert found["lines"] == ROWS // 20
    steward.run(found["command"])
    steward.source = found["target"]
    steward.assert_right()


def test_persons_in_two_spellings(steward: Steward) -> None:
    ids = [f"P{k // 2:04}" if k % 2 else f"p{k // 2:04} " for k in range(ROWS)]
    steward.write("table.csv", TABLE.assign(pid=ids).to_csv(index=False))
    steward.rest = f"privacy_unit: pid\npersons: {ROWS // 2}\n"
    (found,) = [each["facts"] for each in steward.check() if "remedy" in each["facts"]]
    assert (found["count"], found["persons"]) == (ROWS, ROWS)
    begin, _, rest = found["remedy"].partition(", and name ")
    steward.run(begin.removeprefix("run "))
    steward.source = rest.partition(" ")[0]
    assert not [each for each in steward.check() if each["code"] == "GRM-911"]


def test_a_new_column_that_a_pattern_matches(steward: Steward) -> None:
    steward.columns = '  "q_*": {lower: 0, upper: 168}\n'
    numbers = pd.DataFrame({f"q_{k}": RNG.uniform(0, 168, ROWS).round(1) for k in (1, 2)})
    steward.write("table.csv", numbers.to_csv(index=False))
    assert list(steward.release().names) == ["(intercept)", "q_1", "q_2"]
    steward.write("table.csv", numbers.assign(q_3=1.0).to_csv(index=False))
    refused = steward.plan()
    assert refused["code"] == "GRM-305"
    excluded = refused["facts"]["exclude"]
    assert list(excluded) == ["q_3"]
    assert f"exclude: [{excluded[0]}]" in refused["facts"]["remedy"]
    steward.rest = f"exclude: [{excluded[0]}]\n"
    assert "code" not in steward.plan()


def test_names_and_levels_in_another_unicode_form(steward: Steward) -> None:
    named = TABLE.rename(columns={"age": "Größe (cm)"})
    half = named["ward"].where(
        np.arange(ROWS) % 2 == 0, named["ward"].map(lambda x: unicodedata.normalize("NFD", x))
    )
    text = named.assign(ward=half).to_csv(index=False)
    steward.write("table.csv", text.replace("Größe", unicodedata.normalize("NFD", "Größe")))
    steward.columns = COLUMNS.replace("  age", '  "Größe (cm)"')
    assert steward.check() == []
    steward.assert_right(**{"Größe (cm)": MEANS["age"], "ward=Süd": MEANS["ward=Süd"]})


def test_truth_values(steward: Steward) -> None:
    smokes = RNG.random(ROWS) < 0.3
    TABLE.assign(ward=smokes).to_parquet(steward.folder / "table.parquet")
    steward.source = "table.parquet"
    steward.columns = COLUMNS.replace("[Süd, Nord]", "[true, false]")
    steward.assert_right(**{"ward=true": smokes.mean(), "age": MEANS["age"]})


def test_dates_as_numbers(steward: Steward) -> None:
    days = RNG.integers(0, 15_000, ROWS)
    born = pd.to_datetime("1970-01-01") + pd.to_timedelta(days, unit="D")
    TABLE.assign(born=born.date).to_parquet(steward.folder / "table.parquet")
    steward.source = "table.parquet"
    steward.columns = COLUMNS + "  born: {lower: 0, upper: 20000}\n"
    refused = steward.plan()
    assert refused["code"] == "GRM-230"
    declared = refused["facts"]["remedy"].rpartition(": {")[2].rstrip(".")
    steward.columns = COLUMNS + f"  born: {{{declared}\n"
    steward.assert_right(born=days.mean(), **MEANS)
    # Dates as bounds, without a unit.
    steward.columns = COLUMNS + "  born: {lower: 1900-01-01, upper: 2030-12-31}\n"
    (*_, problem) = steward.plan()["details"]
    unit = problem["hint"].partition("'")[2].partition("'")[0]
    steward.columns = COLUMNS + f"  born: {{{unit}, lower: 1900-01-01, upper: 2030-12-31}}\n"
    assert "code" not in steward.plan()


def test_persons_as_doubles(steward: Steward) -> None:
    TABLE.assign(pid=np.arange(ROWS) // 2 * 1.0).to_parquet(steward.folder / "table.parquet")
    steward.source = "table.parquet"
    steward.rest = f"privacy_unit: pid\npersons: {ROWS // 2}\n"
    assert steward.check() == []
    assert "code" not in steward.plan()


@pytest.mark.parametrize("thousands", [",", "'", " "])
def test_thousands_separators(steward: Steward, thousands: str) -> None:
    written = TABLE["income"].map(lambda x: f"{x:,.2f}".replace(",", thousands))
    steward.write("table.csv", TABLE.assign(income=written).to_csv(index=False))
    assert steward.check()  # not silent
    steward.source = f'{{path: table.csv, thousands: "{thousands}"}}'
    assert steward.check() == []
    steward.assert_right()


def excel(path: Path) -> None:
    TABLE.to_excel(path.with_suffix(".xlsx"), index=False)
    path.with_suffix(".xlsx").rename(path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("table.csv", excel),
        ("table.csv", TABLE.to_parquet),
        ("table.csv", lambda path: path.write_bytes(gzip.compress(CSV.encode()))),
        ("table.csv", lambda path: path.write_bytes(CSV.encode("utf-16"))),
        ("table.csv", lambda path: path.write_text(TABLE.to_json(orient="records"))),
        ("table.parquet", lambda path: path.write_text(CSV)),
        ("table.csv.gz", lambda path: path.write_text(CSV)),
        ("table", lambda path: path.write_text(CSV)),
    ],
    ids=["Excel", "Parquet", "gzip", "UTF-16", "JSON", "text", "not gzip", "no ending"],
)
def test_a_file_that_is_not_what_its_name_says(
    steward: Steward, name: str, write: Callable[[Path], object]
) -> None:
    path = steward.folder / name
    write(path)
    steward.source = name
    remedy = steward.plan()["facts"]["remedy"]
    for sentence in (
        remedy.replace(", run '", "; run '").replace(", and name", "; name").split("; ")
    ):
        words = sentence.removesuffix(".").split(" ")
        match words[0].lower():
            case "rename":
                steward.source = words[-1]
                path.rename(words[-1])
            case "run":
                steward.run(sentence.strip("'.").partition("'")[2])
            case "name" if words[1] != "that":
                steward.source = words[1]
            case "write":
                line = sentence.partition("'source: ")[2].rstrip("'.")
                assert YAML(typ="safe").load(line)["path"] == str(path)
                steward.source = line
    steward.assert_right()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("table.csv", ""),
        ("table.csv", "\n\n"),
        ("table.csv", "<!DOCTYPE html>\n<html>404</html>\n"),
        ("table.parquet", "<!DOCTYPE html>\n<html>404</html>\n"),
        ("table.parquet", ""),
        ("table.parquet", "PAR1 and no end"),
    ],
)
def test_a_file_without_a_table_is_refused_by_name(
    steward: Steward, name: str, content: str
) -> None:
    steward.write(name, content)
    steward.source = name
    refused = steward.plan()
    assert refused["facts"]["file"] == str(steward.folder / name)
    assert refused["hint"]


def test_a_table_without_rows_or_with_a_broken_last_line(steward: Steward) -> None:
    steward.write("table.csv", CSV.partition("\n")[0] + "\n")
    assert steward.check()[0]["facts"]["rows"] == 0
    # The last line lacks a field: it is a row of missing cells, and no other row is changed.
    steward.write("table.csv", CSV.rstrip("\n").rpartition(",")[0])
    assert steward.check() == []
    steward.assert_right()


def test_notes_below_the_table(steward: Steward) -> None:
    steward.write("table.csv", f"{CSV}\nSource: registry\n")
    found = steward.check()
    assert [each["facts"]["malformed"] for each in found if "malformed" in each["facts"]] == [2]
