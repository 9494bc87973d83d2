"""The dataset contract: codes 130 to 159."""

from __future__ import annotations

from gramercy.schemas.errors import ContractError, InvalidValue
from gramercy.schemas.problem import problem


@problem(
    "GRM-130",
    InvalidValue,
    "'persons' is given, but 'privacy_unit' does not name a column that identifies persons.",
    "Set 'privacy_unit' to the column that identifies persons, or remove 'persons'.",
)
def persons_without_unit() -> None:
    """A number of persons has a meaning only where persons are protected."""


@problem(
    "GRM-131",
    InvalidValue,
    "'privacy_unit' names '{column}', which is also one of 'columns'.",
    "Remove it from 'columns': the column that identifies persons cannot be published.",
)
def unit_is_published(column: str) -> None:
    """The column that identifies persons is listed among the columns to publish."""


@problem(
    "GRM-132",
    InvalidValue,
    "'privacy_unit' has control characters, or blanks at its start or end.",
    "Write the column's name as the table has it.",
)
def unit_not_a_name() -> None:
    """The name of the column that identifies persons has characters that no name may have."""


@problem(
    "GRM-133",
    InvalidValue,
    "'privacy_unit: {column}' protects persons, so 'persons' is required.",
    "Set 'persons' to the number of persons; to protect rows, write 'privacy_unit: row'.",
)
def persons_missing(column: str) -> None:
    """Where persons are protected, their public number is needed to plan the noise."""


@problem("GRM-134", InvalidValue, "'persons' must not exceed 'rows'.")
def more_persons_than_rows() -> None:
    """Every person has at least one row."""


@problem(
    "GRM-135",
    InvalidValue,
    "'budget.per: {per}' cannot be combined with 'privacy_unit: {column}': a person may have rows "
    "in many periods, and would spend the budget of each.",
    "Write 'per: lifetime' and a source without '{{year}}', or 'privacy_unit: row'.",
)
def periodic_budget_of_persons(column: str, per: str) -> None:
    """A budget for each period protects rows only."""


@problem(
    "GRM-136",
    InvalidValue,
    "'budget.delta' must be less than 1/{count_key} = {limit:.3g}.",
    "Choose a smaller delta: at this one, publishing a whole record would be allowed.",
)
def delta_too_large(count_key: str, limit: float) -> None:
    """A delta of 1/n or more allows one of n records to be published outright."""


@problem(
    "GRM-137",
    InvalidValue,
    "'budget.per' is '{per}', so 'source' must contain these placeholders and no others: "
    "{placeholders}.",
    "Store the rows of each period in separate files, with the period in their names; or declare "
    "the column of dates that decides it, as 'period'.",
)
def source_and_period_disagree(per: str, placeholders: tuple[str, ...]) -> None:
    """A budget per period requires separate files for each period, and the reverse.

    Without periods, or if a column of dates decides the period, a source has no placeholders.
    """


@problem(
    "GRM-138",
    InvalidValue,
    "'source' must contain each placeholder once, outside brackets, without '..' or '**', and "
    "with wildcards on one side of it only.",
    "Otherwise one file could belong to two periods.",
)
def periods_not_disjoint() -> None:
    """A pattern of the files of a period could match one file for two periods."""


@problem("GRM-139", InvalidValue, "A column's name is empty, or starts or ends with a blank.")
def column_name_blank() -> None:
    """A name in 'columns' is empty, or has blanks around it."""


@problem(
    "GRM-140", InvalidValue, "A name in 'columns' has a control character.", "Rename the column."
)
def column_name_not_printable() -> None:
    """A name in 'columns' has characters that terminals and XML reject."""


@problem(
    "GRM-141",
    InvalidValue,
    "Two columns of the matrix would be named '{name}'.",
    "Rename one of the columns or levels.",
)
def column_names_collide(name: str) -> None:
    """A column and a level, or a column and the intercept, would share a name in the matrix."""


@problem("GRM-142", InvalidValue, "The matrix would have more than {most} columns.")
def too_many_columns(most: int) -> None:
    """Every numeric column is one column of the matrix, and so is every level."""


@problem(
    "GRM-143",
    InvalidValue,
    "'lower' must be less than 'upper'.",
    "Swap them; write decimals with a point.",
)
def bounds_reversed() -> None:
    """The lower bound of a column is not below its upper bound."""


@problem("GRM-144", InvalidValue, "'centre' must be between 'lower' and 'upper'.")
def centre_out_of_bounds() -> None:
    """The public centre of a column is outside its bounds."""


