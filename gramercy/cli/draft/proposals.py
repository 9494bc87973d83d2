"""What is proposed for a column, from its name and its type alone."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.corrections import as_yaml
from gramercy.schemas.model import has_unprintable
from gramercy.tables.formats.reader import MIXED, PARTIAL
from gramercy.tables.formats.values import ANY, DOUBLE, TEXT, TRUTH, WHOLE

NUMBERS, LEVELS = "numbers", "levels"
Level = bool | float | str

_MAX_NAME_LENGTH = 1000  # characters that a key in YAML can have
_WORD = re.compile(r"[A-Z]?[a-zäöüß]+|[A-Z]+(?![a-z])")
_PERSONS = {
    *("patient", "person", "subject", "participant", "respondent", "client", "customer"),
    *("member", "user", "student", "pupil", "employee", "household", "case", "mrn", "pid"),
}
_IDENTIFIERS = {  # as the last word
    *("id", "ids", "uuid", "guid", "key", "mrn", "ssn", "iban", "pid"),
    *(f"{person}id" for person in _PERSONS),
}
_ROW_NUMBERS = {"index", "row", "rownames", "rownum", "unnamed"}  # alone: not body mass index
_BIRTHS = {"birth", "dob", "birthday", "birthdate"}
_DATES = {"date", "datetime", "timestamp", *_BIRTHS}
_TEXTS = {
    *("name", "surname", "firstname", "lastname", "comment", "comments", "note", "notes"),
    *("text", "description", "address", "street", "email", "phone", "fax", "url", "remark"),
    *("remarks", "telephone", "mobile"),
}
# Whose numbers stand for something else; as the last word, before one such as `no`.
_CODES = {
    *("sex", "gender", "geschlecht", "race", "ethnicity", "religion", "marital", "nationality"),
    *("ward", "site", "hospital", "clinic", "department", "station", "practice", "provider"),
    *("zip", "zipcode", "plz", "postcode", "postal", "region", "state", "province", "county"),
    *("country", "district", "municipality", "bundesland", "kreis", "fips", "city", "tract"),
    *("code", "codes", "group", "gruppe", "class", "category", "cat", "type", "kind", "status"),
    *("icd", "dx", "diagnosis", "procedure", "drg", "atc", "ops", "naics", "sic", "occupation"),
    *("arm", "cohort", "cluster", "stratum", "batch", "plate", "flag", "label"),
}
_NUMBER_WORDS = {"no", "nr", "num", "number", "main", "primary"}
DATE = "{unit: days since 1970-01-01, lower: 1900-01-01, upper: 2030-01-01}"
IS_DATE = "dates: remove the first '#' to publish them as numbers"


@dataclass(frozen=True)
class Column:
    """A column of a table; values that the steward has not stated yet are None.

    `kind` is its type in the table's schema, as in `tables.formats.reader`.
    """

    kind: str = "any"
    ways: tuple[str, ...] = (NUMBERS, LEVELS)  # in which it can be published
    left_out: str = ""  # why it is not published: it is then never read
    example: str = ""  # how it could be declared instead
    # lower, upper: bounds of a numeric column
    lower: float | None = None
    upper: float | None = None
    levels: tuple[Level, ...] | None = None  # of a categorical column
    missing: tuple[float, ...] = ()  # numbers that stand for a missing value
    seen: bool = False  # whether what is proposed was found in rows
    choices: tuple[Level, ...] = ()  # what could be levels of a numeric column
    # all spellings of each level, if one has several, such as Yes and yes
    spellings: tuple[tuple[str, ...], ...] = ()

    @property
    def line(self) -> str:
        """Its value in the contract, with a comment."""
        if self.left_out:
            return f"{self.example}  # {self.left_out}" if self.example else self.left_out
        levels = f"levels {as_yaml(self.choices)} instead, if they are codes" * bool(self.choices)
        alike = "spellings of a level are together" * bool(self.spellings)
        seen = "from its rows" * (self.seen and not levels)
        notes = [_TITLES.get(self.kind), seen, alike, levels]
        comment = "; ".join(filter(None, notes))
        if self.levels is not None or NUMBERS not in self.ways:
            groups = {each[0]: each for each in self.spellings}
            text = f"{{levels: {written(groups or self.levels)}}}"
        else:
            codes = f", missing: {as_yaml(self.missing)}" * bool(self.missing)
            text = f"{{lower: {written(self.lower)}, upper: {written(self.upper)}{codes}}}"
        return f"{text}  # {comment}" if comment else text

    @property
    def is_number_as_text(self) -> bool:
        """Whether its cells are text, and are to be read as numbers."""
        return self.kind == TEXT and NUMBERS in self.ways and self.levels is None

    @property
    def in_words(self) -> str:
        """How it is published."""
        if self.left_out:
            return f"left out ({re.split('[:;]', self.left_out)[0]})"
        if self.levels is not None:
            return f"as levels {_listed(self.levels)}"
        bounds = "without bounds"
        if self.lower is not None and self.upper is not None:
            bounds = f"from {self.lower:g} to {self.upper:g}"
        codes = f", with {len(self.missing)} codes for missing values" * bool(self.missing)
        levels = f"; if they are codes, as levels {_listed(self.choices)}" * bool(self.choices)
        return f"as numbers {bounds}{codes}{levels}"


def written(value: object) -> str:
    """A value in a contract; empty for None, which the steward fills in."""
    return "" if value is None else as_yaml(value)


def _listed(levels: tuple[Level, ...]) -> str:
    return as_yaml(levels)[1:-1]


_WAYS = {
    **dict.fromkeys((WHOLE, ANY), (NUMBERS, LEVELS)),
    **{DOUBLE: (NUMBERS,), TEXT: (LEVELS,), TRUTH: (LEVELS,)},
}
_TITLES = {WHOLE: "whole numbers", DOUBLE: "numbers", TEXT: "text"}


def propose(name: str, kind: str, *, chosen: bool = False) -> Column:
    """What is proposed for a column; one that the steward has chosen is judged by its type alone.

    Codes that are numbers, such as 1 and 2 for a sex, are not proposed as numbers: their means and
    correlations would mean nothing.
    """
    if reason := _obstacle(name, kind):
        return Column(kind, (), reason)
    if _has_dates(kind):
        return Column(kind, (), IS_DATE, DATE)
    levels = (True, False) if kind == TRUTH else None
    reason, example = ("", "") if chosen else _doubt(name, kind)
    return Column(kind, _WAYS[kind], reason, example, levels=levels)


def _obstacle(name: str, kind: str) -> str:
    """Why a column cannot be published; empty if it can be."""
    if has_unprintable(name):
        return "its name has a control character"
    if not name or name != name.strip():
        return "its name is empty or has blanks around it"
    if len(as_yaml(name)) > _MAX_NAME_LENGTH:
        return f"its name is longer than {_MAX_NAME_LENGTH} characters"
    if name == INTERCEPT:
        return "its name is reserved for the intercept"
    if kind in {MIXED, PARTIAL}:
        return kind
    is_known = kind in _WAYS or _has_dates(kind)
    return "" if is_known else f"neither numbers nor text ({kind})"


def _doubt(name: str, kind: str) -> tuple[str, str]:
    """Why a column should not be published as it is, and how it could be; empty without doubt."""
    words = {*_words(name)}
    if names_identifier(name):
        return "named like an identifier or a row number; declare it if it is not", ""
    if words & _DATES and kind in {TEXT, ANY}:
        return IS_DATE, DATE
    if words & (_DATES | _TEXTS):
        return "named like a date or free text; declare it if it is not", ""
    if kind == TEXT:
        return "text: list its levels, and remove the first '#'", "{levels: [A, B]}"
    if kind in {WHOLE, ANY} and names_code(name):
        return "named like a code: list its levels, and remove the first '#'", "{levels: [1, 2]}"
    return "", ""


def names_code(name: str) -> bool:
    """Whether a column is named like one of codes, such as sex, ward or icd10."""
    words = _words(name)
    while words[1:] and words[-1] in _NUMBER_WORDS:
        words.pop()
    return bool(words) and words[-1] in _CODES


def names_identifier(name: str) -> bool:
    """Whether a column is named like an identifier or a row number."""
    words = _words(name)
    is_number = bool({*words} & _ROW_NUMBERS) and {*words} <= _ROW_NUMBERS | {"level"}
    return is_number or bool(words and words[-1] in _IDENTIFIERS)


def person_columns(names: Collection[str]) -> list[str]:
    """The columns that are named as if they identified persons."""
    persons = _PERSONS | {f"{person}id" for person in _PERSONS}
    return [name for name in names if persons & {*_words(name)} and names_identifier(name)]


def may_have_dates(name: str, kind: str) -> bool:
    """Whether a column may have the dates of rows, by its type or its name."""
    words = {*_words(name)}
    is_named = kind in {TEXT, ANY} and words & _DATES
    return bool(_has_dates(kind) or is_named) and not words & _BIRTHS


def _has_dates(kind: str) -> bool:
    return kind.lower().startswith(("date", "timestamp"))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
