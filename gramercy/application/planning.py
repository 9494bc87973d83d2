"""What a release will do, from public facts and the ledger alone."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from gramercy.application.calibration import calibrate, guarantee_facts, noise_law
from gramercy.application.request_model import Request
from gramercy.common.home import Home
from gramercy.ledger import Charge, Ledger, Statement
from gramercy.ledger.sources import sharing
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import Mechanism
from gramercy.mechanisms.rowwise import RowWise
from gramercy.schemas.budget_effect import Effect
from gramercy.schemas.contract import Contract, Levels, read_contract
from gramercy.schemas.errors import LateRun, RequestError
from gramercy.schemas.manifest import Asked, BudgetFacts, ColumnFacts, DatasetFacts, LevelsFacts
from gramercy.schemas.model import digest
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.request import Here, Unit, Whole

_GRACE = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Plan:
    """One release, worked out before any data are read.

    Parameters
    ----------
    contract, request
        What was declared and asked for.
    mechanism
        Noise of the scale that was asked for.
    averaging
        Whether reports are averaged that were made elsewhere, instead of being made.
    """

    contract: Contract
    request: Request
    mechanism: Mechanism
    averaging: bool = False

    @property
    def asked(self) -> Asked:
        """The public facts that determine the release."""
        return asked(self.contract, self.request)

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


def make_plan(request: Request, *, averaging: bool = False) -> Plan:
    """Work out a release; reads the contract, and no data.

    Parameters
    ----------
    request
        What is asked for.
    averaging
        See `Plan`.

    Raises
    ------
    ContractError, RequestError
        If either cannot be used, before anything is registered or charged.
    """
    contract = contract_of(request)
    mechanism = calibrate(asked(contract, request))
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
    public = asked(contract, request)
    for place, each in enumerate(request.estimates):
        try:
            each.check(public)
        except RequestError as error:
            raise RequestError(f"key 'estimates.{place}': {error}") from None
    if averaging and mechanism.publishes != "reports":
        raise RequestError(
            f"key 'mechanism.name': '{mechanism.name}' makes no reports.", "Write 'name: local'."
        )
    return Plan(contract, request, mechanism, averaging)


def contract_of(request: Request) -> Contract:
    """The contract that a request names.

    Raises
    ------
    ContractError, RequestError
        If it cannot be used, or not with this request.
    """
    contract = read_contract(Home.default().contract(request.dataset))
    if not request.dataset.endswith((".yaml", ".yml")) and contract.id != request.dataset:
        raise RequestError(
            f"key 'dataset': the contract of '{request.dataset}' names itself '{contract.id}'.",
            "File name and id must agree.",
        )
    request.check(contract)
    return contract if "%" in request.version else contract.of_version(request.version)


def refuse_late(request: Request, planned: datetime.datetime, now: datetime.datetime) -> None:
    """Refuse to give what the table holds now the label of another day.

    A worker that comes back takes up every run that was missed meanwhile.

    Parameters
    ----------
    request
        Its version may be a pattern of the date.
    planned, now
        When the run was meant to start, and when it does.

    Raises
    ------
    LateRun
        If it is more than an hour late, and a run that started now would have another version.
    """
    then, today = request.on(planned).version, request.on(now).version
    if then != today and now - planned > _GRACE:
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


@dataclass(frozen=True)
class Outlook:
    """What the ledger says of a plan.

    Parameters
    ----------
    before
        The budget as it stands: registered, or as the contract declares it.
    answered
        The charge that this very request was given before, published or spent.
    shared
        Other data sets that read the same table: their budgets do not add up with this one's.
    """

    before: Statement
    answered: Charge | None
    shared: tuple[str, ...] = ()


def outlook(plan: Plan, ledger: Ledger) -> Outlook:
    """Look a plan up in the ledger; changes nothing.

    Raises
    ------
    TermsChanged
        If the data set was registered with other terms.
    """
    before = ledger.preview(plan.contract, plan.request.version)
    contract = plan.contract
    shared = sharing(ledger.sources(), contract.id, [contract.source])
    return Outlook(before, ledger.find(contract.id, plan.key), shared)


def effect(plan: Plan, seen: Outlook) -> Effect:
    """What would become of a release, as the ledger stands."""
    done, before = seen.answered, seen.before
    if done and done.state == "published":
        words = f"published already, as {done.release}: nothing would be charged"
        return Effect("free", words)
    if done and done.state == "sealed":
        words = f"drawn and sealed, as {done.release}: would only be put in its place"
        return Effect("free", words)
    if done and plan.request.new_charge != done.release:
        became = "withdrawn" if done.state == "withdrawn" else "interrupted"
        words = f"charged before, as {done.release}, and {became}: needs --new-charge"
        return Effect("refused", words)
    if not before.admits(plan.guarantee):
        delta = before.budget.delta
        return Effect(
            "refused",
            "does not fit the budget: the release would be refused. It asks for epsilon "
            f"{plan.guarantee.epsilon(delta):.4g} at delta {delta:g}, and {before.remaining:.4g} "
            "is left: ask for less, or raise the budget with 'gramercy budget --raise'",
        )
    return Effect("charged", "it would be charged, and never refunded")
