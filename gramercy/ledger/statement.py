"""The charge of one release, and the statement of a data set's budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gramercy.ledger.entry import INCLUDED, Entry
from gramercy.mechanisms.accounting.composition import NO_CHARGES, Filter, Total
from gramercy.mechanisms.accounting.gdp import gdp_epsilon
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.budget import Budget
from gramercy.schemas.ledger_history import ChargeState, SeriesStep
from gramercy.schemas.model import finite_or_none

_MOST_CHARGES = 10**6


@dataclass(frozen=True)
class Charge:
    """The charge of one release."""

    release: str  # release id: the version and a counter, so that it is independent of the data
    version: str  # public label of the data
    window: str  # period of the data if budgets are per period, otherwise empty
    guarantee: Guarantee  # the guarantee that was charged
    fingerprint: str  # Digest of the raw files' names, sizes and dates. Private.
    at: str  # time, UTC, ISO 8601
    state: ChargeState  # its present state
    sha256: str = ""  # digest of the sealed bundle; empty before it is sealed
    reason: str = ""  # why it is spent or withdrawn
    series: SeriesStep | None = None  # the step of a cumulative series, if it is one
    whole: Guarantee | None = None  # the guarantee of the series, if its charge includes the step
    by: str = ""  # account of the process that charged it, if the ledger states it
    approved_by: str = ""  # who had approved it, if anybody had to

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Charge:
        """The charge of a release from all its entries in order; raises as `Entry.fact` does."""
        first, last = entries[0], entries[-1]
        state = ChargeState(last.kind)
        return cls(
            str(first.release),
            first.fact("version", str),
            str(first.window),
            first.guarantee,
            first.fact("fingerprint", str),
            first.at,
            state,
            next(
                (each.fact("sha256", str) for each in entries if each.kind == ChargeState.SEALED),
                "",
            ),
            last.fact("reason", str) if state.is_closed else "",
            first.series,
            first.stated_guarantee if first.is_included else None,
            first.by,
            first.approved.get("by", ""),
        )

    def facts(self) -> dict[str, Any]:
        """As plain data, without the fingerprint, which is private."""
        return {
            "release": self.release,
            "version": self.version,
            "mu": self.guarantee.mu,
            "delta0": self.guarantee.delta0,
            "pure": finite_or_none(self.guarantee.pure),
            "at": self.at,
            "state": self.state.value,
            "reason": self.reason,
            "sha256": self.sha256,
            "series": self.series.facts() if self.series else None,
        }

    @property
    def loss(self) -> Guarantee:
        """What was charged for this release alone, or for the series whose charge includes it."""
        return self.whole or self.guarantee

    @property
    def is_published(self) -> bool:
        """Whether its release can be read."""
        return self.state is ChargeState.PUBLISHED


def current(of_request: Sequence[Charge]) -> Charge | None:
    """Of the charges of one request: the published one if there is one, otherwise the last."""
    published = (each for each in of_request if each.is_published)
    return next(published, of_request[-1] if of_request else None)


@dataclass(frozen=True)
class BudgetChange:
    """A budget as it was registered, raised or lowered."""

    budget: Budget  # the budget from then on
    reason: str  # why it was changed
    at: str  # time, UTC, ISO 8601


@dataclass(frozen=True)
class Statement:
    """The budget of a data set, what is spent of it, and what is left."""

    budget: Budget  # the budget in use
    charged: Total = NO_CHARGES  # sum of all charges
    window: str = ""  # period of the data if budgets are per period, otherwise empty

    @property
    def total(self) -> Guarantee:
        """The composition of all charges."""
        return self.charged.guarantee

    @property
    def rule(self) -> Filter:
        """The rule by which the budget admits charges."""
        return Filter(self.budget.epsilon, self.budget.delta, self.budget.failure_share)

    @property
    def spent(self) -> float:
        """Epsilon spent so far, at the budget's delta, rounded up."""
        return self.rule.epsilon_spent(self.total)

    @property
    def left(self) -> Guarantee:
        """The largest Gaussian charge that still fits."""
        return Guarantee(self.rule.remaining_mu(self.total))

    @property
    def remaining(self) -> float:
        """Largest epsilon of one more release at the budget's delta, Gaussian or pure."""
        pure = max(0.0, self.budget.epsilon - self.total.pure)
        return max(self.remaining_gaussian, pure)

    @property
    def remaining_gaussian(self) -> float:
        """Largest epsilon of one more Gaussian release at the budget's delta."""
        return gdp_epsilon(self.left.mu, self.budget.delta)

    @property
    def share(self) -> float:
        """Share of the budget that is spent, from 0 to 1.

        Of squared mu, because squares add up; or of pure epsilon, if that share is smaller.
        """
        spent, left = self.total.mu**2, self.left.mu**2
        gaussian = spent / (spent + left) if left else 1.0
        return min(1.0, gaussian, self.total.pure / self.budget.epsilon)

    def facts(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "period": self.window or None,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "spent_epsilon": finite_or_none(self.spent),
            "spent_mu": self.total.mu,
            "remaining_epsilon": finite_or_none(self.remaining),
            "remaining_mu": self.left.mu,
            "spent_failures": self.total.delta0,
            "failures": self.budget.failure_share,
            "share": self.share,
        }

    def admits(self, guarantee: Guarantee, times: int = 1) -> bool:
        """Whether this charge still fits, or this many charges of the same guarantee.

        A step that the charge of its series includes fits any budget, also one that was lowered.
        """
        return guarantee == INCLUDED or self.rule.admits(
            self.charged.plus(guarantee, times).guarantee
        )

    def charges_left(self, guarantee: Guarantee) -> int:
        """How many charges of this guarantee still fit, up to a million."""
        fitting, excess = 0, 1
        while excess <= _MOST_CHARGES and self.admits(guarantee, excess):
            fitting, excess = excess, 2 * excess
        while excess - fitting > 1:
            middle = (fitting + excess) // 2
            fitting, excess = (
                (middle, excess) if self.admits(guarantee, middle) else (fitting, middle)
            )
        return min(fitting, _MOST_CHARGES)

    def after(self, guarantee: Guarantee) -> Statement:
        """The statement after one more charge."""
        return Statement(self.budget, self.charged.plus(guarantee), self.window)
