"""The integer lattice on which rows are rounded and exactly summed, and noise is added."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gramercy.schemas import families

MIN_BITS, MAX_BITS = 10, 20
_MIN_RATIO = 5.0  # lower bound on 2^K / sqrt(m p), so that c is at least 0.9
ROW_BITS = 16


@dataclass(frozen=True)
class Lattice:
    """Maps rows x of the unit ball to integer rows q = round(2^K c x) with sum q^2 <= 2^(2K).

    Notes
    -----
    c = 1 - sqrt(m p) 2^-(K+1): rounding moves m rows by at most sqrt(m p)/2, so they cannot leave
    the ball. The Gram matrix of integer rows has units of 2^-2K; a release also divides by c^2.
    """

    p: int  # number of columns
    bits: int  # k, the bits of a cell
    # m, the number of rows whose squares together must stay in the ball: one, or the rows of nearly
    # any person
    rows_in_ball: float = 1.0

    def __post_init__(self) -> None:
        if not self.shrinkage > 0:
            raise families.REQUEST_KEYS(
                "A lattice of {bits} bits is too coarse for {columns} columns and {rows:g} rows "
                "per person.",
                "Use more bits.",
                bits=self.bits,
                columns=self.p,
                rows=self.rows_in_ball,
            )

    @property
    def shrinkage(self) -> float:
        """c, rounded down."""
        return math.nextafter(
            1 - math.sqrt(self.p * self.rows_in_ball) * 2.0 ** -(self.bits + 1), 0
        )

    @property
    def unit_length(self) -> float:
        """2^K c: the length of a unit row in lattice units, before rounding."""
        return math.ldexp(self.shrinkage, self.bits)

    @property
    def squared_radius(self) -> int:
        """2^(2K): the upper bound on the sum of squares of an integer row."""
        return 1 << (2 * self.bits)

    @property
    def divisor(self) -> float:
        """2^(2K) c^2: divides the Gram matrix of integer rows into that of the original rows."""
        return self.shrinkage * self.shrinkage * self.squared_radius

    @property
    def step(self) -> float:
        """The length of one lattice unit."""
        return 1 / self.unit_length

    @classmethod
    def fitting(
        cls,
        p: int,
        units: int,
        scale: float,
        rows_per_person: float = 1.0,
        most_scale: float = math.inf,
    ) -> Lattice:
        """The coarsest lattice that costs no accuracy, from public facts only.

        Parameters
        ----------
        units
            Declared number of rows, or of persons if they are protected.
        most_scale
            The largest noise that can be drawn, in lattice units: a finer lattice is not used.

        Notes
        -----
        K is the smallest number in [10, 20] for which rounding adds less than s/1000 to a diagonal
        entry (n 2^-2K / 12), and dividing by c adds less than 0.1 % to the noise (sqrt(m p) 2^-K,
        with m = 1, or sixteen times `rows_per_person` where that is not one); but n 2^2K stays
        below 2^62. The cost of c may be larger, up to a tenth, where a finer lattice would make the
        noise larger than 2^32 units; if the cost would exceed a tenth, m is reduced.
        """
        bits, rows_in_ball = MIN_BITS, 1.0 if rows_per_person == 1 else 16 * rows_per_person
        shift = math.sqrt(p * rows_in_ball)
        while (
            bits < MAX_BITS
            and (
                units * rows_per_person / (12 * 4.0**bits) > scale / 1000
                or (shift > 2.0**bits / 1000 and scale * 4.0 ** (bits + 1) < 2.0**32)
                or (shift > 2.0**bits / _MIN_RATIO and scale * 4.0 ** (bits + 1) < 2.0**54)
            )
            and units << (2 * bits + 2) < 1 << 62
            and scale * 4.0 ** (bits + 1) <= most_scale
        ):
            bits += 1
        return cls(p, bits, min(rows_in_ball, max(1.0, (2.0**bits / _MIN_RATIO) ** 2 / p)))


@dataclass(frozen=True)
class UnscaledLattice(Lattice):
    """The integers themselves, for rows of whole numbers: c = 1 and K = 0."""

    bits: int = 0

    @property
    def shrinkage(self) -> float:
        """One: rows keep their scale."""
        return 1.0


def row_lattice(p: int) -> Lattice:
    """The lattice for publishing rows."""
    return Lattice(p, ROW_BITS)
