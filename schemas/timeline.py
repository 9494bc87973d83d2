"""What became of a budget, event by event: public facts, ready to be drawn or tabled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from gramercy.schemas.model import finite

What = Literal["registered", "raised", "lowered", "charged"]


@dataclass(frozen=True)
class Charged:
    """A charge, and what became of it since.

    Parameters
    ----------
    release, version
        Which release, of which version of the data.
    state
        ``reserved``, ``drawn``, ``sealed``, ``published``, ``spent`` or ``withdrawn``, by now.
    mu, delta0, pure
        What was charged; `pure` is infinite where there is no pure epsilon.
    epsilon
        The charge alone, at the delta of the budget that was in force.
    mechanism
        Its name, where a release is there to tell it.
    sha256
        Digest of the sealed bundle; empty where there is none.
    """

    release: str
    version: str
    state: str
    mu: float
    delta0: float
    pure: float
    epsilon: float
    mechanism: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class Event:
    """A budget was registered or changed, or a release was charged to it.

    Parameters
    ----------
    at
        When, UTC, ISO 8601.
    what
        Which of them.
    budget, delta
        The budget in force from then on: an epsilon, and its delta.
    spent
        Epsilon of all charges so far, composed, at that delta. Infinite where none holds there.
    reason
        Why the budget was changed; or why the charge has nothing to show for it.
    charge
        The charge, where it is one.
    """

    at: str
    what: What
    budget: float
    delta: float
    spent: float
    reason: str = ""
    charge: Charged | None = None

    def facts(self) -> dict[str, Any]:
        """As plain data; None stands for infinity, and for what is not known."""
        charge = self.charge
        return {
            "at": self.at,
            "what": self.what,
            "release": charge.release if charge else None,
            "version": charge.version if charge else None,
            "mechanism": (charge.mechanism or None) if charge else None,
            "state": charge.state if charge else None,
            "reason": self.reason or None,
            "mu": charge.mu if charge else None,
            "delta0": charge.delta0 if charge else None,
            "pure": finite(charge.pure) if charge else None,
            "epsilon": finite(charge.epsilon) if charge else None,
            "spent_epsilon": finite(self.spent),
            "budget_epsilon": self.budget,
            "budget_delta": self.delta,
            "sha256": (charge.sha256 or None) if charge else None,
        }


@dataclass(frozen=True)
class Timeline:
    """The events of a data set's budget, in the order in which they were entered.

    Parameters
    ----------
    dataset
        Which.
    window
        The calendar year of the data, where budgets are per year; else empty.
    events
        The first is the budget's registration.
    """

    dataset: str
    window: str
    events: tuple[Event, ...]

    @property
    def name(self) -> str:
        """The data set, and the year of its data where that has a budget of its own."""
        return self.dataset + (f", data of {self.window}" if self.window else "")

    @property
    def charges(self) -> tuple[Charged, ...]:
        """The charges alone."""
        return tuple(each.charge for each in self.events if each.charge)

    def facts(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "dataset": self.dataset,
            "year_of_data": self.window or None,
            "events": [each.facts() for each in self.events],
        }
