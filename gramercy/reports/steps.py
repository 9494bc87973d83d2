"""A step of a cumulative series: what it adds up, and what rows do that change after their step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from gramercy.common.prefix_sums import PrefixSums
from gramercy.schemas.facts import CumulativeFacts
from gramercy.schemas.steps import StepSpan

# Delays that are shown as examples, in steps.
_DELAYS: dict[StepSpan, tuple[int, ...]] = {
    "day": (1, 7, 30),
    "week": (1, 4, 13),
    "month": (1, 3, 6),
    "quarter": (1, 2),
}


def delays(steps: int, every: StepSpan) -> list[int]:
    """The delays that are shown of a series."""
    return [delay for delay in _DELAYS[every] if delay < steps]


@dataclass(frozen=True)
class ChangedRow:
    """The shares of a row of the first step that is added, or deleted, some steps after it."""

    delay: int
    # Of the row in the sum of the step in which it is added, and in the last one
    added: tuple[float, float]

    @property
    def deleted(self) -> tuple[float, float]:
        """The share that is left in the step in which it is deleted, and in the last one."""
        return 1 - self.added[0], 1 - self.added[1]


def changed_rows(steps: int, every: StepSpan) -> Iterator[ChangedRow]:
    """What a late and a deleted row do to the sums of a series."""
    sums = PrefixSums(steps)
    for delay in delays(steps, every):
        shares = sums.shares(1, 1 + delay)
        yield ChangedRow(delay, (float(shares[delay]), float(shares[-1])))


@dataclass(frozen=True)
class StepNoise:
    """Noise relative to that of a single release with the guarantee of the whole series."""

    so_far: float  # of the sum over all steps so far
    alone: float  # of this step
    average: float  # of a single step: root mean square
    end: float  # of the sum over all steps of the series
    # Of the pool of all steps, if each were a release of its own rows alone; and of a release
    # of all rows in every step
    otherwise: float

    @classmethod
    def of(cls, facts: CumulativeFacts) -> StepNoise:
        """The noise of a step."""
        sums = PrefixSums(facts.steps)
        unit, steps = math.sqrt(sums.squared_norm()), range(1, facts.steps + 1)
        return cls(
            so_far=unit * sums.spread(facts.step),
            alone=unit * sums.spread(facts.step, 1),
            average=unit
            * math.sqrt(math.fsum(sums.spread(t, 1) ** 2 for t in steps) / facts.steps),
            end=unit * sums.spread(facts.steps),
            otherwise=math.sqrt(facts.steps),
        )


@dataclass(frozen=True)
class PlannedStep:
    """A step of a series that is planned."""

    facts: CumulativeFacts
    noise: StepNoise
    # The versions that would be published, oldest first: earlier steps that are missing, and this
    published: tuple[str, ...]
    included: bool  # whether a charge that was made includes it
    again: bool  # whether it was charged before, and is drawn again for a charge of its own
    rows_are_public: bool  # whether the number of rows of every step is

    def described(self) -> dict[str, object]:
        """The step as plain data."""
        return {
            "step": self.facts.step,
            "steps": self.facts.steps,
            "every": self.facts.every,
            "first_day": self.facts.first_day.isoformat(),
            "last_day": self.facts.last_day.isoformat(),
            "lag": self.facts.lag,
            "relative_noise": asdict(self.noise),
            "published": list(self.published),
            "included": self.included,
            "again": self.again,
        }
