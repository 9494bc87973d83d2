"""What a release will do, from public facts and the ledger alone."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import Any

from gramercy.application.calibration import calibrate, guarantee_facts, noise_law
from gramercy.application.context import Context
from gramercy.application.request_model import Request
from gramercy.application.yaml_files import read_contract
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import Mechanism
from gramercy.mechanisms.rowwise import RowWise
from gramercy.schemas.column import Levels
from gramercy.schemas.contract import Contract
from gramercy.schemas.engine import Here
from gramercy.schemas.errors import LateRun, RequestError
from gramercy.schemas.facts import BudgetFacts, ColumnFacts, DatasetFacts, LevelsFacts
from gramercy.schemas.manifest import Asked
from gramercy.schemas.model import digest
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import Unit, Whole

_GRACE = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Plan:
    """One release, worked out before any data are read.

    Parameters
    ----------
    contract, request
        What was declared and asked for; the version is a label, and no pattern any more.
    asked
        The public facts that determine the release.
    mechanism
        Noise of the scale that was asked for.
    pattern, planned_for
        The version as the request gave it, and when the release was meant to be made.
    averaging
        Whether reports are averaged that were made elsewhere, instead of being made.
    """

    contract: Contract
    request: Request
    asked: Asked
    mechanism: Mechanism
    pattern: str
    planned_for: datetime.datetime
    averaging: bool = False

    def instead_of(self, spent: str | None) -> Plan:
        """The same plan, paid for again instead of a release that was spent."""
        return replace(self, request=self.request.model_copy(update={"new_charge": spent}))

    @property
    def key(self) -> str:
        """Name of 'the same request'; to make reports and to average them are two."""
        key = self.request.key(self.contract)
        return digest({"average of": key}) if self.averaging else key

    @property
    def guarantee(self) -> Guarantee:
        """The exact guarantee, which is what will be charged."""
        return self.mechanism.guarantee

    @property
    def law(self) -> NoiseLaw:
        """Noise on the published matrix, at the declared number of rows."""
        return noise_law(self.mechanism, self.contract.count, self.request.folds)

    @property
    def columns(self) -> int:
        """p, columns of the matrix."""
        return self.mechanism.setting.p

    @property
    def matrix_error(self) -> float:
        """Root mean square of the noise's Frobenius norm."""
        return self.law.norm(self.columns)

    @property
    def share_of_entry(self) -> float | None:
        """An entry's standard deviation over an average entry of the diagonal.

        That is 1/p where every row has length 1, so that the trace is 1; None where it is not, or
        where there is one column.
        """
        own = isinstance(self.request.normalisation, Unit) and self.contract.protects == "row"
        if not own or self.mechanism.publishes == "precision" or self.columns == 1:
            return None
        return self.law.sd_off_diagonal * self.columns

    def facts(self) -> dict[str, Any]:
        """The plan as plain data."""
        delta = self.request.mechanism.delta
        return {
            "dataset": self.contract.id,
            "version": self.request.version,
            "rows": self.contract.rows,
            **({"persons": self.contract.persons} if self.contract.persons else {}),
            "columns": self.columns,
            "neighbours": self.contract.neighbours,
            "normalisation": self.request.normalisation.model_dump(),
            "folds": self.request.folds,
            "mechanism": self.mechanism.name,
            "publishes": self.mechanism.publishes,
            "arithmetic": self.mechanism.arithmetic,
            **self.mechanism.plan(),
            **guarantee_facts(self.guarantee, delta).model_dump(),
            "sd_diagonal": self.law.sd_diagonal,
            "sd_off_diagonal": self.law.sd_off_diagonal,
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
    """Work out a release; reads the contract, and no data.

    Parameters
    ----------
    context
        Whose contracts are meant.
    request
        What is asked for.
    at
        The moment that makes a label of its version, where that is a pattern; default: now.
    averaging
        See `Plan`.

    Raises
    ------
    ContractError, RequestError
        If either cannot be used, before anything is registered or charged.
    """
    planned_for = at or now()
    pattern, request = request.version, request.on(planned_for)
    contract = contract_of(context, request)
    public = asked(contract, request)
    mechanism = calibrate(public)
    if mechanism.publishes == "precision" and request.estimates:
        raise RequestError(
            "key 'estimates': this release is a precision matrix already.",
            "Write 'estimates: []'.",
        )
    if isinstance(mechanism, RowWise) and not isinstance(request.engine, Here):
        raise RequestError(
            f"key 'engine': '{mechanism.name}' publishes rows, in their order, from one process.",
            "Leave the key out.",
        )
    for place, each in enumerate(request.estimates):
        try:
            each.check(public)
        except RequestError as error:
            raise RequestError(f"key 'estimates.{place}': {error}") from None
    if averaging and mechanism.publishes != "reports":
        raise RequestError(
            f"key 'mechanism.name': '{mechanism.name}' makes no reports.", "Write 'name: local'."
        )
    return Plan(contract, request, public, mechanism, pattern, planned_for, averaging)


def now() -> datetime.datetime:
    """Today and the time of day, UTC."""
    return datetime.datetime.now(datetime.UTC)


def contract_of(context: Context, request: Request) -> Contract:
    """The contract that a request names.

    Raises
    ------
    ContractError, RequestError
        If it cannot be used, or not with this request.
    """
    contract = read_contract(context.home.contract(request.dataset))
    if not request.dataset.endswith((".yaml", ".yml")) and contract.id != request.dataset:
        raise RequestError(
            f"key 'dataset': the contract of '{request.dataset}' names itself '{contract.id}'.",
            "File name and id must agree.",
        )
    request.check(contract)
    return contract if "%" in request.version else contract.of_version(request.version)


def refuse_late(plan: Plan, moment: datetime.datetime) -> None:
    """Refuse to give what the table holds now the label of another day.

    A worker that comes back takes up every run that was missed meanwhile.

    Parameters
    ----------
    plan
        Its version may have been a pattern of the date.
    moment
        When the run starts.

    Raises
    ------
    LateRun
        If it is more than an hour late, and a run that started now would have another version.
    """
    asked_for = plan.request.model_copy(update={"version": plan.pattern})
    then, today = plan.request.version, asked_for.on(moment).version
    if then != today and moment - plan.planned_for > _GRACE:
        raise LateRun(
            f"This run was planned for version '{then}', and it is '{today}' now: the table is "
            "another by this time. Nothing was charged.",
            "Run the deployment anew, or wait for the next.",
        )


def asked(contract: Contract, request: Request) -> Asked:
    """The public facts that determine a release."""
    return Asked(
        dataset=DatasetFacts(
            id=contract.id,
            title=contract.title,
            curator=contract.curator,
            version=request.version,
            rows=contract.rows,
            persons=contract.persons,
        ),
        columns=tuple(
            LevelsFacts(name=n, levels=c.levels)
            if isinstance(c, Levels)
            else ColumnFacts(name=n, lower=c.lower, upper=c.upper, centre=c.middle, scale=c.spread)
            for n, c in in_force(contract, request).columns.items()
        ),
        intercept=contract.intercept,
        neighbours=contract.neighbours,
        unit=contract.protects,
        normalisation=request.normalisation,
        mechanism=request.mechanism.asked(),
        folds=request.folds,
        budget=BudgetFacts.of(contract.budget),
    )


def in_force(contract: Contract, request: Request) -> Contract:
    """The contract with the constants that a request's normalisation takes of it."""
    return contract.in_whole_numbers() if isinstance(request.normalisation, Whole) else contract
