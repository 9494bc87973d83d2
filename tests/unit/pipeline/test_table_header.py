"""Headers are compared with the contract: the same decisions as the Great Expectations suite."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ruamel.yaml import YAML

from gramercy.pipeline.plan.checking import check_table_header
from gramercy.pipeline.validation.outcome import Outcome
from gramercy.pipeline.validation.suite import Job, contract_suite
from gramercy.pipeline.validation.worker_process import worker
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import TableError
from gramercy.tables.formats import file_kinds
from tests.support.factories import contract_facts
from tests.support.problems import raises

NUMBER: dict[str, Any] = {"lower": 0.0, "upper": 9.0}
KINDS: dict[str, dict[str, Any]] = {
    "number": NUMBER,
    "text levels": {"levels": ["A", "B"]},
    "number levels": {"levels": [1, 2]},
}
# Arrow types, and the kinds of columns that may have them.
TYPES: list[tuple[pa.DataType, set[str]]] = [
    (pa.int8(), {"number", "number levels"}),
    (pa.uint64(), {"number", "number levels"}),
    (pa.float32(), {"number", "number levels"}),
    (pa.decimal128(10, 2), {"number", "number levels"}),
    (pa.bool_(), {"number", "number levels"}),
    (pa.string(), {"text levels"}),
    (pa.large_string(), {"text levels"}),
    (pa.dictionary(pa.int32(), pa.string()), {"text levels"}),
    (pa.null(), {"number", "number levels", "text levels"}),
    (pa.binary(), set()),
    (pa.timestamp("s"), set()),
    (pa.list_(pa.float64()), set()),
    (pa.struct([("a", pa.float64())]), set()),
]


def contract(source: Path, columns: dict[str, Any], **facts: Any) -> Contract:
    return Contract.model_validate(contract_facts(source) | {"columns": columns} | facts)


def refused_by_suite(declared: Contract) -> list[str]:
    """The columns whose types fail the expectations of a contract."""
    outcome = Outcome(Job(declared, contract_suite(declared)))
    with worker() as process:
        outcome.ask_columns(process)
    return [each["column"] for each in outcome.columns["failed"]]


@pytest.mark.slow  # imports Great Expectations
@pytest.mark.parametrize("kind", KINDS)
def test_types_are_judged_as_by_the_expectation_suite(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    fields = [(f"c{k}", each) for k, (each, _) in enumerate(TYPES)]
    pq.write_table(pa.schema(fields).empty_table(), path)
    declared = contract(path, {name: KINDS[kind] for name, _ in fields})
    wrong = [f"c{k}" for k, (_, kinds) in enumerate(TYPES) if kind not in kinds]
    with raises(families.TABLE_COLUMNS, file=str(path)) as caught:
        check_table_header(declared)
    assert [each.split()[0] for each in caught.value.facts["columns"]] == wrong
    assert refused_by_suite(declared) == wrong
    check_table_header(
        contract(path, {name: KINDS[kind] for name, _ in fields if name not in wrong})
    )


@pytest.mark.parametrize(
    ("header", "separators"),
    [
        ("weight;height;age", "semicolons"),
        ('"weight";"height";"age"', "semicolons"),
        ("weight;height;age (years, months)", "semicolons"),  # two fields, if split at commas
        ("weight\theight\tage", "tabs"),
        ("weight|height|age", "vertical bars"),
        ("# made in 2026\n\nWEIGHT;height ;age", "semicolons"),
        ("Gewicht;Alter", "semicolons"),  # other names as well
    ],
)
def test_other_separators_are_named(header: str, separators: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n")
    declared = contract(path, {"weight": NUMBER, "height": NUMBER})
    with raises(families.HEADER, file=str(path), separators=separators):
        check_table_header(declared)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("# extract\n# source\nweight,height\n", {"header": 3}),
        ("A title,\n,\nweight,height\n", {"header": 3}),
        ("sep=;\nweight;height\n", {"header": 2, "separator": ";"}),
        ("weight\theight\n", {"separator": "\t"}),
    ],
)
def test_a_header_that_is_elsewhere_is_named(
    text: str, keys: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{text}Rosalind,63.25\n")
    declared = contract(path, {"weight": NUMBER, "height": NUMBER})
    with raises(families.HEADER, line=keys.get("header", 1)) as refused:
        check_table_header(declared)
    assert YAML(typ="safe").load(f"{{{refused.value.facts['keys']}}}") == keys
    assert "Rosalind" not in str(refused.value)


def test_a_cell_is_not_taken_for_a_header(tmp_path: Path) -> None:
    """A refusal is public: it may not say in which row somebody's diagnosis is 'other'."""
    path, refusals = tmp_path / "t.csv", list[str]()
    for rows in ("1,none\n2,none\n", "1,none\n2,other\n", "1,none\n2,a; Other ;b\n"):
        path.write_text(f"number,diagnosis\n{rows}")
        with raises(families.TABLE_COLUMNS) as refused:
            check_table_header(contract(path, {"other": NUMBER}))
        refusals.append(str(refused.value))
    assert len({*refusals}) == 1