@problem(
    "GRM-145",
    InvalidValue,
    "The bounds and the scale do not fit double precision.",
    "Narrow the bounds, or choose a larger scale.",
)
def bounds_overflow() -> None:
    """Dividing the bounds by the scale would overflow."""


@problem(
    "GRM-146",
    InvalidValue,
    "'levels' mixes text and numbers.",
    "Put the numbers in quotes if the column is text.",
)
def levels_mixed() -> None:
    """The levels of a column are partly text and partly numbers."""


@problem("GRM-147", InvalidValue, "'levels' lists a level twice.", "Remove one of the two.")
def level_repeated() -> None:
    """A level occurs twice."""


@problem(
    "GRM-148",
    InvalidValue,
    "'levels' has a level that is read as missing, or has blanks around it.",
    "Remove it: such cells belong to no level.",
)
def level_is_missing() -> None:
    """A level such as 'NA' never occurs, because such a cell is read as missing."""


@problem(
    "GRM-149",
    ContractError,
    "columns.{column}: there is no range of whole numbers between the bounds.",
    "Declare as bounds two different whole numbers from -2147483648 to 2147483648.",
)
def bounds_not_whole(column: str) -> None:
    """The mechanism requires whole numbers. The bounds enclose fewer than two, or exceed 2^31."""


@problem(
    "GRM-150",
    InvalidValue,
    "One of 'lower' and 'upper' is missing.",
    "Declare both bounds, or neither if requests estimate them with 'scaling: private'.",
)
def one_bound_missing() -> None:
    """A column has one bound; bounds are declared in pairs."""


@problem(
    "GRM-151",
    InvalidValue,
    "'centre' and 'scale' need 'lower' and 'upper'.",
    "Declare the bounds, or remove centre and scale.",
)
def centre_without_bounds() -> None:
    """Declared constants need bounds, which limit the scaled cells."""


# The period of a row, if a column of dates decides it.


@problem(
    "GRM-155",
    InvalidValue,
    "'period' needs 'budget.per' other than 'lifetime', 'neighbours: add-remove' and "
    "'privacy_unit: row'.",
    "Remove 'period', or change the other keys: the number of rows in each period is then private.",
)
def date_column_not_possible() -> None:
    """A column of dates decides which rows a release has, so that their number is private."""


@problem(
    "GRM-156",
    InvalidValue,
    "'period.column' names '{column}', which is also one of 'columns'.",
    "Remove it from 'columns': all rows of a release have the same period.",
)
def date_column_is_published(column: str) -> None:
    """The column of dates is listed among the columns to publish."""


@problem(
    "GRM-157",
    InvalidValue,
    "'rows_by_period' lists '{label}', which is not a {per} of the data.",
    "Write it such as {example}.",
)
def rows_of_unknown_period(label: str, per: str, example: str) -> None:
    """Numbers of rows are listed by the labels of periods."""


@problem(
    "GRM-158",
    InvalidValue,
    "'rows_by_period' needs 'budget.per' other than 'lifetime', and 'privacy_unit: row'.",
    "Remove it: 'rows' is the number of rows of the whole table.",
)
def rows_by_period_not_possible() -> None:
    """Only a data set with periods can have a number of rows for each of them."""


# Patterns in 'columns'.


@problem(
    "GRM-152",
    InvalidValue,
    "'{pattern}' does not match any column of the table that is not listed.",
    "It has columns such as: {similar}.",
)
def pattern_matches_nothing(pattern: str, similar: tuple[str, ...]) -> None:
    """A pattern in 'columns' or a name in 'exclude' stands for no column of the table."""


@problem(
    "GRM-153",
    InvalidValue,
    "Two patterns match the column '{column}': '{first}' and '{second}'.",
    "Declare the column by its name, which takes precedence over patterns, or exclude it.",
)
def patterns_overlap(column: str, first: str, second: str) -> None:
    """Two patterns other than '*' match a column, so its bounds or levels are ambiguous."""


@problem(
    "GRM-154",
    InvalidValue,
    "'{column}' is in 'columns' and in 'exclude'.",
    "Remove it from one of the two.",
)
def excluded_column_declared(column: str) -> None:
    """A column is declared by its name, and excluded as well."""


@problem(
    "GRM-159",
    InvalidValue,
    "'{pattern}' may match cells: a name in the first line of the table is a number, a date, a "
    "time or a mark for a missing value.",
    "Add a first line with names; or, if these are names, list them instead of the pattern.",
)
def pattern_matches_data(pattern: str) -> None:
    """Without a header, a pattern would publish the cells of the first row as column names."""
