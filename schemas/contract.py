"""The dataset contract: what the steward declares, in public, about a private table."""

from __future__ import annotations

import glob
import math
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

from schemas.errors import ContractError
from schemas.model import Delta, Epsilon, Model, Real, Slug, read_yaml

MOST_COLUMNS = 5000
INTERCEPT = "(intercept)"
# Cells of a CSV that are read as missing.
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "-", "?", ".")

Neighbours = Literal["replace-one", "add-remove"]
ProtectedUnit = Literal["row", "cell"]


class Budget(Model):
    """The most that all releases of a data set may ever cost together.

    Parameters
    ----------
    epsilon, delta
        Every adaptively chosen sequence of releases is (epsilon, delta)-differentially private.
    """

    epsilon: Epsilon
    delta: Delta


class Column(Model):
    """Public facts about a column, declared by someone who knows the field; never read off data.

    Parameters
    ----------
    lower, upper
        Bounds, in the column's units. Cells beyond them are clamped.
    centre
        Subtracted before normalisation, and taken for a cell that is missing or not finite.
        Default: the middle of the bounds.
    scale
        Divides the centred cell, in the column's units. Default: half the range.
    """

    lower: Real
    upper: Real
    centre: Annotated[float | None, Field(strict=True, allow_inf_nan=False)] = None
    scale: Annotated[float | None, Field(strict=True, gt=0, allow_inf_nan=False)] = None

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if not self.lower < self.upper:
            raise ValueError("'lower' must lie below 'upper'")
        if not self.lower <= self.middle <= self.upper:
            raise ValueError("'centre' must lie between 'lower' and 'upper'")
        reach = max(self.upper - self.middle, self.middle - self.lower)
        if not (self.spread > 0 and math.isfinite(reach) and math.isfinite(reach / self.spread)):
            raise ValueError("bounds and scale do not fit double precision; narrow the bounds")
        return self

    @property
    def middle(self) -> float:
        """The public centre in force."""
        return self.centre if self.centre is not None else self.lower / 2 + self.upper / 2

    @property
    def spread(self) -> float:
        """The public scale in force."""
        return self.scale if self.scale is not None else self.upper / 2 - self.lower / 2


class Levels(Model):
    """A column of categories, published as one column of zeros and ones for each level.

    Parameters
    ----------
    levels
        The categories, all texts or all numbers. A cell that is none of them is a zero in every
        one of the level's columns.
    """

    levels: Annotated[tuple[str | Real, ...], Field(min_length=1, max_length=1000)]

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if len({type(x) for x in self.levels}) > 1:
            raise ValueError("'levels' must be all texts or all numbers; put the numbers in quotes")
        if len(set(self.levels)) < len(self.levels):
            raise ValueError("'levels' names one twice")
        if any(isinstance(x, str) and (x != x.strip() or x in MISSING) for x in self.levels):
            raise ValueError("'levels' has one that is read as missing, or has blanks around it")
        return self


def _kind(column: Any) -> str:
    declared = column if isinstance(column, Mapping) else getattr(column, "__dict__", {})
    return "column-of-levels" if "levels" in declared else "column-of-numbers"


AnyColumn = Annotated[
    Annotated[Column, Tag("column-of-numbers")] | Annotated[Levels, Tag("column-of-levels")],
    Discriminator(_kind),
]


_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _unspeakable(name: str) -> bool:
    """Whether a name holds what XML and terminals do not take, or what reorders words around it.

    Controls, line breaks, no characters, and embedded or overridden directions.
    """
    unfit = {"Cc", "Cs", "Cn", "Zl", "Zp"}
    return any(unicodedata.category(x) in unfit or x in _TURNING for x in name)


def _line(words: str) -> str:
    """Words that stand on one line of a page."""
    if _unspeakable(words):
        raise ValueError("must be one line, without control characters")
    return words


Line = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
    AfterValidator(_line),
]


def features(name: str, levels: Iterable[str | float] | None) -> list[str]:
    """Columns of the matrix that a column of the table becomes."""
    if levels is None:
        return [name]
    return [f"{name}={x if isinstance(x, str) else format(x, '.17g')}" for x in levels]


