"""What may be done to the length of every row."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gramercy.schemas.model import Model, Positive, by_kind


class Unit(Model):
    """Every row is divided by its own l2 norm; a row with nothing left is the zero row."""

    kind: Literal["unit"] = "unit"


class Clip(Model):
    """Rows beyond a public radius are shortened to it, and the radius becomes 1.

    Parameters
    ----------
    radius
        In units of the scaled columns; sqrt(p) is natural.
    """

    kind: Literal["clip"]
    radius: Positive


class Box(Model):
    """Every row is divided by the longest that the columns' bounds allow: one cell moves no other.

    The normalisation for a guarantee per cell.
    """

    kind: Literal["box"]


class Whole(Model):
    """Rows of whole numbers stay what they are, for ``integer-rows``."""

    kind: Literal["whole"]


AnyNormalisation = Unit | Clip | Box | Whole
Normalisation = Annotated[
    Annotated[AnyNormalisation, Field(discriminator="kind")], BeforeValidator(by_kind)
]
