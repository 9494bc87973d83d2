"""Normalisations: how the length of every row is bounded."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gramercy.schemas import wordings
from gramercy.schemas.form import Select
from gramercy.schemas.model import Model, Positive, expand_kind


class Unit(Model):
    """Every row is divided by its own l2 norm; a row of zeros stays zero."""

    kind: Literal["unit"] = "unit"


class Clip(Model):
    """Rows longer than a public radius are shortened to it; then all rows are divided by it.

    Parameters
    ----------
    radius
        Largest l2 norm of a row, in units of the scaled columns; sqrt(p) is a natural choice.
        Omitted with ``scaling: private``, which chooses it.
    """

    kind: Literal["clip"] = "clip"
    radius: Positive | None = None

    @property
    def length(self) -> float:
        """The radius.

        Raises
        ------
        InvalidValue
            If it has not been chosen.
        """
        if self.radius is None:
            raise wordings.radius_missing()
        return self.radius


class Box(Model):
    """Every row is divided by the largest l2 norm that the columns' bounds allow.

    Changing one cell then changes no other cell, as a guarantee per cell requires.
    """

    kind: Literal["box"]


class Whole(Model):
    """Rows of whole numbers are not changed; for ``integer-rows``."""

    kind: Literal["whole"]


AnyNormalisation = Unit | Clip | Box | Whole
Normalisation = Annotated[
    Annotated[AnyNormalisation, Field(discriminator="kind"), Select("kind")],
    BeforeValidator(expand_kind),
]
