"""The charges of a cumulative series: one for its whole window, none for its later steps.

A step that is drawn again is charged what it adds to the largest sum of squared weights of a row,
exactly. The rule is stated in docs/privacy.md, "The ledger".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from gramercy.common.prefix_sums import PrefixSums
from gramercy.ledger.entry import INCLUDED
from gramercy.ledger.statement import Charge, current
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.ledger_history import SeriesStep
from gramercy.schemas.model import digest


@dataclass(frozen=True)
class SeriesCharge:
    """A step to be charged, and the facts of its series, which the first charge registers."""

    series: str  # digest of the request that all steps share, with the window
    step: int  # number of the step, from 1
    every: str  # length of a step: `day`, `week`, `month` or `quarter`
    # when the steps begin, and the series ends: one more than steps; UTC, ISO 8601
    boundaries: tuple[str, ...]
    column: str  # the column whose dates give the step of a row; empty if names of files do
    # type of that column, or `files`; empty before the table is opened, as in a plan
    kind: str = ""

    @property
    def terms(self) -> dict[str, Any]:
        """The facts that must not change within the window."""
        return {
            "every": self.every,
            "boundaries": list(self.boundaries),
            "column": self.column,
            "kind": self.kind,
        }

    def stated(self, included: str = "") -> SeriesStep:
        """What the charge of the step states; `included`: the release whose charge includes it."""
        steps = len(self.boundaries) - 1
        return SeriesStep(self.series, self.step, steps, digest(self.terms), included)


@dataclass(frozen=True)
class SeriesAccount:
    """What a series was charged for: its whole window, and the draws of its steps."""

    window: Guarantee  # the first charge: every step drawn once
    draws: tuple[int, ...]  # how often each step was charged

    @classmethod
    def of(cls, window: Guarantee, charged: Sequence[SeriesStep]) -> SeriesAccount:
        """The account of a series from all its charges, which is at least one."""
        draws = [0] * charged[0].steps
        for each in charged:
            draws[each.step - 1] += 1
        return cls(window, tuple(draws))

    def price(self, step: int) -> Guarantee:
        """The charge of one more draw of a step, rounded up.

        Notes
        -----
        All draws together are mu-GDP with the mu of the window times the root of
        max_s sum_t n_t W_ts^2 / max_s sum_t W_ts^2, n_t the draws of step t, and 1 for a step that
        was not drawn. The squares of the charges add up to its square.
        """
        if not self.draws[step - 1]:
            return INCLUDED
        prefixes = PrefixSums(len(self.draws))
        old = [max(1, n) for n in self.draws]
        new = [n + (t == step) for t, n in enumerate(old, 1)]
        growth = prefixes.squared_norm(new) - prefixes.squared_norm(old)
        squared = Fraction(self.window.mu) ** 2 * Fraction(growth, prefixes.squared_norm())
        mu = math.sqrt(squared)
        while Fraction(mu) ** 2 < squared:
            mu = math.nextafter(mu, math.inf)
        return Guarantee(mu)


@dataclass(frozen=True)
class ChargedSeries:
    """All charges of the steps of a series so far, oldest first."""

    charges: tuple[Charge, ...] = ()

    @cached_property
    def _by_step(self) -> dict[int, list[Charge]]:
        found = dict[int, list[Charge]]()
        for each in self.charges:
            if each.series is not None:
                found.setdefault(each.series.step, []).append(each)
        return found

    def of_step(self, step: int) -> list[Charge]:
        """All charges of a step, from 1."""
        return self._by_step.get(step, [])

    def before(self, step: int) -> list[Charge | None]:
        """Of every step before one the published charge, otherwise the last; None without one."""
        return [current(self.of_step(each)) for each in range(1, step)]

    def draws(self, *further: int) -> tuple[int, ...]:
        """How often each step was charged, and further ones will be, up to the last of them."""
        last = max([*self._by_step, *further], default=0)
        return tuple(len(self.of_step(t)) + further.count(t) for t in range(1, last + 1))

    def due(self, step: int, window: Guarantee) -> Guarantee:
        """The charge of a step; `window`: the guarantee of a series that was not charged yet."""
        steps = [each.series for each in self.charges if each.series is not None]
        return SeriesAccount.of(self.charges[0].guarantee, steps).price(step) if steps else window

    def up_to(self, release: str) -> ChargedSeries:
        """The charges up to that of a release."""
        last = [each.release for each in self.charges].index(release)
        return ChargedSeries(self.charges[: last + 1])
