"""Names that readers cannot see or tell apart, or releases not contain, are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gramercy.archive.bundles.release_bundle import read_release
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.chosen_columns import MOST_NAME_BYTES, MOST_NAMES_BYTES
from gramercy.schemas import families
from tests.support.factories import read_plan, run_release, write_request
from tests.support.problems import raises

BOUNDS = {"lower": -1.0, "upper": 1.0}


def request(folder: Path, *names: str, **changes: Any) -> Path:
    pd.DataFrame({name: [0.5] * 40 for name in names}).to_csv(folder / "table.csv", index=False)
    return write_request(folder, columns=dict.fromkeys(names, BOUNDS), **changes)


@pytest.mark.parametrize(
    "name", ["a\u202eb", "a\u2028b", "a\u200bb", "a\u2066b", "a\ufeffb", "a\xadb"]
)
def test_hidden_characters(name: str, tmp_path: Path) -> None:
    with raises(families.CONTRACT_USE):
        read_plan(request(tmp_path, name))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("caf\xe9", "cafe\u0301"),
        ("cost", "c\u043est"),
        ("ALPHA", "\u0391LPHA"),
        ("x1", "\uff58\uff11"),
        ("a-b", "a\u2011b"),
        ("a b", "a\xa0b"),
        ("ab", "a\ufe0fb"),
        ("\u0645\u06cc\u0634", "\u0645\u06cc\u200c\u0634"),
    ],
)
def test_lookalikes(first: str, second: str, tmp_path: Path) -> None:
    with raises(families.CONTRACT_USE):
        read_plan(request(tmp_path, first, second))


def test_levels_that_look_alike(tmp_path: Path) -> None:
    pd.DataFrame({"s": ["caf\xe9"] * 40}).to_csv(tmp_path / "table.csv", index=False)
    with raises(families.CONTRACT_USE):
        read_plan(write_request(tmp_path, columns={"s": {"levels": ["caf\xe9", "cafe\u0301"]}}))


def test_distinguishable_names(tmp_path: Path) -> None:
    names = (
        "a",
        "A",
        "m2",
        "m\xb2",
        "\u0432\u0435\u0441",
        "\u05d2\u05d9\u05dc",
        "\u0645\u06cc\u200c\u0634",
    )
    assert read_plan(request(tmp_path, *names)).contract.names == [*names]


def test_registered_data_sets_keep_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their names are fixed, and were allowed by earlier versions."""
    path = request(tmp_path, "cost", "c\u043est")
    with monkeypatch.context() as earlier:
        earlier.setattr("gramercy.pipeline.plan.chosen_columns.has_hidden", lambda name: False)
        earlier.setattr("gramercy.pipeline.plan.chosen_columns.skeleton", lambda name: name)
        run_release(path)
    assert read_plan(path).contract.names == ["cost", "c\u043est"]


def test_names_that_a_release_could_not_contain(tmp_path: Path) -> None:
    """Such a release was charged and published, and then no one could read it."""
    name = "\xe9" * 8193
    with raises(families.CONTRACT_USE, start=name[:40], bytes=16_386, most=MOST_NAME_BYTES):
        read_plan(request(tmp_path, name))
    with raises(families.CONTRACT_USE, start=f"s={'L' * 38}", bytes=16_386, most=MOST_NAME_BYTES):
        read_plan(write_request(tmp_path, columns={"s": {"levels": ["L" * 16_384]}}))
    names = [f"{number:010000}" for number in range(51)]
    with raises(families.CONTRACT_USE, bytes=510_000, most=MOST_NAMES_BYTES):
        read_plan(request(tmp_path, *names))


@pytest.mark.slow
def test_reports_repeat_every_name(tmp_path: Path) -> None:
    """They have a column for every pair of names."""
    names = [f"{number:05000}" for number in range(98)]
    path = request(tmp_path, *names)
    assert read_plan(path).contract.names == names
    local = {"name": "local", "epsilon": 1.0, "delta": 1e-6}
    with raises(families.CONTRACT_USE, bytes=490_000, most=100_000):
        read_plan(request(tmp_path, *names, request={"mechanism": local}))


def test_the_longest_name_can_be_read(tmp_path: Path) -> None:
    names = ["\xe9" * 8192, "c1"]
    path = request(tmp_path, *names)
    folder = Context.default().archive.release("toy", run_release(path))
    assert read_release(folder).manifest.names == names
