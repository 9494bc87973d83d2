"""Sources of contracts with budgets per period: no file belongs to two periods."""

from __future__ import annotations

import datetime
import itertools
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fsspec.utils import glob_translate
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.periods import PLACEHOLDERS, Span, label_of
from gramercy.schemas.steps import Cumulative
from gramercy.tables.formats.source import open_source
from tests.support.factories import contract_facts
from tests.support.problems import raises

YEARLY = {"epsilon": 1.0, "delta": 1e-9, "per": "year"}


def yearly(source: Any, **keys: Any) -> Contract:
    own = {"source": source, "budget": YEARLY}
    return Contract.model_validate(contract_facts() | own | keys)


def periodic(source: Any, per: str, **keys: Any) -> Contract:
    return yearly(source, budget=YEARLY | {"per": per}, **keys)


def accepted(source: str, per: str = "year") -> bool:
    try:
        periodic(source, per)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    "source",
    [
        "{year}.csv",
        "data-{year}*.csv",
        "data-*{year}.csv",
        "?{year}.csv",
        "{year}/*.csv",
        "*/{year}/[ab]/*.csv",
        "[ab]-{year}.csv",
        "{year}-[ab].csv",
        "[{year}.csv",
        "{year}].csv",
        "[ab]/{year}].csv",
        "s3://bucket/year={year}/part-*.parquet",
    ],
)
def test_unambiguous_yearly_source_is_accepted(source: str) -> None:
    assert accepted(source)


@pytest.mark.parametrize(
    "source",
    [
        "data-[{year}].csv",
        "[{year}]/x.csv",
        "d[!{year}].csv",
        "[a-{year}].csv",
        "[]{year}].csv",
        "[!]{year}].csv",
        "[\\{year}].csv",
        "[a]{year}]b].csv",
        "*{year}*",
        "*\\{year}*",
        "?{year}?.csv",
        "[ab]{year}[ab].csv",
        "{year}/{year}.csv",
        "**/{year}.csv",
        "{year}/../x.csv",
    ],
)
def test_ambiguous_yearly_source_is_refused(source: str) -> None:
    assert not accepted(source)


def test_year_in_a_character_class_is_refused(tmp_path: Path) -> None:
    """A character class would match one file for two years."""
    (tmp_path / "data-2.csv").write_text("c0,c1,c2\n1,2,3\n")
    assert open_source(str(tmp_path / "data-[2026].csv")).files
    assert open_source(str(tmp_path / "data-[2027].csv")).files
    assert not accepted(str(tmp_path / "data-[{year}].csv"))


TOKENS = st.sampled_from([*"20267*?[]!-^/\\ab.", "[!", "[]", "[^", "a-", "**", ".."])
PATTERN = st.lists(TOKENS, max_size=6).map("".join)
NAME = st.text("2026789[]!-^\\ab./", max_size=10)


def filled(pattern: str, blank: str) -> str:
    """A name that matches part of a pattern."""
    return re.sub(r"\[.[^\]]*\]|[*?]", lambda _: blank, pattern)


@pytest.mark.slow
@given(PATTERN, PATTERN, NAME, st.integers(0, 9999), st.integers(0, 9999))
@example("[", "]", "2", 2026, 2027)
@example("[!", "]", "a", 2026, 2027)
@example("[\\", "]", "2", 2026, 2027)
@example("*\\", "*", "a\\2025\\2026", 2025, 2026)
@example("*", "*", "20252026", 2025, 2026)
def test_no_file_name_matches_two_years(
    before: str, after: str, name: str, first: int, second: int
) -> None:
    """Names are matched by the rules of fsspec."""
    if first == second or not accepted(before + "{year}" + after):
        return
    contract = yearly(before + "{year}" + after)
    patterns = []
    for year in (first, second):
        source = contract.for_version(f"{year:04}").source
        try:
            patterns.append(re.compile(glob_translate(source)))
        except ValueError:  # such as a** within a name, which fsspec refuses
            return
    names = {name} | {
        filled(before, blank) + f"{year:04}" + filled(after, blank)
        for year in (first, second)
        for blank in ("", "2", f"{first:04}", f"{second:04}")
    }
    for candidate in names:
        assert not all(pattern.fullmatch(candidate) for pattern in patterns)


@pytest.mark.parametrize(
    ("per", "source"),
    [
        ("month", "visits-{year}-{month}.csv"),
        ("month", "year={year}/month={month}/part-*.parquet"),
        ("month", "*-{month}{year}.csv"),
        ("month", "{year}/*-{month}.csv"),
        ("quarter", "{year}Q{quarter}/*.parquet"),
        ("week", "{year}-W{week}/*.csv"),
        ("day", "{year}/{month}/{day}/*.csv"),
        ("day", "{day}.{month}.{year}*.csv"),
        ("year", "{year}-{month}.csv"),
        ("year", "{year}/{quarter}/*.csv"),
        ("quarter", "{year}-{month}.csv"),
        ("month", "{year}-{month}-{day}.csv"),
        ("week", "{year}-{month}-{day}.csv"),
        ("lifetime", "{year}-W{week}.csv"),
        ("lifetime", "{year}/{month}/*.csv"),
    ],
)
def test_source_that_determines_the_period_is_accepted(per: Span, source: str) -> None:
    assert accepted(source, per)


