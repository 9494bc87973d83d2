"""Where the private table is: files, or a table of a database.

A contract's ``source`` is a path, or a mapping of the keys of one of the classes here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from gramercy.schemas import families
from gramercy.schemas.database import CopiedTable, DatabaseTable
from gramercy.schemas.notation import PLAIN, NumberNotation
from gramercy.schemas.periods import SelectedPeriod
from gramercy.schemas.url import without_secrets

Separator = Literal[",", ";", "\t", "|"]
# Encodings in which a line end is one character after any other: in others, such as
# those for Chinese and Japanese, a broken character could swallow the end of its line.
Encoding = Literal[
    "utf-8", "utf-16", "latin-1", "cp1250", "cp1251", "cp1252", "iso-8859-2", "iso-8859-15"
]


class CsvFormat(NumberNotation):
    """How CSV files are written.

    Parameters
    ----------
    separator
        What separates the fields of a line.
    encoding
        The encoding of the text. UTF-8 and UTF-16 may start with a byte order mark; UTF-16 without
        one is little-endian.
    header
        The number of the line with the names of columns, from 1; blank lines count, and comments do
        not. Lines before it are skipped.
    first_row
        The number of the line with the first row, counted as that of the header. Lines between are
        skipped, such as units or questions. Default: the line below the header.
    comment
        A character such as ``#``: lines that start with it are comments. Those before the header
        are skipped. Those after it are not read, and count as malformed lines, because any cell in
        the first column can start with it. A cell in quotes does not.
    """

    separator: Separator = ","
    encoding: Encoding = "utf-8"
    header: Annotated[int, Field(strict=True, ge=1, le=1000)] = 1
    first_row: Annotated[int | None, Field(strict=True, ge=2, le=1000)] = None
    comment: Annotated[str, Field(pattern=r"^[!#$%&*/:;<=>?@\\^_`|~]$")] | None = None

    @property
    def is_csv(self) -> bool:
        """Whether it is known that files are CSV."""
        return True

    def check_separator(self) -> None:
        """Refuse a separator that is the decimal mark."""
        if self.separator == self.decimal:
            raise families.DATABASE(
                "'separator' and 'decimal' are both commas, or 'decimal' is a comma and "
                "'separator' is left out.",
                "Write the separator between the fields, such as separator: ';'.",
            )

    @model_validator(mode="after")
    def _check_marks(self) -> Self:
        if self.is_csv or "separator" in self.model_fields_set:
            self.check_separator()
        if self.first_row is not None and self.first_row <= self.header:
            raise families.DATABASE(
                "'first_row' is not below 'header'.",
                "Count both from the first line: with the names in line 1 and units in line 2, "
                "write first_row: 3.",
            )
        if self.separator == self.comment:
            raise families.DATABASE(
                "'separator' and 'comment' are the same mark.",
                "Write how comments start as 'comment', such as comment: '#'.",
            )
        return self


class Files(CsvFormat):
    """Files of a table, with the format of those that are CSV.

    Parameters
    ----------
    path
        Path, glob or URL of the files, or of a folder of them; as where ``source`` is only a text.
    separator
        What separates the fields of a line. Where it is stated, files whose names end in ``.tsv``,
        ``.tab``, ``.psv``, ``.txt`` or ``.dat`` are read as CSV as well.
    """

    path: Annotated[str, Field(min_length=1)]

    @property
    def is_csv(self) -> bool:
        """Whether the name says so: without an ending, it may be of a folder or a Delta table."""
        return PurePosixPath(self.path).suffix not in {"", ".parquet", ".pq"}

    @property
    def csv(self) -> CsvFormat:
        """The format of CSV files."""
        self.check_separator()
        return CsvFormat(**{key: getattr(self, key) for key in CsvFormat.model_fields})


class CopiedFiles(Files):
    """A source of files that was copied to a private place; never in a contract.

    Parameters
    ----------
    copied_to
        Folder of the copy; see `tables.formats.private_copy`.
    """

    copied_to: str


class DatedFiles(Files):
    """Files of several periods, which are in their names; never in a contract.

    Parameters
    ----------
    path
        As in the contract, with placeholders of the period of a file.
    period
        The period or the steps whose files are read, of the column `periods.FILES`; None for
        all files.
    """

    period: SelectedPeriod | None = None

    @classmethod
    def of(cls, source: str | Files, period: SelectedPeriod | None) -> Self:
        """The files of a contract's source."""
        return cls(**keys_of(source), period=period)


Copied = CopiedTable | CopiedFiles


def original(source: AnySource) -> AnySource:
    """The source in the contract, of one that may be a private copy."""
    if isinstance(source, CopiedTable):
        return DatabaseTable(**source.model_dump(exclude={"copied_to"}))
    if isinstance(source, CopiedFiles):
        return Files(**source.model_dump(exclude={"copied_to"}, exclude_unset=True))
    return source


def keys_of(source: str | Files) -> dict[str, Any]:
    """The keys of files that a contract states."""
    return {"path": source} if isinstance(source, str) else source.model_dump(exclude_unset=True)


def _kind(source: Any) -> str:
    if isinstance(source, str):
        return "source-of-path"
    keys = source if isinstance(source, Mapping) else getattr(source, "__dict__", {})
    is_database = not {"table", "view", "query", "url"}.isdisjoint(keys) and "path" not in keys
    return "source-of-database" if is_database else "source-of-files"


AnySource = Annotated[
    Annotated[str, Field(min_length=1), Tag("source-of-path")]
    | Annotated[Files, Tag("source-of-files")]
    | Annotated[DatabaseTable, Tag("source-of-database")],
    Discriminator(_kind),
]


def notation_of(source: AnySource) -> NumberNotation:
    """How numbers are written that are text."""
    return source.notation if isinstance(source, NumberNotation) else PLAIN


def display_name(source: AnySource) -> str:
    """The source in messages, without secrets."""
    if isinstance(source, DatabaseTable):
        return source.display_name
    return without_secrets(location(source))


def location(source: AnySource) -> str:
    """The part of a source that may have placeholders for the period of the data."""
    if isinstance(source, str):
        return source
    return source.path if isinstance(source, Files) else source.location


def at_location(source: AnySource, place: str) -> AnySource:
    """The same source with another location."""
    if isinstance(source, str):
        return place
    if isinstance(source, Files):
        return source.model_copy(update={"path": place})
    return source.at(place)
