"""Plan a release from its contract and request; the table is not read."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import Any

from gramercy.estimators import Estimator
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import Mechanism
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import (
    Calibration,
    calibrate,
    guarantee_facts,
)
from gramercy.pipeline.plan.chosen_columns import (
    check_names,
    with_columns_of_table,
)
from gramercy.pipeline.plan.estimable import check_group, check_other_releases
from gramercy.pipeline.plan.request_model import Request
from gramercy.pipeline.plan.specification import (
    matrix_contract,
    release_spec,
    scaled_contract,
    with_planned_scaling,
)
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import RequestError
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.model import digest
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import AnyNormalisation
from gramercy.schemas.publications import REPORTS
from gramercy.schemas.request import PERIOD
from gramercy.schemas.request_parts import LocalEngine
from gramercy.tables.formats.source import needs_copy

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
    averaging: bool = False  # whether the release averages existing reports instead of making them

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
    def estimates_constants(self) -> bool:
        """Whether this release estimates its constants from its own noisy histograms."""
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

    def facts(self) -> dict[str, Any]:
        """The plan as plain data."""
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
    plan = Plan(contract, request, spec, calibration, pattern, planned_for, averaging)
    _check_limit(context, plan)
    for index, estimator in enumerate(request.estimates):
        try:
            _check_estimate(context, plan, estimator)
        except RequestError as error:
            error.sentence = f"estimates.{index}: {error.sentence}"
            raise
    return plan


def _is_answered(context: Context, plan: Plan) -> bool:
    """Whether the request was published before, so that it is answered as it was then."""
    ledger = context.existing_ledger
    charge = ledger.find_charge(plan.contract.id, plan.key) if ledger is not None else None
    return charge is not None and charge.is_published


def _check_limit(context: Context, plan: Plan) -> None:
    """Refuse a release with a larger epsilon than the contract allows a single one."""
    budget = plan.contract.budget
    if budget.per_release is None:
        return
    epsilon = plan.guarantee.epsilon(budget.delta)
    if epsilon > budget.per_release and not _is_answered(context, plan):
        raise families.EXCEEDED(
            "{dataset}: this release has epsilon={epsilon:g} at the budget's delta; the contract "
            "allows {limit:g} for a single one.",
            "Ask for a smaller epsilon, or raise 'budget: per_release' in the contract.",
            dataset=plan.contract.id,
            epsilon=epsilon,
            limit=budget.per_release,
        )


def _check_estimate(context: Context, plan: Plan, estimator: Estimator) -> None:
    """Refuse an estimate that cannot be computed from the planned release."""
    check_group(plan.spec, estimator)
    estimator.check(plan.spec)
    if estimator.other_releases and _is_answered(context, plan):
        return  # even if others were withdrawn
    name = f"{plan.contract.id}/{plan.request.version}"
    check_other_releases(context.archive, estimator, name, plan.spec)


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
        contract = with_columns_of_table(contract.for_version(request.version), path)
        check_names(context, contract, in_pairs=request.mechanism.name == "local")
    request.check_delta(contract)
    return contract


def check_scheduled_version(plan: Plan, moment: datetime.datetime) -> None:
    """Refuse a late run, which would label today's table with the version of another day.

    A worker that restarts takes up every run that it missed.
    """
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