@pytest.mark.parametrize(
    ("per", "source"),
    [
        ("month", "visits-{month}.csv"),
        ("month", "visits-{year}.csv"),
        ("month", "{year}-{quarter}.csv"),
        ("month", "{year}-W{week}.csv"),
        ("year", "{year}-W{week}.csv"),
        ("year", "{year}-{month}-*-{day}*.csv"),
        ("quarter", "{quarter}.csv"),
        ("week", "{year}-{month}.csv"),
        ("day", "{year}-{day}.csv"),
        ("day", "t.csv"),
        ("lifetime", "{month}.csv"),
        ("month", "{year}*{month}*.csv"),
        ("month", "*{year}*-{month}.csv"),
        ("month", "{year}-[{month}].csv"),
        ("month", "{year}-{month}-{month}.csv"),
        ("month", "{year}/**/{month}.csv"),
        ("month", "{year}/../{month}.csv"),
    ],
)
def test_source_that_does_not_determine_the_period_is_refused(per: str, source: str) -> None:
    assert not accepted(source, per)


PARTS = st.lists(st.sampled_from([*"0127*?[]-/ab", "[!", "**", ".."]), max_size=3).map("".join)
SPANS = st.sampled_from(sorted(PLACEHOLDERS))
DAYS = st.dates(datetime.date(2000, 1, 1), datetime.date(2040, 12, 31))


@pytest.mark.slow
@given(
    SPANS, st.randoms(use_true_random=False), st.lists(PARTS, min_size=4, max_size=4), DAYS, DAYS
)
def test_no_file_name_matches_two_periods(
    per: Span, order: Random, between: list[str], first: datetime.date, second: datetime.date
) -> None:
    """Names that one period's pattern matches, with wildcards in place of anything, numbers too."""
    marks = list(PLACEHOLDERS[per])
    order.shuffle(marks)
    pairs = itertools.zip_longest(between, marks, fillvalue="")
    source = "".join(text + mark for text, mark in pairs)
    labels = [label_of(per, first), label_of(per, second)]
    if labels[0] == labels[1] or not accepted(source, per):
        return
    sources = [periodic(source, per).for_version(label).source for label in labels]
    try:
        patterns = [re.compile(glob_translate(each)) for each in sources]
    except ValueError:  # fsspec refuses it
        return
    blanks = ["", "1", *(label[:4] for label in labels), *(label[-2:] for label in labels)]
    for candidate in {filled(each, blank) for each in sources for blank in blanks}:
        assert not all(pattern.fullmatch(candidate) for pattern in patterns)


@pytest.mark.parametrize("per", ["year", "month", "day"])
def test_budget_per_period_is_refused_for_person_level_privacy(per: str) -> None:
    """Parallel composition holds only for rows, and persons have rows in many periods."""
    persons = {"privacy_unit": "person_id", "persons": 7}
    with raises(families.PERSONS, column="person_id", per=per):
        periodic("{year}.csv", per, **persons)
    assert yearly("{year}.csv").protected_unit == "row"
    assert yearly("{year}.csv", privacy_unit="cell").protected_unit == "cell"
    lifetime = Contract.model_validate(contract_facts("t.csv") | persons)
    assert lifetime.protected_unit == "person"


def test_number_of_rows_of_each_period() -> None:
    contract = periodic("{year}-{month}.csv", "month", rows_by_period={"2026-10": 8, "2026-11": 9})
    rows = [contract.for_version(version).rows for version in ("2026-10", "2026-11.2", "2026-12")]
    assert rows == [8, 9, contract.rows]
    assert contract.for_version("2026-11").source == "2026-11.csv"
    days = {datetime.date(2026, 11, 23): 5}  # as YAML reads the key
    daily = periodic("{year}{month}{day}.csv", "day", rows_by_period=days)
    assert daily.for_version("2026-11-23").rows == 5
    assert yearly("{year}.csv", rows_by_period={2026: 5}).for_version("2026").rows == 5


def test_number_of_rows_must_be_that_of_a_period() -> None:
    with raises(families.PERIODS, label="2026-Q1", per="month"):
        periodic("{year}-{month}.csv", "month", rows_by_period={"2026-Q1": 8})
    with raises(families.PERIODS):
        periodic("t.csv", "lifetime", rows_by_period={"2026": 8})
    with raises(families.VALUE, count_key="rows"):
        yearly("{year}.csv", rows_by_period={"2026": 10**9})


