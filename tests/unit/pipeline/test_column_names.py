"""Names and patterns of columns: what they stand for, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import MOST_NAME_BYTES, MOST_NAMES_BYTES, Plan, resolve_columns
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from tests.support.factories import contract_facts, read_plan, run_json, run_release, write_request
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
    pd.DataFrame({"s": ["cost"] * 40}).to_csv(tmp_path / "table.csv", index=False)
    with raises(families.CONTRACT_USE):
        read_plan(write_request(tmp_path, columns={"s": {"levels": ["cost", "c\u043est"]}}))


def test_two_forms_of_one_text_are_one_name_and_one_level(tmp_path: Path) -> None:
    forms = ["caf\xe9", "cafe\u0301"]
    with raises(families.KEY):
        read_plan(request(tmp_path, *forms))
    with raises(families.LEVELS):
        read_plan(write_request(tmp_path, columns={"s": {"levels": forms}}))


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


@pytest.mark.slow
def test_registered_data_sets_keep_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their names are fixed, and were allowed by earlier versions."""
    path = request(tmp_path, "cost", "c\u043est")
    with monkeypatch.context() as earlier:
        earlier.setattr("gramercy.pipeline.plan.planning.has_hidden", lambda name: False)
        earlier.setattr("gramercy.pipeline.plan.planning.skeleton", lambda name: name)
        run_release(path)
    assert read_plan(path).contract.names == ["cost", "c\u043est"]


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_longest_name_can_be_read(tmp_path: Path) -> None:
    names = ["\xe9" * 8192, "c1"]
    path = request(tmp_path, *names)
    folder = Context.default().archive.release("toy", run_release(path))
    assert read_release(folder).manifest.names == names


LABS, WIDE, NONE = {"lower": 0.0, "upper": 100.0}, {"lower": -5.0, "upper": 5.0}, {}
HEADER = ["lab_10", "age", "lab_2", "ward", "lab_note", "bmi"]


def contract(columns: dict[str, Any], **keys: Any) -> Contract:
    return Contract.model_validate(contract_facts() | {"columns": columns} | keys)


def names(columns: dict[str, Any], header: list[str] = HEADER, **keys: Any) -> list[str]:
    resolved = resolve_columns(contract(columns, **keys), header)
    return [name for each in resolved.values() for name in each]


def plan_of(folder: Path, header: list[str], columns: dict[str, Any], **keys: Any) -> Plan:
    table = pd.DataFrame(np.zeros((40, len(header))), columns=header)
    table.to_csv(folder / "table.csv", index=False)
    return read_plan(write_request(folder, columns=columns, **keys))


def test_pattern_stands_for_the_columns_that_it_matches_in_natural_order() -> None:
    assert names({"age": WIDE, "lab_*": LABS}, exclude=["lab_note"]) == ["age", "lab_2", "lab_10"]
    assert names({"lab_*": LABS, "age": WIDE}) == ["lab_2", "lab_10", "lab_note", "age"]
    assert names({"*a*e": LABS}) == ["age", "lab_note"]


def test_exact_names_come_first_and_a_star_takes_the_rest(tmp_path: Path) -> None:
    """The declaration that is nearest to a column counts, in any order."""
    columns = {"*": WIDE, "lab_*": LABS, "lab_10": {"lower": 0.0, "upper": 9.0}}
    plan = plan_of(tmp_path, HEADER, columns)
    limits = {name: column.limits for name, column in plan.contract.columns.items()}
    assert limits == {
        **dict.fromkeys(("age", "bmi", "ward"), (-5.0, 5.0)),
        **dict.fromkeys(("lab_2", "lab_note"), (0.0, 100.0)),
        "lab_10": (0.0, 9.0),
    }
    assert [column.name for column in plan.spec.columns] == plan.contract.names
    assert plan.contract.patterns == {
        "*": ("age", "bmi", "ward"),
        "lab_*": ("lab_2", "lab_note"),
    }


def test_no_pattern_stands_for_the_column_of_persons() -> None:
    assert names({"*": NONE}, ["id", "age"], privacy_unit="id", persons=9) == ["age"]


def test_a_name_with_a_star_is_a_column_if_the_table_has_it() -> None:
    assert names({"a*b": WIDE}, ["a*b", "axb"]) == ["a*b"]
    assert names({"a?b[c]": WIDE}, ["a?b[c]", "axbc"]) == ["a?b[c]"]
    assert names({"*?": WIDE}, ["smoker?", "age"]) == ["smoker?"]


