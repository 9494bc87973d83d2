"""Plan a release from its contract and request: its columns, facts and estimates.

No row is read.

Names of columns are public, and so is what a pattern stands for: plan, manifest and ledger hold the
names, never the patterns. The first release fixes them. The order follows from the names alone, so
that a file whose columns are in another order gives the same matrix.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, describe_release, read_release
from gramercy.archive.bundles.encoded_file import Encoded
from gramercy.archive.store.archive import Archive
from gramercy.common.metric import Metric
from gramercy.common.natural_order import natural
from gramercy.common.prefix_sums import PrefixSums
from gramercy.common.similar_names import most_similar_first
from gramercy.estimators import Estimator
from gramercy.estimators.column_tails import ColumnTails
from gramercy.mechanisms import registry
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian import target_mu
from gramercy.mechanisms.mechanism import Mechanism
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import (
    Calibration,
    calibrate,
    guarantee_facts,
    row_normalisation,
    turning_of,
)
from gramercy.pipeline.plan.request_model import Request
from gramercy.pipeline.plan.series_rules import (
    check_series,
    check_series_noise,
)
from gramercy.scaling.chain import replayed, starting_facts
from gramercy.scaling.normal_scores import is_rank
from gramercy.scaling.shares import (
    Shares,
    shares,
    shares_of_known_constants,
    whitening_pays,
)
from gramercy.scaling.whitening import Pilot
from gramercy.schemas import families, wordings
from gramercy.schemas.column import CodeGroups, Column, ColumnKind, Derived
from gramercy.schemas.contract import Contract
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.errors import InvalidValue, RequestError
from gramercy.schemas.facts import (
    BudgetFacts,
    CodesFacts,
    ColumnFacts,
    CumulativeFacts,
    DatasetFacts,
    LevelsFacts,
    PeriodFacts,
    group_names,
)
from gramercy.schemas.manifest import ReleaseManifest, ReleaseSpec
from gramercy.schemas.model import digest
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import AnyNormalisation, Clip, Unit, Whole
from gramercy.schemas.problem import Wording
from gramercy.schemas.publications import REPORTS, ROWS
from gramercy.schemas.request import PERIOD
from gramercy.schemas.request_parts import (
    LocalEngine,
    PrivateScaling,
    PureSpec,
    ReleasedScaling,
    ScalingFacts,
    TailFacts,
)
from gramercy.tables.formats.csv_format import look_like_data
from gramercy.tables.formats.reader import schema_of
from gramercy.tables.formats.source import needs_copy, open_source

_GRACE = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Plan:
    """One release, computed before any data are read."""

    # contract, request: the declared contract, and the request with the label that its version
    # pattern gave
    contract: Contract
    request: Request
    spec: ReleaseSpec  # the public facts that determine the release
    calibration: Calibration  # the calibrated noise
    # pattern, planned_for: the version as the request gave it, and the time for which the release
    # was scheduled
    pattern: str
    planned_for: datetime.datetime
    # the metric in which rows are clipped, if it is not that of scaled columns
    metric: Metric | None = None
    released: ReleasedMetric | None = None  # the metric of the release with the constants, if any
    # what the steps before this one published, oldest first; empty until the release is charged
    earlier: tuple[tuple[Encoded, ...], ...] = ()
    averaging: bool = False  # whether the release averages existing reports instead of making them
    approvals: tuple[str, ...] = ()  # signatures of an approver, of this charge and others

    def with_new_charge(self, spent: str | None) -> Plan:
        """The same plan, charged again in place of a spent release."""
        return replace(self, request=self.request.model_copy(update={"new_charge": spent}))

    @property
    def key(self) -> str:
        """Identifies equal requests; making reports and averaging them are different requests."""
        key = self.request.key(self.contract, self.spec.scaling)
        return digest({"average of": key}) if self.averaging else key

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that publishes the matrix, the rows or the histograms."""
        return self.calibration.mechanism

    @property
    def guarantee(self) -> Guarantee:
        """The exact guarantee, which will be charged."""
        return self.calibration.guarantee

    @property
    def normalisation(self) -> AnyNormalisation:
        """The normalisation in use: estimated scaling may give way to unit rows."""
        return self.spec.normalisation

    @property
    def draws_counts(self) -> bool:
        """Whether noisy counts are published before sums of rows."""
        return self.calibration.constants_noise is not None

    @property
    def matrix_contract(self) -> Contract:
        """The declared contract of the columns of the matrix: without the one that groups rows."""
        return matrix_contract(self.contract, self.request)

    @property
    def scaled_contract(self) -> Contract:
        """The contract of the matrix columns, with the constants in use."""
        return scaled_contract(self.contract, self.spec)

    @property
    def row_normalisation(self) -> Unit | Clip | Whole:
        """How rows are normalised in the passes over the table."""
        if self.metric is not None:
            return Clip(radius=self.spec.metric_radius)
        return row_normalisation(self.spec)

    @property
    def law(self) -> NoiseLaw:
        """Noise law of the published matrix, at the declared number of rows."""
        return self.mechanism.matrix_law(self.contract.count, self.spec.parts)

    @property
    def group_law(self) -> NoiseLaw:
        """Noise law of a group with an equal share of the rows; without groups, of the matrix."""
        if self.spec.by is None:
            return self.law
        rows = self.contract.count / len(self.spec.by.levels)
        return self.mechanism.matrix_law(rows, self.spec.folds)

    @property
    def columns(self) -> int:
        """Number of columns of the matrix, p."""
        return self.mechanism.parameters.p

    @property
    def matrix_error(self) -> float:
        """Root mean square of the Frobenius norm of the noise; see `group_law`."""
        return self.group_law.norm(self.columns)

    @property
    def share_of_entry(self) -> float | None:
        """Standard deviation of an off-diagonal entry, relative to an average diagonal entry.

        A diagonal entry is 1/p on average if every row has length 1, because the trace is then 1.
        None if rows do not have length 1, or if there is only one column.
        """
        unit_rows = self.normalisation.unit_rows
        if not unit_rows or self.contract.protected_unit != "row":
            return None
        if not self.mechanism.publishes.is_moment or self.columns == 1:
            return None
        return self.group_law.sd_off_diagonal * self.columns

    @property
    def share_of_pilot(self) -> float:
        """Share of the squared mu for the pilot matrix and row lengths in its metric; may be 0."""
        scaling = self.spec.scaling
        return 0.0 if scaling is None else scaling.share_of_pilot

    def facts(self) -> dict[str, Any]:
        """The plan as plain data; the noise is that of a matrix without a metric."""
        requested = self.request.mechanism
        return {
            "dataset": self.contract.id,
            "version": self.request.version,
            "rows": self.contract.rows,
            **({"persons": self.contract.persons} if self.contract.persons else {}),
            "columns": self.columns,
            "neighbours": self.contract.neighbours,
            "normalisation": self.normalisation.model_dump(),
            "scaling": self.request.scaling.kind if self.spec.scaling else "declared",
            "share_of_pilot": self.share_of_pilot,
            "folds": self.request.folds,
            **({"by": self.request.by, "groups": self.spec.groups_count} if self.spec.by else {}),
            "mechanism": self.mechanism.name,
            "publishes": self.mechanism.publishes.name,
            "arithmetic": self.mechanism.arithmetic,
            **self.calibration.constants(),
            **guarantee_facts(self.guarantee, requested.delta, requested.epsilon).model_dump(),
            "sd_diagonal": self.group_law.sd_diagonal,
            "sd_off_diagonal": self.group_law.sd_off_diagonal,
            "share_of_entry": self.share_of_entry,
            "matrix_error": self.matrix_error,
            "lattice_bits": self.mechanism.lattice.bits,
        }


