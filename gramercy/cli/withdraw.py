"""``gramercy withdraw``: withdraw a release."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gramercy.api.release import Release
from gramercy.cli import terminal
from gramercy.cli.flow_runner import collect_problems
from gramercy.cli.options import AsJson, ReleaseName, Yes, split_name
from gramercy.ledger import Ledger
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.step_charges import withdrawal_of_step
from gramercy.pipeline.publish.attachments import withdraw as withdraw_release
from gramercy.schemas import wordings

_SHOWN = (
    "It stays readable, because copies may exist. It is marked as withdrawn on its page, on the "
    "page of its data set and in the catalogue, and by 'gramercy list' and 'gramercy show'. "
    "gramercy.open warns analysts, and 'gramercy verify' checks the notice."
)


def withdraw(
    name: ReleaseName,
    reason: Annotated[str, typer.Option(help="Why; one line, public in the catalogue.")] = "",
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Withdraw a release. It stays readable, and its charge stays spent.

    Example: gramercy withdraw clinic/2026-11-r1 --reason "wrong table"
    """
    context, parts = Context.default(), split_name(name)
    release = Release(context.archive, *parts)
    notice_of_step = None
    if not release.withdrawn:
        notice_of_step = withdrawal_of_step(context.ledger, *parts)
        if notice_of_step is not None:
            terminal.warn(notice_of_step)
    if not yes:
        terminal.confirm(
            f"Withdraw {release.id}? This cannot be undone: it is marked for everybody, stays "
            "readable, and its charge is not refunded.",
            "Pass --yes to confirm.",
        )
    notice = withdraw_release(context, *parts, reason)
    withdrawn = Release(context.archive, *parts)
    path = withdrawn.shown(notice)
    problems: list[str] = []
    with collect_problems(problems):
        write_site(context, parts)
    for problem in problems:
        terminal.warn(wordings.later_step_failed("The release is withdrawn", problem))
    charge = _charge(context.ledger, *parts)
    again = _again(charge) if notice_of_step is None else notice_of_step.hint
    if json:
        facts = {"release": withdrawn.id, "withdrawn": withdrawn.withdrawn, "path": path}
        terminal.print_json(
            {**facts, "shown": _SHOWN, "charge": charge, "next": again, "problems": problems}
        )
        return
    terminal.say("Withdrawn: ", terminal.bold(withdrawn.id), f": {withdrawn.withdrawn}\n{path}")
    terminal.say(_SHOWN)
    terminal.say(_charge_text(charge))
    terminal.say(again)


def _charge(ledger: Ledger, dataset: str, release: str) -> dict[str, Any]:
    """What was charged for a release, or for the series that it is a step of, and what is left."""
    (charge,) = (each for each in ledger.charges(dataset) if each.release == release)
    statement = ledger.statement(dataset, charge.window)
    return {
        "epsilon": charge.loss.epsilon(statement.budget.delta),
        "delta": statement.budget.delta,
        "mu": charge.loss.mu,
        "period": charge.window or None,
        "series": None if charge.series is None else charge.series.facts(),
        "spent_epsilon": statement.spent,
        "remaining_epsilon": statement.remaining,
        "budget_epsilon": statement.budget.epsilon,
    }


def _charge_text(charge: dict[str, Any]) -> str:
    """The charge in a sentence."""
    loss = terminal.privacy_loss_text(charge["epsilon"], charge["delta"])
    series = ", for all steps of its series," if charge["series"] else ""
    of = f" of {charge['period']}" if charge["period"] else ""
    return (
        f"Its charge{series} stays spent: {loss}. Of the budget{of}, epsilon="
        f"{charge['budget_epsilon']:g}, {charge['remaining_epsilon']:.4g} is left for one more "
        "release."
    )


def _again(charge: dict[str, Any]) -> str:
    """How a corrected release is published."""
    period = f" --period {charge['period']}" if charge["period"] else ""
    return (
        "To publish a corrected table, write a new 'version' in the request and run 'gramercy "
        f"release REQUEST{period}'; or keep the version and add --new-charge. Either is a new "
        "release at a new charge."
    )
