"""Conditions on one row of a database's table: comparisons of columns with values.

A condition cannot read another row, so each record decides only on its own row. It cannot compute,
and each predicate names one column: PostgreSQL converts cells to compare columns of different
types, which can fail. So no cell makes a condition fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Comparator = Literal["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Literally:
    """A value: a number, as it is written, a text, true, false or null."""

    value: str | bool | None
    is_number: bool = False


@dataclass(frozen=True)
class Named:
    """A column."""

    column: str


Operand = Literally | Named


@dataclass(frozen=True)
class Comparison:
    """``first comparator second``."""

    comparator: Comparator
    first: Operand
    second: Operand


@dataclass(frozen=True)
class Within:
    """``operand [NOT] IN (...)`` or, with two ends, ``operand [NOT] BETWEEN ... AND ...``."""

    operand: Operand
    values: tuple[Operand, ...]
    is_range: bool
    negated: bool


@dataclass(frozen=True)
class Like:
    """``operand [NOT] LIKE pattern``."""

    operand: Operand
    pattern: Literally
    negated: bool


@dataclass(frozen=True)
class IsNull:
    """``operand IS [NOT] NULL``."""

    operand: Operand
    negated: bool


@dataclass(frozen=True)
class Joined:
    """Conditions joined by AND or OR."""

    word: Literal["and", "or"]
    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Negated:
    """``NOT condition``."""

    part: Condition


Condition = Comparison | Within | Like | IsNull | Joined | Negated


def columns_of(condition: Condition) -> Iterator[str]:
    """Names of the columns that a condition uses."""
    match condition:
        case Joined():
            for part in condition.parts:
                yield from columns_of(part)
        case Negated():
            yield from columns_of(condition.part)
        case Comparison():
            yield from _names(condition.first, condition.second)
        case Within():
            yield from _names(condition.operand, *condition.values)
        case Like() | IsNull():
            yield from _names(condition.operand)


def _names(*operands: Operand) -> Iterator[str]:
    yield from (each.column for each in operands if isinstance(each, Named))
