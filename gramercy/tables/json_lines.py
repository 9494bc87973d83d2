"""Read JSON lines, compressed or not, as batches of numbers in bounded memory.

One line is one row, for any content. A line that is not a JSON object, is blank, is longer than
1 MiB, or has more than 100 lists and objects inside each other is malformed. The names of columns
are in the rows, so that no header can be compared with the contract: a column that a row does not
have is missing in it.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.tables.copies import cells as as_arrow
from gramercy.tables.csv_reader import MalformedLines, open_bytes
from gramercy.tables.lines import line_blocks, replace_invalid_utf8
from gramercy.tables.person_names import MAX_BYTES
from gramercy.tables.source_file import SourceFile
from gramercy.tables.values import Coding, is_text, max_cell_bytes, to_floats

MAX_LINE = 1 << 20  # bytes; once parsed, it needs up to a hundred times as much memory
MAX_DEPTH = 100  # whether the parser can go deeper depends on the stack, not on the line
_BATCH_BYTES = 16 << 20  # of lines whose cells are kept at once
_ROW_BYTES = 64  # of a row without cells
_NUMBER = 1024  # characters of text that is a number
_NAME = 16 * MAX_BYTES  # characters of a person's name or a date
# The end of the line counts as the end of a text, so that every quote is looked at once.
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.?+)*+(?:"|\Z)', re.DOTALL)

Row = Mapping[str, Any]
Cell = str | float | None


class _Number(str):
    """A number as it is spelt in the file: through a double, two persons could become one."""

    __slots__ = ()


def cell_batches(
    file: SourceFile,
    columns: Mapping[str, Coding],
    rows: int,
    malformed: MalformedLines,
    keep_malformed: bool,
) -> Iterator[NDArray[np.float64]]:
    """Batches of at most `rows` rows; see `tables.reader.cell_batches`."""
    convert = {name: _converter(coding) for name, coding in columns.items()}
    batch: list[list[Cell]] = []
    size = 0
    for line in _lines(file):
        row = _parsed(line)
        if row is None:
            malformed.kept += keep_malformed
            malformed.dropped += not keep_malformed
        if row is not None or keep_malformed:
            found: Row = row or {}
            batch.append([cell(found.get(name)) for name, cell in convert.items()])
            size += len(line) + _ROW_BYTES
        if batch and (len(batch) == rows or size >= _BATCH_BYTES):
            yield _numbers(batch, columns)
            batch, size = [], 0
    if batch:
        yield _numbers(batch, columns)


def _lines(file: SourceFile) -> Iterator[bytes]:
    mark = codecs.BOM_UTF8
    with open_bytes(file) as stream:
        for block in line_blocks(stream):
            yield from replace_invalid_utf8(block.removeprefix(mark)).split(b"\n")[:-1]
            mark = b""


def _parsed(line: bytes) -> Row | None:
    """The object on a line; None for a malformed line."""
    if len(line) > MAX_LINE or _is_deep(line):
        return None
    try:
        # Substitutes for invalid bytes are control characters, which are allowed if not strict.
        row = json.loads(
            line.decode(),
            strict=False,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_Number,
        )
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _is_deep(line: bytes) -> bool:
    """Whether lists and objects are too deep inside each other; of any line that is JSON."""
    if line.count(b"[") + line.count(b"{") <= MAX_DEPTH:
        return False
    marks = np.frombuffer(_TEXT.sub(b"", line), np.uint8)
    starts = (marks == ord("[")) | (marks == ord("{"))
    ends = (marks == ord("]")) | (marks == ord("}"))
    depths = np.cumsum(starts.astype(np.int32) - ends)
    return bool(depths.max(initial=0) > MAX_DEPTH)


def _converter(coding: Coding) -> Callable[[Any], Cell]:
    """What is kept of a cell: a number, a text that is not too long, or None."""
    if not is_text(coding):
        return _number
    most = max_cell_bytes(coding) if isinstance(coding, Sequence) else _NAME
    return lambda cell: _text(cell, most)


def _number(cell: Any) -> Cell:
    """Lists and objects count as missing, as do texts that are too long."""
    if isinstance(cell, _Number | bool):
        return float(cell)
    return _text(cell, _NUMBER)


def _text(cell: Any, most: int) -> str | None:
    """A text, with numbers and truth values as they are spelt in the file.

    An escape may stand for half a character, which Arrow refuses: it becomes a question mark.
    """
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if not isinstance(cell, str) or len(cell) > most:
        return None
    return str(cell) if cell.isascii() else cell.encode("utf-8", "replace").decode()


def _numbers(batch: list[list[Cell]], columns: Mapping[str, Coding]) -> NDArray[np.float64]:
    numbers = np.empty((len(columns), len(batch)))
    cells = zip(*batch, strict=True)
    for k, (column, coding) in enumerate(zip(cells, columns.values(), strict=True)):
        arrow = as_arrow.texts(column) if is_text(coding) else as_arrow.numbers(column)
        numbers[k] = to_floats(arrow, coding)
    return numbers
