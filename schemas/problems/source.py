"""Formats of files, and tables of databases: codes 850 to 899."""

from __future__ import annotations

from gramercy.schemas.errors import ContractError, InvalidValue, RequestError, TableError
from gramercy.schemas.problem import problem

# Keys of files.


@problem(
    "GRM-850",
    InvalidValue,
    "'separator' and 'decimal' are both commas, or 'decimal' is a comma and 'separator' is left "
    "out.",
    "Write the separator between the fields, such as separator: ';'.",
)
def separator_is_decimal_mark() -> None:
    """A comma cannot both separate fields and be part of numbers."""


@problem(
    "GRM-851",
    TableError,
    "{file}: the header is not {encoding}.",
    "Correct the contract's 'source.encoding', or save the file in this encoding.",
)
def header_not_in_encoding(file: str, encoding: str) -> None:
    """The first line of a CSV file has bytes that do not exist in the declared encoding."""


@problem(
    "GRM-853",
    TableError,
    "{source}: the folder is or contains a {kind} table, whose files also hold earlier versions of "
    "its rows.",
    "Name a Delta table on this machine by its own folder. Export the present version of others as "
    "Parquet, such as by pyiceberg's scan().to_arrow() and pyarrow.parquet.write_table.",
)
def folder_of_versions(source: str, kind: str) -> None:
    """A row that was changed would be read twice, and the sensitivity would double."""


# Keys of a database.


@problem(
    "GRM-855",
    InvalidValue,
    "A database needs exactly one of 'table', 'view' and 'query'.",
    "Write for example: source: {{url: 'env:CLINIC_DB', table: visits}}.",
)
def relation_missing() -> None:
    """It is not stated what to read from the database, or it is stated twice."""


@problem(
    "GRM-856",
    InvalidValue,
    "The URL of a database must be 'env:' and the name of an environment variable, or a URL "
    "without user, password and query.",
    "Put the URL into an environment variable of the machine that reads the table.",
)
def database_url_not_public() -> None:
    """The contract is public, so the URL of a database with credentials must not stand in it."""


@problem(
    "GRM-857",
    InvalidValue,
    "A free 'query' needs 'assertion', with exactly these words: {words}",
    "Assert it if it is true of the query. Otherwise name a 'table' or a 'view', with 'where'.",
)
def assertion_missing(words: str) -> None:
    """Nothing else ensures that one record changes at most one row of a query's result."""


@problem(
    "GRM-858",
    InvalidValue,
    "'where' and 'assertion' cannot be combined like this: 'where' belongs to a 'table' or a "
    "'view', and 'assertion' to a 'query'.",
    "Remove the one that does not belong.",
)
def key_of_other_relation() -> None:
    """A key is given that has no meaning for what is read."""


@problem(
    "GRM-859",
    InvalidValue,
    "A query must be one SELECT statement, without semicolons.",
    "Start it with SELECT or WITH.",
)
def query_not_a_select() -> None:
    """The free query is another statement, or several."""


@problem(
    "GRM-860",
    InvalidValue,
    "A placeholder such as '{{year}}' may stand in 'table' only.",
    "Make a table for each period, or declare the column of dates as 'period'.",
)
def placeholder_not_in_table() -> None:
    """Only separate tables keep the rows of different periods apart: views may share rows."""


@problem(
    "GRM-861",
    InvalidValue,
    "'where' is not a condition on one row, from character {position} on.",
    "It may compare one column at a time with values, not with other columns: = <> < <= > >=, IN, "
    "BETWEEN, LIKE, IS NULL, joined by AND, OR, NOT and parentheses. Names with other characters "
    "than letters, digits and _ are in double quotes.",
)
def condition_not_understood(position: int) -> None:
    """Anything that reads other rows, calls a function or computes is refused.

    A subquery could let one record decide on many rows. A calculation, or a comparison of two
    columns, may fail on one cell, which would refuse the table.
    """


@problem(
    "GRM-862",
    InvalidValue,
    "'privacy_unit: cell' needs Parquet files, and this is a database.",
    "Write 'privacy_unit: row', or name a column that identifies persons.",
)
def cell_privacy_of_database() -> None:
    """An update of a cell can move its row to another place."""


@problem(
    "GRM-863",
    RequestError,
    "'{mechanism}' publishes rows in their order, and those of a database or a Delta table are not "
    "ordered.",
    "Publish a second moment, or export the table as Parquet.",
)
def rows_of_database(mechanism: str) -> None:
    """An update can move a row, so that the rows after it would change as well.

    This is also true of Delta tables.
    """


@problem(
    "GRM-864",
    RequestError,
    "'engine: dask' cannot read a database or a Delta table, which are copied once, to "
    "this machine.",
    "Write 'engine: local', or export the table as Parquet to a place that all workers can read.",
)
def copy_needs_one_process() -> None:
    """The private copy of the table is on the machine that publishes."""


# Reading a database.


@problem(
    "GRM-865",
    TableError,
    "The environment variable {variable}, which should contain the URL of the database, is not "
    "set.",
    "Set it for the process that reads the table: on a worker, in its own environment.",
)
def database_url_missing(variable: str) -> None:
    """The contract names an environment variable that does not exist here."""


@problem(
    "GRM-866",
    TableError,
    "{source}: this kind of database is not supported.",
    "Use PostgreSQL (postgresql://...) or SQLite (sqlite:////path/file.db), or export the table as "
    "Parquet.",
)
def database_not_supported(source: str) -> None:
    """Only databases are read of which it is known that one statement sees one snapshot."""


