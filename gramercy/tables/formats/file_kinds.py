"""What a file seems to be by its first bytes, where it is not what its name says: for messages.

The kind of a file is public. Nothing else of its content is looked at or shown.
"""

from __future__ import annotations

import codecs
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from gramercy.schemas import families
from gramercy.schemas.errors import TableError

HEAD = 4096  # bytes that are looked at


@dataclass(frozen=True)
class FileKind:
    """A kind of file."""

    words: str  # what it is, after "this is"
    suffix: str  # the end of its name, if a release or `gramercy convert` reads it
    begins: Callable[[bytes], bool]  # whether a file of this kind begins so
    remedy: str  # what to do
    encoding: str = ""  # in which text of this kind is read


def _starts(*beginnings: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(beginnings)


def _is_web_page(head: bytes) -> bool:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return text.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml", b"<error"))


def _is_utf16(head: bytes) -> bool:
    """With a byte order mark, or because every other byte of its first characters is zero."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return not head.startswith(codecs.BOM_UTF32_LE)
    even, odd = head[:64:2], head[1:64:2]
    return (len(head) > 3 and (not any(odd) and all(even))) or (not any(even) and all(odd))


def _is_text(head: bytes) -> bool:
    """Judged by the first line: the others may be rows."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head.partition(b"\n")[0])
    except UnicodeDecodeError:
        return False
    return bool(text.strip()) and not any(each < " " and each not in "\t\r\n" for each in text)


_CONVERT = (
    "Rename it to {stem}{suffix}, run 'gramercy convert {stem}{suffix} {stem}.parquet', and name "
    "{stem}.parquet as the contract's 'source'."
)
_RENAME = "Rename it to {stem}{suffix}, and name that as the contract's 'source'."
_UNPACK = "Unpack it, and name the files in it as the contract's 'source'."

# The first whose beginning a file has.
KINDS = (
    FileKind("an empty file", "", lambda head: not head, "Export or copy the table again."),
    FileKind("a Parquet file", ".parquet", _starts(b"PAR1"), _RENAME),
    FileKind(
        "an Excel file",
        ".xlsx",
        lambda head: head.startswith(b"PK") and (b"xl/" in head or b"[Content_Types]" in head),
        _CONVERT,
    ),
    FileKind(
        "an OpenDocument file",
        ".ods",
        lambda head: head.startswith(b"PK") and b"opendocument" in head,
        _CONVERT,
    ),
    FileKind("a ZIP archive", ".csv.zip", _starts(b"PK"), _UNPACK),
    FileKind("compressed by gzip", ".csv.gz", _starts(b"\x1f\x8b"), _RENAME),
    FileKind("compressed by bzip2", ".csv.bz2", _starts(b"BZh"), _RENAME),
    FileKind("compressed by xz", ".csv.xz", _starts(b"\xfd7zXZ"), _RENAME),
    FileKind("compressed by Zstandard", "", _starts(b"\x28\xb5\x2f\xfd"), _UNPACK),
    FileKind("an old Excel file", ".xls", _starts(b"\xd0\xcf\x11\xe0"), _CONVERT),
    FileKind("an SPSS file", ".sav", _starts(b"$FL2", b"$FL3"), _CONVERT),
    FileKind("a Stata file", ".dta", _starts(b"<stata_dta>"), _CONVERT),
    FileKind("a PDF", "", _starts(b"%PDF"), "Export the table as CSV."),
    FileKind(
        "an SQLite database",
        "",
        _starts(b"SQLite format 3"),
        "Write the contract's source as 'source: {{url: \"sqlite:///{file}\", table: NAME}}', with "
        "the name of the table.",
    ),
    FileKind(
        "a web page or XML, such as the error of a server",
        "",
        _is_web_page,
        "Download or export the table again.",
    ),
    FileKind("JSON", ".json", _starts(b"{", b"[{", b"[\n", b"[ ", b"[["), _CONVERT),
    FileKind(
        "text in UTF-16",
        "",
        _is_utf16,
        "Write the contract's source as 'source: {{path: {file}, encoding: utf-16}}'.",
        "utf-16",
    ),
    FileKind("text, such as CSV", ".csv", _is_text, _RENAME),
)


def conversion(file: str, *options: str) -> tuple[str, str]:
    """The command that converts a file, and the name of the Parquet file that it writes."""
    path = PurePosixPath(file)
    target = str(path.with_name(path.name.partition(".")[0] + ".parquet"))
    return shlex.join(["gramercy", "convert", file, target, *options]), target


def unusual_layout(file: str, words: str) -> TableError:
    """The error for text that `gramercy convert` reads, and no release."""
    command, target = conversion(file)
    return families.HEADER(
        "{file}: {words}.",
        "Run '{command}', which reads such files, and name {target} as the contract's 'source'.",
        file=file,
        words=words,
        command=command,
        target=target,
    )


def kind_of(head: bytes) -> FileKind | None:
    """The kind of a file with these first bytes; None if it is not known."""
    return next((kind for kind in KINDS if kind.begins(head)), None)


def mistaken(head: bytes, file: str, title: str, encoding: str) -> TableError | None:
    """The error for a file that is not what its name says; None if it may be.

    Parameters
    ----------
    head
        The first `HEAD` bytes of the file, as it is stored.
    file
        Its name in messages.
    title, encoding
        The title of the format that it has by its name, and the encoding that the contract states.
    """
    kind, path = kind_of(head), PurePosixPath(file)
    named = [suffix.lower() for suffix in path.suffixes]
    if (
        kind is None
        or (encoding and kind.encoding == encoding)
        or (kind.suffix and named[-1:] == [f".{kind.suffix.rpartition('.')[2]}"])
    ):
        return None
    stem = str(path.with_name(path.name.partition(".")[0]))
    remedy = kind.remedy.format(stem=stem, suffix=kind.suffix, file=file)
    return families.FILE(
        "{file}: this is {kind}, and is named as {format}.",
        "{remedy}",
        file=file,
        kind=kind.words,
        format=title,
        remedy=remedy,
    )
