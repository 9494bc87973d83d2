"""The public facts in manifests: those of the data set and those of a release."""

from __future__ import annotations

import datetime
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.cells import DayCells
from gramercy.schemas.column import level_names
from gramercy.schemas.derived import DerivedFacts
from gramercy.schemas.ledger_history import Anchor
from gramercy.schemas.model import (
    Delta,
    Digest,
    Epsilon,
    Label,
    Model,
    NotNegative,
    Positive,
    Real,
    Slug,
)
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.periods import Per
from gramercy.schemas.steps import MOST_LAG, MOST_STEPS, StepSpan, has_calendar

Array = NDArray[np.float64]


class DatasetFacts(Model):
    """Public facts of the data set; `rows` and `persons` are those of the contract.

    `count` is the divisor of the matrix: `persons` if they are protected, else `rows`.
    """

    id: Slug
    title: str
    curator: str
    version: Label
    rows: Annotated[int, Field(strict=True, ge=1)]
    persons: Annotated[int | None, Field(strict=True, ge=1)] = None

    @property
    def count(self) -> int:
        return self.persons or self.rows


def _unit_of_dates(text: str) -> str:
    DayCells.of_unit(text)
    return text


class ColumnFacts(Model):
    """A numeric column, with the centre and scale in use.

    `derived` states of which columns it is a function, and which; null if it is in the table.
    `unit` is such as ``days since 1970-01-01`` if its numbers stand for dates.
    """

    name: str
    lower: Real
    upper: Real
    centre: Real
    scale: Positive
    derived: DerivedFacts | None = None
    unit: Annotated[str, AfterValidator(_unit_of_dates)] | None = None

    @model_serializer(mode="wrap")
    def _without_missing_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value is not None}

    @property
    def dates(self) -> DayCells | None:
        """The dates that its numbers stand for; None if they do not."""
        return None if self.unit is None else DayCells.of_unit(self.unit)

    def published(self, counted: Array) -> Array:
        """The values in the matrix of what histograms count: normal scores of ranked numbers."""
        function = None if self.derived is None else self.derived.function
        if function is None or function == function.declared:
            return counted
        return function.apply(counted)


class LevelsFacts(Model):
    """A column of categories, published as one column of zeros and ones per level."""

    name: str
    levels: tuple[str | Real, ...]


class CodesFacts(Model):
    """The codes of each group of a column of codes; see `schemas.column.CodeGroups`."""

    groups: dict[str, tuple[str | int, ...]]
    prefix: bool | int = False


class BudgetFacts(Model):
    """The budget in the contract, and the share of delta that is set aside for failures.

    Mechanisms whose mu may fail with a probability delta0 take delta0 from that share.
    """

    epsilon: Epsilon
    delta: Delta
    per: Per
    failure_share: Positive

    @classmethod
    def of(cls, budget: Budget) -> BudgetFacts:
        return cls(**budget.model_dump(), failure_share=budget.failure_share)

    @model_validator(mode="after")
    def _check_failure_share(self) -> Self:
        budget = Budget(epsilon=self.epsilon, delta=self.delta, per=self.per)
        if self.failure_share != budget.failure_share:
            raise families.INCOMPLETE_FACTS(
                "'failure_share' must be the share of 'delta' that is set aside for failures."
            )
        return self


class LedgerFacts(Anchor):
    """The ledger when a release was charged: its last entry, and the budget in use.

    Anyone who trusts the release's signature can verify the ledger against it.
    """

    budget: BudgetFacts

    @property
    def anchor(self) -> Anchor:
        """The last entry at that time."""
        return Anchor(ledger=self.ledger, seq=self.seq, hash=self.hash)


class PeriodFacts(Model):
    """The period of the data that a release is about, where budgets are per period.

    `label` is such as ``2026-11``. `column` and `timezone` are those of the column whose dates
    decide which rows belong to it; null if the files do.
    """

    label: Label
    column: str | None = None
    timezone: str | None = None


class EarlierStep(Model):
    """A release of an earlier step, from which later ones are decoded: its id and digest."""

    release: Label
    sha256: Digest


