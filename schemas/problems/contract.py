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
    "'budget.per: year' cannot be combined with 'privacy_unit: {column}': a person may have rows "
    "in many years, and would spend the budget of each.",
    "Write 'per: lifetime' and a source without '{{year}}', or 'privacy_unit: row'.",
)
def yearly_budget_of_persons(column: str) -> None:
    """A budget for each year protects rows only."""


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
    "'source' must contain '{{year}}' if 'budget.per' is 'year', and must not otherwise.",
    "Store the rows of each year in separate files, with the year in their names.",
)
def year_and_source_disagree() -> None:
    """A yearly budget requires separate files for each year, and the reverse."""


@problem(
    "GRM-138",
    InvalidValue,
    "'source' must contain '{{year}}' once, outside brackets, without '..' or '**', and with "
    "wildcards on one side of it only.",
    "Otherwise one file could belong to two years.",
)
def years_not_disjoint() -> None:
    """A pattern of yearly files could match one file for two years."""


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


@problem("GRM-143", InvalidValue, "'lower' must be less than 'upper'.")
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
