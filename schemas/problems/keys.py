"""Keys and values of a YAML file, an option or a manifest: codes 100 to 129."""

from __future__ import annotations

from gramercy.schemas.errors import BundleError, ContractError, InvalidValue, RequestError
from gramercy.schemas.problem import problem

# Problems of a whole file; the details name the keys.


@problem("GRM-100", ContractError, "{file} is not a valid contract:")
def contract_not_valid(file: str) -> None:
    """One or more keys of a contract are missing, unknown or out of range; each is listed."""


@problem("GRM-101", RequestError, "{file} is not valid:")
def request_not_valid(file: str) -> None:
    """One or more keys of a request or an option are missing, unknown or out of range."""


@problem("GRM-102", BundleError, "{file} is not a valid manifest:")
def manifest_not_valid(file: str) -> None:
    """A description in a bundle is not what Gramercy writes."""


@problem("GRM-120", InvalidValue, "Settings of {name} are not valid:")
def settings_not_valid(name: str) -> None:
    """One or more settings of an estimator in Python are unknown or out of range."""


# Problems of a single key.


@problem("GRM-103", InvalidValue, "Expected keys and values.", "Known keys: {known}.")
def not_a_mapping(known: tuple[str, ...]) -> None:
    """The file, or one of its keys, holds a list or a single value where keys are expected."""


@problem("GRM-104", InvalidValue, "This key is required.", "Add it.")
def key_missing() -> None:
    """A required key is missing."""


@problem("GRM-105", InvalidValue, "Unknown key '{key}'.", "Did you mean '{suggestion}'?")
def key_misspelt(key: str, suggestion: str) -> None:
    """A key is unknown, and resembles a known one."""


@problem("GRM-106", InvalidValue, "Unknown key '{key}'.", "Known keys: {known}.")
def key_unknown(key: str, known: tuple[str, ...]) -> None:
    """A key is unknown."""


@problem("GRM-107", InvalidValue, "This key has no value.", "Write {expected}.")
def value_empty(expected: str = "one") -> None:
    """A key has an empty value; a draft of a contract leaves such keys for you to fill in."""


@problem("GRM-108", InvalidValue, "Must be {expected}.")
def wrong_type(expected: str) -> None:
    """A value has the wrong type, such as a quoted number, or text where a list is expected."""


@problem("GRM-109", InvalidValue, "Must be {relation} {bound:g}.")
def out_of_range(relation: str, bound: float) -> None:
    """A number is outside the allowed range."""


@problem("GRM-110", InvalidValue, "Must not have more than {most} entries.")
def too_many_entries(most: int) -> None:
    """A list or a set of keys is longer than allowed."""


@problem("GRM-111", InvalidValue, "Must not be empty.")
def no_entries() -> None:
    """A list or a text is empty where at least one entry or character is required."""


@problem("GRM-112", InvalidValue, "'name' or 'kind' must be one of: {known}.")
def unknown_choice(known: tuple[str, ...]) -> None:
    """The name of a mechanism, an estimator, a normalisation or an engine is unknown."""


@problem("GRM-123", InvalidValue, "Unknown value.", "Did you mean '{suggestion}'?")
def value_misspelt(suggestion: str) -> None:
    """A value is not among the allowed ones, and resembles one of them."""


@problem("GRM-124", RequestError, "{option}: '{value}' is unknown.", "Did you mean '{suggestion}'?")
def option_misspelt(option: str, value: str, suggestion: str) -> None:
    """An option that accepts only certain words was given one that resembles one of them."""


@problem("GRM-113", InvalidValue, "The key 'name' or 'kind' is required here.", "Add it.")
def choice_missing() -> None:
    """Settings are given without the name of the mechanism, estimator or engine they belong to."""


@problem(
    "GRM-114",
    InvalidValue,
    "Use letters, digits and inner hyphens only (labels: also '.' and '_'), at most 63.",
)
def not_a_short_name() -> None:
    """An id or a label has characters that cannot be part of a folder's name."""


@problem("GRM-115", InvalidValue, "Must be a single line without control characters.")
def not_one_line() -> None:
    """A text has line breaks, control characters or marks that reverse the writing direction."""


@problem("GRM-116", InvalidValue, "This name is read as a number or a date.", "Put it in quotes.")
def name_not_quoted() -> None:
    """YAML reads an unquoted name such as 1 or 2024-01-31 as a number or a date."""


@problem("GRM-117", InvalidValue, "This label is read as a number.", "Put it in quotes.")
def label_not_quoted() -> None:
    """YAML reads an unquoted label such as 1.10 as the number 1.1."""


@problem("GRM-118", InvalidValue, "Value not allowed: {reason}.")
def value_not_allowed(reason: str) -> None:
    """The value is not among the allowed ones."""


@problem("GRM-119", InvalidValue, "Must be a day such as 2031-01-31.")
def not_a_day() -> None:
    """A date is not written as year, month and day."""


# Names of columns that would make a release unreadable.


@problem(
    "GRM-121",
    ContractError,
    "The name of the column '{start}...' has {bytes} bytes; a name may have {most}.",
    "Rename the column in the table, or shorten the level.",
)
def column_name_too_long(start: str, bytes: int, most: int) -> None:
    """A new data set has a name of a column or a level that its releases could not contain."""


@problem(
    "GRM-122",
    ContractError,
    "The names of the columns have {bytes} bytes together; they may have {most}.",
    "Use shorter names or fewer columns.",
)
def column_names_too_long(bytes: int, most: int) -> None:
    """A new data set has names of columns and levels that its releases could not contain."""
