"""The columns of a data set: numbers with public bounds, or categories."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Self, Union

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    PrivateAttr,
    Tag,
    model_validator,
)

from gramercy.schemas import families, wordings
from gramercy.schemas.model import Model, Real

INTERCEPT = "(intercept)"
_LIMIT = 1 << 40  # beyond all bounds of columns of whole numbers
# Cells of a CSV that are read as missing.
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "-", "?", ".")


def _not_empty(value: Any) -> Any:
    if value is None:
        raise wordings.value_empty("the levels from knowledge of the field, such as [A, B]")
    return value


# Declared columns: squares of cells must neither overflow nor vanish, and constants that are
# estimated need room between the bounds.
_LARGEST, _FINEST = 1e100, 1e-15


class ColumnKind(Model):
    """A kind of column: how its cells become numbers, and which matrix columns are published of it.

    A kind is numbers, which are one column of the matrix, or categories, of which each is a column
    of zeros and ones. A new kind is a class, and a line in `KINDS`.

    Attributes
    ----------
    key
        The key by which a contract declares it; empty for the kind of all other columns.
    """

    key: ClassVar[str] = ""

    @classmethod
    def is_declared_by(cls, keys: Mapping[str, Any]) -> bool:
        """Whether a declaration with these keys is of this kind."""
        return not cls.key or cls.key in keys

    @property
    def categories(self) -> tuple[str | float, ...] | None:
        """The categories; None for numbers."""
        return None

    @property
    def coding(self) -> Any:
        """How cells become numbers; see `tables.formats.values.Coding`."""
        return self.categories

    @property
    def has_bounds(self) -> bool:
        """Whether bounds are declared, or follow from the kind."""
        return True

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds to which cells are clamped; infinite where none are declared."""
        return -math.inf, math.inf

    @property
    def missing_codes(self) -> tuple[float, ...]:
        """Numbers that stand for a missing value."""
        return ()

    @property
    def constants(self) -> tuple[float, float, float, float, float, float]:
        """Lower and upper bound, centre, scale, and the bounds outside which cells are counted.

        Cells of categories are indices, and are not scaled.
        """
        return 0.0, 0.0, 0.0, 1.0, 0.0, 0.0

    @property
    def width(self) -> int:
        """Number of matrix columns."""
        return len(self.categories or (None,))

    def matrix_names(self, name: str) -> list[str]:
        """Names of the matrix columns."""
        return matrix_columns(name, self.categories)

    def whole(self, name: str) -> Self:
        """The column for rows of whole numbers."""
        return self

    def in_use(self, constants: Mapping[str, float], *, estimated: bool) -> Self:
        """The column with the bounds, centre and scale that a release uses."""
        return self

    def check_declared(self, name: str) -> None:
        """Refuse what a contract may not declare, in addition to what no column may have."""

    @abstractmethod
    def terms(self, name: str) -> dict[str, Any]:
        """What a registration fixes of the column."""


