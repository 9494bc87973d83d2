"""Truth values, dates, groups of codes and Unicode forms: every cell is read by itself."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy.pipeline.plan.checking import check_table, check_table_header
from gramercy.schemas import column, families
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import ContractError
from gramercy.schemas.model import parse
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.reader import cell_batches, schema_of
from gramercy.tables.formats.source import copy_rows, needs_copy, open_source
from gramercy.tables.formats.table_format import CopiedColumns, type_name
from gramercy.tables.formats.values import coding_of
from tests.support.factories import contract_facts
from tests.support.problems import raises
from tests.support.source_tables import database_table, engine_of, new_url

NAN = np.nan
NFC, NFD = "S\xfcd", "Su\u0308d"
BORN = {"unit": "days since 1970-01-01", "lower": "1900-01-01", "upper": "2026-01-01"}
ICD = {"levels": {"infection": ["A", "B9"], "neoplasm": ["C", "D0", "D1"]}, "prefix": True}
KINDS: dict[str, dict[str, Any]] = {
    "truth": {"levels": [True, False]},
    "codes": {"levels": {"low": [101, "007"], "high": ["X1"], "rest": "*"}},
    "prefixes": ICD,
    "dates": BORN,
    "years": BORN | {"unit": "years since 2000-01-01"},
    "levels": {"levels": [NFC, "Nord"]},
    "numbers": {"lower": 0.0, "upper": 1.0},
}


def kind_of(declaration: Mapping[str, Any]) -> Any:
    declared = {"columns": {"c": declaration}}
    return Contract.model_validate(contract_facts() | declared).columns["c"]


def coded(declaration: Mapping[str, Any], cells: pa.Array) -> list[float]:
    numbers: list[float] = coding_of(kind_of(declaration).coding).floats(cells).tolist()
    return numbers


def same(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.array(found, float), np.array(expected, float))


def test_truth_values_have_several_spellings() -> None:
    true, false = ["TRUE", "t", " Yes", "y", "1", "1.0"], ["False", "F", "no", "N", "0"]
    texts = [*true, *false, "2", "ja", "", None]
    expected = [*[0] * 6, *[1] * 5, *[NAN] * 4]
    declared = KINDS["truth"]
    same(coded(declared, pa.array(texts)), expected)
    same(coded(declared, pa.array(texts).dictionary_encode()), expected)
    same(coded(declared, pa.array([True, False, None])), [0, 1, NAN])
    same(coded(declared, pa.array([1, 0, 2, None])), [0, 1, NAN, NAN])
    same(coded(declared, pa.array([1.0, 0.0, 0.5, NAN])), [0, 1, NAN, NAN])
    same(coded({"levels": [False]}, pa.array([True, False])), [NAN, 0])
    assert kind_of(declared).matrix_names("x") == ["x=true", "x=false"]
    assert kind_of({"levels": [True]}).matrix_names("x") == ["x=true"]


def test_truth_values_stay_numbers_between_bounds() -> None:
    same(coded(KINDS["numbers"], pa.array([True, False, None])), [1, 0, NAN])
    same(coded(KINDS["numbers"], pa.array(["TRUE", "1"])), [NAN, 1])


def test_dates_are_days_from_the_first_one() -> None:
    days = [datetime.date(1970, 1, 2), datetime.date(1969, 12, 31), None]
    same(coded(BORN, pa.array(days)), [1, -1, NAN])
    same(coded(BORN, pa.array(days, pa.date64())), [1, -1, NAN])
    times = [datetime.datetime(1970, 1, 2, 23, 59), datetime.datetime(1969, 12, 31, 0, 1), None]
    for unit in ("s", "ms", "us", "ns"):
        same(coded(BORN, pa.array(times, pa.timestamp(unit))), [1, -1, NAN])
        instants = pa.array(times, pa.timestamp(unit)).cast(pa.timestamp(unit, "Asia/Tokyo"))
        same(coded(BORN, instants), [1, -1, NAN])  # in UTC
    texts = ["1970-01-02", " 1970-01-02T23:59 ", "1970-01-02T01:00:00+02:00"]
    same(coded(BORN, pa.array([*texts, "1970-02-30", "1", "x"])), [1, 1, 0, NAN, NAN, NAN])
    same(coded(BORN, pa.array([1, 2])), [NAN, NAN])  # not dates
    years = kind_of(KINDS["years"])
    same(coding_of(years.coding).floats(pa.array([datetime.date(2001, 1, 1)])), [366 / 365.2425])
    assert years.limits[1] == pytest.approx(26, abs=0.01)


def test_bounds_of_dates_are_dates_or_numbers() -> None:
    born = kind_of(BORN | {"missing": ["1900-01-01"], "centre": datetime.date(1970, 1, 1)})
    assert born.limits == (-25567.0, 20454.0)
    assert (born.effective_centre, born.missing) == (0.0, (-25567.0,))
    assert kind_of(born.model_dump()) == born
    with raises(families.BOUNDS, key="columns.c.lower", unit="days since 1970-01-01"):
        kind_of({"lower": datetime.date(1900, 1, 1), "upper": datetime.date(2026, 1, 1)})
    for unit in ("kg", "days since 1970-02-30", "months since 1970-01-01", None):
        with raises(families.VALUE, key="columns.c"):
            kind_of({"unit": unit, "lower": 0.0, "upper": 1.0})


def test_codes_are_found_by_their_beginnings_or_as_they_are() -> None:
    texts = ["A01", "B99", "B1", "C", "D09.9", "D2", " A", "", "a", None]
    expected = [0, 0, NAN, 1, 1, NAN, 0, NAN, NAN, NAN]
    same(coded(ICD, pa.array(texts)), expected)
    same(coded(ICD, pa.array(texts).dictionary_encode()), expected)
    nested = {"levels": {"chapter": ["C"], "block": ["C3"]}, "prefix": True}
    same(coded(nested, pa.array(["C1", "C34"])), [0, 1])
    codes = KINDS["codes"]
    texts = ["101", "101.0", "0101", "007", "7", "X1", "X12", "NA", " ", None]
    same(coded(codes, pa.array(texts)), [0, 0, 0, 0, 2, 1, 2, NAN, NAN, NAN])
    same(coded(codes, pa.array([101, 7, None])), [0, 2, NAN])
    same(coded(codes, pa.array([101.0, 7.5, NAN, None])), [0, 2, NAN, NAN])
    quoted = {"levels": {"a": ["101"]}}
    same(coded(quoted, pa.array(["101", "101.0"])), [0, NAN])
    same(coded(quoted, pa.array([101.0, 101.5])), [0, NAN])


def test_mistakes_in_groups_of_codes() -> None:
    for levels in (
        *({"a": ["A"], "b": ["A"]}, {"a": [101], "b": ["101"]}, {"a": [1.5]}, {"a": [True]}),
        *({"a": ["*", "A"]}, {"a": [" A"]}, {"a": ["NA"]}, {" a": ["A"]}, {"a": ["A" * 65]}),
        *({"a": [f"{k}" for k in range(20_001)]}, {"prefix": True, "levels": ["A", "A"]}),
    ):
        with raises(families.LEVELS):
            kind_of(levels if "prefix" in levels else {"levels": levels})
    with raises(families.LEVELS, code="BC", length=2):
        kind_of({"levels": {"a": ["A", "BC"]}, "prefix": 1})
    with raises(families.VALUE, key="columns.c.prefix"):
        kind_of({"levels": {"a": ["A"]}, "prefix": "1"})
    with raises(families.LEVELS, key="columns.c.levels", count=1001):
        kind_of({"levels": [f"{k}" for k in range(1001)]})
    letters = kind_of({"levels": ["A", "B"], "prefix": 1})
    assert letters.matrix_names("icd") == ["icd=A", "icd=B"]


@pytest.mark.parametrize(
    ("levels", "key"),
    [
        ([True, "x"], "columns.c.levels.1"),
        ([None], "columns.c.levels.0"),
        ([datetime.date(2026, 1, 1)], "columns.c.levels.0"),
        ([], "columns.c.levels"),
        ({}, "columns.c.levels"),
        ({"a": []}, "columns.c.levels.a"),
    ],
)
def test_one_mistake_has_one_message(levels: Any, key: str, tmp_path: Path) -> None:
    with pytest.raises(ContractError) as caught:
        parse(
            Contract,
            contract_facts() | {"columns": {"c": {"levels": levels}}},
            "c.yaml",
            ContractError,
        )
    assert [each.key for each in caught.value.details] == [key]


def test_levels_and_codes_are_compared_in_nfc() -> None:
    expected = [0, 0, 1, NAN, NAN, NAN]
    cells = [NFC, NFD, "Nord", "su\u0308d", "", None]
    for levels in ([NFC, "Nord"], [NFD, "Nord"]):
        for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
            same(coded({"levels": levels}, pa.array(cells, pa.string()).cast(kind)), expected)
    groups = {"levels": {"a": ["S\xfc"], "b": ["Nord"]}, "prefix": True}
    same(coded(groups, pa.array(cells)), expected)
    same(coded({"levels": ["K"]}, pa.array(["\u212a"])), [0])  # a sign whose NFC is ASCII
    letters = {"levels": {"e": ["E"], "accent": ["\xc9"]}, "prefix": True}
    same(coded(letters, pa.array(["\xc91", "E\u03011", "E1"])), [1, 1, 0])


STORED = [
    *(pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())),
    *(pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(20, 2), pa.bool_()),
    *(pa.date32(), pa.date64(), pa.timestamp("ns"), pa.timestamp("s", "UTC"), pa.null()),
    *(pa.dictionary(pa.int8(), pa.int64()), pa.list_(pa.int8()), pa.struct([("a", pa.int8())])),
    *(pa.time32("s"), pa.duration("s"), pa.binary()),
]
_TEXT = st.one_of(
    st.text(max_size=8),
    st.sampled_from([NFC, NFD, "A01", "101.0", "TRUE", "1970-01-02", "9999-12-31T23:59Z", "NA"]),
)


@pytest.mark.slow
@given(
    st.sampled_from(sorted(KINDS)),
    st.lists(st.one_of(st.none(), _TEXT, st.binary(max_size=8)), min_size=1, max_size=12),
    st.sampled_from(STORED[:4]),
    st.data(),
)
def test_no_text_raises_or_changes_another_cell(
    name: str, cells: list[Any], kind: pa.DataType, data: st.DataObject
) -> None:
    """Invalid UTF-8, which Parquet may hold, included."""
    coding = coding_of(kind_of(KINDS[name]).coding)
    if not coding.reads("text"):
        return

    def coded(texts: list[Any]) -> Any:
        stored = pa.array([x.encode() if isinstance(x, str) else x for x in texts], pa.binary())
        text = stored.view(pa.string())
        encoded = pa.types.is_dictionary(kind)
        return coding.floats(text.dictionary_encode() if encoded else text.cast(kind))

    together = coded(cells)
    for k, cell in enumerate(cells):
        same(coded([cell]), together[k : k + 1])
    order = data.draw(st.permutations(range(len(cells))))
    same(coded([cells[k] for k in order]), together[list(order)])


@given(
    st.sampled_from(sorted(KINDS)),
    st.sampled_from([x for x in STORED if not pa.types.is_nested(x)]),
    st.lists(st.one_of(st.none(), st.integers(-5, 120)), max_size=12),
)
def test_no_cell_of_any_type_raises(name: str, kind: pa.DataType, cells: list[int | None]) -> None:
    whole = pa.array(cells, pa.int64())
    small = pa.array([None if x is None else abs(x) for x in cells], pa.int64())
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(inner):
        column = pa.nulls(len(cells))
    elif pa.types.is_binary(inner):
        column = whole.cast(pa.string()).cast(inner)
    elif pa.types.is_date32(inner) or pa.types.is_time32(inner):
        column = small.cast(pa.int32()).cast(inner)
    elif pa.types.is_decimal(inner):
        column = small.cast(pa.float64()).cast(inner)
    else:
        column = small.cast(inner)
    column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column
    coding = coding_of(kind_of(KINDS[name]).coding)
    if not coding.reads(type_name(column.type)):
        return
    together = coding.floats(column)
    assert together.shape == (len(cells),)
    for k in range(len(cells)):
        same(coding.floats(column.slice(k, 1)), together[k : k + 1])


def table_of_kinds() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "born": [datetime.date(1970, 1, 2), datetime.date(1980, 5, 1), None],
            "smoker": [True, False, None],
            "icd": ["A01", "D09.9", None],
            NFD: [1.5, 2.5, 3.5],
            "ward": [NFD, NFC, "Nord"],
        }
    )


COLUMNS: dict[str, Any] = {
    "born": BORN,
    "smoker": KINDS["truth"],
    "icd": ICD,
    NFC: {"lower": 0.0, "upper": 5.0},
    "ward": {"levels": [NFC, "Nord"]},
}
EXPECTED = [[1, 0, 0, 1.5, 0], [3773, 1, 1, 2.5, 0], [NAN, NAN, NAN, 3.5, 1]]


def rows_of(contract: Contract, folder: Path) -> Any:
    source = contract.source
    if needs_copy(source):
        source = copy_rows(source, CopiedColumns(contract.codings), folder / "copy")
    batches = list(cell_batches(open_source(source), contract.codings, MalformedLines()))
    return np.concatenate(batches, axis=1).T


def contract_of(source: Any, **facts: Any) -> Contract:
    declared = {"source": source, "rows": 3, "columns": COLUMNS} | facts
    return Contract.model_validate(contract_facts() | declared)


@pytest.mark.parametrize("kind", ["csv", "parquet", "folders", "delta", "sqlite", "postgresql"])
def test_kinds_are_read_alike_from_every_source(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, source = table_of_kinds(), tmp_path / f"t.{kind}"
    if kind == "csv":
        table.to_csv(source, index=False)
    elif kind == "parquet":
        table.to_parquet(source)
    elif kind == "folders":
        source = tmp_path / "t"
        pq.write_to_dataset(pa.Table.from_pandas(table), source, partition_cols=[NFD, "smoker"])
    elif kind == "delta":
        pytest.importorskip("deltalake").write_deltalake(source, table, partition_by=["ward"])
    else:
        url = new_url(kind, tmp_path)
        table.to_sql("visits", engine_of(url), index=False)
        source = database_table(url, monkeypatch, table="visits")
    contract = contract_of(source if kind in ("sqlite", "postgresql") else str(source))
    check_table_header(contract)
    found = rows_of(contract, tmp_path)
    same(found[np.argsort(found[:, 3])], EXPECTED)
    names = list(schema_of(open_source(contract.source)))
    assert sorted(names) == sorted(COLUMNS)


def test_names_that_are_one_in_nfc_are_repeated(tmp_path: Path) -> None:
    pa_table = pa.table({NFC: [1.0], NFD: [2.0]})
    pq.write_table(pa_table, tmp_path / "t.parquet")
    pd.DataFrame({NFC: [1.0], NFD: [2.0]}).to_csv(tmp_path / "t.csv", index=False)
    for name in ("t.parquet", "t.csv"):
        with raises(families.TABLE_COLUMNS):
            check_table_header(contract_of(str(tmp_path / name), columns={NFC: {}}))


def test_contracts_in_two_unicode_forms_have_equal_terms() -> None:
    contracts = [
        contract_of(
            "t.csv",
            privacy_unit=f"{form}-id",
            persons=2,
            columns={form: {"levels": [form]}, "g": {"levels": {form: [form]}, "prefix": True}},
            exclude=[f"{form}*"],
        )
        for form in (NFC, NFD)
    ]
    assert contracts[0].terms() == contracts[1].terms()
    assert contracts[0] == contracts[1]


def test_text_levels_over_truth_values_name_the_remedy(tmp_path: Path) -> None:
    table_of_kinds().to_parquet(tmp_path / "t.parquet")
    columns = {"smoker": {"levels": ["TRUE", "FALSE"]}}
    with raises(families.TABLE_COLUMNS) as caught:
        check_table_header(contract_of(str(tmp_path / "t.parquet"), columns=columns))
    assert "levels: [true, false]" in str(caught.value)
    columns = {"born": {"lower": 0.0, "upper": 1.0}}
    with raises(families.TABLE_COLUMNS, columns=("born (date32)",)):
        check_table_header(contract_of(str(tmp_path / "t.parquet"), columns=columns))


def test_whole_numbers_are_not_dates(tmp_path: Path) -> None:
    pd.DataFrame({"born": [19000]}).to_parquet(tmp_path / "t.parquet")
    with raises(families.TABLE_COLUMNS, columns=("born (whole)",)):
        check_table_header(contract_of(str(tmp_path / "t.parquet"), columns={"born": BORN}))


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.decimal128(9, 1)])
def test_whole_doubles_identify_persons_like_whole_numbers(
    kind: pa.DataType, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    half = [] if pa.types.is_decimal(kind) else [7.5, float("nan"), 2.0**53]
    ids = pa.array([7.0, -0.0, 8.0, None, *half], pa.float64()).cast(kind)
    pq.write_table(pa.table({"who": ids, "x": [0.0] * len(ids)}), folder / "a.parquet")
    whole = pa.array([7, 0, 9, 8])
    pq.write_table(pa.table({"who": whole, "x": [0.0] * 4}), folder / "b.parquet")
    rows = len(ids) + 4
    persons = {"privacy_unit": "who", "persons": 4, "rows": rows, "neighbours": "add-remove"}
    columns = {"x": {"lower": 0.0, "upper": 1.0}}
    contract = contract_of(str(folder), columns=columns, **persons)
    found = check_table(contract)
    assert (found.persons, found.rows_without_person) == (4, 1 + len(half))


def test_kinds_are_registered() -> None:
    declared = {name: type(kind_of(each)).__name__ for name, each in KINDS.items()}
    assert set(declared.values()) <= {kind.__name__ for kind in column.KINDS}
    assert (declared["truth"], declared["dates"]) == ("TruthLevels", "Dates")
    assert declared["codes"] == declared["prefixes"] == "CodeGroups"
