"""The parts of a workbook: a ZIP archive of XML files that refer to each other."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from gramercy.schemas.problems import source as problems
from gramercy.tables.decompression import DecompressionError, open_archive
from gramercy.tables.excel.elements import ElementReader
from gramercy.tables.parse_errors import redact_parser_errors
from gramercy.tables.source_file import SourceFile

_MAX_PART = 32 << 20  # bytes of a part that is not a sheet and not the strings
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_STRICT = "http://purl.oclc.org/ooxml/officeDocument/relationships"
_COMPOUND = b"\xd0\xcf\x11\xe0"  # an encrypted workbook, or one of Excel 2003 and before


class PartTooLargeError(ValueError):
    """A part of a workbook that does not fit into memory."""


@dataclass(frozen=True)
class Book:
    """An open workbook and one of its sheets.

    Parameters
    ----------
    archive
        The ZIP archive.
    sheet
        Name of the part of the sheet.
    strings, styles
        Names of the parts of shared strings and of formats; empty if there is none.
    from_1904
        Whether dates are counted from 1904.
    """

    archive: zipfile.ZipFile = field(repr=False)
    sheet: str
    strings: str
    styles: str
    from_1904: bool

    def open(self, part: str, most: int | None = _MAX_PART) -> IO[bytes]:
        """A part as a stream, whose size is what the archive states.

        Raises
        ------
        PartTooLargeError
            If it has more than `most` bytes.
        KeyError
            If there is no such part.
        """
        return _open(self.archive, part, most)


@contextmanager
def open_book(file: SourceFile) -> Iterator[Book]:
    """Open a workbook, and find the sheet of a source.

    Raises
    ------
    TableError
        If it is not a workbook, has a password, or lacks the sheet.
    """
    with redact_parser_errors(file.display_name, "Excel"), file.fs.open(file.path, "rb") as packed:
        if packed.read(len(_COMPOUND)) == _COMPOUND:
            raise problems.workbook_not_supported(file.display_name)
        try:
            archive = open_archive(packed)
        except DecompressionError:
            raise problems.workbook_not_supported(file.display_name) from None
        with archive:
            yield _book(archive, file)


def _book(archive: zipfile.ZipFile, file: SourceFile) -> Book:
    (root, *_) = [path for kind, path in _relations(archive, "").values() if kind == _DOCUMENT]
    parts, listed = _relations(archive, root), _Sheets()
    with _open(archive, root, _MAX_PART) as stream:
        for _ in listed.read(stream):
            pass
    sheets = [
        (name, parts[relation][1])
        for name, relation, is_visible in listed.sheets
        if parts[relation][0] == "worksheet" and (is_visible or file.sheet is not None)
    ]
    chosen = [path for name, path in sheets if file.sheet in {None, name}]
    if not chosen:
        raise problems.sheet_not_found(file.display_name, file.sheet or "")
    of_kind = dict(parts.values())
    return Book(
        archive,
        chosen[0],
        of_kind.get("sharedStrings", ""),
        of_kind.get("styles", ""),
        listed.from_1904,
    )


_DOCUMENT = "officeDocument"


def _relations(archive: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """What a part refers to: kind and name of the other part, by the id of the relation."""
    folder, name = posixpath.split(part)
    found = _Relations()
    with _open(archive, posixpath.join(folder, "_rels", f"{name}.rels"), _MAX_PART) as stream:
        for _ in found.read(stream):
            pass
    return {
        key: (kind.rpartition("/")[2], posixpath.normpath(posixpath.join("/", folder, target))[1:])
        for key, kind, target in found.relations
    }


def _open(archive: zipfile.ZipFile, part: str, most: int | None) -> IO[bytes]:
    described = archive.getinfo(part)
    if described.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ValueError
    if most is not None and described.file_size > most:
        raise PartTooLargeError
    return archive.open(described)


class _Relations(ElementReader):
    def __init__(self) -> None:
        super().__init__()
        self.relations: list[tuple[str, str, str]] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            self.relations.append((attributes["Id"], attributes["Type"], attributes["Target"]))


class _Sheets(ElementReader):
    """Names of the sheets, the ids of their relations, and whether they are visible."""

    def __init__(self) -> None:
        super().__init__()
        self.sheets: list[tuple[str, str, bool]] = []
        self.from_1904 = False

    def start(self, name: str, attributes: dict[str, Any]) -> None:
        if name == "workbookPr":
            self.from_1904 = attributes.get("date1904") in {"1", "true"}
        if name == "sheet":
            relation = attributes.get(f"{_RELATION} id") or attributes[f"{_STRICT} id"]
            visible = attributes.get("state", "visible") == "visible"
            self.sheets.append((attributes["name"], relation, visible))
