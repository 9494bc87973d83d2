"""Hostile YAML: a typed error after little time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gramercy.application.yaml_files import read_contract
from gramercy.application.yaml_limits import MOST_CHARACTERS, exceeds_limits
from gramercy.schemas.problem import Problem
from gramercy.schemas.problems import publication as problems
from tests.support.factories import contract_facts, write_yaml
from tests.support.problems import raises

CPU_SECONDS = 1


def levels(first: str, other: str) -> str:
    """Aliases of aliases."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{k}: &a{k} {other.format(k - 1)}" for k in range(1, 26)]
    return "\n".join(lines)


BOMBS = {
    "aliases": (levels("[x, x]", "[*a{0}, *a{0}, *a{0}]"), problems.yaml_too_large),
    "merge keys": (levels("{x: 1}", "{{<<: [*a{0}, *a{0}]}}"), problems.yaml_too_large),
    "nesting": ("a: &a " + "[" * 100_000, problems.yaml_too_large),
    "nesting without anchors": ("[" * 100_000, problems.yaml_too_large),
    "scalar": ("a: " + "x" * MOST_CHARACTERS, problems.yaml_too_large),
    "number": ("a: " + "9" * 10_000, problems.yaml_value_impossible),
    "mapping as a key": ("a: &a {x: 1}\n*a : 2", problems.yaml_malformed),
    "nested key": ("a: &a {x: 1}\n? [*a]\n: 2", problems.yaml_key_not_text),
}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(*bomb, id=name, marks=pytest.mark.slow if "nesting" in name else ())
        for name, bomb in BOMBS.items()
    ],
)
def test_yaml_bombs(text: str, problem: Problem[..., object], tmp_path: Path) -> None:
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
