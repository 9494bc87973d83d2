"""Parquet: the same cells for all types, encodings, codecs and pages, in bounded memory."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats import parquet_format
from gramercy.tables.formats.reader import cell_batches, column_types
from gramercy.tables.formats.source import open_source
from gramercy.tables.formats.values import Lookup
from gramercy.tables.persons.person_index import Persons
from tests.support.factories import at_scale
from tests.support.source_tables import read

NAN = float("nan")


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None, 3]), [1, NAN, 3]),
        (pa.array([2**53 + 1, 2**62, None], pa.int64()), [2.0**53, 2.0**62, NAN]),
        (pa.array([True, False, None]), [1, 0, NAN]),
        (pa.array([Decimal("1.25"), None, Decimal("-3.50")]), [1.25, NAN, -3.5]),
        (pa.array([1.5, 1.5, None]).dictionary_encode(), [1.5, 1.5, NAN]),
        (pa.array([1.5, np.inf, None], pa.float32()), [1.5, np.inf, NAN]),
        (pa.nulls(3), [NAN, NAN, NAN]),
    ],
    ids=lambda x: str(getattr(x, "type", "")),
)
def test_parquet_types_become_floats(tmp_path: Path, column: Any, expected: Any) -> None:
    table = pa.table({"z": ["x", "y", "z"], "a": column})
    pq.write_table(table, tmp_path / "t.parquet")
    rows, _ = read(tmp_path / "t.parquet", "a")
    np.testing.assert_array_equal(np.array(rows)[:, 0], np.array(expected))


WORDS = ("a", "b c", "ä", "long " * 20)


def random_texts(rows: int, *, missing: bool) -> list[str | None]:
    rng = np.random.default_rng(5)
    others = ["", "A", " a ", "b c\t", "x" * 5000, " " * 2000 + "a", "long " * 300, "1"]
    pool = [*WORDS, *others, *([None, None] if missing else [])]
    # Runs and single cells, so that all encodings are used.
    picked = [pool[k] for k in rng.integers(len(pool), size=rows)]
    return [cell for cell in picked for _ in range(int(rng.choice([1, 1, 9])))][:rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    "encoding", ["dictionary", "PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
)
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("missing", [True, False])
def test_parquet_text_is_independent_of_encoding_and_codec(
    encoding: str, codec: str, version: str, missing: bool, tmp_path: Path
) -> None:
    texts = random_texts(1500, missing=missing)
    schema = pa.schema([pa.field("g", pa.string(), missing), ("k", pa.float64())])
    table = pa.table({"g": texts, "k": np.arange(1500.0)}, schema=schema)
    pq.write_table(
        table,
        tmp_path / "t.parquet",
        compression=codec,
        use_dictionary=encoding == "dictionary",
        column_encoding=None if encoding == "dictionary" else {"g": encoding, "k": "PLAIN"},
        data_page_version=version,
        data_page_size=4096,
        row_group_size=700,
    )
    place = {word: float(k) for k, word in enumerate(WORDS)} | {" a ": 0.0, "b c\t": 1.0}
    # The last word ends with a blank; the levels of a contract cannot.
    levels = {"k": None, "g": tuple(word.strip() for word in WORDS)}
    expected = [place.get(text or "", NAN) for text in texts]
    source = open_source(str(tmp_path / "t.parquet"))
    cells = np.concatenate(list(cell_batches(source, levels, MalformedLines())), axis=1)
    np.testing.assert_array_equal(cells, [np.arange(1500.0), expected])


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 999, at_scale(8_000, 40_000)])
@pytest.mark.parametrize("group", [7, 10_000, 1 << 20])
@pytest.mark.parametrize(
    "limits",
    [{}, {"_PAGES": 1, "_TURN": 1}, {"_PAGES": 1, "_TURN": 3 << 10}, {"_TEXTS": 1000}],
)
def test_columns_read_one_at_a_time_equal_the_table(
    rows: int, group: int, limits: dict[str, int], tmp_path: Path, monkeypatch: Any
) -> None:
    rng = np.random.default_rng(3)
    numbers, texts = rng.normal(size=(5, rows)), rng.choice(["a", "b", "c"], rows)
    table = pa.table({f"c{i}": numbers[i] for i in range(5)}).add_column(2, "g", pa.array(texts))
    if rows == 40_000 and group == 7:
        table = table.slice(0, 100)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=group, data_page_size=1000)
    for name, limit in (limits | {"_BLOCK": 8 * 6 * 3000}).items():
        monkeypatch.setattr(parquet_format, name, limit)
    columns = {"c1": None, "g": ("a", "b"), "c0": None, "c4": None, "c2": None, "c3": None}
    batches = list(
        cell_batches(open_source(str(tmp_path / "t.parquet")), columns, MalformedLines())
    )
    places = np.select([texts == "a", texts == "b"], [0.0, 1.0], NAN)
    expected = np.stack([numbers[1], places, *numbers[[0, 4, 2, 3]]])[:, : table.num_rows]
    np.testing.assert_array_equal(np.concatenate(batches, axis=1), expected)


@pytest.mark.slow
def test_large_parquet_footer_is_read(tmp_path: Path) -> None:
    table = pa.table({f"column {i}": [float(i)] * 40 for i in range(400)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    file = str(tmp_path / "t.parquet")
    assert len(column_types(*open_source(file).files)) == 400
    assert len(read(tmp_path / "t.parquet", "column 0", "column 399")[0]) == 40


def mixed(path: Path, rows: int = 3000) -> list[str]:
    """A column whose first names are in a dictionary, and the others are not."""
    names = [f"person-{k % 700}" for k in range(rows)]
    numbers = {f"c{k}": np.arange(rows) + k / 10 for k in range(3)}
    pq.write_table(
        pa.table({"who": names} | numbers),
        path,
        dictionary_pagesize_limit=2000,
        data_page_size=500,
        write_batch_size=50,
    )
    return names


def stays_encoded(path: Path, texts: list[str | None], **options: Any) -> bool:
    """Whether a column of these texts is read dictionary-encoded."""
    pq.write_table(pa.table({"who": texts}), path, **options)
    with path.open("rb") as stream:
        metadata = pq.read_metadata(path)
        groups = range(metadata.num_row_groups)
        reader = parquet_format._Reader(stream, metadata, groups, ["who"])
        return reader.column("who", Lookup(Persons())).stays_encoded


def test_text_stays_encoded_where_a_dictionary_has_it_or_may_fill_the_memory(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.parquet"
    texts = [f"person-{k}" for k in range(3000)]
    small = {"dictionary_pagesize_limit": 2000, "write_batch_size": 50}
    assert stays_encoded(path, texts)
    assert stays_encoded(path, [None, "a" * 5000] * 50)
    assert stays_encoded(path, ["a"] * 3000, row_group_size=100)
    assert not stays_encoded(path, texts, use_dictionary=False)
    assert not stays_encoded(path, texts, **small)
    long_text = "a" * (parquet_format._LONG + 1)
    assert stays_encoded(path, [long_text, *texts], **small | {"write_batch_size": 1})
    deltas = {"use_dictionary": False, "column_encoding": {"who": "DELTA_BYTE_ARRAY"}}
    assert not stays_encoded(path, texts, **deltas)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [100, 3000, 20_000, 64 << 20])
@pytest.mark.parametrize("first", [True, False])
def test_batches_have_bounded_texts_and_equal_the_table(
    first: bool, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = mixed(tmp_path / "t.parquet")
    monkeypatch.setattr(parquet_format, "_TEXTS", limit)
    monkeypatch.setattr("gramercy.tables.batches.BATCH_CELLS", 4 * 1000)
    persons = Persons()
    numbers: dict[str, Any] = dict.fromkeys(["c0", "c1", "c2"])
    columns = {"who": persons} | numbers if first else numbers | {"who": persons}
    source = open_source(str(tmp_path / "t.parquet"))
    batches = list(cell_batches(source, columns, MalformedLines()))
    cells = np.concatenate(batches, axis=1)
    who = cells[0 if first else -1].astype(int)
    assert [persons.names[k] for k in who] == names
    np.testing.assert_array_equal(cells[1 if first else 0], np.arange(3000.0))
    most = max(1, limit // len("person-1"))
    assert max(batch.shape[1] for batch in batches) <= min(1000, most)
    assert persons.names == list(dict.fromkeys(names))


@pytest.mark.slow
def test_texts_that_a_dictionary_repeats_are_bounded_by_the_longest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The texts outside of the dictionary are short; the long one is repeated in every row."""
    texts = ["a" * 200] * 2000 + [f"person-{k}" for k in range(2000)]
    options = {"dictionary_pagesize_limit": 1000, "write_batch_size": 50}
    pq.write_table(pa.table({"who": texts}), tmp_path / "t.parquet", **options)
    monkeypatch.setattr(parquet_format, "_TEXTS", 20_000)
    persons = Persons()
    source = open_source(str(tmp_path / "t.parquet"))
    batches = list(cell_batches(source, {"who": persons}, MalformedLines()))
    assert [persons.names[int(k)] for k in np.concatenate(batches, axis=1)[0]] == texts
    assert max(batch.shape[1] for batch in batches) == 100