def make_plan(
    context: Context,
    request: Request,
    *,
    at: datetime.datetime | None = None,
    averaging: bool = False,
) -> Plan:
    """Plan a release; reads the contract, but no data."""
    from gramercy.pipeline.plan.request_files import dated_request  # needs a YAML parser

    planned_for = at or utc_now()
    pattern, request = request.version, dated_request(context, request, planned_for)
    contract = load_contract(context, request)
    declared = release_spec(contract, request)
    table = matrix_contract(contract, request)
    spec = with_planned_scaling(context, table, request, declared)
    calibration = calibrate(spec)
    mechanism = calibration.mechanism
    check_series_noise(mechanism)
    if not mechanism.publishes.is_moment and request.estimates:
        raise families.ESTIMATES(
            "'estimates' must be empty: this release publishes {kind}, and no second moment.",
            "Write 'estimates: []'.",
            kind=mechanism.publishes.name,
        )
    if mechanism.publishes.rows_file and not isinstance(request.engine, LocalEngine):
        raise families.REQUEST_USE(
            "'engine' cannot be used with '{mechanism}', which publishes rows in their order.",
            "Leave the key out: one process reads the table.",
            mechanism=mechanism.name,
        )
    if needs_copy(contract.source):
        if mechanism.publishes.rows_file:
            raise families.REQUEST_USE(
                "'{mechanism}' publishes rows in their order, and those of a database or a Delta "
                "table are not ordered.",
                "Publish a second moment, or export the table as Parquet.",
                mechanism=mechanism.name,
            )
        if not isinstance(request.engine, LocalEngine):
            raise families.REQUEST_USE(
                "'engine: dask' cannot read a database or a Delta table, which are copied once, "
                "to this machine.",
                "Write 'engine: local', or export the table as Parquet to a place that all "
                "workers can read.",
            )
    if averaging and mechanism.publishes is not REPORTS:
        raise families.REPORTS(
            "'mechanism.name' is '{mechanism}', which does not make reports.",
            "Write 'name: local'.",
            mechanism=mechanism.name,
        )
    plan = Plan(contract, request, spec, calibration, pattern, planned_for, averaging=averaging)
    if spec.scaling is not None and spec.states_metric and spec.scaling.release is not None:
        bundle = read_release(context.archive.release(contract.id, spec.scaling.release))
        released = ReleasedMetric.of(bundle)
        metric = released.metric if released and spec.is_whitened else None
        plan = replace(plan, released=released, metric=metric)
    budget = contract.budget
    if budget.per_release is not None:
        epsilon = plan.guarantee.epsilon(budget.delta)
        if epsilon > budget.per_release and not _is_answered(context, plan):
            raise families.EXCEEDED(
                "{dataset}: this release has epsilon={epsilon:g} at the budget's delta; the "
                "contract allows {limit:g} for a single one.",
                "Ask for a smaller epsilon, or raise 'budget: per_release' in the contract.",
                dataset=contract.id,
                epsilon=epsilon,
                limit=budget.per_release,
            )
    for index, estimator in enumerate(request.estimates):
        try:
            check_group(spec, estimator)
            estimator.check(spec)
            # An answered request is answered again, even if other releases were withdrawn.
            if estimator.other_releases and not _is_answered(context, plan):
                name = f"{contract.id}/{request.version}"
                check_other_releases(context.archive, estimator, name, spec)
        except RequestError as error:
            error.sentence = f"estimates.{index}: {error.sentence}"
            raise
    return plan