class Contract(Model):
    """A data set, as the public may know it.

    Parameters
    ----------
    id
        Short name: lower-case letters, digits and hyphens.
    title, curator
        For people: what the data are, and who answers for them.
    source
        Path, glob or URL of the CSV or Parquet files; relative paths start at the contract's file.
    rows
        Under ``replace-one`` the public number of rows, checked when the table is read. Under
        ``add-remove`` a public planning figure, never compared with the data.
    columns
        The columns to publish, in the order of the matrix: numbers with bounds, or levels.
    intercept
        Whether the matrix begins with a column that is 1 in every row, before normalisation: it
        carries the means, and with levels the sizes and means of classes.
    budget
        Lifetime budget. Fixed when the data set is registered.
    neighbours
        ``replace-one`` (one row changed; the number of rows is public) or ``add-remove`` (one row
        present or absent; the number of rows is private).
    unit
        What is protected: one row, or one cell of it (for noisy rows only).
    """

    id: Slug
    title: Line
    curator: Line
    source: Annotated[str, Field(min_length=1)]
    rows: Annotated[int, Field(strict=True, ge=1, le=10**12)]
    columns: Annotated[dict[str, AnyColumn], Field(min_length=1, max_length=MOST_COLUMNS)]
    budget: Budget
    intercept: Annotated[bool, Field(strict=True)] = False
    neighbours: Neighbours = "replace-one"
    unit: ProtectedUnit = "row"

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.budget.delta >= 1 / self.rows:
            raise ValueError(
                "'budget.delta' must lie below 1/rows, or one row in the table may be given away"
            )
        if any(not name or name != name.strip() for name in self.columns):
            raise ValueError("a column's name in 'columns' is empty or has blanks around it")
        if any(_unspeakable(f) for n in self.columns for f in features(n, self.levels(n))):
            raise ValueError("a name in 'columns' holds a control character; rename it")
        all_features = [INTERCEPT, *(f for n in self.columns for f in features(n, self.levels(n)))]
        if len(set(all_features)) < len(all_features):
            raise ValueError("two columns of the matrix would have one name; rename one")
        if len(all_features) - 1 > MOST_COLUMNS:
            raise ValueError(f"the matrix would have more than {MOST_COLUMNS} columns")
        return self

    @property
    def names(self) -> list[str]:
        """Names of the table's columns."""
        return list(self.columns)

    def levels(self, name: str) -> tuple[str | float, ...] | None:
        """Levels of a column, or None where it holds numbers."""
        column = self.columns[name]
        return column.levels if isinstance(column, Levels) else None

    def in_whole_numbers(self) -> Contract:
        """The same with bounds and centres that are whole, and nothing scaled.

        Raises
        ------
        ContractError
            If a column's bounds hold no whole number, or reach beyond 2^31.
        """
        columns: dict[str, AnyColumn] = {}
        for name, column in self.columns.items():
            if isinstance(column, Levels):
                columns[name] = column
                continue
            low, high = math.ceil(column.lower), math.floor(column.upper)
            if not (low < high and max(-low, high) <= 1 << 31):
                raise ContractError(
                    f"key 'columns.{name}': its bounds hold no range of whole numbers.",
                    "Declare whole bounds, the lower below the upper, within 2147483648.",
                )
            middle = min(max(round(column.middle), low), high)
            columns[name] = Column(lower=low, upper=high, centre=middle, scale=1.0)
        return self.model_copy(update={"columns": columns})

    def terms(self) -> dict[str, Any]:
        """The facts that are fixed at registration, because the guarantees rest on them."""
        return {
            "id": self.id,
            "neighbours": self.neighbours,
            "unit": self.unit,
            "budget": self.budget.model_dump(),
            "columns": [
                {"name": n, "levels": list(c.levels)}
                if isinstance(c, Levels)
                else {"name": n, "lower": c.lower, "upper": c.upper}
                | {"centre": c.middle, "scale": c.spread}
                for n, c in self.columns.items()
            ],
            **({"intercept": True} if self.intercept else {}),
        }


def read_contract(path: Path) -> Contract:
    """Read a contract from YAML; its relative `source` is resolved against the file's folder.

    Raises
    ------
    ContractError
        Naming the file, the key and the mend.
    """
    contract = read_yaml(Contract, path, ContractError)
    if "://" in contract.source or Path(contract.source).is_absolute():
        return contract
    folder, source = path.resolve().parent, contract.source
    if glob.has_magic(source) and not (folder / source).is_file():
        return contract.model_copy(update={"source": f"{glob.escape(str(folder))}/{source}"})
    return contract.model_copy(update={"source": str(folder / source)})
