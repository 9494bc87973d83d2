"""What counts of unusable cells say: shares, verdicts, and the warnings about them."""

from __future__ import annotations

from typing import Any

import pytest

from gramercy.pipeline.plan.checking import (
    ColumnQuality,
    holds_nothing,
    percentage,
    quality_notices,
    recorded_quality,
)
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.problem import Family
from tests.support.factories import contract_facts

COLUMNS: dict[str, Any] = {"a": {"lower": 0.0, "upper": 1.0}, "b": {"levels": ["x", "y"]}}


def contract() -> Contract:
    return Contract.model_validate(contract_facts() | {"columns": COLUMNS})


def record(a: tuple[int, int], b: int, rows: int = 100, malformed: int = 0) -> dict[str, Any]:
    """An internal record: missing and clamped cells of `a`, and missing cells of `b`."""
    return {
        "rows": rows,
        "malformed_rows": malformed,
        "filled_cells": {"a": a[0], "b": b},
        "clamped_cells": {"a": a[1], "b": 0},
    }


def problems_of(facts: dict[str, Any]) -> dict[str, Any]:
    """The codes of the warnings about a record, and the first facts of those with each."""
    columns = recorded_quality(facts, contract())
    notices = quality_notices(columns, facts["rows"], facts["malformed_rows"])
    found = dict[str, Any]()
    for notice in notices:  # of numbers and of levels there may be one each
        fact = next(iter(notice.facts.values()))
        found[notice.code] = (*found[notice.code], *fact) if notice.code in found else fact
    return found


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (record((0, 0), 0), {}),
        (record((20, 5), 20), {}),  # not more than the limits
        (record((21, 0), 0), {families.MANY_CELLS: ("a (21 %)",)}),
        (record((21, 0), 99), {families.MANY_CELLS: ("a (21 %)", "b (99 %)")}),
        (record((0, 6), 0), {families.MANY_CELLS: ("a (6 %)",)}),
        (record((100, 0), 0), {families.UNUSABLE_COLUMNS: ("a",)}),
        (record((0, 0), 100), {families.UNUSABLE_COLUMNS: ("b",)}),
        (record((0, 0), 0, malformed=6), {families.UNUSABLE_LINES: "6 %"}),
        (record((0, 0), 0, rows=0), {}),
    ],
)
def test_warnings_start_above_their_limits(
    facts: dict[str, Any], expected: dict[Family[Any], Any]
) -> None:
    assert problems_of(facts) == {problem.code: fact for problem, fact in expected.items()}


def test_shares_are_of_the_lines_that_are_rows() -> None:
    """Every other line is blank."""
    blank = {families.UNUSABLE_LINES.code: "50 %"}
    assert problems_of(record((0, 0), 0, malformed=50)) == blank
    facts = record((50, 0), 50, malformed=50)
    assert holds_nothing(recorded_quality(facts, contract()))
    assert families.UNUSABLE_COLUMNS.code in problems_of(facts)


def test_a_table_of_malformed_lines_holds_nothing() -> None:
    facts = record((0, 0), 0, malformed=100)
    assert holds_nothing(recorded_quality(facts, contract()))
    assert list(problems_of(facts)) == [families.UNUSABLE_LINES.code]


def test_one_readable_cell_is_something() -> None:
    columns = recorded_quality(record((99, 0), 100), contract())
    assert not holds_nothing(columns)
    assert [column.verdict for column in columns] == ["warning", "unusable"]


def test_a_record_without_counts_says_nothing() -> None:
    assert recorded_quality({}, contract()) == []


@pytest.mark.parametrize(
    ("missing", "clamped", "verdict"),
    [
        (0, 0, "fine"),
        (20, 5, "fine"),
        (21, 0, "warning"),
        (0, 6, "warning"),
        (99, 0, "warning"),
        (100, 0, "unusable"),
        (0, 100, "unusable"),
        (40, 60, "unusable"),
    ],
)
def test_verdicts(missing: int, clamped: int, verdict: str) -> None:
    assert ColumnQuality("a", False, 100, missing, clamped).verdict == verdict


def test_zero_and_all_are_exact_percentages() -> None:
    shares = (0.0, 1e-6, 0.0099, 0.01, 0.5, 0.99, 0.9901, 0.9999, 1.0)
    texts = ["0 %", "<1 %", "<1 %", "1 %", "50 %", "99 %", ">99 %", ">99 %", "100 %"]
    assert [percentage(share) for share in shares] == texts
