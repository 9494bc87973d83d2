"""How numbers and dates are written where the cells of a column do not say so themselves."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gramercy.schemas import families
from gramercy.schemas.cells import date_notation
from gramercy.schemas.model import Model, single_line

Decimal = Literal[".", ","]
Thousands = Literal[",", ".", " ", "'"]
_DIGITS = frozenset("0123456789")
_OF_NUMBERS = frozenset(".,'’+-−()eE")


def _is_unit(text: str) -> str:
    """A text that cannot be a part of a number."""
    is_short = text == text.strip() and _DIGITS.isdisjoint(text)
    if not is_short or _OF_NUMBERS.issuperset("".join(single_line(text).split())):
        raise families.VALUE(
            "A unit is a text such as '€' or 'kg' that cannot be a part of a number.",
            "Write it without digits, and without blanks before and after it.",
        )
    return text


Unit = Annotated[str, Field(min_length=1, max_length=20), AfterValidator(_is_unit)]
Flag = Annotated[bool, Field(strict=True)]


def _is_date_notation(text: str) -> str:
    date_notation(text)
    return text


Dates = Annotated[str, AfterValidator(_is_date_notation)]


class NumberNotation(Model):
    """How numbers are written, in all numeric columns whose cells are text, and dates.

    Whether a cell is a number or a date is decided by this cell alone. A cell that follows no
    notation is missing.

    Parameters
    ----------
    decimal
        The decimal mark of numbers. With a comma, a cell that contains a dot is not a number,
        unless dots separate thousands.
    thousands
        The mark between groups of digits: ``,``, ``.``, a blank (of any kind) or an apostrophe. A
        cell without it is read as well; one with a group of other than three digits (or two, as in
        12,34,567), or whose first group starts with a zero, is not a number.
    percent
        Whether a cell that ends in a percent sign is a hundredth of its number. Cells without one
        stay as they are.
    units
        Texts, such as ``€`` or ``kg``, that are dropped before or after a number.
    accounting
        Whether (5) and 5- are minus 5, as in accounts. Otherwise they are not numbers: elsewhere,
        brackets mark a number as uncertain.
    dates
        How dates are written, in columns with a ``unit``, in the column of a ``period``, and where
        an age or days are computed: ``day``, ``month`` and ``year`` in their order, with the mark
        between them, such as ``day.month.year`` or ``month/day/year``, or without one
        (``yearmonthday``). The year has four digits, and the month is a number or an English name
        (``31-Dec-2026``). Numbers that count from a day are ``days since 1899-12-30``, as in Excel,
        or ``seconds`` or ``milliseconds`` since another one, in UTC. 2026-11-23 is read anyway.
    """

    decimal: Decimal = "."
    thousands: Thousands | None = None
    percent: Flag = False
    units: Annotated[tuple[Unit, ...], Field(max_length=20)] = ()
    accounting: Flag = False
    dates: Dates | None = None

    @model_validator(mode="after")
    def _check_marks_of_numbers(self) -> Self:
        if self.thousands == self.decimal:
            raise families.VALUE(
                "'thousands' and 'decimal' are the same mark.",
                "Write the mark before the decimals as 'decimal', such as decimal: ','.",
            )
        if self.percent and "%" in self.units:
            raise families.VALUE(
                "'%' is in 'units', and 'percent' is true.",
                "Remove one of them: with 'percent', '12 %' is .12, and with the unit it is 12.",
            )
        return self

    @property
    def notation(self) -> NumberNotation:
        """The notation alone, without other facts about the table."""
        stated = self.model_fields_set & NumberNotation.model_fields.keys()
        return NumberNotation(**{key: getattr(self, key) for key in stated})

    @property
    def is_stated(self) -> bool:
        """Whether the steward says how numbers are written, be it as a computer writes them."""
        return not self.model_fields_set.isdisjoint(_OF_NUMBERS_ALONE)

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as a computer writes them."""
        return all(getattr(self, k) == getattr(PLAIN, k) for k in _OF_NUMBERS_ALONE)


_OF_NUMBERS_ALONE = NumberNotation.model_fields.keys() - {"dates"}
PLAIN = NumberNotation()
