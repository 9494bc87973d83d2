"""What a data set may cost, has cost, and may still cost; and one release's charge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gramercy.ledger.entry import Entry
from gramercy.mechanisms.accounting.composition import NOTHING, Filter, Total
from gramercy.mechanisms.accounting.gdp import gdp_epsilon
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.budget import Budget
from gramercy.schemas.model import finite

_COUNTED = 10**6


@dataclass(frozen=True)
class Charge:
    """One release's charge.

    Parameters
    ----------
    release
        Release id: the version and a counter, so it says nothing about the data.
    version
        Public label of the data.
    window
        The calendar year of the data, where budgets are per year; else empty.
    guarantee
        What was charged.
    fingerprint
        Digest of the raw files' names, sizes and dates. Private.
    at
        When, UTC, ISO 8601.
    state
        ``reserved``, ``drawn``, ``sealed``, ``published``, ``spent`` or ``withdrawn``.
    sha256
        Digest of the sealed bundle; empty before there is one.
    reason
        Why it is spent or withdrawn.
    """

    release: str
    version: str
    window: str
    guarantee: Guarantee
    fingerprint: str
    at: str
    state: str
    sha256: str = ""
    reason: str = ""

    @classmethod
    def of(cls, known: Sequence[Entry]) -> Charge:
        """From its own entry and the marks after it; raises as `Entry.says` does."""
        first, last = known[0], known[-1]
        return cls(
            str(first.release),
            first.says("version", str),
            str(first.window),
            first.guarantee,
            first.says("fingerprint", str),
            first.at,
            last.kind,
            next((each.says("sha256", str) for each in known if each.kind == "sealed"), ""),
            last.says("reason", str) if last.kind in {"spent", "withdrawn"} else "",
        )

    def facts(self) -> dict[str, Any]:
        """As plain data: everything but the fingerprint, which is private."""
        return {
            "release": self.release,
            "version": self.version,
            "mu": self.guarantee.mu,
            "delta0": self.guarantee.delta0,
            "pure": finite(self.guarantee.pure),
            "at": self.at,
            "state": self.state,
            "reason": self.reason,
            "sha256": self.sha256,
        }

    @property
    def answers(self) -> bool:
        """Whether it stands for a release that is there to be read."""
        return self.state == "published"


@dataclass(frozen=True)
class Raise:
    """A budget as it was registered or raised, why, and when (UTC, ISO 8601)."""

    budget: Budget
    reason: str
    at: str


@dataclass(frozen=True)
class Statement:
    """What a data set may cost, has cost, and may still cost.

    Parameters
    ----------
    budget
        The budget in force.
    charged
        All charges added up.
    window
        The calendar year of the data that it is about, where budgets are per year; else empty.
    """

    budget: Budget
    charged: Total = NOTHING
    window: str = ""

    @property
    def total(self) -> Guarantee:
        """All charges composed."""
        return self.charged.guarantee

    @property
    def rule(self) -> Filter:
        """What the budget admits."""
        return Filter(self.budget.epsilon, self.budget.delta, self.budget.failures)

    @property
    def spent(self) -> float:
        """Epsilon spent so far, at the budget's delta, rounded up."""
        return self.rule.spent(self.total)

    @property
    def left(self) -> Guarantee:
        """The largest Gaussian charge that would still be admitted."""
        return Guarantee(self.rule.left(self.total))

    @property
    def remaining(self) -> float:
        """Epsilon of one more release at the budget's delta, a Gaussian or a pure one."""
        pure = max(0.0, self.budget.epsilon - self.total.pure)
        return max(self.remaining_gaussian, pure)

    @property
    def remaining_gaussian(self) -> float:
        """Epsilon of one more release at the budget's delta, where it is not pure."""
        return gdp_epsilon(self.left.mu, self.budget.delta)

    @property
    def share(self) -> float:
        """How much of the budget is spent, from 0 to 1; of the square of mu, for those add up.

        Or of the pure epsilon, where less of that is.
        """
        spent, left = self.total.mu**2, self.left.mu**2
        gaussian = spent / (spent + left) if left else 1.0
        return min(1.0, gaussian, self.total.pure / self.budget.epsilon)

    def facts(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "year_of_data": self.window or None,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "spent_epsilon": finite(self.spent),
            "spent_mu": self.total.mu,
            "remaining_epsilon": finite(self.remaining),
            "remaining_mu": self.left.mu,
            "spent_failures": self.total.delta0,
            "failures": self.budget.failures,
            "share": self.share,
        }

    def admits(self, guarantee: Guarantee, times: int = 1) -> bool:
        """Whether one more charge, or several of the same, fit; by the ledger's rule."""
        return self.rule.admits(self.charged.plus(guarantee, times).guarantee)

    def times(self, guarantee: Guarantee) -> int:
        """How many such charges still fit, one after the other; at most a million."""
        few, many = 0, 1
        while many <= _COUNTED and self.admits(guarantee, many):
            few, many = many, 2 * many
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (middle, many) if self.admits(guarantee, middle) else (few, middle)
        return min(few, _COUNTED)

    def after(self, guarantee: Guarantee) -> Statement:
        """The statement that one more charge would leave."""
        return Statement(self.budget, self.charged.plus(guarantee), self.window)