def _is_answered(context: Context, plan: Plan) -> bool:
    """Whether the request was published before, so that it is answered as it was then."""
    ledger = context.existing_ledger
    charge = ledger.find_charge(plan.contract.id, plan.key) if ledger is not None else None
    return charge is not None and charge.is_published


def utc_now() -> datetime.datetime:
    """The current date and time, UTC."""
    return datetime.datetime.now(datetime.UTC)


def load_contract(context: Context, request: Request) -> Contract:
    """Read the contract that a request names."""
    from gramercy.pipeline.plan.request_files import read_contract  # needs a YAML parser

    path = context.home.contract(request.dataset)
    contract = read_contract(path)
    if not request.dataset.endswith((".yaml", ".yml")) and contract.id != request.dataset:
        raise families.REQUEST_FILE(
            "'dataset' is '{dataset}', but the contract of that name has the id '{id}'.",
            "Give the contract's file the name of its id.",
            dataset=request.dataset,
            id=contract.id,
        )
    if "%" not in request.version:
        check_series(contract, request)
        step = request.step(contract)
        dated = contract.for_steps(*step) if step else contract.for_version(request.version)
        contract = with_columns_of_table(dated, path)
        check_names(context, contract, in_pairs=request.mechanism.name == "local")
    request.check_delta(contract)
    return contract


def check_scheduled_version(plan: Plan, moment: datetime.datetime) -> None:
    """Refuse a late run, which would label today's table with the version of another day.

    A worker that restarts takes up every run that it missed. A step of a cumulative series is
    refused before its rows are complete.
    """
    step = plan.spec.cumulative
    if step is not None and step.complete_on > plan.request.day_of(plan.contract, moment):
        raise families.PERIOD(
            "The rows of step {version} are complete on {complete}, when it and 'lag' are over.",
            "Publish it on this day or later, or write 'version: \"{{period}}\"' for the last "
            "complete step.",
            version=plan.request.version,
            complete=step.complete_on.isoformat(),
        )
    # The period was chosen for the scheduled time, and has its own rows: it is never too late.
    pattern = plan.pattern.replace(PERIOD, plan.request.period or "")
    unlabelled = plan.request.model_copy(update={"version": pattern})
    scheduled, current = plan.request.version, unlabelled.at(moment).version
    if scheduled != current and moment - plan.planned_for > _GRACE:
        raise families.LATE_RUN(
            "This run was scheduled for version '{scheduled}', but the version is now "
            "'{current}', and the table may have changed. Nothing was charged.",
            "Start the deployment again, or wait for the next scheduled run.",
            scheduled=scheduled,
            current=current,
        )


def grouping_column(contract: Contract, request: Request) -> LevelsFacts | None:
    """The column of levels by which the rows are grouped; None if they are not."""
    name = request.by
    if name is None:
        return None
    if name not in contract.columns:
        raise families.GROUPS(
            "'by': the contract has no column '{name}'.",
            "Similar columns: {similar}.",
            name=name,
            similar=most_similar_first(name, contract.names),
        )
    levels = contract.levels(name)
    if levels is None:
        raise families.GROUPS(
            "'by': the column '{name}' has no levels.",
            "Declare 'levels' for it in the contract, or group by a column that has them.",
            name=name,
        )
    if len(contract.columns) == 1:
        raise families.GROUPS(
            "'by': '{name}' is the only column of the contract.",
            "Leave 'by' out, or declare more columns.",
            name=name,
        )
    return LevelsFacts(name=name, levels=levels)


def matrix_contract(contract: Contract, request: Request) -> Contract:
    """The contract of the columns of the matrix: without the one that groups the rows."""
    by = grouping_column(contract, request)
    return contract if by is None else contract.without_column(by.name)


