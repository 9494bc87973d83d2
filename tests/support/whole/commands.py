"""The commands of a steward, without Prefect, and what they answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from gramercy.estimators.ridge import Ridge
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish.attachments import make_estimate, make_report, withdraw
from gramercy.pipeline.publish.charging import publish, replay
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.schemas.budget import Budget
from gramercy.schemas.errors import GramercyError
from tests.support.archives import update_listing
from tests.support.factories import as_flow_step


class Outcome(NamedTuple):
    """The answer of a command: ``done`` and what it made, or an error's type, code and facts."""

    kind: str
    text: str
    facts: str = ""

    @property
    def is_done(self) -> bool:
        return self.kind == "done"


@dataclass(frozen=True)
class Command:
    """A command.

    Parameters
    ----------
    name
        ``publish``, ``withdraw``, ``estimate``, ``report``, ``raise`` or ``lower``.
    request
        Number of the request that is published.
    new_charge
        The release that it is to replace.
    listed
        Whether the listing is written afterwards.
    dataset, release
        What is withdrawn, estimated from, or reported on; or whose budget is changed.
    epsilon
        The new budget's.
    """

    name: str
    request: int = 0
    new_charge: str | None = None
    listed: bool = True
    dataset: str = ""
    release: str = ""
    epsilon: float = 0.0


def answer(context: Context, plan_of: Callable[[int], Plan], command: Command) -> Outcome:
    """Carry out a command."""
    try:
        return Outcome("done", as_flow_step(_carry_out)(context, plan_of, command))
    except GramercyError as error:
        return refused(error)


def plain_page(release: Any, _: Any) -> str:
    """A report's page that takes no time; the real one has tests of its own."""
    return f"<p>{release.sha256}</p>\n"


def refused(error: GramercyError) -> Outcome:
    return Outcome(type(error).__name__, error.code, repr(sorted(error.facts.items())))


def _carry_out(context: Context, plan_of: Callable[[int], Plan], command: Command) -> str:
    dataset, release, made = command.dataset, command.release, command.release
    if command.name in {"raise", "lower"}:
        budget = Budget(epsilon=command.epsilon, delta=1e-5)
        context.ledger.change_budget(dataset, budget, "asked", lower=command.name == "lower")
        return f"{command.epsilon}"
    if command.name == "publish":
        plan = plan_of(command.request).with_new_charge(command.new_charge)
        dataset = plan.contract.id
        made = release = replay(context, plan) or publish(context, plan, accumulate(plan))
    elif command.name == "withdraw":
        withdraw(context, dataset, release, "a wrong table")
    elif command.name == "estimate":
        made = make_estimate(context, dataset, release, Ridge()).manifest.estimate
    elif command.name == "report":
        estimates = context.archive.estimates(dataset, release)
        made = make_report(context, dataset, release, estimates).manifest.report
    if command.listed:
        update_listing(context, dataset, release)
    return made
