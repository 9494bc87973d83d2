"""Composition of guarantees in exact integers, and the privacy filter of a budget.

Sources: Dong, Roth and Su (2022) for the composition of mu-GDP; Smith and Thakurta
(2022) for the Gaussian-DP filter, which holds for adaptively chosen releases; basic composition for
pure epsilons. docs/privacy.md, "The ledger", proves that this still holds if mechanisms may fail
with a probability delta0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from gramercy.mechanisms.accounting.gdp import gdp_epsilon, gdp_mu, satisfies_dp, subtract_down
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import wordings

_MAX = 1e9  # larger mu and epsilons count as this; they protect nothing, and fit no budget
_BITS = 256  # 2^-256 divides every double above 2^-204, and the square of every mu above 2^-76


@dataclass(frozen=True)
class Total:
    """The sum of charges, in units of 2^-256: exact, or rounded up where a double is finer."""

    squared_mu: int = 0  # sum of the squared mu
    delta0: int = 0  # sum of the probabilities delta0 with which each mu may fail
    pure: int | None = 0  # sum of the pure epsilons; None if some charge does not have one

    def plus(self, charge: Guarantee, times: int = 1) -> Total:
        """The total with one more charge, or with several equal ones."""
        is_pure = self.pure is not None and charge.pure < math.inf
        return Total(
            self.squared_mu + times * _units(charge.mu, 2),
            self.delta0 + times * _units(charge.delta0),
            (self.pure or 0) + times * _units(charge.pure) if is_pure else None,
        )

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all charges together, rounded up."""
        mu = math.isqrt(self.squared_mu << _BITS)
        mu += mu * mu < self.squared_mu << _BITS
        pure = math.inf if self.pure is None else _double(self.pure)
        return Guarantee(_double(mu), min(1.0, _double(self.delta0)), pure)

    def __str__(self) -> str:
        return ":".join(
            "-" if n is None else f"{n:x}" for n in (self.squared_mu, self.delta0, self.pure)
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `str`."""
        squared_mu, delta0, pure = text.split(":")
        return cls(int(squared_mu, 16), int(delta0, 16), None if pure == "-" else int(pure, 16))


_DOWN = 1 - 2.0**-50  # exceeds the rounding error of a subtraction, a product and a root

NO_CHARGES = Total()


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of all releases together, also if they are chosen adaptively."""
    total = NO_CHARGES
    for guarantee in guarantees:
        total = total.plus(guarantee)
    return total.guarantee


def composed_mu(mus: Iterable[float]) -> float:
    """Mu of several Gaussian mechanisms together: the root of the sum of squares, rounded up.

    It also holds if each mechanism is chosen after seeing the output of the earlier ones, provided
    that its mu was fixed in advance.
    """
    return compose(map(Guarantee, mus)).mu


def remaining_mu(total: float, mus: Sequence[float]) -> float:
    """The largest mu that composes with `mus` to at most `total`, exactly; rounded down."""
    if not composed_mu(mus) <= total:
        raise wordings.argument_out_of_range("mus", "at most the total when composed")
    squared = _units(total, 2) - sum(_units(each, 2) for each in mus)
    mu, step = math.isqrt(max(squared, 0) << _BITS) / (1 << _BITS), 2.0**-53
    while composed_mu([*mus, mu]) > total:
        mu *= 1 - step
        step *= 2
    return mu


def split_mu(total: float, shares: Sequence[float]) -> tuple[float, ...]:
    """Divide a mu between mechanisms that compose to at most `total`.

    `shares`: for each mechanism, a positive number in proportion to its share of the squared mu.

    Examples
    --------
    >>> [round(mu, 3) for mu in split_mu(1.0, [1, 3])]
    [0.5, 0.866]
    """
    whole = math.fsum(shares)
    mus = [total * math.sqrt(share / whole) * _DOWN for share in shares[:-1]]
    return *mus, remaining_mu(total, mus)


@dataclass(frozen=True)
class Filter:
    """The privacy filter of a budget: caps on charges, fixed before the first release.

    Charges fit if their pure epsilons sum to at most `epsilon`; or if their delta0 sum to at most
    `failure_share`, and their squared mu to at most the square of the mu with
    delta_mu(epsilon) = delta - failure_share. Every adaptively chosen sequence of charges that fits
    is (epsilon, delta)-differentially private.
    """

    # epsilon, delta: the budget
    epsilon: float
    delta: float
    failure_share: float  # share of delta that is set aside for the sum of all delta0

    def admits(self, total: Guarantee) -> bool:
        """Whether charges that sum to `total` fit; False for NaN."""
        if total.pure <= self.epsilon:
            return True
        within_share = total.delta0 <= self.failure_share
        return within_share and satisfies_dp(total.mu, self.epsilon, self._delta_for_mu)

    def epsilon_spent(self, total: Guarantee) -> float:
        """The smallest epsilon, rounded up, of a budget with this delta in which `total` fits."""
        delta_for_mu = subtract_down(self.delta, max(total.delta0, self.failure_share))
        return min(total.pure, gdp_epsilon(total.mu, delta_for_mu))

    def remaining_mu(self, total: Guarantee) -> float:
        """The mu, rounded down, of the largest Gaussian charge that still fits after `total`."""
        if not (total.delta0 <= self.failure_share and self._delta_for_mu > 0):
            return 0.0
        cap = gdp_mu(self.epsilon, self._delta_for_mu)
        return math.sqrt(max(0.0, (cap - total.mu) * (cap + total.mu))) * _DOWN

    @property
    def _delta_for_mu(self) -> float:
        return subtract_down(self.delta, self.failure_share)


def _units(number: float, power: int = 1) -> int:
    """The number, or its square, in units of 2^-256, rounded up."""
    numerator, denominator = min(number, _MAX).as_integer_ratio()
    if power == 2:
        numerator, denominator = numerator * numerator, denominator * denominator
    return -((-numerator << _BITS) // denominator)


def _double(units: int) -> float:
    """The smallest double at or above a number of units."""
    nearest = units / (1 << _BITS)
    return nearest if _units(nearest) >= units else math.nextafter(nearest, math.inf)
