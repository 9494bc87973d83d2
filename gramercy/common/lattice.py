"""The integer lattice on which rows are rounded, summed exactly and made noisy."""

from __future__ import annotations

import math
from dataclasses import dataclass

MIN_BITS, MAX_BITS = 10, 20
_FAR = 5.0  # c is at least 0.9 where rounding moves what is in the ball by a tenth of it at most
ROW_BITS = 16


@dataclass(frozen=True)
class Lattice:
    """Rows of the unit ball become integer rows q = round(2^K c x) with sum q^2 <= 2^(2K).

    Parameters
    ----------
    p
        Number of columns.
    bits
        K, the bits per cell.
    together
        Rows that have to be in the ball together, m: one, or most of what one person has.

    Notes
    -----
    c = 1 - sqrt(m p) 2^-(K+1): rounding moves m rows by at most sqrt(m p)/2, so they cannot leave
    the ball. The Gram matrix of integer rows counts units of 2^-2K; a release divides by c^2, too.
    """

    p: int
    bits: int
    together: float = 1.0

    def __post_init__(self) -> None:
        if not self.shrink > 0:
            raise ValueError("the lattice is too coarse for what has to lie in the ball together")

    @property
    def shrink(self) -> float:
        """c, rounded down."""
        return math.nextafter(1 - math.sqrt(self.p * self.together) * 2.0 ** -(self.bits + 1), 0)

    @property
    def cell(self) -> float:
        """2^K c: the length of a unit row, in integers, before rounding."""
        return math.ldexp(self.shrink, self.bits)

    @property
    def ball(self) -> int:
        """2^(2K): the most that the squares of an integer row may sum to."""
        return 1 << (2 * self.bits)

    @property
    def divisor(self) -> float:
        """2^(2K) c^2: Gram units per unit of the Gram matrix of the original rows."""
        return self.shrink * self.shrink * self.ball

    @property
    def step(self) -> float:
        """What one integer of a row stands for."""
        return 1 / self.cell

    @classmethod
    def fitting(cls, p: int, units: int, scale: float, each: float = 1.0) -> Lattice:
        """The coarsest lattice that costs no accuracy, from public facts alone.

        Parameters
        ----------
        p, units
            Columns, and rows or persons as declared: what lies in the ball.
        scale
            Standard deviation s of the noise on a diagonal entry of the Gram matrix.
        each
            Rows of one person, on average.

        Notes
        -----
        The smallest K in [10, 20] for which rounding adds less than s/1000 to a diagonal entry (n
        2^-2K / 12) and the shrinking by c less than 0.1 % to the noise (sqrt(m p) 2^-K, with m
        sixteen times `each` where that is not one), as long as n 2^2K stays below 2^62. Shrinking
        may cost more, up to a tenth, where a finer lattice would make the noise larger than 2^32
        units; m is smaller where it would cost more than that.
        """
        bits, together = MIN_BITS, 1.0 if each == 1 else 16 * each
        far = math.sqrt(p * together)
        while (
            bits < MAX_BITS
            and (
                units * each / (12 * 4.0**bits) > scale / 1000
                or (far > 2.0**bits / 1000 and scale * 4.0 ** (bits + 1) < 2.0**32)
                or (far > 2.0**bits / _FAR and scale * 4.0 ** (bits + 1) < 2.0**54)
            )
            and units << (2 * bits + 2) < 1 << 62
        ):
            bits += 1
        return cls(p, bits, min(together, max(1.0, (2.0**bits / _FAR) ** 2 / p)))


@dataclass(frozen=True)
class WholeNumbers(Lattice):
    """Rows that are whole numbers already: nothing is shrunk, and one is one."""

    bits: int = 0

    @property
    def shrink(self) -> float:
        """None."""
        return 1.0


def row_lattice(p: int) -> Lattice:
    """The lattice of rows that are published one by one."""
    return Lattice(p, ROW_BITS)
