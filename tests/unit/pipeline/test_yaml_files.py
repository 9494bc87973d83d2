"""Hostile YAML: a typed error after little time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from gramercy.pipeline.plan.request_files import MOST_CHARACTERS, exceeds_limits, read_contract
from gramercy.schemas import families
from gramercy.schemas.problem import Family
from tests.support.factories import contract_facts, write_yaml
from tests.support.problems import raises

CPU_SECONDS = 1


def levels(first: str, other: str) -> str:
    """Aliases of aliases."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{k}: &a{k} {other.format(k - 1)}" for k in range(1, 26)]
    return "\n".join(lines)


BOMBS = {
    "aliases": (levels("[x, x]", "[*a{0}, *a{0}, *a{0}]"), families.YAML),
    "merge keys": (levels("{x: 1}", "{{<<: [*a{0}, *a{0}]}}"), families.YAML),
    "nesting": ("a: &a " + "[" * 100_000, families.YAML),
    "nesting without anchors": ("[" * 100_000, families.YAML),
    "scalar": ("a: " + "x" * MOST_CHARACTERS, families.YAML),
    "number": ("a: " + "9" * 10_000, families.YAML),
    "mapping as a key": ("a: &a {x: 1}\n*a : 2", families.YAML),
    "nested key": ("a: &a {x: 1}\n? [*a]\n: 2", families.YAML),
}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(*bomb, id=name, marks=pytest.mark.slow if "nesting" in name else ())
        for name, bomb in BOMBS.items()
    ],
)
def test_yaml_bombs(text: str, problem: Family[Any], tmp_path: Path) -> None:
    (tmp_path / "contract.yaml").write_text(text)
    start = time.process_time()
    with raises(problem):
        read_contract(tmp_path / "contract.yaml")
    assert time.process_time() - start < CPU_SECONDS


def test_an_alias_of_itself_is_counted_once() -> None:
    assert not exceeds_limits("a: &a [*a, *a]")


def test_merge_keys_are_read(tmp_path: Path) -> None:
    """Columns that are declared alike may share their bounds."""
    facts = contract_facts(tmp_path / "table.csv")
    path = write_yaml(tmp_path / "contract.yaml", facts | {"columns": {}})
    text = path.read_text().replace("columns: {}", "")
    columns = (
        "columns:\n  a: &a {lower: 0.0, upper: 1.0}\n  b: *a\n  c:\n    <<: *a\n    upper: 2.0\n"
    )
    path.write_text(text + columns)
    assert [column.limits for column in read_contract(path).columns.values()] == [
        (0.0, 1.0),
        (0.0, 1.0),
        (0.0, 2.0),
    ]
