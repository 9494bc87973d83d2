"""The columns of a data set: numbers with public bounds, dates, or categories of several kinds."""

from __future__ import annotations

import datetime
import math
import numbers
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Annotated, Any, ClassVar, Self, Union

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    PrivateAttr,
    Tag,
    model_validator,
)

from gramercy.schemas import families, wordings
from gramercy.schemas.cells import DAYS, CodeCells, DayCells, TruthCells, as_date
from gramercy.schemas.derived import Derivation, DerivedFacts, Input, Transform, transform_of
from gramercy.schemas.model import Model, Real, has_unprintable

INTERCEPT = "(intercept)"
MAX_COLUMNS = 5000  # of the matrix
UNBOUNDED = 2.0**40  # cells of columns without bounds are clamped to +-2^40
# Cells of a CSV that are read as missing.
MISSING = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "-", "?", "."),
    *("\\N", "#N/A", "<NA>", "NaT"),  # of MySQL and PostgreSQL, Excel, and pandas
)


_MOST_LEVELS, _MOST_CODES, _LONGEST_CODE = 1000, 20_000, 64


def _few(value: Any) -> Any:
    if value is None:
        raise wordings.value_empty("the levels from knowledge of the field, such as [A, B]")
    if not value and isinstance(value, list | tuple | Mapping):
        raise wordings.no_entries()
    if isinstance(value, list | tuple | Mapping) and len(value) > _MOST_LEVELS:
        raise families.LEVELS(
            "'levels' has {count} levels; a column may have {most}.",
            "Put them into groups: 'levels: {{first: [A, B], second: [C], other: '*'}}', and "
            "'prefix: 1' if the first character of a cell tells its group.",
            count=len(value),
            most=_MOST_LEVELS,
        )
    return value


