"""What to propose for a table's columns, from their names and types alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from gramercy.cli.draft.drafting import NUMBERS, Column, Draft
from gramercy.schemas.column import level_names

_LEAST_IN_RUN = 3
_NOT_A_MEASURE = "named like an identifier, a date or free text; declare it if it is not"
_PREFIX = re.compile(r"[^\W\d_]+(?:[ _.-]+|(?=[0-9]))")  # lab_ of lab_2, item of item2
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_IDENTIFIERS = {"id", "ids", "uuid", "guid", "key", "mrn"}  # as the last word
_ROW_NUMBERS = {
    "index",
    "row",
    "rownames",
    "unnamed",
}  # as the only word: not in body mass index
_PERSONS = {
    *("patient", "person", "subject", "participant", "respondent", "client", "customer"),
    *("member", "user", "student", "pupil", "employee", "household", "case", "mrn"),
}
_DATES = {"date", "datetime", "timestamp", "dob", "birthday", "birthdate"}
_TEXTS = {
    *("name", "surname", "firstname", "lastname", "comment", "comments", "note", "notes"),
    *("text", "description", "address", "street", "email", "phone", "url", "remark", "remarks"),
}


@dataclass(frozen=True)
class Run:
    """Neighbouring columns that share a prefix, a type and a proposal; or a single column.

    Parameters
    ----------
    label
        The column's name, or the prefix with a star.
    names
        The columns.
    first
        Position of the first one among all columns, from 1.
    """

    label: str
    names: tuple[str, ...]
    first: int

    @property
    def positions(self) -> str:
        """Positions of its columns, such as ``7`` or ``7-18``."""
        last = self.first + len(self.names) - 1
        return str(self.first) if last == self.first else f"{self.first}-{last}"


def propose(columns: Mapping[str, Column]) -> dict[str, Column]:
    """The columns, each to be published without bounds or left out.

    Text is left out, because its levels must be declared. So are columns that are named like
    identifiers, dates or free text, whose numbers would mean nothing.
    """
    return {
        name: replace(column, published=NUMBERS in column.publishable_as and _is_measure(name))
        for name, column in columns.items()
    }


def without_identifiers(draft: Draft) -> Draft:
    """The draft without the columns that are named like identifiers, dates or free text.

    They are listed as left out, unless no other column is there.
    """
    kept = {name: column for name, column in draft.columns.items() if _is_measure(name)}
    others = {name: _NOT_A_MEASURE for name in draft.columns if name not in kept}
    return replace(draft, columns=kept, left_out={**draft.left_out, **others}) if kept else draft


def person_columns(names: Collection[str]) -> list[str]:
    """The columns that are named as if they identified persons."""
    return [name for name in names if _PERSONS & set(_words(name)) and _names_identifier(name)]


def runs(columns: Mapping[str, Column], split: Collection[str] = ()) -> list[Run]:
    """The columns in their order, with neighbours that are alike in one run.

    Parameters
    ----------
    columns
        The columns.
    split
        Columns that are to be on their own.
    """
    found: list[Run] = []
    position = 1
    for (prefix, *_), names in groupby(columns, lambda name: _alike(name, columns[name], split)):
        members = tuple(names)
        if prefix and len(members) >= _LEAST_IN_RUN:
            found.append(Run(f"{prefix}*", members, position))
        else:
            found += [Run(name, (name,), position + k) for k, name in enumerate(members)]
        position += len(members)
    return found


def summary(column: Column) -> str:
    """How a column is published, in words."""
    if not column.published:
        return "left out: text, which needs levels" if column.needs_levels else "left out"
    if column.levels is not None:
        return f"as levels {', '.join(level_names(column.levels))}"
    if column.lower is None or column.upper is None:
        return "as numbers without bounds"
    return f"as numbers from {column.lower:g} to {column.upper:g}"


def _alike(name: str, column: Column, split: Collection[str]) -> tuple[str, str, Column]:
    prefix = _PREFIX.match(name)
    if prefix is None or name in split:
        return "", name, column
    return prefix[0], "", column


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _names_identifier(name: str) -> bool:
    words = [word for word in _words(name) if not word.isdigit()]
    return bool(words) and (words[-1] in _IDENTIFIERS or {*words} <= _ROW_NUMBERS)


def _is_measure(name: str) -> bool:
    return not (_names_identifier(name) or {*_words(name)} & (_DATES | _TEXTS))