def release_spec(contract: Contract, request: Request) -> ReleaseSpec:
    """The public facts that determine a release."""
    table, source = matrix_contract(contract, request), contract.source
    if request.normalisation.keeps_rows:
        table = table.with_integer_bounds()
    return ReleaseSpec(
        dataset=DatasetFacts(
            id=contract.id,
            title=contract.title,
            curator=contract.curator,
            version=request.version,
            rows=contract.rows,
            persons=contract.persons,
        ),
        columns=tuple(_column_facts(name, column) for name, column in table.columns.items()),
        intercept=contract.intercept,
        neighbours=contract.neighbours,
        privacy_unit=contract.protected_unit,
        normalisation=request.normalisation,
        mechanism=request.mechanism.non_default_keys(),
        folds=request.folds,
        by=grouping_column(contract, request),
        missing_codes=contract.missing_codes,
        codes={
            name: CodesFacts(groups=column.levels, prefix=column.prefix)
            for name, column in contract.columns.items()
            if isinstance(column, CodeGroups)
        },
        budget=BudgetFacts.of(contract.budget),
        period=_period_facts(contract, request),
        cumulative=_cumulative_facts(contract, request),
        selection=source.selection if isinstance(source, DatabaseTable) else None,
    )


def _period_facts(contract: Contract, request: Request) -> PeriodFacts | None:
    if contract.budget.per == "lifetime":
        return None
    label, dates = contract.window(request.version), contract.period
    if dates is None:
        return PeriodFacts(label=label)
    return PeriodFacts(label=label, column=dates.column, timezone=dates.timezone)


def _cumulative_facts(contract: Contract, request: Request) -> CumulativeFacts | None:
    step = request.step(contract)
    if step is None or request.cumulative is None:
        return None
    days, number = step
    weights = PrefixSums(days.count).weights[number - 1, :number]
    return CumulativeFacts(
        every=days.every,
        lag=request.cumulative.lag,
        starts=days.starts,
        step=number,
        weights=tuple(weights.tolist()),
    )


def _column_facts(name: str, column: ColumnKind) -> ColumnFacts | LevelsFacts:
    if column.categories is not None:
        return LevelsFacts(name=name, levels=column.categories)
    derived = column.facts if isinstance(column, Derived) else None
    limits = column.limits if column.has_bounds else None
    facts = starting_facts(name, limits, unit=column.date_unit, derived=derived)
    if not column.has_bounds:
        return facts
    _, _, centre, scale, *_ = column.constants
    return facts.model_copy(update={"centre": centre, "scale": scale})


def scaled_contract(contract: Contract, spec: ReleaseSpec) -> Contract:
    """The contract with the bounds, centres and scales of a release."""
    estimated = spec.scaling is not None
    columns = {
        facts.name: contract.columns[facts.name].in_use(facts, estimated=estimated)
        for facts in spec.columns
    }
    return contract.model_copy(update={"columns": columns})


_release_without_constants = Wording(
    families.SCALING,
    "Release '{release}' has no constants for this request: {reason}.",
    "Publish that release first, or restore the contract if it was changed by mistake. Otherwise "
    "name a release of this data set with estimated scaling, such as one with 'mechanism: {{name: "
    "marginals, ...}}'.",
)


Bounds = tuple[tuple[float, float] | None, ...]


def with_planned_scaling(
    context: Context, contract: Contract, request: Request, declared: ReleaseSpec
) -> ReleaseSpec:
    """The facts of a release, with the scaling that its request asks for."""
    scaling = request.scaling
    if isinstance(scaling, ReleasedScaling):
        return _with_released_constants(context, scaling, contract, declared)
    without_bounds = tuple(contract.columns_without_bounds)
    ranks = tuple(each.name for each in declared.columns if is_rank(each))
    if not isinstance(scaling, PrivateScaling):
        if without_bounds:
            raise families.SCALING(
                "Columns without bounds need estimated scaling: {columns}.",
                "Declare 'lower' and 'upper' in the contract, or write 'scaling: private' in the "
                "request; for a cumulative series, 'scaling: {{from: RELEASE}}', of a release with "
                "'mechanism: {{name: marginals, ...}}'.",
                columns=without_bounds,
            )
        if ranks:
            raise families.SCALING(
                "Columns with 'transform: rank' need a histogram: {columns}.",
                "Write 'scaling: private' in the request, or 'scaling: {{from: RELEASE}}', of a "
                "release that has them.",
                columns=ranks,
            )
        return declared
    planned = _shares(scaling, contract, request, declared)
    if planned is None:
        if without_bounds or ranks:
            p = _p(declared)
            needed = rows_needed(p, target_mu(request.mechanism))
            raise (
                families.SCALING(
                    "{count} {count_key} are too few to estimate the constants of columns without "
                    "bounds, or the scores of ranks: about {needed} are needed for {p} columns at "
                    "this guarantee.",
                    "Declare bounds for all columns in the contract, and no 'transform: rank'.",
                    count=contract.count,
                    count_key=contract.count_key,
                    needed=needed,
                    p=p,
                )
            )
        # Unit rows need no radius, and lose the least where constants cannot be estimated.
        return declared.model_copy(update={"normalisation": Unit()})
    facts = ScalingFacts(
        kind="private",
        bounds=_bounds(contract),
        stages=planned.stages,
        lengths=planned.lengths,
        lost=0.0 if registry[request.mechanism.name].estimates_constants else planned.lost,
        pilot=planned.pilot,
        turned=planned.turned,
    )
    columns = tuple(
        column
        if isinstance(column, LevelsFacts)
        else starting_facts(column.name, limits, unit=column.unit, derived=column.derived)
        for column, limits in zip(declared.columns, facts.bounds, strict=True)
    )
    return declared.model_copy(update={"scaling": facts, "columns": columns})


