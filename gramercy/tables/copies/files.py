"""The files of a private copy: one Parquet file, or a folder of them with constant columns.

The columns in which all rows of a file agree, such as those by which a Delta table is partitioned,
are in a file of their own, not in names of folders: a cell may be too long for a name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fsspec.implementations.local import LocalFileSystem

from gramercy.tables.source_file import SourceFile

Constants = Mapping[str, str | None]

_CONSTANTS = "constants.json"


def path_of_part(folder: Path, number: int) -> Path:
    """The path of one of the files."""
    return folder / f"{number:08d}.parquet"


def write_constants(folder: Path, constants: Sequence[Constants]) -> None:
    """Write the constant columns of all files, in their order."""
    handle = os.open(folder / _CONSTANTS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump(constants, stream)


def copied_files(path: str, display_name: str) -> Iterator[SourceFile]:
    """The files of a copy.

    Parameters
    ----------
    path
        A Parquet file, or a folder.
    display_name
        The name of the table in errors.
    """
    fs = LocalFileSystem()
    if not os.path.isdir(path):
        yield SourceFile(fs, path, "parquet", display_name, {})
        return
    constants: list[Constants] = json.loads(Path(path, _CONSTANTS).read_text(encoding="utf-8"))
    for number, values in enumerate(constants):
        part = str(path_of_part(Path(path), number))
        yield SourceFile(fs, part, "parquet", display_name, values)
