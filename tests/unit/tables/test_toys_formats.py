"""A new format of tables and a new kind of column: one class and one line in a registry each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import column, families
from gramercy.schemas.column import Column
from gramercy.schemas.contract import Contract
from gramercy.schemas.source import AnySource
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats import registry
from gramercy.tables.formats.reader import count_rows, schema_of
from gramercy.tables.formats.source import open_source
from gramercy.tables.formats.table_format import SourceFile, TableFormat
from gramercy.tables.formats.values import DOUBLE, Coding, Numbers
from tests.support.factories import read_plan, run_release, write_request
from tests.support.problems import raises

ROWS = 300


class OneNumberALine(TableFormat):
    """A text file with one number a line, whose only column has the name of the file."""

    title = "numbers"

    def recognises(self, suffixes: Sequence[str], source: AnySource | None) -> bool:
        return suffixes[-1:] == [".numbers"]

    def columns(self, file: SourceFile) -> list[tuple[str, str]]:
        return [(Path(file.path).stem, DOUBLE)]

    def cell_batches(
        self,
        file: SourceFile,
        columns: Mapping[str, Coding],
        rows: int,
        malformed: MalformedLines,
        keep_malformed: bool,
    ) -> Iterator[NDArray[np.float64]]:
        lines = Path(file.path).read_text().splitlines()
        for start in range(0, len(lines), rows):
            part = pa.array(lines[start : start + rows])
            yield np.stack([coding.floats(part) for coding in columns.values()])


class LogarithmOf(Numbers):
    """The logarithm to base 10 of each cell; NaN where there is none."""

    def floats(self, cells: pa.Array) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore", divide="ignore"):
            logarithms: NDArray[np.float64] = np.log10(super().floats(cells))
        return logarithms


class Magnitude(Column):
    """Numbers of many magnitudes, published by their logarithm, in which bounds are stated."""

    key: ClassVar[str] = "magnitude"

    magnitude: bool

    @property
    def coding(self) -> Any:
        return LogarithmOf()

    def terms(self, name: str) -> dict[str, Any]:
        return super().terms(name) | {"magnitude": self.magnitude}


@pytest.fixture
def one_number_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FORMATS", (*registry.FORMATS, OneNumberALine()))


@pytest.fixture
def magnitude() -> Iterator[None]:
    column.KINDS.insert(0, Magnitude)
    Contract.model_rebuild(force=True)
    yield
    column.KINDS.remove(Magnitude)
    Contract.model_rebuild(force=True)


def numbers(seed: int = 3) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=ROWS).round(3)


def request_of(folder: Path, source: str, columns: dict[str, Any]) -> Path:
    facts = {"source": str(folder / source), "columns": columns, "rows": ROWS}
    return write_request(folder, **facts)


def published(request: Path) -> ReleaseBundle:
    """Release; read back, with every digest verified."""
    name = run_release(request)
    context = Context.default()
    verified = verify_release(context.archive, "toy", name, context.existing_ledger)
    assert verified.checks
    assert not verified.unchecked
    return read_release(context.archive.release("toy", name))


def exact(request: Path) -> Any:
    sums = accumulate(read_plan(request))
    return sums.sums.gram


@pytest.mark.slow
def test_format_is_read_like_others(tmp_path: Path, home: Path, one_number_a_line: None) -> None:
    x, columns = numbers(), {"height": {"lower": -5.0, "upper": 5.0}}
    (tmp_path / "height.numbers").write_text("".join(f"{each}\n" for each in x))
    pd.DataFrame({"height": x}).to_csv(tmp_path / "same.csv", index=False)
    source = open_source(str(tmp_path / "height.numbers"))
    assert schema_of(source) == {"height": DOUBLE}
    assert count_rows(source) == ROWS
    same = exact(request_of(tmp_path, "same.csv", columns))
    request = request_of(tmp_path, "height.numbers", columns)
    np.testing.assert_array_equal(exact(request), same)
    assert published(request).manifest.dataset.rows == ROWS


def test_format_that_is_not_listed_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "height.numbers").write_text("1\n")
    with raises(families.SOURCE):
        open_source(str(tmp_path / "height.numbers"))


def test_errors_of_a_format_quote_no_cell(tmp_path: Path, one_number_a_line: None) -> None:
    (tmp_path / "height.numbers").write_bytes(b"\xff secret\n")
    with raises(families.FILE, format="numbers") as caught:
        count_rows(open_source(str(tmp_path / "height.numbers")))
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_kind_of_column_is_published_like_others(
    tmp_path: Path, home: Path, magnitude: None, suffix: str
) -> None:
    logarithms = numbers()
    large = pd.DataFrame({"dose": 10.0**logarithms, "other": numbers(4)})
    large.loc[5, "dose"] = -1.0  # it has no logarithm, so it is a missing cell
    same = large.assign(dose=np.log10(large["dose"].where(large["dose"] > 0)))
    for name, table in {"large": large, "same": same}.items():
        path = tmp_path / f"{name}.{suffix}"
        table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    bounds = {"lower": -5.0, "upper": 5.0}
    plain = request_of(tmp_path, f"same.{suffix}", {"dose": bounds, "other": bounds})
    expected = exact(plain)
    declared = {"dose": bounds | {"magnitude": True}, "other": bounds}
    request = request_of(tmp_path, f"large.{suffix}", declared)
    np.testing.assert_array_equal(exact(request), expected)
    bundle = published(request)
    assert bundle.manifest.names[-2:] == ["dose", "other"]
    assert bundle.raw.shape == (2, 2)