def _shares(
    scaling: PrivateScaling, contract: Contract, request: Request, spec: ReleaseSpec
) -> Shares | None:
    if request.mechanism.delta == 0:
        raise wordings.scaling_needs_delta()
    mechanism = registry[request.mechanism.name]
    if scaling.stages == 1 and not mechanism.takes_pilot:
        raise families.SCALING(
            "'scaling.stages' cannot be used with '{mechanism}', which always draws in one stage.",
            "Leave 'stages' out.",
            mechanism=mechanism.name,
        )
    share = 1.0 if mechanism.estimates_constants else scaling.share
    n, p, mu = contract.count, _p(spec), target_mu(request.mechanism)
    planned = shares(n, p, mu, share)
    has_pilot = scaling.stages != 1 and mechanism.takes_pilot and p > 1
    if planned and has_pilot and whitening_pays(n, p, mu):
        return planned.with_pilot
    return planned


def rows_needed(p: int, mu: float) -> int:
    """The smallest number of rows at which private constants pay."""
    low, high = 0, 1
    while shares(high, p, mu) is None:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if shares(middle, p, mu) is None else (low, middle)
    return high


def _p(spec: ReleaseSpec) -> int:
    """Number of columns of the matrix without the intercept."""
    return len(spec.names) - int(spec.intercept)


def _bounds(contract: Contract) -> Bounds:
    return tuple(
        column.limits if isinstance(column, Column) and column.has_bounds else None
        for column in contract.columns.values()
    )


def _differences(
    manifest: ReleaseManifest, bounds: Bounds, contract: Contract, declared: ReleaseSpec
) -> Iterator[str]:
    """In what the table of an earlier release with these bounds was another one."""
    if lacking := [name for name in declared.names if name not in manifest.names]:
        yield f"it does not have {', '.join(lacking)}"
    if more := [name for name in manifest.names if name not in declared.names]:
        yield f"it has {', '.join(more)} too"
    if manifest.names != declared.names and not lacking and not more:
        yield "its columns are in another order"
    if manifest.names == declared.names:
        own = zip(contract.columns, _bounds(contract), strict=True)
        changed = [name for (name, now), then in zip(own, bounds, strict=True) if now != then]
        if changed:
            yield f"the bounds of {', '.join(changed)} were others"
    if manifest.privacy_unit != declared.privacy_unit:
        yield f"it protects a {manifest.privacy_unit}"


def _with_released_constants(
    context: Context, scaling: ReleasedScaling, contract: Contract, declared: ReleaseSpec
) -> ReleaseSpec:
    """The facts with the constants of an earlier release, which cost nothing."""
    place = context.archive.release(contract.id, scaling.release)
    if not context.archive.contains(place):
        raise _release_without_constants(scaling.release, "it is not in the archive")
    bundle = read_release(place)
    other = bundle.manifest.scaling
    if other is None or not other.stages:
        raise _release_without_constants(scaling.release, "it has no histograms of columns")
    differences = [*_differences(bundle.manifest, other.bounds, contract, declared)]
    if differences:
        raise _release_without_constants(scaling.release, "; ".join(differences))
    own = shares_of_released_constants(declared, bundle.manifest)
    planned = ScalingFacts(
        kind="release",
        bounds=other.bounds,
        lengths=own.lengths if own else 0.0,
        lost=own.lost if own else 0.0,
        pilot=own.pilot if own else 0.0,
        turned=own.turned if own else 0.0,
        release=scaling.release,
        sha256=bundle.sha256,
    )
    return constants_of_release(declared.model_copy(update={"scaling": planned}), bundle)


