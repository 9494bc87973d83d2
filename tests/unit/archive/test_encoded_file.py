"""encoded.parquet: written and read, and refused if its archive is hostile."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.archive.bundles.bundle_kinds import most_bytes
from gramercy.archive.bundles.encoded_file import ENCODED, Encoded, read_encoded, write_encoded
from gramercy.schemas import families
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.normalisation import Unit
from tests.support.problems import raises
from tests.support.steps import GROUPED, step_manifest, step_spec

LONGEST = 10**38 - 1
KINDS: dict[str, dict[str, Any]] = {
    "count": {},
    "trace": {"normalisation": Unit()},
    "groups": GROUPED,
}


def numbers(manifest: ReleaseManifest) -> list[Encoded]:
    """Numbers of any length, of both signs."""
    stream, p = np.random.default_rng(5), len(manifest.names)
    parts = []
    for k in range(max(1, len(manifest.groups))):
        matrix = stream.integers(-(2**62), 2**62, (p, p)).astype(object) * 2**50
        matrix = matrix + matrix.T + k
        matrix[0, 0], matrix[0, 1], matrix[1, 0] = LONGEST, -LONGEST, -LONGEST
        rows = -(2**70) + k if manifest.publishes_noisy_count else None
        parts.append(Encoded(matrix, rows))
    return parts


@pytest.mark.parametrize("kind", list(KINDS))
def test_numbers_of_any_length_are_read_as_written(kind: str, tmp_path: Path) -> None:
    manifest = step_manifest(step_spec(**KINDS[kind]))
    written = numbers(manifest)
    write_encoded(tmp_path, manifest, written)
    read = read_encoded(tmp_path, manifest)
    assert [each.matrix.tolist() for each in read] == [each.matrix.tolist() for each in written]
    assert [each.rows for each in read] == [each.rows for each in written]
    assert {type(value) for each in read for value in each.matrix.ravel()} == {int}
    first = (tmp_path / ENCODED).read_bytes()
    write_encoded(tmp_path, manifest, read)
    assert (tmp_path / ENCODED).read_bytes() == first


def test_other_programs_read_all_digits(tmp_path: Path) -> None:
    manifest = step_manifest(step_spec(**GROUPED))
    written = numbers(manifest)
    write_encoded(tmp_path, manifest, written)
    frame = pd.read_parquet(tmp_path / ENCODED)
    assert frame.columns.tolist() == ["group", "row", "col", "value"]
    assert frame["value"][0] == Decimal(LONGEST)
    counts = frame[frame["row"].isna()]
    assert counts["group"].tolist() == [each.level for each in manifest.groups]
    assert [int(value) for value in counts["value"]] == [each.rows for each in written]


def test_numbers_with_too_many_digits_are_not_written(tmp_path: Path) -> None:
    manifest = step_manifest(step_spec())
    (part,) = numbers(manifest)
    part.matrix[0, 0] = LONGEST + 1
    with pytest.raises(pa.ArrowInvalid):
        write_encoded(tmp_path, manifest, [part])


def test_releases_without_a_series_have_no_such_file(tmp_path: Path) -> None:
    assert not read_encoded(tmp_path, step_manifest(step_spec(cumulative=None)))


def column(name: str, make: Callable[[pa.Table], Any]) -> Callable[[pa.Table], pa.Table]:
    def changed(table: pa.Table) -> pa.Table:
        return table.set_column(table.column_names.index(name), name, make(table))

    return changed


def too_long(table: pa.Table) -> pa.Array:
    """A value that has 38 digits by its type, and 39 by its bytes."""
    words = np.full((len(table), 2), (1 << 63) - 1, "<i8").tobytes()
    return pa.Array.from_buffers(pa.decimal128(38), len(table), [None, pa.py_buffer(words)])


FORGERIES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "an entry is missing": lambda table: table.slice(1),
    "a count is missing": lambda table: table.slice(0, len(table) - 1),
    "an entry too many": lambda table: pa.concat_tables([table, table.slice(len(table) - 1)]),
    "other order": lambda table: table.take(pa.array([1, 0, *range(2, len(table))])),
    "no such column": column("row", lambda table: pa.array(["c9"] * len(table))),
    "a count with names": lambda table: table.take(pa.array([*range(len(table) - 1), 0])),
    "no such group": column("group", lambda table: pa.array(["9"] * len(table))),
    "floats": column("value", lambda table: table["value"].cast(pa.float64())),
    "a fraction": column("value", lambda table: pa.array([1] * len(table), pa.decimal128(38, 2))),
    "no number": column("value", lambda table: pa.nulls(len(table), pa.decimal128(38))),
    "too many digits": column("value", too_long),
    "other columns": lambda table: table.drop_columns(["group"]),
}


@pytest.mark.parametrize("forgery", list(FORGERIES))
def test_other_files_are_refused(forgery: str, tmp_path: Path) -> None:
    manifest = step_manifest(step_spec(**GROUPED))
    write_encoded(tmp_path, manifest, numbers(manifest))
    forged = FORGERIES[forgery](pq.read_table(tmp_path / ENCODED))
    pq.write_table(forged, tmp_path / ENCODED, store_schema=False)
    with raises(families.CONTENT, path=str(tmp_path / ENCODED)):
        read_encoded(tmp_path, manifest)


@pytest.mark.slow
def test_few_bytes_that_state_many_rows_are_refused(tmp_path: Path) -> None:
    manifest = step_manifest(step_spec())
    many = pa.table({"row": ["c0"] * 10**6, "col": ["c0"] * 10**6, "value": [1] * 10**6})
    pq.write_table(many, tmp_path / ENCODED, compression="zstd")
    assert (tmp_path / ENCODED).stat().st_size < 1 << 16
    with raises(families.CONTENT, path=str(tmp_path / ENCODED)):
        read_encoded(tmp_path, manifest)


@pytest.mark.parametrize("grouped", [False, True])
def test_space_for_the_file_is_required_before_the_charge(grouped: bool, tmp_path: Path) -> None:
    columns = tuple(
        ColumnFacts(name=f"column {k}", lower=-5.0, upper=5.0, centre=0.0, scale=5.0)
        for k in range(80)
    )
    spec = step_spec(columns=columns, **(GROUPED if grouped else {}))
    without = spec.model_copy(update={"cumulative": None})
    manifest = step_manifest(spec)
    write_encoded(tmp_path, manifest, numbers(manifest))
    size = (tmp_path / ENCODED).stat().st_size
    planned = [most_bytes(each, manifest.publication) for each in (spec, without)]
    assert size < planned[0] - planned[1] < 4 * size
