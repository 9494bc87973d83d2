"""Sources of contracts with yearly budgets: no file belongs to two years."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from fsspec.utils import glob_translate
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gramercy.schemas.contract import YEAR, Contract
from gramercy.schemas.problems.contract import yearly_budget_of_persons
from gramercy.tables.source import open_source
from tests.support.factories import contract_facts
from tests.support.problems import raises

YEARLY = {"epsilon": 1.0, "delta": 1e-9, "per": "year"}


def yearly(source: str, **keys: Any) -> Contract:
    return Contract.model_validate(contract_facts(source) | {"budget": YEARLY} | keys)


def accepted(source: str) -> bool:
    try:
        yearly(source)
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


@settings(max_examples=300, deadline=None)
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
    if first == second or not accepted(before + YEAR + after):
        return
    contract = yearly(before + YEAR + after)
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


def test_yearly_budget_is_refused_for_person_level_privacy() -> None:
    """Parallel composition holds only for rows, and persons have rows in many years."""
    persons = {"privacy_unit": "person_id", "persons": 7}
    with raises(yearly_budget_of_persons, column="person_id"):
        yearly("{year}.csv", **persons)
    assert yearly("{year}.csv").protected_unit == "row"
    assert yearly("{year}.csv", privacy_unit="cell").protected_unit == "cell"
    lifetime = Contract.model_validate(contract_facts("t.csv") | persons)
    assert lifetime.protected_unit == "person"
