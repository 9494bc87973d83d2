"""Columns that are functions of other cells of their row, such as ``log1p(income)``.

A transform is a class here and a line in `TRANSFORMS`. It is total: where it has no value, the cell
is missing. Its bounds follow from those of its inputs by interval arithmetic, so no bound depends
on a cell. The inputs are clamped to their own bounds first.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.model import Model

Array = NDArray[np.float64]
Limits = tuple[float, float]  # lower and upper bound; infinite where there is none


class DerivedFacts(Model):
    """What a release states of a derived column.

    Parameters
    ----------
    inputs
        Columns of the table that it is computed from, in order. A level is named ``sex=F``.
    transform
        Its name in `TRANSFORMS`, with its parameters: the text in the contract.
    """

    inputs: tuple[str, ...]
    transform: str


@dataclass(frozen=True)
class Transform(ABC):
    """A function of cells of one row.

    Attributes
    ----------
    inputs
        Number of columns that it reads.
    reads_dates
        Whether inputs that are not declared otherwise are dates, in days since 1970-01-01.
    """

    inputs: ClassVar[int] = 1
    reads_dates: ClassVar[bool] = False

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

    @abstractmethod
    def in_words(self, *inputs: str) -> str:
        """The column as a formula names it, such as ``log1p(income)`` or ``age:sex``."""


@dataclass(frozen=True)
class Monotone(Transform):
    """An increasing function of one cell, by its name in numpy."""

    name: str
    function: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    least: float = -math.inf  # the function is defined from here on

    def apply(self, *cells: Array) -> Array:
        (x,) = cells
        with np.errstate(all="ignore"):
            y = self.function(np.where(x >= self.least, x, np.nan))
        return np.where(np.isfinite(y), y, np.nan)

    def limits(self, *inputs: Limits) -> Limits:
        ((lower, upper),) = inputs
        ends = self.function(np.maximum([lower, upper], self.least))
        return float(ends[0]), float(ends[1])

    def back(self, values: Array) -> Array | None:
        return self.inverse(values)

    def in_words(self, *inputs: str) -> str:
        return f"{self.name}({inputs[0]})"


TRANSFORMS: dict[str, Transform] = {
    "log1p": Monotone("log1p", np.log1p, np.expm1, least=0.0),
    "asinh": Monotone("asinh", np.arcsinh, np.sinh),
    "sqrt": Monotone("sqrt", np.sqrt, np.square, least=0.0),
}
