"""The description of a bundle's files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from gramercy.archive.bundles.package import fields, resource
from gramercy.schemas import families
from tests.support.problems import raises


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A Parquet file and a CSV file."""
    table = pd.DataFrame({"value": [1.0, 2.0]})
    table.to_parquet(tmp_path / "m.parquet")
    table.to_csv(tmp_path / "m.csv", index=False)
    return tmp_path


def test_only_the_size_of_a_parquet_file_is_left_out(folder: Path) -> None:
    """frictionless counts no bytes of a Parquet file, and finds every stated size wrong."""
    assert "bytes" not in resource(folder / "m.parquet", "m", folder)
    assert resource(folder / "m.csv", "m", folder)["bytes"] == (folder / "m.csv").stat().st_size


def test_file_that_cannot_be_read_is_not_called_malformed(tmp_path: Path) -> None:
    with raises(families.SEAL, path=str(tmp_path), reason="Is a directory"):
        fields(tmp_path)
    (tmp_path / "x.parquet").write_bytes(b"not Parquet")
    with raises(families.CONTENT):
        fields(tmp_path / "x.parquet")
