"""What noise may depend on: public facts of a table, worked out from what was declared."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import row_lattice
from gramercy.mechanisms.mechanism import Reach, Setting
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.manifest import FORMAT, Asked
from gramercy.schemas.normalisation import Box, Clip, Unit, Whole

AnyFacts = ColumnFacts | LevelsFacts


def setting(asked: Asked) -> Setting:
    """The public facts of a table, as mechanisms take them."""
    how, p = asked.normalisation, len(asked.names)
    reach, power = None, 1.0
    if isinstance(how, Box):
        per_unit = row_lattice(p).cell
        reach = _reach(asked.columns, asked.longest, per_unit, longest=row_lattice(p).ball)
        power = _power(asked, asked.longest)
    if isinstance(how, Whole):
        reach = _reach(asked.columns, 1.0, 1.0, longest=math.ceil(asked.longest**2))
        power = _power(asked, 1.0)
    return Setting(
        p=p,
        n=asked.dataset.count,
        each=asked.dataset.rows / asked.dataset.count,
        neighbours=asked.neighbours,
        counted=asked.counted,
        unit=asked.unit,
        reach=reach,
        power=power,
        failures=asked.budget.failures if asked.budget else None,
        format=FORMAT if asked.budget else 5,  # only bundles before format 6 state no budget
    )


def normalised(asked: Asked) -> Unit | Clip | Whole:
    """What is done to every row: a box is a radius that no row exceeds."""
    how = asked.normalisation
    return Clip(kind="clip", radius=asked.longest) if isinstance(how, Box) else how


def shift(asked: Asked) -> NDArray[np.float64]:
    """What is added to published rows: whole numbers return to the table's own; shape (p, 1)."""
    moved = [0.0] if asked.intercept else []
    for column in asked.columns:
        if isinstance(column, LevelsFacts):
            moved += [0.0] * len(column.levels)
        else:
            moved.append(column.centre if isinstance(asked.normalisation, Whole) else 0.0)
    return np.array(moved)[:, None]


def _power(asked: Asked, length: float) -> float:
    """The squared length of a row whose cells take every value alike, in units of a length."""
    squares = [1 / length**2] if asked.intercept else []
    for column in asked.columns:
        if isinstance(column, LevelsFacts):
            squares.append(1 / length**2)
        else:
            unit = column.scale * length
            off = (column.lower / 2 + column.upper / 2 - column.centre) / unit
            squares.append((column.upper / unit - column.lower / unit) ** 2 / 12 + off**2)
    return math.fsum(squares)


def _reach(columns: Sequence[AnyFacts], length: float, per_unit: float, *, longest: int) -> Reach:
    """How far integer rows move, by the very arithmetic that makes them."""
    cells = []
    for column in columns:
        if isinstance(column, LevelsFacts):
            one = int(np.rint(1.0 / length * per_unit))
            cells.append((2 if len(column.levels) > 1 else 1) * one * one)
        else:
            ends = [(end - column.centre) / column.scale for end in (column.lower, column.upper)]
            low, high = (int(np.rint(end / length * per_unit)) for end in ends)
            cells.append((high - low) ** 2)
    return Reach(row=sum(cells), cell=max(cells), longest=longest)
