"""Columns that are functions of other cells of their row, such as ``log1p(income)``.

A transform is a class here and a line in `TRANSFORMS`. It is total: where it has no value, the cell
is missing. Its bounds follow from those of its inputs by interval arithmetic, so no bound depends
on a cell. The inputs are clamped to their own bounds first.

A value depends on the cells of its row alone, to the last bit: only operations that IEEE 754 rounds
correctly are used. NumPy's own ``log1p`` and ``arcsinh`` have other last bits for arrays in reverse
order, and on other processors.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from gramercy.schemas import families
from gramercy.schemas.cells import EPOCH, DayCells
from gramercy.schemas.model import Model, Real

Array = NDArray[np.float64]
Limits = tuple[float, float]  # lower and upper bound; infinite where there is none

UNLIMITED: Limits = (-math.inf, math.inf)
_FIRST_DAY, _LAST_DAY = ((day - EPOCH).days for day in (datetime.date.min, datetime.date.max))


@dataclass(frozen=True)
class Transform(ABC):
    """A function of cells of one row.

    Attributes
    ----------
    name, words
        Its name in `TRANSFORMS`, and the pattern of `in_words`.
    inputs
        Number of columns that it reads.
    of_levels
        What an input of levels stands for: ``none`` (refused), ``whole``, or ``each`` of them.
    """

    name: ClassVar[str] = ""
    words: ClassVar[str] = "{}"
    of_levels: ClassVar[Literal["none", "whole", "each"]] = "none"

    @property
    def inputs(self) -> int:
        return self.words.count("{}")

    @property
    def reads_dates(self) -> bool:
        """Whether inputs that are not declared otherwise are dates, in days since 1970-01-01."""
        return False

    def unit_of(self, unit: DayCells | None) -> DayCells | None:
        """The unit from which numbers of an input are converted to days."""
        return unit if self.reads_dates else None

    @property
    def needs_bounds(self) -> bool:
        """Whether it has no terms yet, because the bounds of its input are not known."""
        return False

    @property
    def of_exact_cells(self) -> bool:
        """Whether cells that are almost equal may have other values."""
        return False

    @abstractmethod
    def apply(self, *cells: Array) -> Array:
        """The value of every row, shape (rows,); NaN where it is missing or undefined.

        Parameters
        ----------
        cells
            The clamped cells of every input, shape (rows,); NaN where missing.
        """

    @abstractmethod
    def limits(self, *inputs: Limits) -> Limits:
        """Bounds that contain all values for inputs between theirs."""

    def back(self, values: Array) -> Array | None:
        """The inputs that have these values; None unless the transform is strictly monotone."""
        return None

    @property
    def declared(self) -> Transform:
        """The transform as a contract declares it, and histograms count its values; see `Rank`."""
        return self

    def in_words(self, *inputs: str) -> str:
        """The column as a formula names it, such as ``log1p(income)`` or ``age:sex``."""
        return self.words.format(*inputs)

    @property
    def text(self) -> str:
        """Its name with its parameters, from which `transform_of` makes it again."""
        return self.name

    def with_parameters(self, text: str) -> Transform:
        """The transform with the parameters after its name; raises `ValueError` for others."""
        if text:
            raise ValueError
        return self

    def terms(self, *inputs: Limits) -> Mapping[str, Transform]:
        """The functions for which it stands, by what is added to the name of the column."""
        return {"": self}


def log1p(x: Array) -> Array:
    """The natural logarithm of 1 + x for x >= 0, within a few units in the last place.

    It is k log 2 + log(m), where 1 + x = 2^k m, and log(m) = 2 artanh(s), s = (m - 1) / (m + 1).
    """
    u = 1.0 + x
    half, exponent = np.frexp(u)
    small = half < _ROOT
    f = np.where(small, 2.0 * half, half) - 1.0  # m - 1
    s = f / (2.0 + f)
    square, series = s * s, np.zeros_like(s)
    for k in range(21, 0, -2):
        series = series * square + 1.0 / k
    return (exponent - small) * _LOG2 + (2.0 * s * series + (x - (u - 1.0)) / u)


_ROOT, _LOG2 = 0.7071067811865476, 0.6931471805599453  # of 1/2; of 2


def asinh(x: Array) -> Array:
    """The inverse hyperbolic sine, nearly a logarithm of 2 |x| with the sign of x far from 0."""
    size = np.abs(x)
    inverse = 1.0 / size
    return np.copysign(log1p(size + size / (inverse + np.sqrt(1.0 + inverse * inverse))), x)


@dataclass(frozen=True)
class Monotone(Transform):
    """An increasing function of one cell."""

    named: str
    function: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    least: float = -math.inf  # the function is defined from here on

    def apply(self, *cells: Array) -> Array:
        (x,) = cells
        return self.function(np.where(x >= self.least, x, np.nan))

    def limits(self, *inputs: Limits) -> Limits:
        ends = [np.array([max(end, self.least)]) for end in inputs[0]]
        lower, upper = (x if np.isinf(x[0]) else self.function(x) for x in ends)
        return float(lower[0]), float(upper[0])

    def back(self, values: Array) -> Array | None:
        return self.inverse(values)

    def in_words(self, *inputs: str) -> str:
        return f"{self.named}({inputs[0]})"

    @property
    def text(self) -> str:
        return self.named


@dataclass(frozen=True)
class Square(Transform):
    """The square of a number."""

    name, words = "square", "{}^2"

    def apply(self, *cells: Array) -> Array:
        return np.square(cells[0])

    def limits(self, *inputs: Limits) -> Limits:
        lower, upper = inputs[0]
        squares = lower * lower, upper * upper
        return 0.0 if lower <= 0.0 <= upper else min(squares), max(squares)


@dataclass(frozen=True)
class Condition(Transform):
    """1 where a number, or a date, compares so with a public one; else 0."""

    sign: str
    than: float | datetime.date = 0.0

    @property
    def reads_dates(self) -> bool:
        return isinstance(self.than, datetime.date)

    @property
    def of_exact_cells(self) -> bool:
        return self.sign in _OF_ZERO

    @property
    def _number(self) -> float:
        return _days(self.than) if isinstance(self.than, datetime.date) else self.than

    def apply(self, *cells: Array) -> Array:
        (x,) = cells
        holds = _SIGNS[self.sign](x, self._number)
        return np.where(np.isnan(x), np.nan, holds.astype(np.float64))

    def limits(self, *inputs: Limits) -> Limits:
        lower, upper = inputs[0]
        inside = min(max(self._number, lower), upper)  # the function is constant outside of steps
        around = np.array([lower, upper, inside, np.nextafter(inside, upper)])
        values = self.apply(np.append(around, np.nextafter(inside, lower)))
        return float(values.min()), float(values.max())

    def in_words(self, *inputs: str) -> str:
        return f"{inputs[0]} {self.text}"

    @property
    def text(self) -> str:
        if self.sign in _OF_ZERO:
            return self.sign
        return f"{self.sign} {_written(self.than)}"

    def with_parameters(self, text: str) -> Transform:
        if self.sign in _OF_ZERO:
            return super().with_parameters(text)
        return replace(self, than=_date(text) if _IS_DATE.fullmatch(text) else _finite(text))


_SIGNS: Mapping[str, Callable[[Array, float], Any]] = {
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
    "is zero": np.equal,
    "is not zero": np.not_equal,
}
_OF_ZERO = ("is zero", "is not zero")


@dataclass(frozen=True)
class IsMissing(Transform):
    """1 where a cell is missing, is not a number or has no declared level; else 0."""

    name, words, of_levels = "is missing", "{} is missing", "whole"

    def apply(self, *cells: Array) -> Array:
        return np.isnan(cells[0]).astype(np.float64)

    def limits(self, *inputs: Limits) -> Limits:
        return 0.0, 1.0


@dataclass(frozen=True)
class Product(Transform):
    """The product of two numbers, or of a number and a level, which is 1 in its rows and else 0.

    It is 0 where one of both is 0, even if the other one is missing.
    """

    name, words, of_levels = "product", "{}:{}", "each"

    def apply(self, *cells: Array) -> Array:
        x, y = cells
        return np.where((x == 0.0) | (y == 0.0), 0.0, x * y)

    def limits(self, *inputs: Limits) -> Limits:
        return _around([x * y for x in inputs[0] for y in inputs[1]])


@dataclass(frozen=True)
class Ratio(Transform):
    """A number divided by another; missing where that is 0."""

    name, words = "ratio", "{} / {}"

    def apply(self, *cells: Array) -> Array:
        x, y = cells
        return x / np.where(y == 0.0, np.nan, y)

    def limits(self, *inputs: Limits) -> Limits:
        (low, high), divisor = inputs
        if divisor[0] <= 0.0 <= divisor[1]:
            return UNLIMITED
        return _around([float(np.divide(x, y)) for x in (low, high) for y in divisor])


@dataclass(frozen=True)
class Difference(Transform):
    """The first of two numbers minus the second."""

    name, words = "difference", "{} - {}"

    def apply(self, *cells: Array) -> Array:
        x, y = cells
        return x - y

    def limits(self, *inputs: Limits) -> Limits:
        (low, high), (other_low, other_high) = inputs
        return low - other_high, high - other_low


@dataclass(frozen=True)
class Spline(Transform):
    """Terms of a natural cubic spline, which is linear before the first and after the last knot.

    Together with the column itself they are the basis of Harrell's ``rcs``: a term for each knot
    but the last two, 0 up to its knot, increasing, and in the units of the column.
    """

    knots: tuple[float, ...] = ()
    term: int = 0  # from 1; 0 stands for all

    def apply(self, *cells: Array) -> Array:
        first, *_, before, last = self.knots
        own, (x,) = self.knots[self.term - 1], cells
        inside = np.minimum(x, last)  # far from the knots, the cubes of x would cancel each other
        value = _cube(inside, own) - _cube(inside, before) * ((last - own) / (last - before))
        value = value + np.maximum(x - last, 0.0) * (3.0 * (last - own) * (before - own))
        width = last - first
        return value / (width * width)

    def limits(self, *inputs: Limits) -> Limits:
        ends = (np.array([end]) for end in inputs[0])
        lower, upper = (x if np.isinf(x[0]) else self.apply(x) for x in ends)
        return max(0.0, float(lower[0])), min(math.inf, float(upper[0]))  # also of NaN

    def in_words(self, *inputs: str) -> str:
        own = f", {' '.join(map(_written, self.knots))})[{self.term}]" if self.term else ")"
        return f"spline({inputs[0]}{own}"

    @property
    def text(self) -> str:
        of_all = f"spline knots {' '.join(map(_written, self.knots))}"
        return f"{of_all} term {self.term}" if self.term else of_all

    def with_parameters(self, text: str) -> Transform:
        found = re.fullmatch(r"knots (.+?)(?: term ([0-9]+))?", text)
        if found is None:
            raise ValueError
        knots, term = tuple(map(_finite, found[1].split())), int(found[2] or 0)
        in_order = all(one < other for one, other in itertools.pairwise(knots))
        if not (in_order and 3 <= len(knots) <= _MOST_KNOTS and term <= len(knots) - 2):
            raise ValueError
        return Spline(knots, term)

    def terms(self, *inputs: Limits) -> Mapping[str, Transform]:
        if self.term:
            return super().terms(*inputs)
        return {f"_{k}": replace(self, term=k) for k in range(1, len(self.knots) - 1)}


_MOST_KNOTS = 20


def _cube(x: Array, knot: float) -> Array:
    above = np.maximum(x - knot, 0.0)
    cubed: Array = above * above * above
    return cubed


@dataclass(frozen=True)
class Polynomial(Transform):
    """Legendre polynomials of a column, scaled to [-1, 1] by its bounds.

    Together with the column itself they span the powers up to the degree, but unlike powers they
    are almost uncorrelated.
    """

    degree: int = 0
    lower: float = math.nan  # bounds of the input; NaN stands for all degrees from 2
    upper: float = math.nan

    def apply(self, *cells: Array) -> Array:
        middle, half = self.lower / 2 + self.upper / 2, self.upper / 2 - self.lower / 2
        x = np.clip((cells[0] - middle) / half, -1.0, 1.0)
        before, value = np.ones_like(x), x
        for k in range(1, self.degree):  # Bonnet's recursion
            before, value = value, ((2 * k + 1) * x * value - k * before) / (k + 1)
        return value

    def limits(self, *inputs: Limits) -> Limits:
        return _LEAST_OF_DEGREE.get(self.degree, -1.0), 1.0

    def in_words(self, *inputs: str) -> str:
        return f"polynomial({inputs[0]})" + (f"[{self.degree}]" if self.degree else "")

    @property
    def needs_bounds(self) -> bool:
        return math.isnan(self.lower)

    @property
    def text(self) -> str:
        every = f"polynomial degree {self.degree}"
        if math.isnan(self.lower):
            return every
        return f"{every} between {_written(self.lower)} and {_written(self.upper)}"

    def with_parameters(self, text: str) -> Transform:
        found = re.fullmatch(r"degree ([2-6])(?: between (\S+) and (\S+))?", text)
        if found is None:
            raise ValueError
        if found[2] is None:
            return Polynomial(int(found[1]))
        lower, upper = _finite(found[2]), _finite(found[3])
        if not lower < upper:
            raise ValueError
        return Polynomial(int(found[1]), lower, upper)

    def terms(self, *inputs: Limits) -> Mapping[str, Transform]:
        if not math.isnan(self.lower):
            return super().terms(*inputs)
        ((lower, upper),) = inputs
        if not math.isfinite(upper - lower):
            return super().terms(*inputs)
        return {f"_{k}": Polynomial(k, lower, upper) for k in range(2, self.degree + 1)}


_LEAST_OF_DEGREE = {2: -0.5, 4: -3 / 7}  # of a Legendre polynomial on [-1, 1]; odd ones reach -1


@dataclass(frozen=True)
class Rank(Transform):
    """Normal scores: standard normal quantiles of the shares of cells below a number.

    A published histogram gives the shares at its edges, which are the knots. Between them, scores
    are linear. Before the histogram is drawn there are no knots, and a number stays as it is: the
    histogram counts numbers.
    """

    name, words = "rank", "rank({})"

    knots: tuple[float, ...] = ()
    scores: tuple[float, ...] = ()  # of the knots; increasing as well

    def apply(self, *cells: Array) -> Array:
        return _between(cells[0], self.knots, self.scores) if self.knots else cells[0]

    def limits(self, *inputs: Limits) -> Limits:
        lower, upper = self.apply(np.array(inputs[0]))
        return float(lower), float(upper)

    def back(self, values: Array) -> Array | None:
        return _between(values, self.scores, self.knots) if self.knots else values

    @property
    def declared(self) -> Transform:
        return Rank()

    @property
    def text(self) -> str:
        if not self.knots:
            return self.name
        knots, scores = (" ".join(map(_written, each)) for each in (self.knots, self.scores))
        return f"rank knots {knots} scores {scores}"

    def with_parameters(self, text: str) -> Transform:
        if not text:
            return self
        found = re.fullmatch(r"knots (.+) scores (.+)", text)
        if found is None:
            raise ValueError
        knots, scores = (tuple(map(_finite, each.split())) for each in found.groups())
        increase = all(a < b for each in (knots, scores) for a, b in itertools.pairwise(each))
        if not (increase and len(knots) == len(scores) >= 2):
            raise ValueError
        return Rank(knots, scores)


def _between(x: Array, places: tuple[float, ...], values: tuple[float, ...]) -> Array:
    """Values by linear interpolation between places, nondecreasing; beyond all, the outermost."""
    at, of = np.array(places), np.array(values)
    slopes = np.append(np.diff(of) / np.diff(at), 0.0)
    inside = np.clip(x, at[0], at[-1])
    k = np.searchsorted(at[:-1], inside, side="right") - 1
    k = np.where(inside < at[-1], k, len(at) - 1)
    found: Array = np.minimum(of[k] + (inside - at[k]) * slopes[k], np.append(of[1:], of[-1])[k])
    return found


@dataclass(frozen=True)
class DaysBetween(Difference):
    """Days from the first of two dates to the second."""

    name, words = "days between", "days from {} to {}"

    @property
    def reads_dates(self) -> bool:
        return True

    def apply(self, *cells: Array) -> Array:
        return super().apply(*cells[::-1])

    def limits(self, *inputs: Limits) -> Limits:
        return super().limits(*inputs[::-1])


@dataclass(frozen=True)
class Age(Transform):
    """Completed years from a date of birth to another date, or a public one; missing before birth.

    Who was born on February 29 is a year older on March 1 of other years.
    """

    at: datetime.date | None = None

    @property
    def inputs(self) -> int:
        return 2 if self.at is None else 1

    @property
    def reads_dates(self) -> bool:
        return True

    def apply(self, *cells: Array) -> Array:
        birth, day = cells if self.at is None else (*cells, np.array(_days(self.at)))
        (year, in_year), (other, in_other) = _calendar(birth), _calendar(day)
        years = other - year - (in_other < in_year)
        return np.where(years >= 0.0, years, np.nan)

    def limits(self, *inputs: Limits) -> Limits:
        latest_first = np.array(inputs[0][::-1])
        lower, upper = self.apply(latest_first, *map(np.array, inputs[1:]))
        return (0.0 if math.isnan(lower) else lower), (math.inf if math.isnan(upper) else upper)

    def in_words(self, *inputs: str) -> str:
        return f"age of {inputs[0]} at {self.at or inputs[1]}"

    @property
    def text(self) -> str:
        return "age" if self.at is None else f"age at {self.at}"

    def with_parameters(self, text: str) -> Transform:
        return Age(_date(text.removeprefix("at "))) if text else self


def _calendar(days: Array) -> tuple[Array, Array]:
    """Years, and months and days in them as one number; NaN outside of the years 1 to 9999."""
    exists = (days >= _FIRST_DAY) & (days < _LAST_DAY + 1)
    dates = np.floor(np.where(exists, days, 0.0)).astype(np.int64).astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    years = months.astype("datetime64[Y]")
    month = (months - years.astype("datetime64[M]")).astype(np.int64)
    day = (dates - months.astype("datetime64[D]")).astype(np.int64)
    year = np.where(exists, years.astype(np.int64), np.nan)
    return year, np.where(exists, 31 * month + day, np.nan)


def _days(date: datetime.date) -> float:
    return float((date - EPOCH).days)


def _around(values: list[float]) -> Limits:
    """Bounds around values; none if one of them is infinite or undefined."""
    return (min(values), max(values)) if all(map(math.isfinite, values)) else UNLIMITED


_IS_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _date(text: str) -> datetime.date:
    if not _IS_DATE.fullmatch(text):
        raise ValueError
    return datetime.date.fromisoformat(text)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError
    return number


def _written(value: float | datetime.date) -> str:
    """The shortest text that is read as the same value."""
    return str(value).removesuffix(".0")


# By the names in contracts, without parameters.
TRANSFORMS: dict[str, Transform] = {
    "log1p": Monotone("log1p", log1p, np.expm1, least=0.0),
    "asinh": Monotone("asinh", asinh, np.sinh),
    "sqrt": Monotone("sqrt", np.sqrt, np.square, least=0.0),
    "square": Square(),
    "polynomial": Polynomial(),
    "spline": Spline(),
    "rank": Rank(),
    **{sign: Condition(sign) for sign in _SIGNS},
    "is missing": IsMissing(),
    "product": Product(),
    "ratio": Ratio(),
    "difference": Difference(),
    "days between": DaysBetween(),
    "age": Age(),
}


@functools.lru_cache(4096)
def transform_of(text: str) -> Transform:
    """The transform that a text names, with its parameters."""
    text = " ".join(text.split())
    for name in sorted(TRANSFORMS, key=len, reverse=True):  # >= before >
        rest = text.removeprefix(name)
        if text.startswith(name) and (rest[:1] in ("", " ") or name in _SIGNS):
            try:
                return TRANSFORMS[name].with_parameters(rest.strip())
            except (ValueError, OverflowError):
                break
    raise families.COLUMNS(
        "'{transform}' is not a transform, or its parameters are not its own.",
        "Write one of: {known}; such as '> 1000', 'spline' with 'knots: [30, 50, 65]', "
        "'polynomial' with 'degree: 3', or 'age' with 'at: 2026-01-01'.",
        transform=text,
        known=tuple(TRANSFORMS),
    )


def in_days(numbers: Array, unit: DayCells | None) -> Array:
    """Numbers of a unit as whole days since 1970-01-01; the same numbers without a unit."""
    if unit is None:
        return numbers
    days: Array = np.rint(numbers * unit.days) + _days(unit.since)
    return days


@dataclass(frozen=True)
class Input:
    """A column of the table that a derived column reads.

    Attributes
    ----------
    name, coding
        Its name in the table, and how its cells become numbers.
    limits, missing
        The bounds to which cells are clamped, and the numbers that stand for a missing value.
    level
        The index of the level that becomes 1, and all others 0; None if cells stay numbers.
    unit
        What its numbers stand for, if dates become days since 1970-01-01; else None.
    """

    name: str
    coding: Any
    limits: Limits = UNLIMITED
    missing: tuple[float, ...] = ()
    level: int | None = None
    unit: DayCells | None = None

    @property
    def interval(self) -> Limits:
        """Bounds of the values."""
        if self.level is not None:
            return 0.0, 1.0
        lower, upper = in_days(np.array(self.limits), self.unit)
        return float(lower), float(upper)

    def values(self, cells: Array) -> Array:
        """The cells as the transform reads them."""
        if self.level is not None:
            return np.equal(cells, self.level).astype(np.float64)
        is_number = np.isfinite(cells)
        if self.missing:
            is_number &= ~np.isin(cells, self.missing)
        return in_days(np.clip(np.where(is_number, cells, np.nan), *self.limits), self.unit)


_BLOCK = 1 << 14  # rows whose intermediate results fit into a cache


@dataclass(frozen=True)
class Derivation:
    """How a derived column is computed from columns of the table: its coding."""

    inputs: tuple[Input, ...]
    transform: Transform

    @cached_property
    def limits(self) -> Limits:
        """Bounds that contain all values."""
        with np.errstate(all="ignore"):
            lower, upper = self.transform.limits(*(each.interval for each in self.inputs))
        return lower, upper

    def apply(self, *cells: Array) -> Array:
        """The value of every row from the cells of its inputs, shape (rows,); NaN where missing.

        Values that rounding alone puts outside of the bounds are moved to them.
        """
        made = np.empty(cells[0].shape)
        for start in range(0, made.size, _BLOCK):
            rows = slice(start, start + _BLOCK)
            pairs = zip(self.inputs, cells, strict=True)
            with np.errstate(all="ignore"):
                values = self.transform.apply(*(x.values(column[rows]) for x, column in pairs))
            np.clip(np.where(np.isfinite(values), values, np.nan), *self.limits, out=made[rows])
        return made

    @property
    def needs_cells(self) -> bool:
        """Whether the value of a row without cells is missing."""
        return bool(np.isnan(self.apply(*[np.array([np.nan])] * len(self.inputs))).all())


class DerivedFacts(Model):
    """What a release states of a derived column.

    Parameters
    ----------
    inputs
        Columns of the table that it is computed from, in order. A level is named ``sex=F``.
    transform
        Its name in `TRANSFORMS`, with its parameters: a text for `transform_of`. Of `rank`, with
        the knots and scores that the histograms give; without them in a plan.
    missing
        Numbers that stand for a missing value in inputs that are not published themselves.
    """

    inputs: tuple[str, ...]
    transform: str
    missing: tuple[Real, ...] = ()

    @model_validator(mode="after")
    def _check_transform(self) -> Self:
        if len(self.inputs) != self.function.inputs:
            raise families.INCOMPLETE_FACTS(
                "'{transform}' is computed from {count} columns.",
                transform=self.transform,
                count=self.function.inputs,
            )
        return self

    @property
    def function(self) -> Transform:
        """The transform."""
        return transform_of(self.transform)

    def limits(self, known: Mapping[str, Limits], units: Mapping[str, DayCells | None]) -> Limits:
        """Bounds that follow from those of the inputs that are known, by their names.

        `units`: what numbers stand for, of the inputs that are dates.
        """
        function = self.function
        reads = [
            Input(name, None, known.get(name, UNLIMITED), unit=function.unit_of(units.get(name)))
            for name in self.inputs
        ]
        return Derivation(tuple(reads), function).limits

    @property
    def in_words(self) -> str:
        """The column as a formula names it."""
        return self.function.in_words(*self.inputs)

    @property
    def declared(self) -> DerivedFacts:
        """The facts before histograms were drawn: those of the values that they count."""
        return self.model_copy(update={"transform": self.function.declared.text})
