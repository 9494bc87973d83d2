"""The history of a ledger: its anchors, and the events of its budgets, as public facts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from gramercy.schemas.model import Digest, Model, finite_or_none
from gramercy.schemas.problem import Notice
from gramercy.schemas.steps import MOST_STEPS


class ChargeState(StrEnum):
    """The state of a charge, from before its noise is drawn."""

    RESERVED = "reserved"
    DRAWN = "drawn"
    SEALED = "sealed"
    PUBLISHED = "published"
    SPENT = "spent"
    WITHDRAWN = "withdrawn"

    @property
    def before(self) -> frozenset[ChargeState]:
        """The states from which a release may enter this one; noise is never drawn twice."""
        return _STATES_BEFORE[self]

    @property
    def was_published(self) -> bool:
        """Whether the release is, or was, for everyone to read."""
        return self in {ChargeState.PUBLISHED, ChargeState.WITHDRAWN}

    @property
    def is_unfinished(self) -> bool:
        """Whether the release is still to be drawn, sealed or published."""
        return not (self.was_published or self is ChargeState.SPENT)

    @property
    def is_closed(self) -> bool:
        """Whether the charge is spent and cannot be answered with a release."""
        return self in {ChargeState.SPENT, ChargeState.WITHDRAWN}


def number_of(release: str) -> int:
    """The number at the end of a release id; 0 if there is none."""
    number = re.search(r"-r([1-9][0-9]{0,17})$", release, re.ASCII)
    return int(number[1]) if number else 0


_STATES_BEFORE: dict[ChargeState, frozenset[ChargeState]] = {
    ChargeState.RESERVED: frozenset(),
    ChargeState.DRAWN: frozenset({ChargeState.RESERVED}),
    ChargeState.SEALED: frozenset({ChargeState.DRAWN}),
    ChargeState.PUBLISHED: frozenset({ChargeState.SEALED}),
    ChargeState.SPENT: frozenset({ChargeState.RESERVED, ChargeState.DRAWN, ChargeState.SEALED}),
    ChargeState.WITHDRAWN: frozenset({ChargeState.PUBLISHED}),
}


@dataclass(frozen=True)
class SeriesStep:
    """The step of a cumulative series that was charged."""

    series: str  # digest of the request that all steps share, with the window
    step: int  # number of the step, from 1
    steps: int  # number of steps of the series, T
    terms: str  # digest of the facts that must not change within the window
    included: str = ""  # the release whose charge includes this step; empty if it has its own

    def __post_init__(self) -> None:
        if not 1 <= self.step <= self.steps <= MOST_STEPS:
            raise ValueError

    @property
    def words(self) -> str:
        """Such as ``step 3 of 52, in the charge of 2026-W01-r1``."""
        part = f", in the charge of {self.included}" if self.included else ""
        return f"step {self.step} of {self.steps}{part}"

    def facts(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "series": self.series,
            "step": self.step,
            "steps": self.steps,
            "included_in": self.included or None,
        }


EventKind = Literal["registered", "raised", "lowered", "charged"]


@dataclass(frozen=True)
class ChargeRecord:
    """A charge and its present state."""

    # release, version: the release, and the version of the data
    release: str
    version: str
    state: ChargeState  # present state
    # mu, delta0, pure: the charge; `pure` is infinite without a pure epsilon
    mu: float
    delta0: float
    pure: float
    # epsilon of this charge alone, or of the series whose charge includes it, at the delta of the
    # budget at that time
    epsilon: float
    mechanism: str = ""  # name of the mechanism; empty if the release does not exist
    sha256: str = ""  # digest of the sealed bundle; empty if it does not exist
    series: SeriesStep | None = None  # the step of a cumulative series, if it is one
    by: str = ""  # who charged it, if the ledger states it; for the steward alone
    approved_by: str = ""  # who had approved it, if anybody had to; for the steward alone

    @property
    def people(self) -> str:
        """Who charged it, and who had approved it."""
        return self.by + (f", approved by {self.approved_by}" if self.approved_by else "")


@dataclass(frozen=True)
class Event:
    """A registration, a change of the budget or a charge."""

    at: str  # time in UTC, ISO 8601
    what: EventKind  # kind of the event
    # budget, delta: the budget from then on: epsilon and delta
    budget: float
    delta: float
    spent: float  # epsilon of all charges so far, composed, at that delta; infinite if none holds
    reason: str = ""  # reason for a change of the budget, or for a charge without a release
    charge: ChargeRecord | None = None  # the charge, if the event is one

    def facts(self) -> dict[str, Any]:
        """The event as plain data; None stands for infinity and for unknown facts."""
        charge = self.charge
        return {
            "at": self.at,
            "what": self.what,
            "release": charge.release if charge else None,
            "version": charge.version if charge else None,
            "mechanism": (charge.mechanism or None) if charge else None,
            "state": charge.state if charge else None,
            "by": (charge.by or None) if charge else None,
            "approved_by": (charge.approved_by or None) if charge else None,
            "reason": self.reason or None,
            "mu": charge.mu if charge else None,
            "delta0": charge.delta0 if charge else None,
            "pure": finite_or_none(charge.pure) if charge else None,
            "epsilon": finite_or_none(charge.epsilon) if charge else None,
            "spent_epsilon": finite_or_none(self.spent),
            "budget_epsilon": self.budget,
            "budget_delta": self.delta,
            "sha256": (charge.sha256 or None) if charge else None,
            "series": charge.series.facts() if charge and charge.series else None,
        }

    def public_facts(self) -> dict[str, Any]:
        """What of it is public: days only, because times would reveal how long a table was read.

        The reason of a budget change, and who has charged and approved, stay in the ledger.
        """
        facts = self.facts()
        del facts["by"], facts["approved_by"]
        return facts | {"at": self.at[:10], "reason": self.reason if self.charge else None}


@dataclass(frozen=True)
class Timeline:
    """The events of a data set's budget, in the order of the ledger."""

    dataset: str  # id of the data set
    window: str  # period of the data, if budgets are per period; else empty
    events: tuple[Event, ...]  # the events; the first is the registration

    @property
    def name(self) -> str:
        """The data set and, if budgets are per period, the period of its data."""
        return self.dataset + (f", data of {self.window}" if self.window else "")

    @property
    def charges(self) -> tuple[ChargeRecord, ...]:
        """The charges."""
        return tuple(each.charge for each in self.events if each.charge)

    def facts(self) -> dict[str, Any]:
        """The timeline as plain data."""
        return {
            "dataset": self.dataset,
            "period": self.window or None,
            "events": [each.facts() for each in self.events],
        }


def counted_charges(events: Sequence[Event]) -> str:
    """The number of charges in words, apart from steps that the charge of a series includes."""
    charges = [each.charge for each in events if each.charge]
    included = sum(each.series is not None and each.series.included != "" for each in charges)
    own = len(charges) - included
    counted = "1 charge" if own == 1 else f"{own} charges"
    if not included:
        return counted
    return f"{counted} and {included} included {'step' if included == 1 else 'steps'}"


class Anchor(Model):
    """The last entry of a ledger at some moment.

    Parameters
    ----------
    ledger
        Id of the ledger, 32 hexadecimal digits.
    seq
        Number of its last entry.
    hash
        Hash of that entry, which depends on all entries before it.
    """

    ledger: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    seq: Annotated[int, Field(strict=True, ge=1, lt=10**12)]
    hash: Digest


@dataclass(frozen=True)
class History:
    """Runs and anchors of one ledger."""

    runs: Mapping[str, Sequence[str]]  # names of the runs that published each release
    anchors: Sequence[Anchor]  # heads of the ledger that runs have recorded
    # notices of releases of its data sets that were charged to other ledgers
    elsewhere: Sequence[Notice] = ()
