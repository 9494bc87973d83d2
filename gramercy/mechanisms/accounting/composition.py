"""What releases cost together, in exact integers, and what a budget admits.

Sources: Dong, Roth, Su (2022) for the composition of mu-GDP; Smith and Thakurta (2022) for the
Gaussian-DP filter, which holds for adaptively chosen releases; basic composition for pure epsilons.
That all of it still holds where a mechanism may fail with a probability delta0 is proven in
docs/privacy.md, "The ledger".
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from gramercy.mechanisms.accounting.directed_rounding import less
from gramercy.mechanisms.accounting.gdp import gdp_epsilon, gdp_mu, gdp_within
from gramercy.mechanisms.accounting.guarantee import Guarantee

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


_DOWN = 1 - 2.0**-50  # more than what the subtraction and the root can round up

NOTHING = Total()


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of all of them together, also when each was chosen after seeing the others."""
    total = NOTHING
    for each in guarantees:
        total = total.plus(each)
    return total.guarantee


@dataclass(frozen=True)
class Filter:
    """What a budget admits: caps that are fixed before the first release.

    Charges fit if their pure epsilons sum to `epsilon` at most; or if their delta0 sum to
    `failures` at most and their squared mu to the square of the mu with
    delta_mu(epsilon) = delta - failures. Every adaptively chosen sequence of charges that fits is
    (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon, delta
        The budget.
    failures
        The share of delta that is set aside for the sum of all delta0.
    """

    epsilon: float
    delta: float
    failures: float

    def admits(self, total: Guarantee) -> bool:
        """Whether charges that sum to `total` fit. NaN never does."""
        if total.pure <= self.epsilon:
            return True
        return total.delta0 <= self.failures and gdp_within(total.mu, self.epsilon, self._rest)

    def spent(self, total: Guarantee) -> float:
        """The least epsilon, rounded up, at which a budget of this delta would hold `total`."""
        rest = less(self.delta, max(total.delta0, self.failures))
        return min(total.pure, gdp_epsilon(total.mu, rest))

    def left(self, total: Guarantee) -> float:
        """The mu, rounded down, of the largest Gaussian charge that still fits after `total`."""
        if not (total.delta0 <= self.failures and self._rest > 0):
            return 0.0
        most = gdp_mu(self.epsilon, self._rest)
        return math.sqrt(max(0.0, (most - total.mu) * (most + total.mu))) * _DOWN

    @property
    def _rest(self) -> float:
        return less(self.delta, self.failures)


@dataclass(frozen=True)
class AdaptiveShare:
    """The rule of version 0.1, by which ledgers were charged before: for their audit alone.

    The delta0 came off delta as they were spent. Analysts who choose them after seeing releases can
    reach nearly twice delta: a budget that was spent by this rule holds (epsilon, 2 delta).
    """

    epsilon: float
    delta: float

    def admits(self, total: Guarantee) -> bool:
        """Whether charges that sum to `total` fitted."""
        rest = less(self.delta, total.delta0)
        return total.pure <= self.epsilon or gdp_within(total.mu, self.epsilon, rest)


def _units(number: float, power: int = 1) -> int:
    above, below = min(number, _MOST).as_integer_ratio()
    if power == 2:
        above, below = above * above, below * below
    return -((-above << _BITS) // below)


def _double(units: int) -> float:
    """The smallest double at or above."""
    near = units / (1 << _BITS)
    return near if _units(near) >= units else math.nextafter(near, math.inf)
