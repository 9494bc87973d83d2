"""The public facts that manifests are made of: the data set's, and a release's."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gramercy.schemas.budget import Budget
from gramercy.schemas.model import Delta, Epsilon, Label, Model, Positive, Real, Slug


class DatasetFacts(Model):
    """The data set, as the public may know it; `rows` and `persons` as the contract declares them.

    `count` is what the matrix is divided by: the persons, where they are protected.
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


class ColumnFacts(Model):
    """A column with the public constants in force."""

    name: str
    lower: Real
    upper: Real
    centre: Real
    scale: Positive


class LevelsFacts(Model):
    """A column of categories, published as one column of zeros and ones for each level."""

    name: str
    levels: tuple[str | Real, ...]


class BudgetFacts(Model):
    """The data set's budget, as its contract states it, and the share of delta for failures.

    What a mechanism's mu may fail with, its delta0, is chosen from that share.
    """

    epsilon: Epsilon
    delta: Delta
    per: Literal["lifetime", "year"]
    failures: Positive

    @classmethod
    def of(cls, budget: Budget) -> BudgetFacts:
        return cls(**budget.model_dump(), failures=budget.failures)

    @model_validator(mode="after")
    def _the_share(self) -> Self:
        budget = Budget(epsilon=self.epsilon, delta=self.delta, per=self.per)
        if self.failures != budget.failures:
            raise ValueError("'failures' is not the failure share of 'delta'")
        return self


class RowsFacts(Model):
    """The number of rows: ``public`` under replace-one; else ``noisy``, with its deviation.

    The released matrix is the noisy Gram matrix divided by `value`: what was `seen`, taken as one
    where it is less.
    """

    value: Annotated[float, Field(ge=1)]
    seen: Real
    status: Literal["public", "noisy"]
    sd: float


class LatticeFacts(Model):
    """Integer rows are round(2^bits shrink x); see `common.lattice`."""

    bits: int
    shrink: float


class CalibrationFacts(Model):
    """The noise's public constants by name, its arithmetic, and its lattice."""

    constants: dict[str, float]
    arithmetic: Literal["exact", "floating-point"]
    lattice: LatticeFacts


class GuaranteeFacts(Model):
    """The exact guarantee. `pure` is null where there is no pure epsilon.

    `epsilon` is the smallest that holds at the requested `delta`, `curve` the delta at other
    epsilons. `rho` is that of zero-concentrated DP, which fails with probability `rho_failure`.
    `power` is how often the best attacker detects a row, at 5 false alarms in 100.
    """

    mu: float
    delta0: float
    pure: float | None
    epsilon: float
    delta: float
    rho: float | None
    rho_failure: float
    power: float
    curve: dict[str, float]
