"""How numbers are written where the cells of a column are text."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gramercy.schemas import families
from gramercy.schemas.model import Model

Decimal = Literal[".", ","]
Thousands = Literal[",", ".", " ", "'"]
Unit = Annotated[str, Field(min_length=1, max_length=20)]


class NumberNotation(Model):
    """How numbers are written, in all numeric columns whose cells are text.

    Whether a cell is a number is decided by this cell alone. A cell that follows no notation is
    missing.

    Parameters
    ----------
    decimal
        The decimal mark of numbers. With a comma, a cell that contains a dot is not a number,
        unless dots separate thousands.
    thousands
        The mark between groups of digits: ``,``, ``.``, a blank (of any kind) or an apostrophe. A
        cell without it is read as well; one with a group of other than three digits (or two, as in
        12,34,567) is not a number.
    percent
        Whether a cell that ends in a percent sign is a hundredth of its number.
    units
        Texts, such as ``€`` or ``kg``, that are dropped before or after a number.
    """

    decimal: Decimal = "."
    thousands: Thousands | None = None
    percent: Annotated[bool, Field(strict=True)] = False
    units: Annotated[tuple[Unit, ...], Field(max_length=20)] = ()

    @model_validator(mode="after")
    def _check_thousands(self) -> Self:
        if self.thousands == self.decimal:
            raise families.DATABASE(
                "'thousands' and 'decimal' are the same mark.",
                "Write the mark before the decimals as 'decimal', such as decimal: ','.",
            )
        return self

    @property
    def notation(self) -> NumberNotation:
        """The notation alone, without other facts about the table."""
        return NumberNotation(**{k: getattr(self, k) for k in NumberNotation.model_fields})

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as a computer writes them."""
        return self.notation == PLAIN


PLAIN = NumberNotation()
