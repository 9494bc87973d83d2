"""The dataset contract: what the steward declares, in public, about a private table."""

from __future__ import annotations

import glob
import math
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from gramercy.schemas.budget import Budget, window_of
from gramercy.schemas.column import INTERCEPT, AnyColumn, Column, Levels, features
from gramercy.schemas.errors import ContractError
from gramercy.schemas.model import Model, Slug, cannot_be_shown, one_line

MOST_COLUMNS = 5000
YEAR = "{year}"

Neighbours = Literal["replace-one", "add-remove"]
ProtectedUnit = Literal["row", "cell", "person"]
_ROW, _CELL = "row", "cell"

Line = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
    AfterValidator(one_line),
]


class Contract(Model):
    """A data set, as the public may know it.

    Parameters
    ----------
    id
        Short name: lower-case letters, digits and hyphens.
    title, curator
        For people: what the data are, and who answers for them.
    source
        Path, glob or URL of the CSV or Parquet files, or of a folder of them, whose own folders may
        be called ``column=value``; relative paths start at the contract's file.
        Where the budget is per year it holds ``{year}``: the files of each year are apart.
    rows
        Under ``replace-one`` the public number of rows, checked when the table is read. Under
        ``add-remove``, or where persons are protected, a public planning figure, never compared
        with the data.
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
        What is protected: ``row``; ``cell`` (for noisy rows only); or a person with all their
        rows: then it names the column that says whose a row is, which is none of `columns`. A row
        without a name in it is nobody's, and left out.
    persons
        Where persons are protected: their number, as `rows` is elsewhere.
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
    unit: Annotated[str, Field(min_length=1)] = _ROW
    persons: Annotated[int | None, Field(strict=True, ge=1, le=10**10)] = None

    @model_validator(mode="after")
    def _of_persons(self) -> Self:
        if self.protects != "person":
            if self.persons is not None:
                raise ValueError(
                    "'persons' needs a column that says whose a row is: name it in 'unit'"
                )
            return self
        if self.unit in self.columns:
            raise ValueError(
                f"'unit' names '{self.unit}', which is one of 'columns': whose a row is cannot be "
                "published as a number"
            )
        if cannot_be_shown(self.unit) or self.unit != self.unit.strip():
            raise ValueError("'unit' holds a control character, or has blanks around it")
        if self.persons is None:
            raise ValueError(
                f"'unit: {self.unit}' protects whoever that column names, so that 'persons' has to "
                "say how many there are (to protect rows, say 'unit: row')"
            )
        if self.persons > self.rows:
            raise ValueError("'persons' are more than 'rows'")
        if self.budget.per == "year":
            raise ValueError(
                f"'budget.per: year' protects rows only, but 'unit: {self.unit}' protects persons: "
                "a person may have rows in many years, and would spend the budget of each. Write "
                "'per: lifetime' and a source without '{year}', or 'unit: row'"
            )
        return self

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.budget.delta >= 1 / self.count:
            raise ValueError(
                f"'budget.delta' must lie below 1/{self.count_key}, or one in the table may be "
                "given away"
            )
        if (YEAR in self.source) != (self.budget.per == "year"):
            raise ValueError(
                f"'source' holds '{YEAR}' if, and only if, 'budget.per' is 'year': the rows of "
                "each year lie in files of their own"
            )
        if self.budget.per == "year" and not _apart(self.source):
            raise ValueError(
                f"'source' must contain '{YEAR}' once, outside brackets, with no '..', no '**', "
                "and wildcards on one side of it only, so that no file belongs to two years"
            )
        if any(not name or name != name.strip() for name in self.columns):
            raise ValueError("a column's name in 'columns' is empty or has blanks around it")
        if any(cannot_be_shown(f) for n in self.columns for f in features(n, self.levels(n))):
            raise ValueError("a name in 'columns' holds a control character; rename it")
        all_features = [INTERCEPT, *(f for n in self.columns for f in features(n, self.levels(n)))]
        if len(set(all_features)) < len(all_features):
            raise ValueError("two columns of the matrix would have one name; rename one")
        if len(all_features) - 1 > MOST_COLUMNS:
            raise ValueError(f"the matrix would have more than {MOST_COLUMNS} columns")
        return self

    @property
    def protects(self) -> ProtectedUnit:
        """What the guarantees are about."""
        return "row" if self.unit == _ROW else "cell" if self.unit == _CELL else "person"

    @property
    def owner(self) -> str | None:
        """The column that says whose a row is, where persons are protected."""
        return self.unit if self.protects == "person" else None

    @property
    def count(self) -> int:
        """What the matrix is divided by: `persons` where they are protected, else `rows`."""
        return self.persons or self.rows

    @property
    def checks_rows(self) -> bool:
        """Whether `rows` is public, and has to be what the table holds."""
        return self.neighbours == "replace-one" and self.owner is None

    @property
    def count_key(self) -> str:
        """The key that says it, and what it counts."""
        return "persons" if self.persons else "rows"

    @property
    def names(self) -> list[str]:
        """Names of the table's columns."""
        return list(self.columns)

    def levels(self, name: str) -> tuple[str | float, ...] | None:
        """Levels of a column, or None where it holds numbers."""
        column = self.columns[name]
        return column.levels if isinstance(column, Levels) else None

    def window(self, version: str) -> str:
        """The calendar year of the data whose budget a version is charged to; see `window_of`."""
        return window_of(self.budget, version)

    def of_version(self, version: str) -> Contract:
        """The same for the files that hold a version's rows."""
        window = self.window(version)
        source = self.source.replace(YEAR, window) if window else self.source
        return self.model_copy(update={"source": source})

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


def _apart(source: str) -> bool:
    """Whether the names of files tell years apart: no name matches the pattern of two years."""
    parts = source.split("/")  # in a glob of fsspec a backslash separates nothing
    name = next((part for part in parts if YEAR in part), "")
    before, _, after = name.partition(YEAR)
    both = glob.has_magic(before) and glob.has_magic(after)
    in_brackets = "[" in before and "]" in after
    return source.count(YEAR) == 1 and not both and not in_brackets and not {"..", "**"} & {*parts}