def _level(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise families.LEVELS("A level must be text or a number.", "Put it in quotes.")
    return value


def _no_date(value: Any) -> Any:
    if as_date(value) is not None:
        raise families.BOUNDS(
            "This is a date, and the column has no unit.",
            "Add to the column 'unit: {unit}', in which its dates are published.",
            unit=DAYS,
        )
    return value


Bound = Annotated[Real, BeforeValidator(_no_date)]


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
        A key by which a contract declares it; empty for the kind of all other columns.
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
    def date_unit(self) -> str | None:
        """The unit of numbers that stand for dates; None if they do not."""
        return None

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

    def in_use(self, facts: Any, *, estimated: bool) -> Self:
        """The column with the bounds, centre and scale that a release uses: its `ColumnFacts`."""
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

    lower: Bound | None = None
    upper: Bound | None = None
    centre: Bound | None = None
    scale: Annotated[float | None, Field(strict=True, gt=0, allow_inf_nan=False)] = None
    missing: Annotated[tuple[Bound, ...], Field(max_length=20)] = ()
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
        """Whether bounds are declared, or follow from those of other columns."""
        return math.isfinite(self.limits[1])

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds to which cells are clamped; infinite without bounds."""
        if self.lower is None or self.upper is None:
            return -math.inf, math.inf
        return self.lower, self.upper

    @property
    def effective_centre(self) -> float:
        """The declared centre, or the midpoint of the bounds; 0 without bounds."""
        if not self.has_bounds:
            return 0.0
        lower, upper = self.limits
        return self.centre if self.centre is not None else lower / 2 + upper / 2

    @property
    def effective_scale(self) -> float:
        """The declared scale, or half of the range; 1 without bounds."""
        if not self.has_bounds:
            return 1.0
        lower, upper = self.limits
        return self.scale if self.scale is not None else upper / 2 - lower / 2

    @property
    def missing_codes(self) -> tuple[float, ...]:
        return self.missing

    @property
    def constants(self) -> tuple[float, float, float, float, float, float]:
        declared = self._declared or self.limits
        return (*self.limits, self.effective_centre, self.effective_scale, *declared)

    def whole(self, name: str) -> Self:
        """The column with integer bounds and centre, and a scale of 1."""
        lower, upper = (max(-UNBOUNDED, min(UNBOUNDED, end)) for end in self.limits)
        low, high = math.ceil(lower), math.floor(upper)
        if not (self.has_bounds and low < high and max(-low, high) <= 1 << 31):
            raise families.CONTRACT_USE(
                "columns.{column}: there is no range of whole numbers between the bounds.",
                "Declare as bounds two different whole numbers from -2147483648 to 2147483648.",
                column=name,
            )
        middle = min(max(round(self.effective_centre), low), high)
        return self._with(lower=float(low), upper=float(high), centre=float(middle), scale=1.0)

    def in_use(self, facts: Any, *, estimated: bool) -> Self:
        """The column with the bounds, centre and scale that a release uses: its `ColumnFacts`.

        Cells are counted outside the bounds in the contract, also where others are estimated.
        """
        keys = ("lower", "upper", "centre", "scale")
        column = self._with(**{key: float(getattr(facts, key)) for key in keys})
        column._declared = self.limits if estimated else None
        return column

    def _with(self, **constants: Any) -> Self:
        return type(self).model_validate(self.model_dump() | constants)

    def terms(self, name: str) -> dict[str, Any]:
        terms: dict[str, Any] = {"name": name}
        if self.has_bounds:
            terms |= dict(zip(("lower", "upper"), self.limits, strict=True))
            terms |= {"centre": self.effective_centre, "scale": self.effective_scale}
        if self.missing:
            terms["missing"] = list(self.missing)
        return terms


class Dates(Column):
    """A column of dates, published as numbers: the time from a first day.

    Parameters
    ----------
    unit
        ``days since 1970-01-01``, with this or another date, or ``years`` in place of ``days``: a
        year has 365.2425 days. Cells are dates, times, or text such as ``2026-11-23``, with or
        without a time; of a time with an offset from UTC or a zone, the day in UTC counts. Other
        cells are missing, numbers among them, unless the source states how ``dates`` are written.
    lower, upper, centre, missing
        As of numbers: dates such as ``1900-01-01``, or numbers in the unit.
    scale
        A number in the unit.

    Examples
    --------
    >>> born = Dates(unit="days since 1970-01-01", lower="1970-01-02", upper="1970-01-12")
    >>> born.limits, born.effective_centre
    ((1.0, 11.0), 6.0)
    """

    key: ClassVar[str] = "unit"

    unit: str

    @model_validator(mode="before")
    @classmethod
    def _dates_to_numbers(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        cells = DayCells.of_unit(data.get("unit"))

        def number(value: Any) -> Any:
            day = as_date(value)
            return value if day is None else cells.number(day)

        numbers = {key: number(data[key]) for key in ("lower", "upper", "centre") if key in data}
        if isinstance(data.get("missing"), list | tuple):
            numbers["missing"] = [number(each) for each in data["missing"]]
        return {**data, **numbers}

    @property
    def coding(self) -> DayCells:
        return DayCells.of_unit(self.unit)

    @property
    def date_unit(self) -> str:
        return self.unit

    def terms(self, name: str) -> dict[str, Any]:
        return super().terms(name) | {"unit": self.unit}


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
        tuple[Annotated[str | Real, BeforeValidator(_level)], ...], BeforeValidator(_few)
    ]

    @model_validator(mode="after")
    def _check_levels(self) -> Self:
        if len({type(x) for x in self.levels}) > 1:
            raise families.LEVELS(
                "'levels' mixes text and numbers.",
                "Put the numbers in quotes if the column is text.",
            )
        _check_distinct(self.levels)
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


def _check_distinct(levels: Sequence[Any]) -> None:
    if len(set(levels)) < len(levels):
        raise families.LEVELS("'levels' lists a level twice.", "Remove one of the two.")


def _truth(value: Any) -> Any:
    if not isinstance(value, bool):
        raise families.LEVELS(
            "'levels' mixes true or false with other levels.",
            "Write [true, false] for a column of truth values, else put all levels in quotes.",
        )
    return value


class TruthLevels(ColumnKind):
    """A column of truth values, published as a column of zeros and ones for each that is listed.

    Parameters
    ----------
    levels
        ``true``, ``false`` or both. Cells are truth values, the numbers 1 and 0, or text: ``true``,
        ``t``, ``yes``, ``y`` or ``1``, and ``false``, ``f``, ``no``, ``n`` or ``0``, in capitals
        or not.
    """

    key: ClassVar[str] = "levels"

    levels: tuple[Annotated[bool, BeforeValidator(_truth)], ...]

    @model_validator(mode="after")
    def _check_levels(self) -> Self:
        _check_distinct(self.levels)
        return self

    @classmethod
    def is_declared_by(cls, keys: Mapping[str, Any]) -> bool:
        levels = keys.get("levels")
        return isinstance(levels, list | tuple) and any(isinstance(x, bool) for x in levels)

    @property
    def categories(self) -> tuple[str | float, ...]:
        return tuple(str(level).lower() for level in self.levels)

    @property
    def coding(self) -> TruthCells:
        return TruthCells(self.levels)

    def terms(self, name: str) -> dict[str, Any]:
        return {"name": name, "levels": list(self.levels)}


_ALL_OTHERS = "*"


def _groups(value: Any) -> Any:
    """Groups of codes: of a list, each code is a group of its own."""
    if isinstance(value, list | tuple):
        _check_distinct(names := [*map(str, value)])
        return {name: (each,) for name, each in zip(names, value, strict=True)}
    return value


def _codes(value: Any) -> Any:
    if isinstance(value, list | tuple) and not value:
        raise wordings.no_entries()
    return (value,) if isinstance(value, str | int) else value


def _code(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise families.LEVELS(
            "A code must be text or a whole number.",
            "Put it in quotes, so that no zero at its beginning or end is lost.",
        )
    return value


def _prefix(value: Any) -> Any:
    if not isinstance(value, bool) and not (isinstance(value, int) and value > 0):
        raise families.VALUE("Must be true, or the number of characters of every listed code.")
    return value


class CodeGroups(ColumnKind):
    """A column of codes in groups, published as one column of zeros and ones per group.

    Parameters
    ----------
    levels
        The codes of each group, such as ``{infection: [A, B], neoplasm: [C]}``; the group ``"*"``
        has all other cells that are not missing. A code in quotes is compared as text, with zeros
        at its beginning; a number also equals cells such as ``101.0`` and ``0101``. At most 20,000
        codes. With `prefix` a list of codes will do, each of which is a group.
    prefix
        ``true`` if codes are beginnings of cells: the longest one that fits counts. A number states
        also how many characters every listed code has.

    Examples
    --------
    >>> icd = CodeGroups(levels={"infection": ["A", "B"], "other": "*"}, prefix=1)
    >>> icd.matrix_names("icd")
    ['icd=infection', 'icd=other']
    """

    key: ClassVar[str] = "levels"

    levels: Annotated[
        dict[
            str,
            Annotated[
                tuple[Annotated[str | int, BeforeValidator(_code)], ...], BeforeValidator(_codes)
            ],
        ],
        BeforeValidator(_groups),
        BeforeValidator(_few),
    ]
    prefix: Annotated[bool | int, BeforeValidator(_prefix)] = False

    @classmethod
    def is_declared_by(cls, keys: Mapping[str, Any]) -> bool:
        return isinstance(keys.get("levels"), Mapping) or ("levels" in keys and "prefix" in keys)

    @model_validator(mode="after")
    def _check_codes(self) -> Self:
        if any(not name or name != name.strip() for name in self.levels):
            raise families.LEVELS("The name of a group is empty, or has blanks around it.")
        groups = dict[str, str]()
        for group, codes in self.levels.items():
            for code in map(str, codes):
                self._check_code(group, code)
                if code in groups:
                    raise families.LEVELS(
                        "'levels' lists the code '{code}' twice.",
                        "Leave it in one group only.",
                        code=code,
                    )
                groups[code] = group
        if len(groups) > _MOST_CODES:
            raise families.LEVELS(
                "'levels' lists {count} codes; a column may have {most}.",
                "List beginnings of codes, with 'prefix: true'.",
                count=len(groups),
                most=_MOST_CODES,
            )
        return self

    def _check_code(self, group: str, code: str) -> None:
        if code == _ALL_OTHERS:
            if len(self.levels[group]) > 1:
                raise families.LEVELS(
                    "The group '{group}' has '*' and other codes.",
                    "Write '*' alone: the group has all cells that are in no other.",
                    group=group,
                )
            return
        if code != code.strip() or code in MISSING or len(code) > _LONGEST_CODE:
            raise families.LEVELS(
                "The group '{group}' has a code that is read as missing, is longer than {most} "
                "characters, or has blanks around it.",
                "Remove it: such cells belong to no group.",
                group=group,
                most=_LONGEST_CODE,
            )
        if not isinstance(self.prefix, bool) and len(code) != self.prefix:
            raise families.LEVELS(
                "'prefix' is {prefix}, but the code '{code}' has {length} characters.",
                "Write 'prefix: true', with which codes may have any length.",
                prefix=self.prefix,
                code=code,
                length=len(code),
            )

    @property
    def categories(self) -> tuple[str | float, ...]:
        return tuple(self.levels)

    @property
    def coding(self) -> CodeCells:
        groups = tuple(self.levels.values())
        rest = next((k for k, codes in enumerate(groups) if codes == (_ALL_OTHERS,)), None)
        listed = tuple(() if k == rest else codes for k, codes in enumerate(groups))
        return CodeCells(listed, bool(self.prefix), rest)

    def terms(self, name: str) -> dict[str, Any]:
        groups = {group: list(codes) for group, codes in self.levels.items()}
        return {"name": name, "levels": groups, "prefix": self.prefix}


def _day_number(value: Any) -> Any:
    day = as_date(value)
    return value if day is None else DayCells().number(day)


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class Derived(Column):
    """A column that is computed in each row from one or two others, such as ``log1p(income)``.

    Parameters
    ----------
    from
        Names of the columns that it is computed from: declared ones, whose levels, missing codes
        and bounds then hold, or others of the table. A level is named ``sex=F``.
    transform
        Of one column: ``log1p`` (log(1 + x), missing below 0), ``asinh``, ``sqrt``, ``square``; 1
        or 0 for ``is zero``, ``is not zero``, ``is missing``, or a comparison by ``>``, ``>=``,
        ``<`` or ``<=`` with a number or a date, such as ``"> 1000"``; ``spline``, ``polynomial``;
        ``age`` in completed years; ``rank``, the normal scores by the published histogram, of
        releases with estimated scaling. Of two: ``product`` (with every level, if one has levels),
        ``ratio`` (missing if the second is 0), ``difference`` (the first minus the second),
        ``days between`` (from the first date to the second), ``age`` at a second date.
    at
        Of ``age``: the public date at which it is.
    knots
        Of ``spline``: three or more numbers in the units of the column. A term for all but two of
        them, named ``_1`` and so on; a natural cubic spline is these and the column itself.
    degree
        Of ``polynomial``: the highest power, from 2 to 6. A Legendre polynomial of the column
        between its bounds for each power from 2, named ``_2`` and so on.
    lower, upper
        Bounds of the computed values; of ``rank``, of the numbers that are ranked. Default: those
        that follow from the bounds of the columns that it is computed from, which also hold where
        they are narrower.
    missing
        Numbers, or dates, that stand for a missing value in these columns, in addition to the codes
        that they declare.

    Examples
    --------
    >>> column = Derived.model_validate({"from": "income", "transform": "log1p"})
    >>> columns = with_derived({"income": Column(lower=0, upper=1e6), "income_log": column})
    >>> columns["income_log"].limits
    (0.0, 13.815511557963774)
    """

    model_config = ConfigDict(serialize_by_alias=True)

    key: ClassVar[str] = "from"

    inputs: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        Field(alias="from", min_length=1, max_length=2),
        BeforeValidator(_one_or_more),
    ]
    transform: Annotated[str, Field(max_length=1000)]
    missing: Annotated[
        tuple[Annotated[Real, BeforeValidator(_day_number)], ...], Field(max_length=20)
    ] = ()
    at: datetime.date | None = None
    knots: tuple[Real, ...] | None = None
    degree: Annotated[int, Field(strict=True)] | None = None
    _derivation: Derivation | None = PrivateAttr(None)  # known among the columns of a contract

    @model_validator(mode="after")
    def _check_transform(self) -> Self:
        if len(self.inputs) != self.function.inputs:
            raise families.COLUMNS(
                "'{transform}' is computed from {count} columns.",
                "Write 'from: [{example}]'.",
                transform=self.transform,
                count=self.function.inputs,
                example=", ".join(("first", "second")[: self.function.inputs]),
            )
        if any(has_unprintable(name) for name in self.inputs):
            raise families.COLUMNS("A name in 'from' has a control character.")
        if self.function != self.function.declared:
            raise families.COLUMNS(
                "'rank' has no parameters: its knots are the bins of a published histogram.",
                "Write 'transform: rank'.",
            )
        return self

    @property
    def function(self) -> Transform:
        """The transform with its parameters."""
        words = [self.transform]
        if self.at is not None:
            words.append(f"at {self.at.isoformat()}")
        if self.knots is not None:
            words.append(f"knots {' '.join(map(repr, self.knots))}")
        if self.degree is not None:
            words.append(f"degree {self.degree}")
        return transform_of(" ".join(words))

    @property
    def derivation(self) -> Derivation:
        """How it is computed."""
        if self._derivation is None:
            raise ValueError
        return self._derivation

    @property
    def coding(self) -> Any:
        return self.derivation

    @property
    def missing_codes(self) -> tuple[float, ...]:
        return ()  # its inputs have them

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds that are declared, or follow from those of the inputs."""
        if self.lower is not None or self._derivation is None:
            return super().limits
        limits = self._derivation.limits
        return limits if all(map(math.isfinite, limits)) else super().limits

    @property
    def facts(self) -> DerivedFacts:
        """What a release states of it."""
        return DerivedFacts(inputs=self.inputs, transform=self.function.text, missing=self.missing)

    def terms(self, name: str) -> dict[str, Any]:
        facts = self.facts
        return super().terms(name) | {"from": list(facts.inputs), "transform": facts.transform}

    def check_declared(self, name: str) -> None:
        if self.function.needs_bounds:
            raise families.BOUNDS(
                "columns.{column}: '{transform}' needs the bounds of '{input}'.",
                "Declare '{input}' in 'columns', with 'lower' and 'upper'.",
                column=name,
                transform=self.transform,
                input=self.inputs[0],
            )
        least, most = self.derivation.limits
        if least == most:
            raise families.BOUNDS(
                "columns.{column}: it is {value:g} for all values within the bounds of what it is "
                "computed from.",
                "Remove the column, or correct 'transform' or those bounds.",
                column=name,
                value=least,
            )
        super().check_declared(name)

    def in_use(self, facts: Any, *, estimated: bool) -> Self:
        """See `Column.in_use`; the values of `rank` are scores then, by the histogram."""
        column, function = super().in_use(facts, estimated=estimated), facts.derived.function
        if function != self.derivation.transform and function.declared == self.function:
            column._derivation = replace(self.derivation, transform=function)
            column._declared = None  # no score is out of bounds
        return column

    def _with(self, **constants: Any) -> Self:
        column = super()._with(**constants)
        column._derivation = self._derivation
        return column

    def undeclared(self, dates: Collection[str], name: str) -> Column:
        """What an input is that the contract does not declare; `dates` are those read as dates."""
        if name in dates:
            return Dates(unit=DAYS, missing=self.missing)
        return Column(missing=self.missing)

    def terms_among(
        self, name: str, columns: Mapping[str, ColumnKind], dates: Collection[str]
    ) -> dict[str, Derived]:
        """The columns for which it stands among those of a contract, by their names.

        A spline or a polynomial has several terms, and a product with levels one for each.
        """
        made = dict[str, Derived]()
        choices = [self._choices(name, each, columns, dates) for each in self.inputs]
        if math.prod(map(len, choices)) > MAX_COLUMNS:
            raise families.COLUMNS(
                "columns.{column}: it would be more than {most} columns.",
                "Name single levels in 'from', or leave it out.",
                column=name,
                most=MAX_COLUMNS,
            )
        for chosen in product(*choices):
            levels = [level for _, level, _ in chosen if level is not None]
            stem = f"{name}={':'.join(levels)}" if levels else name
            reads = tuple(read for *_, read in chosen)
            for term, transform in self.function.terms(*(x.interval for x in reads)).items():
                column = self._with(
                    **{"from": [stated for stated, *_ in chosen], "transform": transform.text},
                    **dict.fromkeys(("at", "knots", "degree")),
                )
                made[stem + term] = column._computed(stem + term, Derivation(reads, transform))
        return made

    def _computed(self, name: str, derivation: Derivation) -> Self:
        """The column with its derivation, and with bounds that no value can exceed."""
        least, most = derivation.limits
        constants = {}
        if self.lower is not None and self.upper is not None:
            constants = {"lower": max(self.lower, least), "upper": min(self.upper, most)}
            if not constants["lower"] < constants["upper"]:
                raise families.BOUNDS(
                    "columns.{column}: it is between {least:g} and {most:g}, and so outside of "
                    "'lower' and 'upper'.",
                    "Remove 'lower' and 'upper' from the column.",
                    column=name,
                    least=least,
                    most=most,
                )
        column = self._with(**constants)
        column._derivation = derivation
        return column

    def _choices(
        self, name: str, read: str, columns: Mapping[str, ColumnKind], dates: Collection[str]
    ) -> list[tuple[str, str | None, Input]]:
        """What a name in ``from`` stands for: names, with the level that is added, and inputs."""
        table, _, level = read.rpartition("=")
        if read not in columns and columns.get(table, self).categories is not None:
            names = level_names(columns[table].categories or ())
            if level not in names:
                raise families.LEVELS(
                    "columns.{column}: '{level}' is not a level of '{of}'.",
                    "Its levels: {levels}.",
                    column=name,
                    level=level,
                    of=table,
                    levels=tuple(names),
                )
            return [(read, None, Input(table, columns[table].coding, level=names.index(level)))]
        kind = columns[read] if read in columns else self.undeclared(dates, read)
        if isinstance(kind, Derived):
            raise families.COLUMNS(
                "columns.{column}: '{input}' is computed from other columns itself.",
                "Name columns of the table in 'from', and give a computed column a name that none "
                "of them has.",
                column=name,
                input=read,
            )
        if kind.categories is None:
            unit = None if kind.date_unit is None else DayCells.of_unit(kind.date_unit)
            if unit is None and self.function.reads_dates:
                raise families.COLUMNS(
                    "columns.{column}: '{transform}' needs dates, and '{input}' has numbers.",
                    "Declare '{input}' with 'unit: {unit}' and dates as bounds, or leave it out of "
                    "'columns'.",
                    column=name,
                    transform=self.transform,
                    input=read,
                    unit=DAYS,
                )
            codes, unit = (*kind.missing_codes, *self.missing), self.function.unit_of(unit)
            return [(read, None, Input(read, kind.coding, kind.limits, codes, unit=unit))]
        of_levels = self.function.of_levels
        if of_levels == "each":
            return [
                (f"{read}={level}", level, Input(read, kind.coding, level=k))
                for k, level in enumerate(level_names(kind.categories))
            ]
        if of_levels == "none":
            raise families.LEVELS(
                "columns.{column}: '{input}' has levels, which are not numbers.",
                "Name one of its levels, such as 'from: {example}'.",
                column=name,
                input=read,
                example=kind.matrix_names(read)[0],
            )
        return [(read, None, Input(read, kind.coding))]


def dates_in(columns: Mapping[str, ColumnKind]) -> set[str]:
    """Inputs that some column reads as dates."""
    derived = [column for column in columns.values() if isinstance(column, Derived)]
    return {name for column in derived if column.function.reads_dates for name in column.inputs}


def with_derived(columns: Mapping[str, ColumnKind]) -> dict[str, Any]:
    """The columns with their derived ones as they are computed, each term as a column."""
    found, dates = dict[str, ColumnKind](), dates_in(columns)
    for name, column in columns.items():
        if not isinstance(column, Derived):
            made: Mapping[str, ColumnKind] = {name: column}
        elif "*" in name:
            raise families.COLUMNS(
                "columns.{column}: a column that is computed cannot be a pattern.",
                "Give each computed column a name of its own.",
                column=name,
            )
        else:
            made = column.terms_among(name, columns, dates)
        for each in made:
            if each in found or (each != name and each in columns):
                raise families.COLUMNS(
                    "Two columns of the matrix would be named '{name}'.",
                    "Rename one of the columns or levels.",
                    name=each,
                )
        found |= made
    return found


# The first by which a declaration is recognised; the last one has no key.
KINDS: list[type[ColumnKind]] = [Derived, TruthLevels, CodeGroups, Levels, Dates, Column]


class _DeclaredKind:
    """Validates a column as the kind that it declares."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        kinds = tuple(Annotated[kind, Tag(_tag(kind))] for kind in KINDS)
        return handler.generate_schema(Annotated[Union[kinds], Discriminator(_declared)])  # noqa: UP007


def _tag(kind: type[ColumnKind]) -> str:
    return f"column-of-{kind.__name__}"


def _declared(column: Any) -> str:
    if isinstance(column, ColumnKind):
        return _tag(type(column))
    keys = column if isinstance(column, Mapping) else {}
    return _tag(next(kind for kind in KINDS if kind.is_declared_by(keys)))


AnyColumn = Annotated[Column | Levels | TruthLevels | CodeGroups | Derived, _DeclaredKind()]


def level_names(levels: Iterable[str | float]) -> list[str]:
    """Levels as texts."""
    return [x if isinstance(x, str) else format(x, ".17g") for x in levels]


def level_text(level: object) -> str:
    """The name of a level that may be a truth value or a number of any type, or a text.

    Examples
    --------
    >>> level_text(1), level_text(1.0), level_text(True), level_text("A")
    ('1', '1', 'true', 'A')
    """
    if isinstance(level, str):
        return level
    if str(level) in ("True", "False"):  # also of numpy
        return str(level).lower()
    return level_names([float(level)])[0] if isinstance(level, numbers.Real) else str(level)


def matrix_columns(name: str, levels: Iterable[str | float] | None) -> list[str]:
    """The names of the matrix columns that a table column becomes."""
    return [name] if levels is None else [f"{name}={level}" for level in level_names(levels)]
