"""JSON lines: the same integers as Parquet; one line is one row, for any content."""

from __future__ import annotations

import gzip
import json
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
from gramercy.tables.csv_reader import MalformedLines
from gramercy.tables.lines import BLOCK
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
        (b'{"other": "' + b"x" * BLOCK + b'"}', None),
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
