"""Conditions on one row, as expressions of SQLAlchemy, which quotes names and values."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from gramercy.schemas.row_condition import (
    Comparison,
    Condition,
    IsNull,
    Joined,
    Like,
    Literally,
    Negated,
    Operand,
    Within,
)


def expression(condition: Condition) -> sa.ColumnElement[bool]:
    """A condition in SQLAlchemy's terms."""
    match condition:
        case Joined():
            parts = [expression(part) for part in condition.parts]
            return sa.and_(*parts) if condition.word == "and" else sa.or_(*parts)
        case Negated():
            return sa.not_(expression(condition.part))
        case Comparison():
            first, second = _operand(condition.first), _operand(condition.second)
            return first.op(condition.comparator, is_comparison=True)(second)
        case IsNull():
            is_null = _operand(condition.operand).is_(sa.null())
            return sa.not_(is_null) if condition.negated else is_null
        case Like():
            like = _operand(condition.operand).like(_operand(condition.pattern))
            return sa.not_(like) if condition.negated else like
        case Within():
            operand = _operand(condition.operand)
            values = [_operand(each) for each in condition.values]
            within = (
                operand.between(values[0], values[1]) if condition.is_range else operand.in_(values)
            )
            return sa.not_(within) if condition.negated else within


def _operand(operand: Operand) -> sa.ColumnElement[Any]:
    """A column, or a value as it is written: the database reads '2026-01-31' as a date."""
    if not isinstance(operand, Literally):
        return sa.column(operand.column)
    if operand.value is None:
        return sa.null()
    if isinstance(operand.value, bool):
        return sa.true() if operand.value else sa.false()
    text = operand.value if operand.is_number else "'" + operand.value.replace("'", "''") + "'"
    return sa.literal_column(text)
