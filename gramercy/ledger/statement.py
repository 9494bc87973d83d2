"""What a data set may cost, has cost, and may still cost; and the words for a refusal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gramercy.mechanisms.accounting.composition import NOTHING, Filter, Total
from gramercy.mechanisms.accounting.guarantee import Guarantee, gdp_epsilon
from gramercy.schemas.contract import Budget
from gramercy.schemas.errors import BudgetRefused, SpentFailure, TermsChanged

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

    def facts(self) -> dict[str, Any]:
        """As plain data: everything but the fingerprint, which is private."""
        return {
            "release": self.release,
            "version": self.version,
            "mu": self.guarantee.mu,
            "delta0": self.guarantee.delta0,
            "pure": _finite(self.guarantee.pure),
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
            "spent_epsilon": _finite(self.spent),
            "spent_mu": self.total.mu,
            "remaining_epsilon": _finite(self.remaining),
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


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def admit(dataset: str, statement: Statement, asked: Guarantee) -> None:
    """Refuse a charge that does not fit.

    Raises
    ------
    BudgetRefused
        Showing asked, spent and remaining.
    """
    if statement.admits(asked):
        return
    budget, failures = statement.budget, statement.total.delta0
    pure = asked.pure < math.inf
    remaining = statement.remaining if pure else statement.remaining_gaussian
    of = f" for the data of {statement.window}" if statement.window else ""
    failing = ""
    if asked.delta0:
        failing = (
            f" Of delta, {budget.failures:.3g} is set aside for failures: asked "
            f"{asked.delta0:.3g}, spent {failures:.3g}."
        )
    raise BudgetRefused(
        f"The budget of '{dataset}'{of} (epsilon {budget.epsilon:g}, delta {budget.delta:g}) does "
        f"not hold this release: asked epsilon {asked.epsilon(budget.delta):.4g} at that delta "
        f"(mu {asked.mu:.4g}), spent {statement.spent:.4g} (mu {statement.total.mu:.4g}), "
        f"remaining {remaining:.4g} (mu {statement.left.mu:.4g}).{failing}",
        "Ask for a smaller epsilon (a tenth of the budget's delta is always set aside), or raise "
        "the budget with 'gramercy budget --raise'.",
    )


def unanswered(dataset: str, charge: Charge) -> SpentFailure:
    """What to say of a charge with nothing to show for it."""
    name, again = f"'{dataset}/{charge.release}'", "To pay for a new release of the same version, "
    if charge.state == "withdrawn":
        return SpentFailure(
            f"Release {name} was withdrawn: {charge.reason.rstrip('.')}. Its charge is spent.",
            again + "add --new-charge.",
        )
    return SpentFailure(
        f"Release {name} was charged (mu = {charge.guarantee.mu:.4g}) and then interrupted: the "
        "charge is spent, and no noise will be drawn for it again.",
        again + "add --new-charge.",
    )


def compare_terms(dataset: str, then: dict[str, Any], now: dict[str, Any]) -> None:
    """Hold a contract to the terms that a data set was registered with.

    Raises
    ------
    TermsChanged
        Naming each fixed term that the contract now states differently.
    """
    changed = _differences(then, now)
    if changed:
        raise TermsChanged(
            f"Data set '{dataset}' was registered with other terms: {', '.join(changed)}.",
            "They are fixed, because earlier guarantees rest on them: restore them (a budget is "
            "changed with 'gramercy budget --raise' or '--lower' before it is here), or give the "
            "data set a new id only if it shares no people with this one.",
        )


def _differences(then: Any, now: Any, at: str = "") -> list[str]:
    """Names of the terms that differ, columns by their names."""
    if isinstance(then, dict) and isinstance(now, dict):
        keys = [*then, *(k for k in now if k not in then)]
        inner = [_differences(then.get(k), now.get(k), f"{at}.{k}".strip(".")) for k in keys]
        return [name for names in inner for name in names]
    if at == "columns" and [c["name"] for c in then] == [c["name"] for c in now]:
        pairs = zip(then, now, strict=True)
        return [x for a, b in pairs for x in _differences(a, b, f"columns.{a['name']}")]
    return [] if then == now else [at]
