"""Manifests of sealed bundles: the ``dp`` object of their datapackage.json."""

from __future__ import annotations

import datetime
import math
import zoneinfo
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    AfterValidator,
    FailFast,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from gramercy.schemas import families, wordings
from gramercy.schemas.column import INTERCEPT, MAX_COLUMNS, UNBOUNDED, matrix_columns
from gramercy.schemas.database import RowSelection
from gramercy.schemas.derived import Limits
from gramercy.schemas.facts import (
    BudgetFacts,
    CalibrationFacts,
    CodesFacts,
    ColumnFacts,
    CumulativeFacts,
    DatasetFacts,
    FurtherFacts,
    GroupFacts,
    GuaranteeFacts,
    LedgerFacts,
    LevelsFacts,
    LostFacts,
    MissingFacts,
    PeriodFacts,
    RowsFacts,
    group_names,
)
from gramercy.schemas.model import Digest, Label, Model, Positive, Real, digest, single_line
from gramercy.schemas.neighbours import Neighbours, ProtectedUnit
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import AnyNormalisation, Clip, FurtherRows, Lost, Missing
from gramercy.schemas.publications import Publication, ReleaseKind, publications
from gramercy.schemas.request import MAX_FOLDS
from gramercy.schemas.request_parts import ScalingFacts
from gramercy.schemas.steps import StepDays

FORMAT: Literal[1] = 1
CARD_TEXTS = ("statement", "neighbours", "pre_processing", "mechanism")  # of the DP card


def _day(text: str) -> str:
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise families.VALUE("Must be a day such as 2031-01-31.")
    return text


