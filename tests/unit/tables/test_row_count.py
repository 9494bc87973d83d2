"""The number of rows, as a release would count them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from gramercy.tables.formats import reader
from gramercy.tables.formats.reader import count_rows
from gramercy.tables.formats.source import open_source


def test_rows_of_all_files_are_counted_without_malformed_lines(tmp_path: Path) -> None:
    folder = tmp_path / "ward=A"
    folder.mkdir()
    (folder / "a.csv").write_text('x,"y z"\n1,2\n3,4,5\n\n"6,7\n8,\n')
    pd.DataFrame({"y z": range(70), "x": range(70)}).to_parquet(folder / "b.parquet")
    assert count_rows(open_source(str(tmp_path))) == 72


def test_large_files_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    source = open_source(str(tmp_path / "a.csv"))
    assert count_rows(source) == 2
    monkeypatch.setattr(reader, "_MOST_BYTES", 5)
    assert count_rows(source) is None
    pd.DataFrame({"x": range(70)}).to_parquet(tmp_path / "b.parquet")
    assert count_rows(open_source(str(tmp_path / "b.parquet"))) == 70
