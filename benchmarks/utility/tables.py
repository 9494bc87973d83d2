"""Rows and comparisons for the page, from the measured cells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from benchmarks.utility.cells import METHODS, Cell, Error, Result
from benchmarks.utility.data import TABLES
from benchmarks.utility.guarantees import GRID, Kind
from benchmarks.utility.ours import OURS, unit_noise

Results = dict[Cell, Result]
Norm = Literal["frobenius", "spectral"]
NORMS: tuple[Norm, ...] = ("frobenius", "spectral")
SURE = 2.0  # standard errors that a difference has to exceed


@dataclass(frozen=True)
class Figure:
    """A mean error and its standard error in one norm."""

    mean: float
    error: float

    @classmethod
    def of(cls, error: Error, norm: Norm) -> Figure:
        return cls(getattr(error, norm), getattr(error, f"{norm}_se"))

    def __str__(self) -> str:
        smallest = min(self.mean / 100, self.error or self.mean)
        digits = max(0, -math.floor(math.log10(smallest)))
        return f"{self.mean:.{digits}f} ± {self.error:.{digits}f}"

    def below(self, other: Figure) -> bool:
        """Whether this error is significantly smaller than the other."""
        return other.mean - self.mean > SURE * math.hypot(self.error, other.error)


@dataclass(frozen=True)
class Row:
    """One form of one method on one table and kind of guarantee."""

    method: str
    form: str
    figures: dict[float, Figure]

    @property
    def title(self) -> str:
        return f"{METHODS[self.method].title}, {self.form}"


def rows(results: Results, dataset: str, kind: Kind, norm: Norm) -> list[Row]:
    """Return every measured form of every method, in the order of `METHODS`."""
    found: dict[tuple[str, str], dict[float, Figure]] = {}
    for name in METHODS:
        for value in GRID[kind]:
            result = results.get(Cell(dataset, kind, value, name))
            for form, error in result.forms.items() if result else ():
                found.setdefault((name, form), {})[value] = Figure.of(error, norm)
    return [Row(name, form, figures) for (name, form), figures in found.items()]


def chosen(kind: Kind, p: int) -> str:
    """Name of Gramercy's mechanism with the least noise for p columns."""
    able = [method.name for method in OURS if kind in method.kinds]
    return min(able, key=lambda name: unit_noise(name, p))


def headline(result: list[Row], kind: Kind, p: int) -> Row | None:
    """The row of Gramercy's mechanism and form, chosen by public facts, not by these errors."""
    name = chosen(kind, p)
    return next((r for r in result if (r.method, r.form) == (name, METHODS[name].headline)), None)


def rivals(result: list[Row]) -> list[Row]:
    """Return the rows of the peers."""
    return [row for row in result if METHODS[row.method].headline is None]


def best(result: list[Row]) -> list[Row]:
    """Return one row per method: in every cell, its form with the smallest error."""
    merged: dict[str, dict[float, tuple[Figure, str]]] = {}
    for row in result:
        held = merged.setdefault(row.method, {})
        for value, figure in row.figures.items():
            if value not in held or figure.mean < held[value][0].mean:
                held[value] = (figure, row.form)
    return [
        Row(name, "best form", {value: figure for value, (figure, _) in held.items()})
        for name, held in merged.items()
    ]


@dataclass(frozen=True)
class Comparison:
    """Gramercy and a rival in its best form, compared in one cell and norm."""

    dataset: str
    kind: Kind
    value: float
    norm: Norm
    rival: str
    ours: Figure
    theirs: Figure

    @property
    def verdict(self) -> Literal["less", "tie", "more"]:
        """Whether Gramercy's error is less, more, or not significantly different."""
        if self.ours.below(self.theirs):
            return "less"
        return "more" if self.theirs.below(self.ours) else "tie"

    @property
    def ratio(self) -> float:
        return self.theirs.mean / self.ours.mean


def comparisons(results: Results) -> Iterator[Comparison]:
    """Yield all measured comparisons, in both norms."""
    for dataset, table in TABLES.items():
        for kind, norm in ((kind, norm) for kind in GRID for norm in NORMS):
            found = rows(results, dataset, kind, norm)
            ours = headline(found, kind, table.p)
            if ours is None:
                continue
            for rival in best(rivals(found)):
                for value in rival.figures.keys() & ours.figures.keys():
                    yield Comparison(
                        dataset, kind, value, norm, rival.method,
                        ours.figures[value], rival.figures[value],
                    )  # fmt: skip