def shares_of_released_constants(
    spec: ReleaseSpec, source: ReleaseSpec | None = None
) -> Shares | None:
    """What a release with the constants of another one spends on all but its matrix.

    Nothing, if its mechanism cannot share its guarantee, or would lose a pure one; and nothing in a
    cumulative series, whose matrices are drawn as that of the other release. If the other
    release has a pilot matrix, row lengths in its metric decide whether the matrix is drawn in it;
    if that has no matrix at all, there is a pilot of its own. Without `source`, in one stage.
    """
    mechanism_type = registry[spec.mechanism["name"]]
    if not mechanism_type.takes_private_constants or issubclass(mechanism_type.spec, PureSpec):
        return None
    if spec.cumulative is not None:  # all steps have the constants that are published already
        return None
    requested = mechanism_type.spec.model_validate(spec.mechanism)
    if requested.calibration != "exact":
        return None
    n, p, mu = spec.dataset.count, _p(spec), target_mu(requested)
    known = shares_of_known_constants(n, p, mu)
    takes_pilot = mechanism_type.takes_pilot and p > 1 and whitening_pays(n, p, mu)
    if source is None or not takes_pilot:
        return known
    if registry[source.mechanism["name"]].estimates_constants:
        return known.with_pilot
    return known.with_metric if source.scaling is not None and source.scaling.pilot else known


@dataclass(frozen=True, eq=False)
class ReleasedMetric:
    """The metric of another release, in which later ones can draw their matrices."""

    metric: Metric
    pilot: Pilot  # what its pilot matrix shows
    radius: float | None  # of its rows in the metric; None if they were not clipped in it

    @classmethod
    def of(cls, source: ReleaseBundle) -> ReleasedMetric | None:
        """That of a release; None if it has no pilot matrix."""
        facts, whitening = source.manifest, source.whitening
        calibration = calibrate(facts)
        if calibration.pilot is None or whitening is None or whitening.pilot is None:
            return None
        chain, histograms = replayed(facts, source.histograms, calibration.noise_of_sum(facts))
        turning = turning_of(calibration.pilot, whitening.pilot, chain, histograms[-1], facts)
        metric = Metric(whitening.metric)
        try:
            metric.units  # noqa: B018  before the charge
        except ValueError:
            reason = "the entries of its metric have too many digits"
            raise _release_without_constants(facts.release, reason) from None
        return cls(metric, turning.pilot, facts.metric_radius)


def constants_of_release(spec: ReleaseSpec, source: ReleaseBundle) -> ReleaseSpec:
    """The facts of a release with the constants that another release's histograms give.

    Parameters
    ----------
    source
        The release with the histograms. The radius is chosen again, for the noise of `spec`; that
        of a matrix is kept if it is about the same, so that both can be compared.
    """
    facts = source.manifest
    noise, planned = calibrate(facts).noise_of_sum(facts), spec.as_planned
    chain, histograms = replayed(facts, source.histograms, noise)
    own = facts.radius if facts.publication.has_matrix else None
    of_sum = calibrate(planned).noise_of_sum(planned)
    constants = chain.clipped(histograms[-1], of_sum, near=own)
    if spec.scaling is None or constants.scaling is None:
        raise TypeError("the constants of this release are declared")
    stated = {
        "present": constants.scaling.present,
        "signs": constants.scaling.signs,
        "tails": _tails_beyond(constants, source) if spec.scaling.lost else {},
    }
    update = {
        "columns": constants.columns,
        "normalisation": constants.normalisation,
        "scaling": spec.scaling.model_copy(update=stated),
    }
    stated_spec = spec.model_copy(update=update)
    released = None if spec.cumulative is None else ReleasedMetric.of(source)
    if released is None:
        return stated_spec
    # No row lengths of its own: those of the other release decide whether its metric is used.
    turning = chain.turning_again(histograms[-1], constants, released.pilot)
    turned, metric = source.histograms[-1], released.metric.matrix
    return chain.whitened(stated_spec, turning, turned, metric, of_sum, released.radius)


def _tails_beyond(constants: ReleaseSpec, source: ReleaseBundle) -> dict[str, TailFacts]:
    """What is beyond the bounds in use by the histograms that gave them; see `ScalingFacts`."""
    if not constants.intercept:
        return {}
    evidence = replace(source.evidence, columns=constants.source_columns)
    return ColumnTails.of(evidence).by_column(evidence)


ANY = "*"  # all columns that no other entry stands for


def with_columns_of_table(contract: Contract, path: Path) -> Contract:
    """The contract with the table's columns in place of patterns; reads headers, but no row.

    Parameters
    ----------
    contract
        The contract of one version; without patterns, it is returned as it is, and the table is
        not opened.
    """
    if not any(ANY in name for name in contract.columns):
        return contract
    table = open_source(contract.source)
    try:
        names = schema_of(table)
        patterns = [name for name in contract.columns if ANY in name and name not in names]
        if (
            patterns and not table.states_names and look_like_data(names)
        ):  # errors would quote cells
            raise _at(
                "columns",
                families.COLUMNS(
                    "'{pattern}' may match cells: a name in the first line of the table is a "
                    "number, a date, a time or a mark for a missing value.",
                    "Add a first line with names; or, if these are names, list them instead of the "
                    "pattern.",
                    pattern=patterns[0],
                ),
            )
        return contract.with_columns(resolve_columns(contract, names))
    except InvalidValue as error:
        failure = wordings.contract_not_valid(str(path))
        failure.details = (_at(error.key or "columns", error.without_history()),)
    raise failure