def test_tables_of_a_database_are_of_the_budgets_period() -> None:
    """Several tables are not read together."""

    def named(table: str, per: str) -> Contract:
        return periodic({"url": "env:CLINIC_DB", "table": table}, per)

    assert named("visits_{year}", "year").for_version("2026").source.table == "visits_2026"
    for table, per in (("visits_{year}_{month}", "year"), ("visits_{year}", "lifetime")):
        with raises(families.PERIODS, per=per):
            named(table, per)


def test_column_of_dates() -> None:
    period, private = {"column": "visited"}, {"neighbours": "add-remove"}
    contract = periodic("t.csv", "month", period=period, **private)
    assert contract.terms()["period"] == {"column": "visited", "timezone": "UTC"}
    assert contract.for_version("2026-11").source == "t.csv"
    with raises(families.PERIODS):
        periodic("t.csv", "month", period=period, **private, privacy_unit="cell")
    with raises(families.PERIODS, column="c0"):
        periodic("t.csv", "month", period={"column": "c0"}, **private)
    with raises(families.PERIODS, placeholders=("none",)):
        periodic("{year}-{month}.csv", "month", period=period, **private)


def test_public_numbers_of_rows_with_dates_are_for_series_only() -> None:
    """Any other release would read rows by dates that it does not protect."""
    contract = periodic("t.csv", "year", period={"column": "visited"})
    with raises(families.PERIOD, column="visited", neighbours="replace-one"):
        contract.for_version("2026")
    steps = Cumulative(every="month").series("year", "2026")
    stepped = contract.for_steps(steps, 3)
    assert stepped.dates is not None
    assert stepped.dates.starts == steps.starts[:4]
    assert not stepped.checks_rows


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_dates_of_a_lifetime_are_for_series_only(neighbours: str) -> None:
    contract = periodic("t.csv", "lifetime", period={"column": "visited"}, neighbours=neighbours)
    plain = contract.for_version("v1")
    assert plain.dates is None
    assert plain.checks_rows == (neighbours == "replace-one")


@pytest.mark.parametrize(
    ("per", "window", "source", "every", "crossing"),
    [
        ("year", "2026", "{year}-{month}.csv", "month", None),
        ("year", "2026", "{year}-{month}.csv", "quarter", None),
        ("year", "2026", "{year}-{month}-{day}.csv", "week", None),
        ("year", "2026", "{year}-{quarter}.csv", "month", "2026-Q1"),
        ("year", "2026", "{year}.csv", "month", "2026"),
        ("year", "2026", "{year}-{month}.csv", "week", "2026-01"),
        ("quarter", "2026-Q2", "{year}-{month}.csv", "month", None),
        ("lifetime", "2026-01-05", "{year}-W{week}.csv", "week", None),
        ("lifetime", "2026-01-07", "{year}-W{week}.csv", "week", "2026-W02"),
        ("lifetime", "2026-01-05", "{year}-{month}.csv", "week", "2026-01"),
        ("lifetime", "2026-01-01", "{year}-{month}.csv", "quarter", None),
    ],
)
def test_files_show_a_step_if_none_has_rows_of_two(
    per: str, window: str, source: str, every: str, crossing: str | None
) -> None:
    contract = periodic(source, per)
    own = {"from": window, "steps": 3} if per == "lifetime" else {}
    series = Cumulative.model_validate({"every": every} | own)
    steps = series.series(contract.budget.per, "" if own else window)
    if crossing is not None:
        with raises(families.REQUEST_USE, label=crossing, every=every):
            contract.for_steps(steps, 1)
        return
    dates = contract.for_steps(steps, 2).dates
    assert dates is not None
    assert (dates.starts, dates.span) == (steps.starts[:3], every)


def test_a_series_needs_the_step_of_each_row() -> None:
    steps = Cumulative(every="month").series("year", "2026")
    table = {"url": "env:CLINIC_DB", "table": "visits_{year}"}
    for source, per in (("t.csv", "lifetime"), (table, "year")):
        with raises(families.REQUEST_USE):
            periodic(source, per).for_steps(steps, 1)


@pytest.mark.parametrize(
    "column",
    [
        {"lower": -1e101, "upper": 1e9},
        {"lower": 0.0, "upper": 1e-101},
        {"lower": -1.0, "upper": 1.0, "scale": 1e101},
        {"lower": -1.0, "upper": 1.0, "scale": 1e-101},
        {"lower": 1e16, "upper": 1e16 + 8},
        {"lower": -1.0 - 4e-16, "upper": -1.0},
    ],
)
def test_bounds_without_room_for_constants_are_refused(column: dict[str, float]) -> None:
    """Their squares would overflow or vanish, or a release could fail after its charge."""
    with raises(families.BOUNDS, column="x"):
        yearly("table-{year}.csv", columns={"x": column})


def test_a_level_with_a_control_character_is_not_called_a_name() -> None:
    facts = contract_facts() | {"columns": {"x": {"levels": ["m\x1annlich", "weiblich"]}}}
    with raises(families.LEVELS, column="x"):
        Contract.model_validate(facts)
