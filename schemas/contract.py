"""The dataset contract: what the steward declares, in public, about a private table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from schemas.errors import ContractError
from schemas.model import Delta, Epsilon, Model, Real, Slug, read_yaml

Neighbours = Literal["replace-one", "add-remove"]


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
        The columns to publish, in the order of the matrix.
    budget
        Lifetime budget. Fixed when the data set is registered.
    neighbours
        ``replace-one`` (one row changed; the number of rows is public) or ``add-remove`` (one row
        present or absent; the number of rows is private).
    unit
        What is protected: one row.
    """

    id: Slug
    title: Annotated[str, Field(min_length=1, max_length=200)]
    curator: Annotated[str, Field(min_length=1, max_length=200)]
    source: Annotated[str, Field(min_length=1)]
    rows: Annotated[int, Field(strict=True, ge=1, le=10**12)]
    columns: Annotated[dict[str, Column], Field(min_length=1, max_length=5000)]
    budget: Budget
    neighbours: Neighbours = "replace-one"
    unit: Literal["row"] = "row"

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.budget.delta >= 1 / self.rows:
            raise ValueError(
                "'budget.delta' must lie below 1/rows, or one row in the table may be given away"
            )
        if any(not name or name != name.strip() for name in self.columns):
            raise ValueError("a column's name in 'columns' is empty or has blanks around it")
        return self

    @property
    def names(self) -> list[str]:
        """Column names, in the order of the matrix."""
        return list(self.columns)

    def terms(self) -> dict[str, Any]:
        """The facts that are fixed at registration, because the guarantees rest on them."""
        return {
            "id": self.id,
            "neighbours": self.neighbours,
            "unit": self.unit,
            "budget": self.budget.model_dump(),
            "columns": [
                {"name": n, "lower": c.lower, "upper": c.upper, "centre": c.middle}
                | {"scale": c.spread}
                for n, c in self.columns.items()
            ],
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
    return contract.model_copy(update={"source": str(path.resolve().parent / contract.source)})