@problem(
    "GRM-867",
    TableError,
    "{source}: the driver of PostgreSQL is not installed.",
    "pip install 'gramercy[postgresql]'.",
)
def database_driver_missing(source: str) -> None:
    """PostgreSQL needs the package psycopg."""


@problem(
    "GRM-868",
    TableError,
    "{source}: the database cannot be read ({reason}).",
    "Check the URL of the database, the name of the table and your permissions.",
)
def database_not_readable(source: str, reason: str) -> None:
    """The database gave an error; only its type is reported, because messages quote values."""


@problem(
    "GRM-894",
    TableError,
    "{source}: the database is damaged, or its disk cannot be read ({reason}).",
    "Check the disk, restore the database from a backup, and run the same command again. Nothing "
    "was charged.",
)
def database_damaged(source: str, reason: str) -> None:
    """SQLite reported an error of the disk, or pages that are missing or malformed."""


@problem(
    "GRM-869",
    TableError,
    "{source}: there is no such {kind}.",
    "Check the name; a schema other than the default is written as schema.name.",
)
def relation_not_found(source: str, kind: str) -> None:
    """The database has no table or view of this name, or what has it is the other of the two."""


@problem(
    "GRM-870",
    TableError,
    "{source}: 'where' names '{column}', which is not a column.",
    "Write the name as the database has it, in double quotes if it has capitals or blanks.",
)
def condition_column_unknown(source: str, column: str) -> None:
    """The condition on rows uses a column that the table does not have."""


@problem(
    "GRM-871",
    TableError,
    "{source}: the table is copied once, by 'gramercy check' or a release, and then read.",
    "Run one of these.",
)
def table_not_copied(source: str) -> None:
    """A step that reads files was given a table of another kind that has not been copied."""


@problem(
    "GRM-872",
    ContractError,
    "{folder}: the private copy of the table cannot be written here ({reason}).",
    "Free some space, or correct the permissions of the home.",
)
def copy_not_written(folder: str, reason: str) -> None:
    """A release copies the table to a private file of the home first, and deletes it afterwards."""


@problem(
    "GRM-873",
    TableError,
    "{source}: 'where' cannot use '{column}', whose type is {kind}.",
    "Use columns of whole numbers, numeric, floating-point numbers, truth values, text, "
    "enumerations, UUIDs, dates or times.",
)
def condition_column_type(source: str, column: str, kind: str) -> None:
    """Comparisons of other types are not known to be possible for every cell.

    Among them are domains and types of extensions, and columns that are computed when read.
    """


@problem(
    "GRM-874",
    TableError,
    "{source}: the encoding of the database is {encoding}.",
    "Export the table as Parquet, or copy it to a database with the encoding UTF8.",
)
def database_encoding(source: str, encoding: str) -> None:
    """In encodings other than UTF8, some stored bytes stand for no character.

    The server would refuse to convert them, so that one cell could refuse the table.
    """


@problem(
    "GRM-875",
    TableError,
    "{source}: this is a virtual table of SQLite, whose rows are computed by a module.",
    "Copy it to an ordinary table, or export it as Parquet.",
)
def table_is_virtual(source: str) -> None:
    """Nothing is known of how a module computes its rows, nor whether it can fail on a cell."""


@problem(
    "GRM-877",
    TableError,
    "{source}: policies of row-level security apply to this table, and may leave out rows.",
    "Use a role of PostgreSQL with BYPASSRLS, or export the table as Parquet.",
)
def rows_left_out_by_policy(source: str) -> None:
    """A policy may read other rows, so that one record could decide on many."""


@problem(
    "GRM-878",
    TableError,
    "{source}: the database is PostgreSQL {version}.",
    "Use PostgreSQL 12 or newer, or export the table as Parquet.",
)
def postgresql_too_old(source: str, version: str) -> None:
    """Older versions do not tell which columns are computed when they are read."""


# Files that are converted.


@problem("GRM-880", TableError, "{file}: {reason}.", "{remedy}")
def conversion_failed(file: str, reason: str, remedy: str) -> None:
    """`gramercy convert` cannot read the file as it is: another format, sheet, header or encoding.

    No cell is shown, because errors may be logged.
    """


@problem("GRM-881", RequestError, "{reason}.", "{remedy}")
def conversion_option(reason: str, remedy: str) -> None:
    """An option of `gramercy convert` does not fit the file, or its target is not Parquet."""


# Delta tables.


@problem(
    "GRM-890",
    TableError,
    "{source}: the package deltalake, which reads Delta tables, is not installed.",
    "pip install 'gramercy[delta]'.",
)
def delta_reader_missing(source: str) -> None:
    """Delta tables need an optional package."""


@problem(
    "GRM-891",
    TableError,
    "{source}: the Delta table uses {feature}, which is not supported.",
    "Export the present version as Parquet, such as by deltalake.DeltaTable(...).scan() or Spark.",
)
def delta_feature_not_supported(source: str, feature: str) -> None:
    """The table states a feature that changes how its files are to be read.

    Deletion vectors mark rows of files as deleted, and column mapping gives columns other names.
    """


@problem(
    "GRM-892",
    TableError,
    "{source}: the log of the Delta table names a file outside its folder.",
    "Export the present version as Parquet.",
)
def delta_file_elsewhere(source: str) -> None:
    """As in a shallow clone; the files of a table must be in its own folder."""


@problem(
    "GRM-893",
    TableError,
    "{source}: the log of the Delta table has {mebibytes} MiB; it may have {most} MiB.",
    "Remove its expired files, such as by deltalake.DeltaTable(...).cleanup_metadata(), or export "
    "the present version as Parquet.",
)
def delta_log_too_large(source: str, mebibytes: int, most: int) -> None:
    """The log is read into memory as a whole."""
