"""Mistakes in YAML: what a message says to write is what the steward meant, and is accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramercy.pipeline.plan.request_files import read_contract, read_request
from gramercy.schemas import families
from gramercy.schemas.corrections import EXAMPLES
from gramercy.schemas.problem import Family
from tests.support.problems import raises

CONTRACT = """id: toy
title: A toy
curator: me
source: table.csv
rows: 400
budget: {epsilon: 900, delta: 1e-6}
columns:
  income: {lower: 0, upper: 100000}
  age: {lower: 0, upper: 120}
"""
REQUEST = """dataset: contract.yaml
version: "1"
mechanism: {name: gaussian, epsilon: 60, delta: 1e-7}
"""


def contract(folder: Path, before: str = "", after: str = "") -> Path:
    """The contract with one piece of its text replaced."""
    assert before in CONTRACT
    path = folder / "contract.yaml"
    path.write_text(CONTRACT.replace(before, after, 1) if before else CONTRACT + after)
    return path


@pytest.mark.parametrize(
    ("before", "after", "wrong", "write"),
    [
        ("lower: 0, upper: 120", "lower: @, upper: 120", '"4"', ["4"]),
        ("upper: 120", "upper: @", "120%", ["120", "1.2"]),
        ("upper: 120", "upper: @", "120 kg", ["120"]),
        ("lower: 0, upper: 120", "lower: @, upper: 120", "'0,5'", ["0.5"]),
        ("upper: 100000", "upper: @", "'100.000,5'", ["100000.5"]),
        ("upper: 100000", "upper: @", "100'000", ["100000"]),
        ("rows: 400", "rows: @", "4,000", ["4000"]),
        ("rows: 400", "rows: @", "400.0", ["400"]),
        ("rows: 400", "rows: 400\nintercept: @", "yes", ["true"]),
        ("rows: 400", "rows: 400\nintercept: @", "“Off”", ["false"]),
    ],
)
def test_the_value_that_was_meant_is_accepted(
    tmp_path: Path, before: str, after: str, wrong: str, write: list[str]
) -> None:
    with raises(families.VALUE, write=" or ".join(write)):
        read_contract(contract(tmp_path, before, after.replace("@", wrong)))
    for value in write:
        read_contract(contract(tmp_path, before, after.replace("@", value)))


@pytest.mark.parametrize(
    ("before", "wrong", "key"),
    [
        ("budget: {epsilon: 900, delta: 1e-6}", "budget: [900, 1e-6]", "budget"),
        ("budget: {epsilon: 900, delta: 1e-6}", "budget: 900", "budget"),
        ("{lower: 0, upper: 120}", "[0, 120]", "columns.age"),
        ("{lower: 0, upper: 120}", "", "columns.age"),
        ("{lower: 0, upper: 120}", "{levels: A}", "columns.age.levels"),
        ("upper: 120", "upper: 120, missing: -9", "columns.age.missing"),
        ("rows: 400", "rows: 400\nexclude: age", "exclude"),
    ],
)
def test_an_example_shows_how_a_key_is_written(
    tmp_path: Path, before: str, wrong: str, key: str
) -> None:
    with raises(families.KEY if wrong == "" else families.VALUE, key=key) as refused:
        read_contract(contract(tmp_path, before, wrong))
    (problem,) = refused.value.details
    parent, _, name = f".{key}".rpartition(".")
    known = EXAMPLES.get(f"{parent.strip('.')}.*", EXAMPLES.get(name))
    assert known
    assert known in problem.facts.values()


@pytest.mark.parametrize(
    ("before", "wrong", "family", "facts"),
    [
        ("lower: 0, upper: 120", "lower: 0,5, upper: 120", families.KEY, {}),
        ("lower: 0, upper: 120", "min: 0, upper: 120", families.KEY, {"suggestion": "lower"}),
        ("lower: 0, upper: 120", "levels: [[1], 2]", families.LEVELS, {}),
        ("lower: 0, upper: 120", "levels: [2026-01-01, B]", families.LEVELS, {}),
        ("lower: 0, upper: 120", "lower: 0, upper: 120, missing: [no]", families.VALUE, {}),
        ("  age", "  2026", families.VALUE, {}),
        ("id: toy", "id: My_Toy", families.VALUE, {}),
    ],
)
def test_one_mistake_is_one_message(
    tmp_path: Path, before: str, wrong: str, family: Family[Any], facts: dict[str, Any]
) -> None:
    with raises(family, **facts) as refused:
        read_contract(contract(tmp_path, before, wrong))
    assert len(refused.value.details) == 1


@pytest.mark.parametrize(
    ("before", "wrong", "line"),
    [
        ("  age:", "\tage:", 9),
        ("title: A toy", "title A toy", 2),
        ("rows: 400", "rows:400", 5),
        ("rows: 400", "rows: 400\nrows: 400", 6),
        ("source: table.csv", 'source: "C:\\data\\table.csv"', 4),
        ("source: table.csv", "source: *.csv", 4),
        ("upper: 120}", "upper: 120", 9),
        ("title: A toy", "title: A toy: part 2", 2),
        ("title: A toy", 'title: "A toy', 2),
        ("title: A toy", "title: 'A toy's title'", 2),
        ("curator: me", "curator: @me", 3),
        ("  age:", "   age:", 9),
    ],
)
def test_line_of_a_mistake_in_the_syntax(
    tmp_path: Path, before: str, wrong: str, line: int
) -> None:
    """The line is that of the mistake, not the one at which a parser notices it."""
    with raises(families.YAML, line=line):
        read_contract(contract(tmp_path, before, wrong))


def test_request_and_contract_that_are_swapped_are_named(tmp_path: Path) -> None:
    request = tmp_path / "request.yaml"
    request.write_text(REQUEST)
    with raises(families.YAML, other="request"):
        read_contract(request)
    with raises(families.YAML, other="contract"):
        read_request(contract(tmp_path))


def test_messages_do_not_quote_other_texts(tmp_path: Path) -> None:
    """A table or a password that is in the wrong place."""
    for value in ("SECRET", "{SECRET: SECRET}", "[SECRET]"):
        for key in ("rows: 400", "budget: {epsilon: 900, delta: 1e-6}", "{lower: 0, upper: 120}"):
            name = key.partition(":")[0] + ": " if key[0] != "{" else ""
            with raises(families.CONTRACT_FILE) as refused:
                read_contract(contract(tmp_path, key, f"{name}{value}"))
            if value[0] != "{":  # unknown keys are named
                assert "SECRET" not in str(refused.value)