class CumulativeFacts(Model):
    """The step of a cumulative series that a release publishes.

    Parameters
    ----------
    every, lag
        From the request: the length of a step, and days from its end to its publication.
    starts
        The first day of each step, and the first day after the series.
    step
        The number of this step, t, from 1.
    weights
        Weights of the steps so far in what this one publishes, in units of 2^-12: row t of W.
    draws
        How often each step was drawn, up to this draw: at least of the steps so far, and of later
        ones if they were drawn before this one was drawn again; empty in a plan.
    earlier
        The releases of the steps before this one; empty in a plan.
    rows
        The number of rows of each step so far; empty if it is private, and in a plan.
    """

    every: StepSpan
    lag: Annotated[int, Field(strict=True, ge=0, le=MOST_LAG)] = 0
    starts: Annotated[tuple[datetime.date, ...], Field(min_length=2, max_length=MOST_STEPS + 1)]
    step: Annotated[int, Field(strict=True, ge=1, le=MOST_STEPS)]
    weights: tuple[Annotated[int, Field(strict=True, ge=0)], ...]
    draws: tuple[Annotated[int, Field(strict=True, ge=1)], ...] = ()
    earlier: tuple[EarlierStep, ...] = ()
    rows: tuple[Annotated[int, Field(strict=True, ge=0)], ...] = ()

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        """Refuse days that are not in order, and lists that are not of the steps so far."""
        in_order = all(one < other for one, other in pairwise(self.starts))
        if not in_order or not has_calendar(self.starts) or self.step > self.steps:
            raise families.VALUE("The steps of the series are not days in order.")
        if len(self.weights) != self.step or len(self.earlier) not in (0, self.step - 1):
            raise families.VALUE("There are other weights or releases than of the steps so far.")
        if len(self.draws) > self.steps or len(self.rows) > self.steps:
            raise families.VALUE("There are more draws or numbers of rows than steps.")
        return self

    @property
    def steps(self) -> int:
        """Number of steps of the series, T."""
        return len(self.starts) - 1

    @property
    def as_planned(self) -> Self:
        """The same facts before the step was drawn."""
        return self.model_copy(update={"draws": (), "earlier": (), "rows": ()})

    @property
    def summed(self) -> int:
        """The number of the step up to which rows are summed; in a plan, the last one."""
        return self.step if self.draws else self.steps

    @property
    def all_draws(self) -> tuple[int, ...]:
        """How often each step is drawn, if the later ones are drawn once."""
        return self.draws + (1,) * (self.steps - len(self.draws))

    @property
    def first_day(self) -> datetime.date:
        """The first day whose rows are in the sum."""
        return self.starts[0]

    @property
    def last_day(self) -> datetime.date:
        """The last day whose rows are in the sum."""
        return self.starts[self.step] - datetime.timedelta(days=1)

    @property
    def complete_on(self) -> datetime.date:
        """The first day on which the rows of the step are complete, by the lag of the request."""
        return self.last_day + datetime.timedelta(days=1 + self.lag)

    def __repr__(self) -> str:
        end = self.starts[-1] - datetime.timedelta(days=1)
        return f"<CumulativeFacts {self.in_words}; every {self.every} to {end}>"

    __str__ = __repr__  # without the days and digests of all steps

    @property
    def in_words(self) -> str:
        """Which rows are in the sum: those of all days up to the end of the step."""
        return step_in_words(self.step, self.steps, self.first_day, self.last_day)


def step_in_words(step: int, steps: int, first: datetime.date, last: datetime.date) -> str:
    """A step of a series with the days of the rows that it sums."""
    return f"step {step} of {steps}: rows from {first} to {last}"


class RowsFacts(Model):
    """The number of rows: ``public`` under replace-one, else ``noisy`` with a standard deviation.

    The released matrix is the noisy Gram matrix divided by `value`, the maximum of `observed` and
    1.
    """

    value: Annotated[float, Field(ge=1)]
    observed: Real
    status: Literal["public", "noisy"]
    sd: float


class GroupFacts(Model):
    """The noisy numbers of rows of one group, and of its folds if there are any.

    `level` is a level of the grouping column, or `schemas.facts.OTHER`.
    """

    level: str
    rows: RowsFacts
    fold_rows: tuple[RowsFacts, ...] = ()


class LatticeFacts(Model):
    """Integer rows are round(2^bits shrinkage x); see `common.lattice`."""

    bits: int
    shrinkage: float

    @property
    def divisor(self) -> float:
        """What divides sums over integer rows into those over the rows."""
        return self.shrinkage * self.shrinkage * 4.0**self.bits


class FurtherFacts(Model):
    """How a further matrix of a release was published.

    `noise` is the law of the noise on the matrix, and `lattice` that of its integer rows.
    """

    noise: NoiseLaw
    lattice: LatticeFacts


class LostFacts(FurtherFacts):
    """How the matrix of lost moments was published, in the units of the released matrix.

    `intercept` stands for the intercept in scaled rows, and is 0 without one.
    """

    intercept: NotNegative


class MissingFacts(FurtherFacts):
    """How the matrix of missing cells was published: the mean of y y^T over rows y = (b x, m).

    x is the row of the released matrix, times b, the root of `cut`. m has `indicator` for each
    missing cell of `columns`, and is shortened where its squared norm exceeds `cut`.
    """

    columns: tuple[str, ...]
    cut: Positive
    indicator: Positive


class CalibrationFacts(Model):
    """The public constants of the noise by name, its arithmetic and its lattice."""

    constants: dict[str, float]
    arithmetic: Literal["exact", "floating-point"]
    lattice: LatticeFacts


class GuaranteeFacts(Model):
    """The exact guarantee. `pure_epsilon` is null if the guarantee is not pure.

    `epsilon` is the smallest that holds at the requested `delta`, or the requested one if only
    rounding errors tell them apart; `profile` gives delta at other epsilons. `rho` is for
    zero-concentrated DP, which may fail with probability `rho_failure`. `power` is the true
    positive rate of the best attacker at a false positive rate of 5 %.
    """

    mu: float
    delta0: float
    pure_epsilon: float | None
    epsilon: float
    delta: float
    rho: float | None
    rho_failure: float
    power: float
    profile: dict[str, float]


OTHER = "(other)"
MAX_ENTRIES = 1 << 25  # of the matrices of all groups and folds: 256 MiB of doubles


def group_names(by: LevelsFacts) -> tuple[str, ...]:
    """Names of the groups, in the order of the levels; `OTHER` is last."""
    return (*level_names(by.levels), OTHER)


def check_group_names(by: LevelsFacts) -> None:
    """Refuse a level that is named like the group of all other rows."""
    if OTHER in level_names(by.levels):
        raise families.GROUPS(
            "'by': the column '{name}' has a level '{level}', which names the group of all other "
            "rows.",
            "Rename the level in the table and in the contract, or leave 'by' out.",
            name=by.name,
            level=OTHER,
        )