def test_names_that_look_alike_are_written_as_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("Weight,body  height,age\n")
    with raises(families.TABLE_COLUMNS, write=("Weight", '"body  height"')):
        check_table_header(contract(path, {"weight": NUMBER, "body height": NUMBER}))
    check_table_header(contract(path, {"Weight": NUMBER, "body  height": NUMBER}))


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("t.csv", b"PAR1", ".parquet"),
        ("t.csv", b"PK\x03\x04 [Content_Types].xml xl/workbook.xml", ".xlsx"),
        ("t.csv", b"PK\x03\x04", ".csv.zip"),
        ("t.csv", b"\x1f\x8b\x08", ".csv.gz"),
        ("t.csv", "a,b\n1,2\n".encode("utf-16-le"), ""),
        ("t.csv", b"<!DOCTYPE html>\n<html></html>", ""),
        ("t.csv", b'[{"a": 1, "b": 2}]', ".json"),
        ("t.parquet", b"a,b\n1,2\n", ".csv"),
        ("t.parquet", b"a,b\n\xff,\x00\n", ".csv"),  # no cell decides about the message
        ("t.parquet", b"<html>404</html>", ""),
        ("t.parquet", b"", ""),
        ("t.csv.gz", b"a,b\n1,2\n", ".csv"),
    ],
)
def test_a_file_that_is_not_what_its_name_says(
    name: str, content: bytes, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    expected = next(each for each in file_kinds.KINDS if each.begins(content))
    with raises(families.FILE, file=str(path), kind=expected.words) as refused:
        check_table_header(contract(path, {"a": NUMBER, "c": NUMBER}))
    assert expected.suffix == kind
    renamed = f"{tmp_path / 't'}{kind}" in refused.value.facts["remedy"]
    assert renamed or kind in ("", ".csv.zip")


def test_how_far_a_missing_path_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "visits.csv").write_text("a\n")

    def remedy(source: str) -> str:
        with raises(families.SOURCE) as refused:
            check_table_header(contract(tmp_path / source, {"a": NUMBER}))
        return str(refused.value.facts["remedy"])

    assert str(tmp_path / "visits.csv") in remedy("visit.csv")
    assert f"{tmp_path} has nothing" in remedy("no/folder/t.csv")
    assert "C:" in remedy("C:\\data\\visits.csv")
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "permission" in remedy("visit.csv")


@pytest.mark.parametrize("header", ["weight,heigth", "weight,a;b", "63.25;Rosalind,7,8"])
def test_missing_columns_do_not_show_the_header(header: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n")
    with raises(families.TABLE_COLUMNS, file=str(path)) as caught:
        check_table_header(contract(path, {"weight": NUMBER, "height": NUMBER, "b": NUMBER}))
    assert not any(each in str(caught.value) for each in ("heigth", "Rosalind", "63.25"))


def test_a_name_with_a_comma_is_not_another_separator(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age, years,weight\n")
    with raises(families.TABLE_COLUMNS, columns=("age, years",)):
        check_table_header(contract(path, {"age, years": NUMBER, "weight": NUMBER}))


def test_all_files_are_compared(tmp_path: Path) -> None:
    for name, header in (("t-1.csv", "a,b"), ("t-2.csv", "b,x,a"), ("t-3.csv", "a,c")):
        (tmp_path / name).write_text(f"{header}\n")
    both = {"a": NUMBER, "b": NUMBER}
    source = check_table_header(contract(tmp_path / "t-[12].csv", both))
    assert len(source.files) == 2
    with raises(families.TABLE_COLUMNS, file=str(tmp_path / "t-3.csv"), columns=("b",)):
        check_table_header(contract(tmp_path / "t-*.csv", both))


def test_persons_have_one_kind_of_name(tmp_path: Path) -> None:
    def declared(source: str) -> Contract:
        unit = {"privacy_unit": "patient", "persons": 2}
        return contract(tmp_path / source, {"a": NUMBER}, **unit)

    for name, patients in (("n", [7]), ("t", ["7"]), ("d", [datetime.date(2026, 1, 1)])):
        pq.write_table(pa.table({"patient": patients, "a": [1.0]}), tmp_path / f"{name}.parquet")
    (tmp_path / "c.csv").write_text("patient,a\n")
    for source in ("n.parquet", "t.parquet", "c.csv", "[ct].*"):
        check_table_header(declared(source))
    with raises(families.TABLE_COLUMNS, column="patient"):
        check_table_header(declared("d.parquet"))
    for source in ("[nt].parquet", "[cn].*"):
        with raises(families.TABLE_COLUMNS, file=str(tmp_path / "n.parquet")):
            check_table_header(declared(source))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("visits 1.xlsx", "gramercy convert 'FOLDER/visits 1.xlsx' 'FOLDER/visits 1.parquet'"),
        ("t.ods", "gramercy convert FOLDER/t.ods FOLDER/t.parquet"),
        ("t.jsonl.gz", "gramercy convert FOLDER/t.jsonl.gz FOLDER/t.parquet"),
        ("t.feather", "gramercy convert FOLDER/t.feather FOLDER/t.parquet"),
        ("t.orc", "Export"),
        ("T.TSV", "separator"),
        ("t.sqlite", "sqlite:///"),
        ("t.duckdb", "Export"),
        ("table", "Export"),
    ],
)
def test_other_formats_come_with_a_way_to_convert_them(
    name: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"\xff")
    with raises(families.SOURCE, file=str(tmp_path / name)) as caught:
        check_table_header(contract(tmp_path / name, {"a": NUMBER}))
    assert words in str(caught.value.facts["remedy"]).replace(str(tmp_path), "FOLDER")


def test_missing_files_are_refused(tmp_path: Path) -> None:
    for source in ("none.csv", "none-*.parquet", "no/folder/t.csv"):
        with raises(families.SOURCE, source=str(tmp_path / source)):
            check_table_header(contract(tmp_path / source, {"a": NUMBER}))


def test_cells_are_not_read(tmp_path: Path) -> None:
    """Nothing below the header changes the result, not even rows that cannot be decoded."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b'"\xff\x00' * 1000)
    check_table_header(contract(path, {"a": NUMBER, "b": NUMBER}))
    with pytest.raises(TableError):
        check_table_header(contract(path, {"c": NUMBER}))
