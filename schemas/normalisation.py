"""Normalisations: how the length of every row is bounded."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from gramercy.schemas import wordings
from gramercy.schemas.form import Select
from gramercy.schemas.model import Model, NotNegative, Positive, expand_kind


class RowNormalisation(Model):
    """How the length of every row is bounded.

    Attributes
    ----------
    unit_rows
        Whether all rows but zeros have length 1, so that the trace counts them.
    by_bounds
        Whether rows are divided by the largest l2 norm that the columns' bounds allow.
    keeps_rows
        Whether rows stay as they are.
    """

    unit_rows: ClassVar[bool] = False
    by_bounds: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = False

    @property
    def lacks_radius(self) -> bool:
        """Whether its radius is still to be chosen."""
        return False

    def longest(self, largest_norm: float) -> float | None:
        """Length of the longest row before the division; None if rows have divisors of their own.

        Parameters
        ----------
        largest_norm
            The largest l2 norm that the columns' bounds allow.
        """
        return largest_norm

    def divisor(self, largest_norm: float) -> float | None:
        """By what all rows are divided; None if rows have divisors of their own."""
        return self.longest(largest_norm)

    def largest_square(self, largest_norm: float) -> float:
        """Largest squared l2 norm of a normalised row; bounds the trace of the matrix."""
        return 1.0

    def of_rows(self, largest_norm: float) -> Unit | Clip | Whole:
        """The same for rows whose largest norm is known: a box is a clip that shortens no row."""
        return Clip(radius=largest_norm)

    @abstractmethod
    def stated(self, largest_norm: float) -> str:
        """What is done with rows, as a card says it."""


class Unit(RowNormalisation):
    """Every row is divided by its own l2 norm; a row of zeros stays zero."""

    unit_rows: ClassVar[bool] = True

    kind: Literal["unit"] = "unit"

    def longest(self, largest_norm: float) -> float | None:
        return None

    def of_rows(self, largest_norm: float) -> Unit:
        return self

    def stated(self, largest_norm: float) -> str:
        return "divided by its own l2 norm"


class Clip(RowNormalisation):
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
    def lacks_radius(self) -> bool:
        return self.radius is None

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

    def longest(self, largest_norm: float) -> float:
        return self.length

    def of_rows(self, largest_norm: float) -> Clip:
        return self

    def stated(self, largest_norm: float) -> str:
        r = self.length
        return (
            f"clipped to l2 norm {r:g}, then divided by {r:g} (multiply the matrix by "
            f"{r * r:.6g} to return to centred and scaled columns)"
        )


class Box(RowNormalisation):
    """Every row is divided by the largest l2 norm that the columns' bounds allow.

    Changing one cell then changes no other cell, as a guarantee per cell requires.
    """

    by_bounds: ClassVar[bool] = True

    kind: Literal["box"]

    def stated(self, largest_norm: float) -> str:
        return f"divided by {largest_norm:.9g}, the largest l2 norm that the bounds allow"


class Whole(RowNormalisation):
    """Rows of whole numbers are not changed; for ``integer-rows``."""

    keeps_rows: ClassVar[bool] = True

    kind: Literal["whole"]

    def divisor(self, largest_norm: float) -> float:
        return 1.0

    def largest_square(self, largest_norm: float) -> float:
        return largest_norm**2

    def of_rows(self, largest_norm: float) -> Whole:
        return self

    def stated(self, largest_norm: float) -> str:
        return (
            "kept as integers (nothing is scaled; published rows are in the units of the table, "
            "and their second moment is about the centres)"
        )


class FurtherRows(RowNormalisation):
    """Rows of a further matrix of a release, which is summed in passes of its own; never requested.

    Every row becomes a row of the unit ball, as in the released matrix.
    """

    radius: Positive

    @property
    @abstractmethod
    def norm(self) -> float:
        """Largest Frobenius norm of what a row adds to the published matrix."""

    def width(self, columns: int) -> int:
        """Number of columns of the further matrix, where the released one has `columns`."""
        return columns


class Lost(FurtherRows):
    """What clipping takes away from a row, for the matrix of lost moments.

    Of a scaled row z, the matrix at radius r has w z z^T, where w = min(1, r^2/|z|^2). With y the
    row z with another number for its intercept, (1 - w) y y^T is lost. It is cut to the Frobenius
    norm `largest`, and then divided by it.

    Parameters
    ----------
    radius
        r, at which rows are clipped, in the metric in which they are measured.
    unit
        The radius of `Clip`, in the metric of scaled columns: the same, unless rows are measured in
        another one.
    cut
        k: a row loses at most k times the square of the unit.
    intercept
        Stands for the intercept in y; 0 for rows without an intercept.
    in_metric
        Whether rows are measured in the metric of a pilot matrix.
    """

    kind: Literal["lost"] = "lost"
    unit: Positive
    cut: Positive
    intercept: NotNegative
    in_metric: bool = False

    @property
    def norm(self) -> float:
        """The published matrix is in the units of the released one, squares of the unit."""
        return self.cut

    @property
    def largest(self) -> float:
        """Largest Frobenius norm of what a row loses, in scaled units."""
        return self.cut * self.unit * self.unit

    def longest(self, largest_norm: float) -> float:
        return math.sqrt(self.cut) * self.unit

    def stated(self, largest_norm: float) -> str:
        row = "|A z|²" if self.in_metric else "|z|²"
        return (
            f"(1 - w) y yᵀ, cut to Frobenius norm {self.largest:.6g}, where w = min(1, r²/{row}), "
            f"r = {self.radius:g}, and y is the scaled row z with {self.intercept:.6g} for its "
            "intercept"
        )


class Missing(FurtherRows):
    """Which cells of a row are missing, with the row itself, for the matrix of missing cells.

    With x the row of the released matrix, |x| <= 1, and m the indicators of missing cells, the row
    is (b x, m), where b^2 = k, and m is cut to |m|^2 <= k; then it is divided by sqrt(2 k).

    Parameters
    ----------
    radius
        The radius of `Clip`.
    cut
        k.
    columns
        The table columns with missing cells, by their number.
    indicator
        What stands for a missing cell in m.
    """

    kind: Literal["missing"] = "missing"
    cut: Positive
    columns: tuple[int, ...]
    indicator: Positive

    @property
    def norm(self) -> float:
        """The published matrix averages over rows (b x, m)."""
        return 2 * self.cut

    def width(self, columns: int) -> int:
        return columns + len(self.columns)

    def longest(self, largest_norm: float) -> float:
        return math.sqrt(self.norm)

    def stated(self, largest_norm: float) -> str:
        return (
            f"y yᵀ, where y is {math.sqrt(self.cut):.6g} times this row, and then "
            f"{self.indicator:.6g} for each missing cell of the {len(self.columns)} columns that "
            f"have some, these together cut to squared l2 norm {self.cut:.6g}"
        )


AnyNormalisation = Unit | Clip | Box | Whole
Normalisation = Annotated[
    Annotated[AnyNormalisation, Field(discriminator="kind"), Select("kind")],
    BeforeValidator(expand_kind),
]
