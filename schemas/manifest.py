"""What a sealed bundle says of itself: the ``dp`` object of its datapackage.json."""

from __future__ import annotations

import datetime
import math
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from gramercy.schemas.column import INTERCEPT, features
from gramercy.schemas.contract import Neighbours, ProtectedUnit
from gramercy.schemas.facts import (
    BudgetFacts,
    CalibrationFacts,
    ColumnFacts,
    DatasetFacts,
    GuaranteeFacts,
    LevelsFacts,
    RowsFacts,
)
from gramercy.schemas.model import Digest, Label, Model, Positive, one_line
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import AnyNormalisation, Unit
from gramercy.schemas.request import MOST_FOLDS

Format = Literal[5, 6]
FORMAT: Format = 6
FORMATS: tuple[Format, ...] = get_args(Format)  # that are read
ReleaseKind = Literal["second-moment", "rows", "reports", "precision"]


class Asked(Model):
    """Everything that determines a release but the data and the noise; all of it public.

    Parameters
    ----------
    dataset, columns, intercept, neighbours, unit, budget
        From the contract. Bundles before format 6 state no budget.
    normalisation, mechanism, folds
        From the request; `mechanism` is what it says of the mechanism, by key.
    """

    dataset: DatasetFacts
    columns: Annotated[tuple[ColumnFacts | LevelsFacts, ...], Field(min_length=1)]
    intercept: bool
    neighbours: Neighbours
    unit: ProtectedUnit
    normalisation: AnyNormalisation
    mechanism: dict[str, Any]
    folds: Annotated[int, Field(strict=True, ge=1, le=MOST_FOLDS)] = 1
    budget: BudgetFacts | None = None

    @model_serializer(mode="wrap")
    def _as_stated(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As it was read: older formats have no key `budget`."""
        said: dict[str, Any] = handler(self)
        if self.budget is None:
            said.pop("budget", None)
        return said

    @property
    def names(self) -> list[str]:
        """The matrix's columns, in order."""
        names = [INTERCEPT] if self.intercept else []
        for column in self.columns:
            names += features(column.name, getattr(column, "levels", None))
        return names

    @property
    def behind(self) -> tuple[ColumnFacts | LevelsFacts | None, ...]:
        """The table's column behind each column of the matrix; None for the intercept."""
        found: list[ColumnFacts | LevelsFacts | None] = [None] if self.intercept else []
        for column in self.columns:
            found += [column] * len(features(column.name, getattr(column, "levels", None)))
        return tuple(found)

    @property
    def count_key(self) -> str:
        """What the matrix is an average over, for people."""
        return "persons" if self.unit == "person" else "rows"

    @property
    def longest(self) -> float:
        """The longest that a row of scaled columns can be, rounded up."""
        lengths = [1.0] if self.intercept else []
        for column in self.columns:
            if isinstance(column, LevelsFacts):
                lengths.append(1.0)  # one level at most
            else:
                far = max(column.upper - column.centre, column.centre - column.lower)
                lengths.append(far / column.scale)
        return math.hypot(*lengths) * (1 + 2.0**-40)

    @property
    def counted(self) -> bool:
        """Whether a noisy number of rows has to be paid for.

        Under add-remove it is private. Unit rows count themselves, in the noisy trace.
        """
        return self.neighbours == "add-remove" and not isinstance(self.normalisation, Unit)


class ReleaseManifest(Asked):
    """A release: what was asked, what was observed, and what follows from it.

    Parameters
    ----------
    kind
        ``second-moment``; ``rows`` or ``reports``, with the second moment that follows from them;
        or ``precision``.
    release, published
        Id and day.
    rows
        The number of rows that the matrix was divided by.
    fold_rows
        Those that the matrices of folds were divided by, where there are any.
    calibration, guarantee, noise
        Follow from what was asked; `noise` is the law of the released matrix.
    trace
        A public bound on the trace of the matrix without noise.
    sources
        Of an average of reports: the releases that hold them, and the digests of their SHA256SUMS.
    card
        The DP card: the same facts in the words of the OpenDP Deployments Registry and of
        NIST SP 800-226.
    """

    format: Format
    kind: ReleaseKind
    release: Label
    published: str
    rows: RowsFacts
    fold_rows: tuple[RowsFacts, ...]
    calibration: CalibrationFacts
    guarantee: GuaranteeFacts
    noise: NoiseLaw
    trace: Positive
    sources: dict[str, Digest]
    card: dict[str, Any]
    software: dict[str, str]

    @model_validator(mode="after")
    def _of_its_format(self) -> Self:
        if (self.budget is None) != (self.format < 6):
            raise ValueError("'budget' is part of the manifest from format 6 on")
        if self.budget is not None and self.budget.delta >= 1 / self.dataset.count:
            raise ValueError(f"'budget.delta' must be below 1/{self.count_key}")
        return self


class ReportManifest(Model):
    """A report on a release and estimates from it.

    Parameters
    ----------
    release, release_sha256
        The release, and the digest of its SHA256SUMS.
    estimates
        Digests of the estimates that it shows, by their ids.
    """

    format: Format
    kind: Literal["report"]
    report: Label
    dataset: DatasetFacts
    release: Label
    release_sha256: str
    estimates: dict[Label, str]
    privacy: Literal["post-processing of the release; no further privacy cost"]
    software: dict[str, str]


EstimateKind = Literal["precision", "covariance", "graph", "intervals", "discriminant"]


class EstimateManifest(Model):
    """What was estimated from a release.

    Parameters
    ----------
    release, release_sha256
        The release it was computed from, and the digest of that release's SHA256SUMS.
    estimator, tuning
        The settings asked for, and the numbers in force.
    matrices, tables
        Names of what it holds, the main matrix first.
    graph
        Whether it holds a graph.
    """

    format: Format
    kind: EstimateKind
    estimate: Label
    dataset: DatasetFacts
    release: Label
    release_sha256: str
    names: tuple[str, ...]
    estimator: dict[str, Any]
    tuning: dict[str, float]
    matrices: tuple[Label, ...]
    tables: tuple[Label, ...]
    graph: bool
    privacy: Literal["post-processing of the release; no further privacy cost"]
    software: dict[str, str]


def _day(text: str) -> str:
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise ValueError("must be a day, such as 2031-01-31")
    return text


class WithdrawalManifest(Model):
    """A notice that a release should no longer be used. What was spent on it stays spent.

    Parameters
    ----------
    release, release_sha256
        The release, and the digest of its SHA256SUMS.
    reason
        Why, in the curator's words.
    on
        The day.
    """

    format: Format
    kind: Literal["withdrawal"]
    dataset: DatasetFacts
    release: Label
    release_sha256: Digest
    reason: Annotated[str, Field(min_length=1, max_length=500), AfterValidator(one_line)]
    on: Annotated[str, AfterValidator(_day)]
