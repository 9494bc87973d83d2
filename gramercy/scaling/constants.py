"""Centre and scale of a column, with the bounds to which its cells are clamped."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

WINSOR = 10.0  # a typical limit, for predictions before a release
LEAST_WINSOR, LARGEST_WINSOR = 6.0, 40.0
BINS = 16


@dataclass(frozen=True)
class Constants:
    """Constants of a numeric column, from published counts.

    Parameters
    ----------
    centre, scale
        In the column's units; `scale` is positive.
    present
        Share of rows with a value, in (0, 1].
    winsor
        Number of scales from the centre to which cells are clamped. It grows with the number of
        rows per noise: with little noise a clamped tail is the largest error, with much noise a
        scale that is too small would let a few cells make most rows long.
    bins
        Number of equal bins around the centre that suits the next histogram. Its counts have the
        same noise however narrow the bins are: many bins pay only if noise is small, or if nearly
        all cells are in one bin, so that the scale is not known yet.
    """

    centre: float
    scale: float
    present: float
    winsor: float = WINSOR
    bins: int = BINS


def winsorised_bounds(
    constants: Constants, lower: float | None, upper: float | None
) -> tuple[float, float]:
    """Return the bounds, in the column's units, to which cells are clamped before scaling.

    They are `Constants.winsor` scales from the centre, and within the declared bounds.
    """
    reach = constants.winsor * constants.scale
    low, high = constants.centre - reach, constants.centre + reach
    return (
        low if lower is None else max(lower, low),
        high if upper is None else min(upper, high),
    )


def rounded(centre: float, scale: float) -> tuple[float, float]:
    """Round a scale to three digits, and a centre to a tenth of the scale's leading power of ten.

    Three digits of the centre itself would turn 1013.25 with a scale of 0.1 into 1010. The
    arithmetic is decimal, so that the result is the nearest number to a short decimal.
    """
    step = Decimal(1).scaleb(Decimal(scale).adjusted() - 1)
    steps = int((Decimal(centre) / step).to_integral_value())  # an integer has no negative zero
    return float(steps * step), float(f"{scale:.2e}")
