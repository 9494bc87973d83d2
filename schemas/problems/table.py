"""Reading the private table: codes 200 to 259."""

from __future__ import annotations

from gramercy.schemas.errors import InvalidValue, TableError
from gramercy.schemas.problem import problem

# The contract's source.


@problem(
    "GRM-200",
    TableError,
    "{source}: no such file.",
    "Correct the path (in a contract: 'source') of the CSV or Parquet files. If the "
    "table is on another machine, 'gramercy plan --no-table' plans without it.",
)
def source_missing(source: str) -> None:
    """The path, pattern or URL in the contract's 'source' matches no file."""


@problem(
    "GRM-201",
    TableError,
    "{source}: this folder has no CSV or Parquet files.",
    "Name another folder, or make Parquet of its files: 'gramercy convert'. Names that start with "
    "'_' or '.' are skipped.",
)
def folder_without_tables(source: str) -> None:
    """The folder in 'source' and the folders below it hold neither CSV nor Parquet files."""


@problem(
    "GRM-202",
    TableError,
    "{source}: not a regular file, so it cannot be read twice.",
    "Copy its content into a file.",
)
def not_a_regular_file(source: str) -> None:
    """The source is a pipe, a device or a socket; a release reads the table more than once."""


@problem(
    "GRM-203",
    TableError,
    "{source}: {scheme}:// URLs must not contain a user or a password.",
    "Put credentials into the environment variables or configuration files of the driver (for S3: "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials).",
)
def credentials_in_url(source: str, scheme: str) -> None:
    """The driver for this kind of URL would read the user and password as part of a name."""


@problem(
    "GRM-204",
    TableError,
    "{source}: the driver for this kind of URL is not installed.",
    "{remedy}",
)
def driver_missing(source: str, remedy: str) -> None:
    """Reading this kind of URL needs a Python package that is not installed."""


@problem(
    "GRM-205",
    TableError,
    "{source}: cannot be opened ({reason}).",
    "Check the contract's 'source', the network and your permissions.",
)
def source_not_opened(source: str, reason: str) -> None:
    """The file system or server of the source gave an error; only its type is reported."""


@problem(
    "GRM-206",
    TableError,
    "{file}: not a .csv, .csv.gz or .parquet file.",
    "{remedy}",
)
def unknown_format(file: str, remedy: str) -> None:
    """The format of a file is recognised by the end of its name, and this ending is unknown."""


# Opening a file.


@problem(
    "GRM-210",
    TableError,
    "{file}: cannot be accessed ({reason}).",
    "Check that the file exists, that you may read it, and that its disk works. Databases and "
    "Delta tables are read from a copy in $GRAMERCY_HOME/tables.",
)
def file_not_accessible(file: str, reason: str) -> None:
    """The store of a file gave an error when asked for its size and date."""


@problem(
    "GRM-211",
    TableError,
    "{file}: permission denied.",
    "Ask for permission to read it.",
)
def permission_denied(file: str) -> None:
    """You may not read a file of the table."""


@problem("GRM-212", TableError, "{file}: cannot be read as {format}.", "Write the file again.")
def file_not_readable(file: str, format: str) -> None:
    """A file is truncated or damaged, has another format than its name says, or lacks a column."""


@problem(
    "GRM-213",
    TableError,
    "{file}: this kind of compression is not supported.",
    "Compress a single CSV file by gzip, bzip2, zip, or xz up to level -9.",
)
def compression_not_supported(file: str) -> None:
    """An archive is empty or has several files, an unknown method, or needs too much memory."""


# The header of a CSV file.


@problem(
    "GRM-220",
    TableError,
    "{file}: the file is empty, or its first line is blank.",
    "The first line must name the columns.",
)
def header_missing(file: str) -> None:
    """A CSV file has no header."""


@problem(
    "GRM-221",
    TableError,
    "{file}: the header is longer than {limit} MiB.",
    "Remove columns, or write Parquet; lines must end with a newline.",
)
def header_too_long(file: str, limit: int) -> None:
    """The first line of a CSV file is too long, often because the file has no line ends."""


@problem(
    "GRM-222",
    TableError,
    "{file}: the header is not UTF-8.",
    "Save the file as UTF-8; name other formats by their suffix, such as .csv.gz or .parquet.",
)
def header_not_utf8(file: str) -> None:
    """The first line has another encoding, or the file is not text at all."""


@problem(
    "GRM-223",
    TableError,
    "{file}: the header is not a single line of fields.",
    "Close its quotes, and end lines with a newline.",
)
def header_malformed(file: str) -> None:
    """The first line has an open quote or a lone carriage return."""


# Columns.


@problem(
    "GRM-230",
    TableError,
    "{file}: columns {first} and {second} have the same name.",
    "Rename one of them; or give the file a header line, if its first line is a row.",
)
def column_repeated(file: str, first: int, second: int) -> None:
    """Two columns of a file have the same name; their positions, counted from 1, are reported."""


@problem(
    "GRM-231",
    TableError,
    "{file}: all declared columns are partition columns.",
    "Declare a column that is in the file itself.",
)
def only_partition_columns(file: str) -> None:
    """All columns of the contract come from folder names such as 'year=2026'."""


@problem(
    "GRM-234",
    TableError,
    "The column that identifies persons holds neither whole numbers nor text.",
    "Store it as one of these.",
)
def person_column_type() -> None:
    """The type of the column has changed since it was checked, so the file was replaced."""


@problem(
    "GRM-235",
    TableError,
    "column '{column}': the folders of the table are named after its values ('{column}=...').",
    "Remove the column from the contract, write the table as one file, or publish a second moment.",
)
def column_decides_row_order(column: str) -> None:
    """Published rows are in the order of the files, so changing this cell would move other rows."""


@problem(
    "GRM-236",
    TableError,
    "{source}: cell-level privacy ('privacy_unit: cell') needs Parquet, and this is CSV.",
    "Write the table as Parquet.",
)
def cell_privacy_of_csv(source: str) -> None:
    """In a CSV file, a malformed cell makes its whole line unreadable, and so all its cells."""


# Rows.


@problem(
    "GRM-240",
    TableError,
    "{source}: the table has {rows} rows, but the contract's 'rows' is {declared}.",
    "Correct 'rows' (blank lines count), or declare 'neighbours: add-remove'.",
)
def row_count_differs(source: str, rows: int, declared: int) -> None:
    """Under replace-one the number of rows is public, and must equal that of the table."""


@problem(
    "GRM-241",
    TableError,
    "{source}: the table has more than {limit} rows, but the contract's 'rows' is {declared}.",
    "Correct 'rows' (blank lines count), or declare 'neighbours: add-remove'.",
)
def row_limit_exceeded(source: str, limit: int, declared: int) -> None:
    """Under replace-one, reading stops a million rows after the declared number."""


@problem(
    "GRM-242",
    TableError,
    "The table changed while it was read.",
    "Publish from a copy that does not change.",
)
def table_changed() -> None:
    """A file was changed, added or removed during the release, which could count a row twice."""


@problem(
    "GRM-243",
    TableError,
    "{file}: the store gives neither a modification date nor a checksum, so a change during the "
    "release could not be detected.",
    "Copy the table to a local disk, or to a store that gives one.",
)
def change_not_detectable(file: str) -> None:
    """A release must notice when a file changes, and this store reports only its size."""


@problem(
    "GRM-244",
    InvalidValue,
    "A lattice of {bits} bits is too coarse for {columns} columns and {rows:g} rows per person.",
    "Use more bits.",
)
def lattice_too_coarse(bits: int, columns: int, rows: float) -> None:
    """Rounding could move the rows of one person out of the unit ball."""
