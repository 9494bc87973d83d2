"""Read JSON lines, compressed or not, as batches of numbers in bounded memory.

One line is one row, for any content. A line that is not a JSON object, is blank, or is longer than
4 MiB is malformed. The names of columns are in the rows, so that no header can be compared with the
contract: a column that a row does not have is missing in it.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.tables.csv_reader import MalformedLines, open_bytes
from gramercy.tables.database import cells as as_arrow
from gramercy.tables.lines import line_blocks, replace_invalid_utf8
from gramercy.tables.source_file import SourceFile
from gramercy.tables.values import Coding, is_text, to_floats

_MAX_DIGITS = 40  # of a whole number that is kept exactly, such as an id

Row = Mapping[str, Any]


def cell_batches(
    file: SourceFile,
    columns: Mapping[str, Coding],
    rows: int,
    malformed: MalformedLines,
    keep_malformed: bool,
) -> Iterator[NDArray[np.float64]]:
    """Batches of at most `rows` rows; see `tables.reader.cell_batches`."""
    batch: list[Row] = []
    for row in _rows(file):
        if row is not None:
            batch.append(row)
        elif keep_malformed:
            malformed.kept += 1
            batch.append({})
        else:
            malformed.dropped += 1
        if len(batch) == rows:
            yield _numbers(batch, columns)
            batch = []
    if batch:
        yield _numbers(batch, columns)


def _rows(file: SourceFile) -> Iterator[Row | None]:
    """The object on each line; None for a malformed line."""
    mark = codecs.BOM_UTF8
    with open_bytes(file) as stream:
        for block in line_blocks(stream, lambda: b"\n"):
            for line in replace_invalid_utf8(block.removeprefix(mark)).split(b"\n")[:-1]:
                yield _parsed(line)
            mark = b""


def _parsed(line: bytes) -> Row | None:
    try:
        # Substitutes for invalid bytes are control characters, which are allowed if not strict.
        row = json.loads(line, strict=False, parse_int=_whole)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _whole(text: str) -> int | float:
    """A whole number; a double if it is very long, because parsing takes quadratic time."""
    return int(text) if len(text) <= _MAX_DIGITS else float(text)


def _numbers(batch: list[Row], columns: Mapping[str, Coding]) -> NDArray[np.float64]:
    numbers = np.empty((len(columns), len(batch)))
    for k, (name, coding) in enumerate(columns.items()):
        cells = [_scalar(row.get(name)) for row in batch]
        column = as_arrow.texts(cells) if is_text(coding) else as_arrow.numbers(cells)
        numbers[k] = to_floats(column, coding)
    return numbers


def _scalar(cell: Any) -> Any:
    """A text, a number or a truth value; lists and objects count as missing.

    An escape may stand for half a character, which Arrow refuses: it becomes a question mark.
    """
    if isinstance(cell, str) and not cell.isascii():
        return cell.encode("utf-8", "replace").decode()
    return cell if isinstance(cell, str | int | float) else None
