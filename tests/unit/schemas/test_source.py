"""Where a table is: keys of files, and of databases, which state no secret."""

from __future__ import annotations

from typing import Any

import pytest

from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.database import ASSERTION, DatabaseTable
from gramercy.schemas.errors import ContractError
from gramercy.schemas.model import parse
from gramercy.schemas.problem import Family
from gramercy.schemas.row_condition import columns_of, parse_condition
from gramercy.schemas.source import display_name, location
from tests.support.factories import contract_facts
from tests.support.problems import raises

DATABASE = {"url": "env:CLINIC_DB", "table": "visits"}
QUERY = {"url": "env:CLINIC_DB", "query": "SELECT x FROM visits"}


def contract(source: Any, **facts: Any) -> Contract:
    return parse(Contract, contract_facts() | {"source": source, **facts}, "c.yaml", ContractError)


def test_a_path_may_have_a_format() -> None:
    plain = contract("t.csv").source
    assert plain == "t.csv"
    source = contract({"path": "t.csv", "separator": ";", "decimal": ","}).source
    assert (source.separator, source.decimal, source.encoding) == (";", ",", "utf-8")
    assert location(source) == "t.csv"


@pytest.mark.parametrize(
    ("source", "problem", "key"),
    [
        ({"path": "t.csv", "sheet": "a"}, families.KEY, "source"),
        ({"path": "t.csv", "decimal": ","}, families.DATABASE, "source"),
        ({"path": "t.csv", "separators": ";"}, families.KEY, "source"),
        ({"separator": ";"}, families.KEY, "source.path"),
        ({"url": "env:CLINIC_DB"}, families.DATABASE, "source"),
        (DATABASE | {"view": "v"}, families.DATABASE, "source"),
        (DATABASE | {"url": "postgresql://u:p@h/d"}, families.DATABASE, None),
        (DATABASE | {"url": "CLINIC_DB"}, families.DATABASE, "source.url"),
        ({"table": "visits"}, families.KEY, "source.url"),
        (DATABASE | {"assertion": ASSERTION}, families.DATABASE, "source"),
        (QUERY, families.DATABASE, "source"),
        (QUERY | {"assertion": "Yes."}, families.DATABASE, "source"),
        (
            QUERY | {"assertion": ASSERTION, "where": "x = 1"},
            families.DATABASE,
            "source",
        ),
        (
            QUERY | {"assertion": ASSERTION, "query": "DELETE FROM t"},
            families.DATABASE,
            "source",
        ),
        (
            QUERY | {"assertion": ASSERTION, "query": "SELECT 1; DROP TABLE t"},
            families.DATABASE,
            "source",
        ),
        (DATABASE | {"where": "x = '{year}'"}, families.DATABASE, "source"),
        (
            {"url": "env:CLINIC_DB", "view": "visits_{year}"},  # views may share rows
            families.DATABASE,
            "source",
        ),
        (DATABASE | {"where": "x = 1 LIMIT 5"}, families.WHERE, "source"),
    ],
)
def test_sources_that_are_refused(source: Any, problem: Family[Any], key: str | None) -> None:
    with raises(problem, key=key) as caught:
        contract(source)
    assert "u:p" not in str(caught.value)


def test_a_table_of_a_database_names_no_secret() -> None:
    source = contract(DATABASE | {"where": "age >= 18"}).source
    assert source.variable == "CLINIC_DB"
    assert source.selection.model_dump() == {"table": "visits", "where": "age >= 18"}
    assert display_name(source) == "env:CLINIC_DB (table visits)"
    asserted = contract(QUERY | {"assertion": ASSERTION.replace(" and ", "\n and ")}).source
    assert isinstance(asserted, DatabaseTable)


def test_cells_of_a_database_cannot_be_protected() -> None:
    with raises(families.DATABASE):
        contract(DATABASE, privacy_unit="cell")


def test_the_table_of_a_period_has_its_name() -> None:
    budget = {"epsilon": 3.0, "delta": 1e-6, "per": "month"}
    monthly = DATABASE | {"table": "visits_{year}_{month}"}
    declared = contract(monthly, budget=budget).for_version("2026-11-v1")
    assert isinstance(declared.source, DatabaseTable)
    assert declared.source.table == "visits_2026_11"
    with raises(families.PERIODS):
        contract(DATABASE, budget=budget)
    files = contract({"path": "{year}/{month}.csv", "separator": ";"}, budget=budget)
    assert location(files.for_version("2026-11").source) == "2026/11.csv"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a = 1", ["a"]),
        ("a=1 and(b<>'x' or not c is null)", ["a", "b", "c"]),
        ('"My ""Col" in (1, -2.5e3, null)', ['My "Col']),
        ("a not between 2 and 3 AND c NOT LIKE '100%' OR 4 in (b, 5)", ["a", "c", "b"]),
        ("a IS NOT NULL OR TRUE = b", ["a", "b"]),
        ("a = 'it''s; -- select'", ["a"]),
        ("date = 1 or limit <> .5 or current_user < 1.", ["date", "limit", "current_user"]),
    ],
)
def test_conditions_on_one_row(text: str, columns: list[str]) -> None:
    assert list(columns_of(parse_condition(text))) == columns


@pytest.mark.parametrize(
    "text",
    [
        "a in (select 1)",
        "a = (select max(a) from t)",
        "exists (select 1)",
        "lower(a) = 'x'",
        "lower (a) = 'x'",
        "1 / a > 2",
        "a + 1 = 2",
        "a - -1 = 2",
        "a::int = 1",
        "cast(a as int) = 1",
        "a = current_date()",
        "row_number() over () = 1",
        "a = 1 limit 5",
        "a = 1 order by b",
        "a = 1 union select 1",
        "a = 1; drop table t",
        "a = 1 -- comment",
        "a = 1 /* comment */",
        "a = any (1)",
        "a = 'x\\'",
        "a = E'x'",
        "a = :name",
        "a = $1",
        "a = ?",
        "a like b",
        "a like 'x' escape 'y'",
        "a between 1 2",
        "a in (1,)",
        "a in ()",
        "1 in a",
        "a not null",
        "a not is not null",
        "a isnull",
        "a is true",
        "a == 1",
        "a = 1e",
        "a = .5.",
        "a = -null",
        "1 = is",
        "a = 'x' 'y'",
        "a = 'x",
        "if a = 1",
        "(a, 1) in (2)",
        "a = b",  # PostgreSQL may fail to convert a cell of one to the type of the other
        "a = a",
        "a between 1 and b",
        "1 between a and b",
        "a in (1, b)",
        "1 = 1",
        "null is null",
        "t.a = 1",
        "a",
        "a = ",
        "(a = 1",
        "a = 1)",
        "a = 1x",
        "a = \u0661",
        "a = yand(b = 1)",
        "",
        "not " * 60 + "a = 1",
        "(" * 60 + "a = 1" + ")" * 60,
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    with raises(families.WHERE):
        parse_condition(text)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("b = 2 and\n  c = 3 limit 5", 19),
        ("b = 2 and a = 'x", 15),
        ("b = 2 or (a = 1 and lower(c) = 'x')", 21),
        ("b = 2 and a = b", 11),
        ("b = 2; select 1", 6),
    ],
)
def test_refused_condition_states_where(text: str, position: int) -> None:
    with raises(families.WHERE, position=position):
        parse_condition(text)