def resolve_columns(contract: Contract, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The columns of a table for which each name in `columns` stands, in the order of the matrix.

    A name of a column stands for that column only, and takes precedence. Any other name with ``*``
    stands for the columns that it matches, in natural order, apart from excluded ones and those
    that identify persons or state the period of a row.
    """
    known = set(names)
    for name in contract.exclude:
        if not (name in known or any(map(_matcher(name), known))):
            raise _matches_nothing("exclude", name, known)
    patterns = [name for name in contract.columns if ANY in name and name not in known]
    declared = contract.columns.keys() - set(patterns)
    free = sorted(known - declared - set(_left_out(contract, known)), key=natural)
    matched = _matches(patterns, free)
    for pattern, columns in matched.items():
        if not columns and pattern != ANY:
            raise _matches_nothing(f"columns.{pattern}", pattern, known)
    return {name: tuple(matched.get(name, (name,))) for name in contract.columns}


def _left_out(contract: Contract, names: set[str]) -> Iterator[str]:
    """The columns that no pattern stands for."""
    if contract.person_column is not None:
        yield contract.person_column
    for dates in (contract.period, contract.dates):
        if dates is not None:
            yield dates.column
    for excluded in contract.exclude:
        yield from [excluded] if excluded in names else filter(_matcher(excluded), names)


def _matches(patterns: Iterable[str], names: Iterable[str]) -> Mapping[str, list[str]]:
    """The columns for which each pattern stands, in order."""
    matched: dict[str, list[str]] = {pattern: [] for pattern in patterns}
    matchers = {pattern: _matcher(pattern) for pattern in matched if pattern != ANY}
    for name in names:
        found = [pattern for pattern, matches in matchers.items() if matches(name)]
        if len(found) > 1:
            overlap = families.COLUMNS(
                "Two patterns match the column '{column}': '{first}' and '{second}'.",
                "Declare the column by its name, which takes precedence over "
                "patterns, or exclude it.",
                column=name,
                first=found[0],
                second=found[1],
            )
            raise _at(f"columns.{found[1]}", overlap)
        if found or ANY in matched:
            matched[found[0] if found else ANY].append(name)
    return matched


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a name matches a pattern, in which only ``*`` is special."""
    compiled = re.compile(".*".join(map(re.escape, pattern.split(ANY))), re.DOTALL)
    return lambda name: compiled.fullmatch(name) is not None


def _matches_nothing(key: str, name: str, known: Iterable[str]) -> InvalidValue:
    similar = most_similar_first(name.replace(ANY, ""), sorted(known, key=natural))
    return _at(
        key,
        families.COLUMNS(
            "'{pattern}' does not match any column of the table that is not listed.",
            "It has columns such as: {similar}.",
            pattern=name,
            similar=similar,
        ),
    )


def _at(key: str, error: InvalidValue) -> InvalidValue:
    error.key = key
    return error


# A bundle repeats the names in descriptions, CSV headers and Parquet footers, each of which readers
# bound: a release with longer names could be published, but not read.
MOST_NAME_BYTES, MOST_NAMES_BYTES = 16_384, 500_000
_MOST_REPORTED_BYTES = 10_000_000  # reports have a column for every pair of names
_START = 40  # characters of a long name that its error quotes


def check_names(context: Context, contract: Contract, *, in_pairs: bool = False) -> None:
    """Refuse names that are too long, look like others, or are partly invisible.

    The names of registered data sets are fixed, so they are not checked.

    Parameters
    ----------
    in_pairs
        Whether each column of the release is named by a pair of columns, as in reports.
    """
    names = [x for n in contract.names for x in contract.columns[n].matrix_names(n)]
    sizes = [len(name.encode()) for name in names]
    of_pairs = _MOST_REPORTED_BYTES // (len(names) + 2)
    most = min(of_pairs, MOST_NAMES_BYTES) if in_pairs else MOST_NAMES_BYTES
    is_short = max(sizes) <= MOST_NAME_BYTES and sum(sizes) <= most
    if is_short and all(name.isascii() for name in names):
        return
    ledger = context.existing_ledger
    if ledger is not None and contract.id in ledger.datasets():
        return
    for name, size in zip(names, sizes, strict=True):
        if size > MOST_NAME_BYTES:
            raise families.CONTRACT_USE(
                "The name of the column '{start}...' has {bytes} bytes; a name may have {most}.",
                "Rename the column in the table, or shorten the level.",
                start=name[:_START],
                bytes=size,
                most=MOST_NAME_BYTES,
            )
    if not is_short:
        raise families.CONTRACT_USE(
            "The names of the columns have {bytes} bytes together; they may have {most}.",
            "Use shorter names or fewer columns.",
            bytes=sum(sizes),
            most=most,
        )
    seen: dict[str, str] = {}
    for name in names:
        if has_hidden(name):
            raise families.CONTRACT_USE(
                "The name of the column '{name}' has invisible characters, or ones that break or "
                "reverse its line.",
                "Rename the column in the table.",
                name=name,
            )
        other = seen.setdefault(skeleton(name), name)
        if other != name:
            raise families.CONTRACT_USE(
                "The names of the columns '{first}' and '{second}' look the same.",
                "Rename one of them in the table.",
                first=other,
                second=name,
            )


# Letters of other scripts, and the Latin letters that they look like. The rule follows Unicode's
# technical standard 39 for the scripts that are most often mixed: Latin, Greek, Cyrillic, Armenian.
_LOOKALIKES = str.maketrans(
    "\u0131\u0184\u0251\u0261\u028f\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1"
    "\u03c4\u03c5\u03c7\u03f2\u03f9\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u042c"
    "\u0430\u0435\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u0475\u04ae\u04af\u04bb\u04bd\u0501\u051b\u051d\u0570\u0578\u057d\u0581\u0585",
    "ibagYABEZHIKMNOPTYXaikvoptuxcCSIJABEKMHOPCTYXbaeopctyxsijvYyhedqwhnugo",
)
_DASHES = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
)
_FORMS = {"<wide>", "<narrow>", "<font>", "<noBreak>"}  # other forms of the same character
_JOINERS = "\u200c\u200d"  # words of some scripts need them
_IGNORABLE = re.compile(
    "[\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_HIDDEN = {"Cf", "Zl", "Zp"}  # format characters, such as those that reverse the direction; breaks


def has_hidden(name: str) -> bool:
    """Whether a name has invisible characters, or ones that break or reverse its line.

    Joiners and the variants of the character before are allowed.
    """
    return any(unicodedata.category(x) in _HIDDEN and x not in _JOINERS for x in name)


def skeleton(name: str) -> str:
    """A text that is equal for two names that look the same.

    Examples
    --------
    >>> skeleton("c\u043est") == skeleton("cost"), skeleton("Cost") == skeleton("cost")
    (True, False)
    """
    visible = _IGNORABLE.sub("", name).translate(_DASHES)
    usual = "".join(
        unicodedata.normalize("NFKC", x)
        if unicodedata.decomposition(x).partition(" ")[0] in _FORMS
        else x
        for x in unicodedata.normalize("NFD", visible)
    )
    return " ".join(unicodedata.normalize("NFC", usual.translate(_LOOKALIKES)).split())


def check_estimable(facts: ReleaseManifest) -> None:
    """Refuse a release that estimators cannot take."""
    if facts.publication.refuse_estimates is not None:
        name = f"{facts.dataset.id}/{facts.release}"
        raise facts.publication.refuse_estimates(name, facts.release)


def check_group(spec: ReleaseSpec, estimator: Estimator) -> None:
    """Refuse an estimate from a group that the release does not have."""
    names = () if spec.by is None else group_names(spec.by)
    if estimator.group is not None and estimator.group not in names:
        known = most_similar_first(estimator.group, names)
        raise wordings.unknown_group(spec.dataset.id, estimator.group, known)


def check_other_releases(
    archive: Archive, estimator: Estimator, name: str, facts: ReleaseSpec
) -> None:
    """Refuse an estimate whose other releases do not exist or do not suit; matrices are not read.

    Parameters
    ----------
    name, facts
        Name and facts of the release that the estimate belongs to, which may be a planned one.
    """
    releases = [(name, facts)]
    for other in estimator.other_releases:
        listed = describe_release(archive, *_parts(other))
        if listed.withdrawn is not None:
            raise wordings.pool_of_withdrawn(other, listed.withdrawn)
        check_estimable(listed.manifest)
        releases.append((other, listed.manifest))
    estimator.check_together(releases)
    noisy = [
        each for each, facts in releases if registry[facts.mechanism["name"]].publishes is ROWS
    ]
    if noisy and len(releases) > 1:
        raise wordings.pool_of_rows(noisy[0])


def missing_releases(archive: Archive, estimator: Estimator) -> list[str]:
    """The names of the other releases that the archive does not have."""
    return [
        name
        for name in estimator.other_releases
        if not archive.contains(archive.release(*_parts(name)))
    ]


def withdrawn_releases(archive: Archive, estimator: Estimator) -> list[str]:
    """The names of the other releases that have a notice of withdrawal."""
    return [
        name
        for name in estimator.other_releases
        if archive.contains(archive.withdrawal(*_parts(name)))
    ]


def read_other_releases(archive: Archive, estimator: Estimator) -> list[ReleaseBundle]:
    """The other releases that an estimate needs, verified."""
    bundles = []
    for name in estimator.other_releases:
        place = archive.release(*_parts(name))
        bundles.append(read_release(place))
        archive.verify_signer(place)
    return bundles


def _parts(name: str) -> tuple[str, str]:
    dataset, _, release = name.partition("/")
    return dataset, release
