"""JSON lines: the same integers as Parquet; one line is one row, for any content."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramercy.application.table_header import check_table_header
from gramercy.common.lattice import Lattice
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Unit
from gramercy.schemas.problems.table import cell_privacy_of_csv, file_not_readable
from gramercy.tables import json_lines
from gramercy.tables.csv_reader import MalformedLines
from gramercy.tables.json_lines import MAX_DEPTH, MAX_LINE
from gramercy.tables.period_filter import PeriodFilter
from gramercy.tables.persons import Persons
from gramercy.tables.reader import cell_batches
from gramercy.tables.source import open_source
from gramercy.tables.streaming import accumulate
from tests.support.factories import contract_facts
from tests.support.problems import raises

NAN = float("nan")
COLUMNS: dict[str, Any] = {
    "x": {"lower": -90.0, "upper": 90.0},
    "n": {"lower": -1e18, "upper": 1e18},
    "ward": {"levels": ["A", "Ä"]},
    "flag": {"levels": [0, 1]},
}
LEVELS = {"x": None, "ward": ("A", "7")}


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def read(path: Path, *, keep: bool = False) -> tuple[list[list[float]], int]:
    """The rows of a file, and the number of malformed lines."""
    malformed, rows = MalformedLines(), list[list[float]]()
    source = open_source(str(path))
    for batch in cell_batches(source, LEVELS, malformed, keep_malformed=keep):
        rows += batch.T.tolist()
    return rows, malformed.dropped + malformed.kept


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson", "t.jsonl.gz"])
def test_integers_equal_those_of_parquet(name: str, tmp_path: Path) -> None:
    """Also of persons; the order of keys and other keys do not matter."""
    rng = np.random.default_rng(7)
    table = pd.DataFrame(
        {
            "person": 9_100_000_000_000_000_000 + rng.integers(0, 99, 300),
            "x": rng.normal(size=300) * 40,
            "n": rng.integers(-(2**62), 2**62, 300),
            "ward": rng.choice(["A", "Ä", "x"], 300),
            "flag": rng.random(300) < 0.5,
        }
    )
    table.to_parquet(tmp_path / "t.parquet")
    lines = [json.dumps(row | {"other": [1, {"x": 2}]}) for row in table.to_dict("records")]
    data = ("\n".join(lines) + "\n").encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    for facts in ({}, {"privacy_unit": "person", "persons": 99}):
        grams = []
        for source in ("t.parquet", name):
            declared = {"source": str(tmp_path / source), "rows": 300, "columns": COLUMNS, **facts}
            contract = Contract.model_validate(contract_facts() | declared)
            check_table_header(contract)
            lattice = Lattice.fitting(6, contract.count, 1.0)
            grams.append(accumulate(open_source(contract.source), contract, Unit(), lattice).gram)
        np.testing.assert_array_equal(*grams)


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b'{"x": 1.5, "ward": "A"}', [1.5, 0]),
        (b'{"ward": 7, "x": " 2 "}', [2, 1]),
        (b'{"x": 1, "x": 2}', [2, NAN]),
        (b'{"x": null, "ward": ["A"]}', [NAN, NAN]),
        (b'{"x": {"x": 1}}', [NAN, NAN]),
        (b'{"x": true}', [1, NAN]),
        (b'{"x": NaN}', [NAN, NAN]),
        (b'{"x": 1e400}', [np.inf, NAN]),
        (b'{"x": -1' + b"0" * 400 + b"}", [-np.inf, NAN]),
        (b'{"x": 9007199254740993}', [9007199254740992, NAN]),
        (b'{"x": "\xff", "ward": "A"}', [NAN, 0]),
        (b'{"ward": "A", "other": "\\ud800"}\r', [NAN, 0]),
        (b'{"ward": "\\ud800", "x": "\\udc00"}', [NAN, NAN]),
        (b'{"x": 9223372036854775809, "ward": 18446744073709551616}', [2.0**63, NAN]),
        (b"{}", [NAN, NAN]),
        (b"", None),
        (b"[1]", None),
        (b"7", None),
        (b'{"x": 1', None),
        (b'{"x": 1} {"x": 2}', None),
        (b'{"x": 1}\xff', None),
        (b'{"other": ' + b"[" * 100_000 + b"}", None),
        (b'{"other": "' + b"x" * MAX_LINE + b'"}', None),
        (b'{"x": 1, "other": "' + b"x" * (MAX_LINE - 30) + b'"}', [1, NAN]),
        (b'{"x": ' + nested(MAX_DEPTH - 1) + b', "ward": "A"}', [NAN, 0]),
        (b'{"x": ' + nested(MAX_DEPTH) + b', "ward": "A"}', None),
        (b'{"o": ["' + b"[" * 200 + b'", "\\"]"], "x": 1}', [1, NAN]),
        (b'{"o": ["' + b"]" * 200 + b'", ' + nested(MAX_DEPTH) + b"]}", None),
        (b'{"o": [' + nested(MAX_DEPTH) + b'"' + b'\\"' * 500_000, None),  # not in quadratic time
        (b'{"o": [' + b"[]," * 300 + b'0], "x": 1}', [1, NAN]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_line_is_a_row_or_malformed(line: bytes, row: list[float] | None, tmp_path: Path) -> None:
    around = b'{"x": 8}'
    (tmp_path / "t.jsonl").write_bytes(b"\n".join([around, line, around]))
    kept = [] if row is None else [row]
    np.testing.assert_array_equal(read(tmp_path / "t.jsonl")[0], [[8, NAN], *kept, [8, NAN]])
    rows, malformed = read(tmp_path / "t.jsonl", keep=True)
    np.testing.assert_array_equal(rows, [[8, NAN], row or [NAN, NAN], [8, NAN]])
    assert malformed == (row is None)


def persons_of(path: Path) -> list[str]:
    persons = Persons()
    for _ in cell_batches(open_source(str(path)), {"id": persons}, MalformedLines()):
        pass
    return persons.names


def test_a_number_is_the_person_that_its_text_is_in_csv(tmp_path: Path) -> None:
    """Through doubles, one person could have two names, and would count twice."""
    digits = "7" * 60
    persons = {
        "12345678901234567": ["12345678901234567", "12345678901234567.0", "1234567890123456.7e1"],
        digits: [digits, f"{digits}.0", f"{digits}0E-1"],
        "0.1": ["0.1", "0.10", "1e-1"],
        "0": ["0", "-0", "-0.0"],
    }
    spellings = [text for each in persons.values() for text in each]
    for quote in ("", '"'):
        lines = "".join(f'{{"id": {quote}{text}{quote}}}\n' for text in spellings)
        (tmp_path / "t.jsonl").write_text(lines)
        assert persons_of(tmp_path / "t.jsonl") == list(persons)
    (tmp_path / "t.csv").write_text("\n".join(["id", *spellings]) + "\n")
    assert persons_of(tmp_path / "t.csv") == list(persons)


def test_truth_values_and_numbers_are_text_as_in_the_file(tmp_path: Path) -> None:
    """So the spelling of a level, or of a year, does not depend on other cells."""
    (tmp_path / "t.jsonl").write_text('{"x": true}\n{"x": 2026.0}\n{"x": "a"}\n{"x": NaN}\n')
    levels = {"x": ("true", "2026.0", "a", "nan")}
    (batch,) = cell_batches(open_source(str(tmp_path / "t.jsonl")), levels, MalformedLines())
    np.testing.assert_array_equal(batch, [[0, 1, 2, NAN]])


@pytest.mark.slow
def test_a_year_is_a_number_or_a_text(tmp_path: Path) -> None:
    cells = ("2026", "2026.0", '"2026"', '"2026-03-01"', "2025.0", "true", "20260")
    (tmp_path / "t.jsonl").write_text("".join(f'{{"date": {cell}}}\n' for cell in cells))
    columns = {"date": PeriodFilter("year", "2026", "UTC")}
    (batch,) = cell_batches(open_source(str(tmp_path / "t.jsonl")), columns, MalformedLines())
    np.testing.assert_array_equal(batch, [[1, 1, 1, 1, 0, NAN, NAN]])


@pytest.mark.slow
def test_only_declared_cells_are_kept_and_no_long_text(tmp_path: Path) -> None:
    """Other cells, such as 60,000 empty lists on a line, would need many times their size."""
    lists, name = b"[],  " * 60_000 + b"0", b"y" * 300_000
    line = b'{"x": 1, "id": "' + name + b'", "ward": "' + name + b'", "o": [' + lists + b"]}\n"
    (tmp_path / "t.jsonl").write_bytes(14 * line)
    columns: dict[str, Any] = {"x": None, "id": Persons(), "ward": ("A", "B")}
    tracemalloc.start()
    try:
        (batch,) = cell_batches(open_source(str(tmp_path / "t.jsonl")), columns, MalformedLines())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(batch, [[1] * 14, [NAN] * 14, [NAN] * 14])
    assert peak < 45e6


def test_a_batch_ends_by_bytes_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "_BATCH_BYTES", 1000)
    line = json.dumps({"x": 1, "other": "y" * 250})
    (tmp_path / "t.jsonl").write_text(f"{line}\n" * 7)
    batches = cell_batches(open_source(str(tmp_path / "t.jsonl")), {"x": None}, MalformedLines())
    assert [batch.shape[1] for batch in batches] == [3, 3, 1]


LINE = st.lists(
    st.sampled_from([b'"', b"{", b"}", b"[", b":", b",", b"1", b'"x"', b"\\", b"\r", b"\xff"]),
    max_size=8,
).map(b"".join)


@settings(max_examples=100, deadline=None)
@given(lines=st.lists(LINE, min_size=1, max_size=4))
def test_a_line_never_affects_other_lines(
    lines: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.jsonl"

    def rows_of(lines: list[bytes]) -> list[list[float]]:
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return read(path, keep=True)[0]

    together = rows_of(lines)
    assert len(together) == len(lines)
    np.testing.assert_array_equal(together, [row for line in lines for row in rows_of([line])])


def test_what_json_lines_cannot_do(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl.gz").write_bytes(b"not gzip")
    with raises(file_not_readable, format="JSON lines"):
        read(tmp_path / "t.jsonl.gz")
    (tmp_path / "t.jsonl").write_bytes(b'{"x": 1}\n')
    facts = {"source": str(tmp_path / "t.jsonl"), "privacy_unit": "cell", "columns": COLUMNS}
    contract = Contract.model_validate(contract_facts() | facts)
    with raises(cell_privacy_of_csv):
        accumulate(open_source(contract.source), contract, Unit(), Lattice.fitting(6, 1, 1.0))