class Column(ColumnKind):
    """Public facts about a numeric column, declared from knowledge of the field, not from data.

    Parameters
    ----------
    lower, upper
        Bounds in the column's units. Cells outside them are clamped. A column may lack both, if
        requests estimate centre and scale privately (``scaling: private``).
    centre
        Value in the column's units that is subtracted before normalisation, and that replaces
        missing and non-finite cells. Default: the midpoint of the bounds.
    scale
        Value in the column's units that divides the centred cells. Default: half of the range.
    missing
        Numbers that stand for a missing value, such as ``[-9, 99]`` in a codebook. A cell with one
        of them counts as missing, within the bounds or not.

    Examples
    --------
    >>> column = Column(lower=4.0, upper=22.0)
    >>> column.effective_centre, column.effective_scale
    (13.0, 9.0)
    """

    lower: Real | None = None
    upper: Real | None = None
    centre: Annotated[float | None, Field(strict=True, allow_inf_nan=False)] = None
    scale: Annotated[float | None, Field(strict=True, gt=0, allow_inf_nan=False)] = None
    missing: Annotated[tuple[Real, ...], Field(max_length=20)] = ()
    _declared: tuple[float, float] | None = PrivateAttr(None)  # of estimated constants

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if (self.lower is None) != (self.upper is None):
            raise families.BOUNDS(
                "One of 'lower' and 'upper' is missing.",
                "Declare both bounds, or neither if requests estimate them with 'scaling: "
                "private'.",
            )
        if not self.has_bounds:
            if self.centre is not None or self.scale is not None:
                raise families.BOUNDS(
                    "'centre' and 'scale' need 'lower' and 'upper'.",
                    "Declare the bounds, or remove centre and scale.",
                )
            return self
        lower, upper = self.limits
        if not lower < upper:
            raise families.BOUNDS(
                "'lower' must be less than 'upper'.", "Swap them; write decimals with a point."
            )
        if not lower <= self.effective_centre <= upper:
            raise families.BOUNDS("'centre' must be between 'lower' and 'upper'.")
        centre, scale = self.effective_centre, self.effective_scale
        largest = max(upper - centre, centre - lower)
        if not (scale > 0 and math.isfinite(largest) and math.isfinite(largest / scale)):
            raise families.BOUNDS(
                "The bounds and the scale do not fit double precision.",
                "Narrow the bounds, or choose a larger scale.",
            )
        return self

    def check_declared(self, name: str) -> None:
        if not self.has_bounds:
            return
        lower, upper = self.limits
        scale, farthest = self.effective_scale, max(abs(lower), abs(upper))
        if max(farthest, scale) > _LARGEST or min(scale, upper - lower) < 1 / _LARGEST:
            raise families.BOUNDS(
                "columns.{column}: bounds and scale must be at most {most:g}, and the scale and "
                "the distance of the bounds at least {least:g}.",
                "Publish the column in another unit.",
                column=name,
                most=_LARGEST,
                least=1 / _LARGEST,
            )
        if upper - lower < _FINEST * farthest:
            raise families.BOUNDS(
                "columns.{column}: the distance of the bounds must be at least {least:g} times "
                "the larger one.",
                "Widen the bounds, or subtract a public number from the column.",
                column=name,
                least=_FINEST,
            )

    @property
    def has_bounds(self) -> bool:
        """Whether bounds are declared."""
        return self.lower is not None

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds to which cells are clamped; infinite without bounds."""
        if self.lower is None or self.upper is None:
            return -math.inf, math.inf
        return self.lower, self.upper

    @property
    def effective_centre(self) -> float:
        """The declared centre, or the midpoint of the bounds; 0 without bounds."""
        if self.lower is None or self.upper is None:
            return 0.0
        return self.centre if self.centre is not None else self.lower / 2 + self.upper / 2

    @property
    def effective_scale(self) -> float:
        """The declared scale, or half of the range; 1 without bounds."""
        if self.lower is None or self.upper is None:
            return 1.0
        return self.scale if self.scale is not None else self.upper / 2 - self.lower / 2

    @property
    def missing_codes(self) -> tuple[float, ...]:
        return self.missing

    @property
    def constants(self) -> tuple[float, float, float, float, float, float]:
        declared = self._declared or self.limits
        return (*self.limits, self.effective_centre, self.effective_scale, *declared)

    def whole(self, name: str) -> Self:
        """The column with integer bounds and centre, and a scale of 1."""
        lower, upper = (max(-_LIMIT, min(_LIMIT, end)) for end in self.limits)
        low, high = math.ceil(lower), math.floor(upper)
        if not (self.has_bounds and low < high and max(-low, high) <= 1 << 31):
            raise families.CONTRACT_USE(
                "columns.{column}: there is no range of whole numbers between the bounds.",
                "Declare as bounds two different whole numbers from -2147483648 to 2147483648.",
                column=name,
            )
        middle = min(max(round(self.effective_centre), low), high)
        return self._with(lower=low, upper=high, centre=middle, scale=1.0)

    def in_use(self, constants: Mapping[str, float], *, estimated: bool) -> Self:
        """The column with the bounds, centre and scale that a release uses.

        Cells are counted outside the bounds in the contract, also where others are estimated.
        """
        column = self._with(**constants)
        column._declared = self.limits if estimated else None
        return column

    def _with(self, **constants: float) -> Self:
        return type(self).model_validate(
            self.model_dump() | {k: float(x) for k, x in constants.items()}
        )

    def terms(self, name: str) -> dict[str, Any]:
        terms: dict[str, Any] = {"name": name}
        if self.has_bounds:
            terms |= {"lower": self.lower, "upper": self.upper}
            terms |= {"centre": self.effective_centre, "scale": self.effective_scale}
        if self.missing:
            terms["missing"] = list(self.missing)
        return terms


class Levels(ColumnKind):
    """A column of categories, published as one column of zeros and ones per level.

    Parameters
    ----------
    levels
        The categories, all texts or all numbers. A cell with any other value is 0 in the columns
        of all levels.
    """

    key: ClassVar[str] = "levels"

    levels: Annotated[
        tuple[str | Real, ...], Field(min_length=1, max_length=1000), BeforeValidator(_not_empty)
    ]

    @model_validator(mode="after")
    def _check_levels(self) -> Self:
        if len({type(x) for x in self.levels}) > 1:
            raise families.LEVELS(
                "'levels' mixes text and numbers.",
                "Put the numbers in quotes if the column is text.",
            )
        if len(set(self.levels)) < len(self.levels):
            raise families.LEVELS("'levels' lists a level twice.", "Remove one of the two.")
        if any(isinstance(x, str) and (x != x.strip() or x in MISSING) for x in self.levels):
            raise families.LEVELS(
                "'levels' has a level that is read as missing, or has blanks around it.",
                "Remove it: such cells belong to no level.",
            )
        return self

    @property
    def categories(self) -> tuple[str | float, ...]:
        return self.levels

    def terms(self, name: str) -> dict[str, Any]:
        return {"name": name, "levels": list(self.levels)}


# The first by which a declaration is recognised; the last one has no key.
KINDS: list[type[ColumnKind]] = [Levels, Column]


class _DeclaredKind:
    """Validates a column as the kind that it declares."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        kinds = tuple(Annotated[kind, Tag(_tag(kind))] for kind in KINDS)
        return handler.generate_schema(Annotated[Union[kinds], Discriminator(_declared)])  # noqa: UP007


def _tag(kind: type[ColumnKind]) -> str:
    return f"column-of-{kind.key or 'numbers'}"


def _declared(column: Any) -> str:
    if isinstance(column, ColumnKind):
        return _tag(type(column))
    keys = column if isinstance(column, Mapping) else {}
    return _tag(next(kind for kind in KINDS if kind.is_declared_by(keys)))


AnyColumn = Annotated[Column | Levels, _DeclaredKind()]


def level_names(levels: Iterable[str | float]) -> list[str]:
    """Levels as texts."""
    return [x if isinstance(x, str) else format(x, ".17g") for x in levels]


def matrix_columns(name: str, levels: Iterable[str | float] | None) -> list[str]:
    """The names of the matrix columns that a table column becomes."""
    return [name] if levels is None else [f"{name}={level}" for level in level_names(levels)]