def _named(facts: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(facts.get("name"), str):
        raise families.VALUE("'name' must be a text.")
    return facts


Named = Annotated[dict[str, Any], AfterValidator(_named)]  # parameters of what `name` names


# Keys that are left out where they have no value.
_ROUNDING = 1e-9  # of bounds, between machines
_OPTIONAL = [
    "period",
    "cumulative",
    "scaling",
    "by",
    "groups",
    "missing_codes",
    "codes",
    "selection",
    "ledger",
    "lost",
    "missing",
]


# Facts that all steps of a cumulative series share, so that their sums can be decoded.
SHARED_BY_STEPS = (
    *("columns", "intercept", "neighbours", "privacy_unit", "normalisation", "mechanism", "folds"),
    *("by", "period", "scaling", "missing_codes", "codes"),
)


class ReleaseSpec(Model):
    """The public facts that determine a release, apart from the data and the noise.

    Parameters
    ----------
    dataset, columns, intercept, neighbours, privacy_unit, budget
        From the contract.
    normalisation, mechanism, folds
        From the request; `mechanism` has the keys that differ from their defaults.
    by
        The column of levels by which the rows are grouped, which is not in `columns`; null if they
        are not.
    period
        The period of the data; null with a budget for the lifetime of the data set.
    cumulative
        The step of a cumulative series, of which the matrix is the sum so far; null without.
    scaling
        How the columns' centres and scales and the clipping radius were chosen; null if they are
        declared.
    missing_codes
        Numbers that stand for a missing value, by column; from the contract.
    codes
        The codes of each group, by column, where a column has groups of codes; from the contract.
    selection
        What was read, if the table is in a database; from the contract.
    ledger
        Where the release was charged; null in a plan.
    """

    dataset: DatasetFacts
    columns: Annotated[
        tuple[ColumnFacts | LevelsFacts, ...],
        Field(min_length=1, max_length=MAX_COLUMNS),
        FailFast(),
    ]
    intercept: bool
    neighbours: Neighbours
    privacy_unit: ProtectedUnit
    normalisation: AnyNormalisation
    mechanism: Named
    folds: Annotated[int, Field(strict=True, ge=1, le=MAX_FOLDS)] = 1
    by: LevelsFacts | None = None
    budget: BudgetFacts
    period: PeriodFacts | None = None
    cumulative: CumulativeFacts | None = None
    scaling: ScalingFacts | None = None
    missing_codes: dict[str, tuple[Real, ...]] = Field(default_factory=dict)
    codes: dict[str, CodesFacts] = Field(default_factory=dict)
    selection: RowSelection | None = None
    ledger: LedgerFacts | None = None

    @model_validator(mode="after")
    def _check_codes(self) -> Self:
        """Refuse groups of codes that are not the levels of their column."""
        levels = {x.name: x.levels for x in (*self.columns, self.by) if isinstance(x, LevelsFacts)}
        for name, codes in self.codes.items():
            if levels.get(name) != tuple(codes.groups):
                raise families.INCOMPLETE_FACTS(
                    "'codes' of '{column}' are not those of its levels.", column=name
                )
        return self

    @model_validator(mode="after")
    def _check_derived(self) -> Self:
        """Refuse declared bounds that values computed from other columns here cannot reach.

        Bounds of whole numbers are rounded, each by itself. Estimated ones have no bounds yet.
        """
        stated = self.scaling.bounds if self.scaling else [None] * len(self.columns)
        if self.normalisation.keeps_rows or len(stated) != len(self.columns):
            return self
        limits = dict[str, Limits]()
        for column, own in zip(self.columns, stated, strict=True):
            if isinstance(column, LevelsFacts):
                limits |= dict.fromkeys(matrix_columns(column.name, column.levels), (0.0, 1.0))
            elif self.scaling is None:
                limits[column.name] = column.lower, column.upper
            elif own is not None:
                limits[column.name] = own
        limits = {n: each for n, each in limits.items() if each != (-UNBOUNDED, UNBOUNDED)}
        numeric = [column for column in self.columns if isinstance(column, ColumnFacts)]
        units = {column.name: column.dates for column in numeric}
        for column in numeric:
            if column.derived and column.name in limits:
                least, most = column.derived.declared.limits(limits, units)
                lower, upper = limits[column.name]
                room = _ROUNDING * max(abs(lower), abs(upper))
                if not least - room <= lower <= upper <= most + room:
                    raise families.INCOMPLETE_FACTS(
                        "'{column}' has bounds outside of {least:g} and {most:g}, which follow "
                        "from those of {inputs}.",
                        column=column.name,
                        least=least,
                        most=most,
                        inputs=column.derived.inputs,
                    )
        return self

    @model_serializer(mode="wrap")
    def _without_missing_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The facts, without optional ones that have no value."""
        facts: dict[str, Any] = handler(self)
        for key in _OPTIONAL:
            if not facts.get(key):
                facts.pop(key, None)
        return facts

    @property
    def names(self) -> list[str]:
        """Names of the matrix columns, in order."""
        names = [INTERCEPT] if self.intercept else []
        for column in self.columns:
            names += matrix_columns(column.name, getattr(column, "levels", None))
        return names

    @property
    def source_columns(self) -> tuple[ColumnFacts | LevelsFacts | None, ...]:
        """The table column of each matrix column; None for the intercept."""
        sources: list[ColumnFacts | LevelsFacts | None] = [None] if self.intercept else []
        for column in self.columns:
            sources += [column] * len(matrix_columns(column.name, getattr(column, "levels", None)))
        return tuple(sources)

    @property
    def present_shares(self) -> tuple[float, ...]:
        """The published share of rows with a value, of each matrix column; empty if unknown."""
        if self.scaling is None or self.scaling.present is None:
            return ()
        shares = [1.0] if self.intercept else []
        for column, share in zip(self.columns, self.scaling.present, strict=True):
            levels = getattr(column, "levels", None)
            shares += [share] if levels is None else [1.0] * len(levels)
        return tuple(shares)

    @property
    def declared_bounds(self) -> tuple[tuple[float, float] | None, ...]:
        """The declared bounds of each matrix column; see `Evidence.bounds`."""
        declared = self.scaling.bounds if self.scaling else [None] * len(self.columns)
        found: list[tuple[float, float] | None] = [None] if self.intercept else []
        for column, limits in zip(self.columns, declared, strict=True):
            levels = getattr(column, "levels", None)
            own = limits if self.scaling or levels else (column.lower, column.upper)  # type: ignore[union-attr]
            if own is not None and isinstance(column, ColumnFacts):
                least, most = column.published(np.array(own)).tolist()
                own = least, most
            found += [own] * len(matrix_columns(column.name, levels))
        return tuple(found)

    @property
    def has_histograms(self) -> bool:
        """Whether it publishes histograms: of all columns, or only of the lengths of rows."""
        return self.scaling is not None and self.scaling.lengths > 0

    @property
    def estimates_constants(self) -> bool:
        """Whether the constants come from the release's own histograms of all columns."""
        return self.has_histograms and self.scaling is not None and bool(self.scaling.stages)

    @property
    def lost_rows(self) -> Lost | None:
        """What clipping takes away from rows, if a matrix of it is published.

        Half of the radius stands for the intercept. Of persons, whose rows are clipped together, it
        is divided by the root of their mean number.
        """
        unit = self.radius
        if self.scaling is None or self.scaling.cut is None or unit is None:
            return None
        rows = self.dataset.rows / self.dataset.count
        intercept = unit / 2 / math.sqrt(rows) if self.intercept else 0.0
        return Lost(
            radius=self.metric_radius or unit,
            unit=unit,
            cut=self.scaling.cut,
            intercept=intercept,
            in_metric=self.is_whitened,
        )

    @property
    def missing_rows(self) -> Missing | None:
        """Rows with the indicators of their missing cells, if a matrix of them is published.

        Of persons, the indicators are divided by the root of their mean number of rows.
        """
        scaling, radius = self.scaling, self.metric_radius or self.radius
        if scaling is None or scaling.missing_cut is None or radius is None:
            return None
        columns = tuple(k for k, share in enumerate(scaling.present or ()) if share < 1)
        indicator = math.sqrt(self.dataset.count / self.dataset.rows)
        cut = scaling.missing_cut
        return Missing(radius=radius, cut=cut, columns=columns, indicator=indicator)

    @property
    def further_rows(self) -> dict[str, FurtherRows]:
        """The rows of every further matrix that is published, in the order of their files."""
        found = {"lost": self.lost_rows, "missing": self.missing_rows}
        return {name: rows for name, rows in found.items() if rows is not None}

    def further_names(self, name: str) -> list[str]:
        """Names of the columns of a further matrix, in order."""
        return self._missing_names if name == "missing" else self.names

    @property
    def _missing_names(self) -> list[str]:
        """Names of the columns of the matrix of missing cells: those of indicators are last."""
        rows, names = self.missing_rows, self.names
        for k in () if rows is None else rows.columns:
            label = f"(missing) {self.columns[k].name}"
            while label in names:
                label = f"(missing) {label}"
            names.append(label)
        return names

    @property
    def groups_count(self) -> int:
        """Number of groups of rows; 1 if they are not grouped."""
        return 1 if self.by is None else len(group_names(self.by))

    @property
    def parts(self) -> int:
        """Number of disjoint parts of the rows, each of which has independent noise."""
        return self.folds * self.groups_count

    @property
    def slices(self) -> int:
        """Number of parts of a group that are summed separately: folds, or the steps so far."""
        return self.folds if self.cumulative is None else self.cumulative.step

    @property
    def public_count(self) -> int:
        """The number of rows or persons of the matrix, if it is public; in a plan, as declared."""
        if self.cumulative is None or not self.cumulative.rows:
            return self.dataset.count
        return sum(self.cumulative.rows)

    @property
    def count_key(self) -> str:
        """The unit that the matrix averages over: ``persons`` or ``rows``."""
        return "persons" if self.privacy_unit == "person" else "rows"

    @property
    def radius(self) -> float | None:
        """Radius at which rows are clipped in scaled units; None if they are not, or not yet.

        With a radius in a metric, the unit of the matrix.
        """
        return self.normalisation.radius if isinstance(self.normalisation, Clip) else None

    @property
    def metric_radius(self) -> float | None:
        """Radius in the metric of a pilot matrix; None if the matrix is not drawn in it."""
        return None if self.scaling is None else self.scaling.metric_radius

    @property
    def has_metric(self) -> bool:
        """Whether row lengths in a metric are published, which decide whether it is used."""
        return self.scaling is not None and self.scaling.turned > 0

    @property
    def states_metric(self) -> bool:
        """Whether a metric is published: row lengths in it are, or the matrix was drawn in it."""
        return self.has_metric or self.is_whitened

    @property
    def as_planned(self) -> Self:
        """The same facts before the release was drawn."""
        if self.cumulative is None:
            return self
        return self.model_copy(update={"cumulative": self.cumulative.as_planned})

    @property
    def is_whitened(self) -> bool:
        """Whether the matrix was drawn in the metric of a pilot matrix."""
        return self.metric_radius is not None

    @property
    def largest_norm(self) -> float:
        """Largest l2 norm of a row of scaled columns that the bounds allow, rounded up."""
        largest = [1.0] if self.intercept else []
        for column in self.columns:
            if isinstance(column, LevelsFacts):
                largest.append(1.0)  # at most one level
            else:
                deviation = max(column.upper - column.centre, column.centre - column.lower)
                largest.append(deviation / column.scale)
        return math.hypot(*largest) * (1 + 2.0**-40)

    @property
    def series(self) -> str | None:
        """What identifies the cumulative series of a step; None without one."""
        if self.cumulative is None:
            return None
        facts = self.model_dump(mode="json", include={*SHARED_BY_STEPS})
        own, series = [self.dataset.id, self.dataset.curator], self.cumulative
        return digest([*own, series.lag, *map(str, series.starts), facts])

    @property
    def step_days(self) -> StepDays:
        """The days and the labels of the steps of its series; ValueError without one."""
        if self.cumulative is None:
            raise ValueError
        window = "" if self.period is None else self.period.label
        return StepDays(self.cumulative.every, self.cumulative.starts, window)

    def overdue_steps(self, moment: datetime.datetime) -> tuple[str, ...]:
        """The labels of later steps of its series whose rows are complete at a moment."""
        days, facts = self.step_days, self.cumulative
        zone = (self.period and self.period.timezone) or "UTC"
        today = moment.astimezone(zoneinfo.ZoneInfo(zone)).date()
        return days.labels[facts.step : days.complete(today, facts.lag)] if facts else ()

    @property
    def publishes_noisy_count(self) -> bool:
        """Whether a noisy number of rows is published.

        The number is private under add-remove, and so are the sizes of groups under any relation.
        With unit rows the noisy trace is the number.
        """
        is_private = not self.neighbours.count_is_public or self.by is not None
        return is_private and not self.normalisation.unit_rows


class ReleaseManifest(ReleaseSpec):
    """The manifest of a release.

    Parameters
    ----------
    kind
        What is published: ``second-moment``; ``rows`` or ``reports``, with the second moment
        computed from them; ``precision``; or ``marginals``.
    release, published
        Id and day of the release.
    rows
        Number of rows that the matrix was divided by.
    fold_rows
        Numbers of rows that the matrices of folds were divided by; empty without folds.
    groups
        Numbers of rows that the matrices of groups were divided by; empty without groups.
    calibration, guarantee, noise
        Computed from the facts above; `noise` is the law of the noise on the matrix
        as drawn.
    lost, missing
        How the matrices of lost moments and of missing cells were published; null without them.
    trace_bound
        Public bound on the trace of the matrix without noise.
    sources
        For an average of reports, the digest of SHA256SUMS of each release that was averaged.
    card
        The DP card: the same facts in the terms of the OpenDP Deployments Registry and of
        NIST SP 800-226.
    """

    format: Literal[1]
    kind: ReleaseKind
    release: Label
    published: Annotated[str, AfterValidator(_day)]
    rows: RowsFacts
    fold_rows: Annotated[tuple[RowsFacts, ...], FailFast()]
    calibration: CalibrationFacts
    guarantee: GuaranteeFacts
    noise: NoiseLaw
    lost: LostFacts | None = None
    missing: MissingFacts | None = None
    trace_bound: Positive
    sources: dict[str, Digest]
    groups: Annotated[tuple[GroupFacts, ...], FailFast()] = ()
    card: dict[str, Any]
    software: dict[str, str]

    @property
    def publication(self) -> Publication:
        """What is published."""
        return publications[self.kind]

    @property
    def charged(self) -> int:
        """Number of the ledger's last entry when it was charged; 0 without a ledger.

        It is greater for later releases of a data set, also of other versions.
        """
        return self.ledger.seq if self.ledger is not None else 0

    @property
    def releases_of_steps(self) -> dict[str, str]:
        """The releases of the steps of its series so far by their labels; empty without one."""
        if self.cumulative is None:
            return {}
        releases = (*(each.release for each in self.cumulative.earlier), self.release)
        return dict(zip(self.step_days.labels, releases, strict=False))

    def group_noise(self, rows: float) -> NoiseLaw:
        """The noise law of the matrix of a group with a noisy number of rows."""
        return self._of_group(self.noise, rows)

    @property
    def further_facts(self) -> dict[str, FurtherFacts]:
        """How every further matrix was published; see `further_rows`."""
        found: dict[str, FurtherFacts | None] = {"lost": self.lost, "missing": self.missing}
        return {name: facts for name, facts in found.items() if facts is not None}

    def further_of_group(self, rows: float) -> dict[str, FurtherFacts]:
        """How the further matrices of a group were published; see `group_noise`."""
        return {
            name: facts.model_copy(update={"noise": self._of_group(facts.noise, rows)})
            for name, facts in self.further_facts.items()
        }

    def _of_group(self, law: NoiseLaw, rows: float) -> NoiseLaw:
        return law.divided_by(math.sqrt(self.groups_count) * rows / self.rows.value)

    @model_validator(mode="after")
    def _check_delta(self) -> Self:
        if self.budget.delta >= 1 / self.dataset.count:
            raise wordings.delta_too_large(self.count_key, 1 / self.dataset.count)
        return self

    @model_validator(mode="after")
    def _check_constants(self) -> Self:
        scaling = self.scaling
        complete = scaling is None or (
            len(scaling.bounds) == len(self.columns) == len(scaling.present or ())
            and (scaling.lost > 0) == (scaling.cut is not None)
        )
        has_lost = scaling is not None and scaling.cut is not None
        complete = complete and has_lost == (self.lost is not None)
        has_missing = complete and self.missing_rows is not None
        complete = complete and has_missing == (self.missing is not None)
        if not complete or self.normalisation.lacks_radius:
            raise families.INCOMPLETE_FACTS("The facts about estimated constants are incomplete.")
        return self

    @model_validator(mode="after")
    def _check_texts(self) -> Self:
        if len(self.names) > MAX_COLUMNS + self.intercept:
            raise families.VALUE("There must be at most {most} columns.", most=MAX_COLUMNS)
        shown = {*CARD_TEXTS} | ({"groups"} if self.groups else set())
        for key in sorted(shown):
            if not isinstance(self.card.get(key), str):
                raise families.VALUE("The card lacks {missing}.", missing=key)
        return self

    @model_validator(mode="after")
    def _check_groups(self) -> Self:
        names = () if self.by is None else group_names(self.by)
        folds = self.folds if self.folds > 1 else 0
        complete = all(len(group.fold_rows) == folds for group in self.groups)
        if tuple(group.level for group in self.groups) != names or not complete:
            raise families.INCOMPLETE_FACTS(
                "The facts about groups are not those of the declared levels."
            )
        return self


class ReportManifest(Model):
    """The manifest of a report on a release and its estimates, which it names by their digests."""

    format: Literal[1]
    kind: Literal["report"]
    report: Label
    dataset: DatasetFacts
    release: Label
    release_sha256: str
    estimates: dict[Label, str]
    privacy: Literal["post-processing of the release; no further privacy cost"]
    software: dict[str, str]


EstimateKind = Literal[
    "precision",
    "covariance",
    "graph",
    "intervals",
    "discriminant",
    "quadratic-discriminant",
    "regression",
    "components",
    "factors",
    "reliability",
    "cross-tables",
    "summary",
    "synthetic",
    "pooled",
    "joint-graph",
]


class EstimateManifest(Model):
    """The manifest of an estimate; releases are named by the digests of their SHA256SUMS."""

    format: Literal[1]
    kind: EstimateKind
    estimate: Label
    dataset: DatasetFacts
    release: Label
    release_sha256: str
    sources: Annotated[dict[str, Digest], Field(default_factory=dict)]  # the other releases
    names: Annotated[tuple[str, ...], Field(max_length=MAX_COLUMNS + 1)]
    estimator: Named  # the requested settings
    tuning: dict[str, float]  # the numbers in use
    matrices: tuple[Label, ...]  # names; the main matrix is first
    tables: tuple[Label, ...]
    graph: bool  # whether it has one
    privacy: Literal["post-processing of the release; no further privacy cost"]
    software: dict[str, str]

    @model_serializer(mode="wrap")
    def _without_empty_sources(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The facts; estimates from one release do not state other releases."""
        facts: dict[str, Any] = handler(self)
        if not facts.get("sources"):
            facts.pop("sources", None)
        return facts


class WithdrawalManifest(Model):
    """The manifest of a withdrawal: the release should no longer be used. It stays charged."""

    format: Literal[1]
    kind: Literal["withdrawal"]
    dataset: DatasetFacts
    release: Label
    release_sha256: Digest
    reason: Annotated[str, Field(min_length=1, max_length=500), AfterValidator(single_line)]
    date: Annotated[str, AfterValidator(_day)]
