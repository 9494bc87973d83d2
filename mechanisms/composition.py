"""What releases cost together, in exact integers: a million charges add up to what they are.

Sources: Dong, Roth, Su (2022) for the composition of mu-GDP; Smith and Thakurta (2022) for the
Gaussian-DP filter, which holds for adaptively chosen releases; basic composition for pure epsilons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from mechanisms.guarantee import Guarantee, gdp_within

_MOST = 1e9  # of a mu: beyond it nothing is private, and no budget holds it
_BITS = 256  # every double above 2^-204, and the square of every mu above 2^-76, is whole


@dataclass(frozen=True)
class Total:
    """The sum of charges, in units of 2^-256: exact, or rounded up where a double is finer.

    Parameters
    ----------
    squares
        Of the mu.
    failures
        Of the probabilities delta0 with which each mu may fail.
    pure
        Of the pure epsilons; None once a charge has none.
    """

    squares: int = 0
    failures: int = 0
    pure: int | None = 0

    def plus(self, charge: Guarantee, times: int = 1) -> Total:
        """One more charge, or several of the same."""
        known = self.pure is not None and charge.pure < math.inf
        return Total(
            self.squares + times * _units(charge.mu, 2),
            self.failures + times * _units(charge.delta0),
            (self.pure or 0) + times * _units(charge.pure) if known else None,
        )

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all of them together, rounded up."""
        root = math.isqrt(self.squares << _BITS)
        root += root * root < self.squares << _BITS
        pure = math.inf if self.pure is None else _double(self.pure)
        return Guarantee(_double(root), min(1.0, _double(self.failures)), pure)

    def within(self, epsilon: float, delta: float) -> bool:
        """Whether the sum fits a budget; see `within`."""
        return within(self.guarantee, epsilon, delta)

    def __str__(self) -> str:
        return ":".join(
            "-" if n is None else f"{n:x}" for n in (self.squares, self.failures, self.pure)
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote.

        Raises
        ------
        ValueError
            If it is no total.
        """
        squares, failures, pure = text.split(":")
        return cls(int(squares, 16), int(failures, 16), None if pure == "-" else int(pure, 16))


NOTHING = Total()


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of all of them together, also when each was chosen after seeing the others."""
    total = NOTHING
    for each in guarantees:
        total = total.plus(each)
    return total.guarantee


def within(total: Guarantee, epsilon: float, delta: float) -> bool:
    """Whether `total` fits a budget: by basic composition or by the GDP filter, whichever holds.

    Both are valid for adaptively chosen releases, and so is their union. NaN never fits.
    """
    return total.pure <= epsilon or gdp_within(total.mu, total.delta0, epsilon, delta)


def _units(number: float, power: int = 1) -> int:
    above, below = min(number, _MOST).as_integer_ratio()
    if power == 2:
        above, below = above * above, below * below
    return -((-above << _BITS) // below)


def _double(units: int) -> float:
    """The smallest double at or above."""
    near = units / (1 << _BITS)
    return near if _units(near) >= units else math.nextafter(near, math.inf)