def test_pattern_without_columns_is_refused_with_similar_names() -> None:
    with raises(families.COLUMNS, key="columns.lap_*", pattern="lap_*") as caught:
        names({"age": WIDE, "lap_*": LABS})
    assert caught.value.facts["similar"][0] in {"lab_2", "lab_10"}
    with raises(families.COLUMNS, key="exclude", pattern="lab_notes"):
        names({"lab_*": LABS}, exclude=["lab_notes"])
    with raises(families.COLUMNS, pattern="age*"):
        names({"age": WIDE, "age*": LABS})
    with raises(families.COLUMNS, pattern="lab_*"):
        names({"lab_*": LABS}, exclude=["lab*"])


def test_a_column_of_two_patterns_is_refused() -> None:
    with raises(families.COLUMNS, column="lab_note", first="lab_*", second="*note"):
        names({"lab_*": LABS, "*note": WIDE})
    columns = {"lab_*": LABS, "*note": WIDE, "my_note": WIDE}
    assert names({**columns, "lab_note": NONE}, [*HEADER, "my_note", "a note"])[-1] == "lab_note"


def test_excluded_and_declared_column_is_refused() -> None:
    with raises(families.COLUMNS, column="age"):
        contract({"*": WIDE, "age": WIDE}, exclude=["age"])


def test_columns_that_cannot_be_published_are_refused_with_the_file(tmp_path: Path) -> None:
    with raises(families.COLUMNS, name="ward=1"):
        plan_of(tmp_path, ["ward", "ward=1"], {"*": WIDE, "ward": {"levels": [1, 2]}})
    with raises(families.CONTRACT_FILE, file=str(tmp_path / "contract.yaml")):
        plan_of(tmp_path, ["age", "b\x07mi"], {"*": WIDE})
    with raises(families.KEY, key="columns"):
        plan_of(tmp_path, ["age"], {"*": WIDE}, exclude=["a*"])


@pytest.mark.parametrize("row", ["63.1234,Anna", "Anna,1970-03-05", "NA,Anna"])
def test_cells_of_a_table_without_header_are_not_taken_for_names(row: str, tmp_path: Path) -> None:
    request = write_request(tmp_path, columns={"*": WIDE})
    (tmp_path / "table.csv").write_text(f"{row}\n1,2\n")
    with raises(families.COLUMNS, pattern="*") as caught:
        read_plan(request)
    assert not any(cell in str(caught.value) for cell in row.split(","))


def test_table_is_opened_only_for_patterns(tmp_path: Path) -> None:
    request = write_request(tmp_path, source="elsewhere.csv")
    assert read_plan(request).contract.patterns == {}
    write_request(tmp_path, source="elsewhere.csv", columns={"*": WIDE})
    with raises(families.SOURCE):
        read_plan(request)


def test_yearly_contract_reads_the_header_of_its_year(tmp_path: Path) -> None:
    (tmp_path / "t-2025.csv").write_text("a,b\n")
    (tmp_path / "t-2026.csv").write_text("a,b,c\n")
    yearly = {"epsilon": 1.0, "delta": 1e-9, "per": "year"}
    given_keys = {"source": "t-{year}.csv", "budget": yearly, "columns": {"*": WIDE}}
    for version, columns in (("2025", ["a", "b"]), ("2026", ["a", "b", "c"])):
        request = write_request(tmp_path, request={"version": version}, **given_keys)
        assert read_plan(request).contract.names == columns


def test_terms_and_key_are_those_of_the_listed_columns(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The order of the file does not matter; a table with another column has other terms."""
    header = ["c2", "c0", "c1"]
    plan = plan_of(tmp_path, header, {"c*": WIDE})
    facts = run_json("plan", tmp_path / "request.yaml", capsys=capsys)
    assert facts["patterns"] == {"c*": ["c0", "c1", "c2"]}
    assert plan_of(tmp_path, sorted(header), {"c*": WIDE}).spec == plan.spec
    listed = plan_of(tmp_path, header, dict.fromkeys(sorted(header), WIDE))
    assert (listed.contract.terms(), listed.key) == (plan.contract.terms(), plan.key)
    wider = plan_of(tmp_path, [*header, "c3"], {"c*": WIDE})
    assert wider.contract.terms() != plan.contract.terms()


NAMES = st.lists(st.text("ab0129*", min_size=2, max_size=4), unique=True, min_size=1, max_size=9)


@pytest.mark.slow
@given(NAMES, st.randoms())
def test_result_depends_on_the_set_of_names_only(header: list[str], random: Any) -> None:
    declared = contract({"*": WIDE})
    shuffled = list(header)
    random.shuffle(shuffled)
    resolved = resolve_columns(declared, header)
    assert resolved == resolve_columns(declared, shuffled)
    assert sorted(name for each in resolved.values() for name in each) == sorted(header)
