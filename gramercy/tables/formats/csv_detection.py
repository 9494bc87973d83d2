"""How the CSV files of a table are written, judged by the header line alone."""

from __future__ import annotations

import codecs
import csv
import io
from typing import get_args

from gramercy.schemas.source import CsvFormat, Encoding, Files, Separator
from gramercy.tables.formats.csv_format import CsvTables, open_bytes
from gramercy.tables.formats.lines import BLOCK
from gramercy.tables.formats.registry import format_of
from gramercy.tables.formats.source import Source, open_source
from gramercy.tables.formats.table_format import SourceFile


def detect_format(path: str) -> tuple[Source, CsvFormat | None]:
    """Open a table whose format no contract has stated yet; no row is read.

    Returns
    -------
    written
        The format of the first CSV file, if a contract must state it: the separator between the
        most fields of its header, and its encoding. Decimal marks are not in headers. The
        encoding of a header without accents is taken for UTF-8.
    """
    source = open_source(Files(path=path, separator=","))
    files = [file for file in source.files if isinstance(file.format, CsvTables)]
    if not files:
        return source, None
    written = _format_of_header(files[0])
    if written == CsvFormat() and all(format_of(file.path) is not None for file in files):
        return open_source(path), None
    return open_source(Files(path=path, **written.model_dump())), written


def _format_of_header(file: SourceFile) -> CsvFormat:
    with file.redacted_errors(), open_bytes(file) as stream:
        line = stream.readline(BLOCK)
        encoding = _encoding(line)
        if encoding == "utf-16":  # the end of the line is not where a byte looks like it
            line += stream.read(BLOCK)
    text = line.decode("utf-8-sig" if encoding == "utf-8" else encoding, "replace")
    header = text.partition("\n")[0]

    def fields(separator: Separator) -> int:
        return len(next(csv.reader(io.StringIO(header), delimiter=separator), []))

    # The first of the separators, if several have as many fields.
    return CsvFormat(separator=max(get_args(Separator), key=fields), encoding=encoding)


def _encoding(line: bytes) -> Encoding:
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding in ("utf-8", "cp1252"):
        try:
            line.decode(encoding)
        except UnicodeDecodeError:
            continue
        return "utf-8" if encoding == "utf-8" else "cp1252"
    return "latin-1"
