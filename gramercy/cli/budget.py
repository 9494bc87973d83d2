"""``gramercy budget``: what was spent, what remains, and changes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gramercy.application.context import Context
from gramercy.application.outlook import outlook
from gramercy.application.planning import make_plan
from gramercy.application.yaml_files import read_request
from gramercy.cli.options import AsJson, OneDataset
from gramercy.cli.output import terminal
from gramercy.cli.output.budget_text import Account, budget_facts, budget_text
from gramercy.cli.output.plan_text import plan_facts
from gramercy.ledger import Ledger
from gramercy.ledger.sources import sharing
from gramercy.schemas.budget import Budget
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse


def budget(
    dataset: OneDataset = None,
    raise_to: Annotated[
        tuple[float, float] | None,
        typer.Option("--raise", metavar="EPSILON DELTA", help="Raise the budget."),
    ] = None,
    lower_to: Annotated[
        tuple[float, float] | None,
        typer.Option("--lower", metavar="EPSILON DELTA", help="Lower it; takes nothing back."),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="REQUEST", help="Show what this release would leave, too."),
    ] = None,
    moved: Annotated[
        bool, typer.Option("--moved", help="The ledger was moved here, or its archive is lost.")
    ] = False,
    reason: Annotated[str, typer.Option(help="Why; kept in the ledger.")] = "",
    json: AsJson = False,
) -> None:
    """Show what was spent and what remains; or change a budget, for a stated reason.

    Example: gramercy budget clinic --raise 4 1e-6 --reason "board, 3 May"
    """
    asked = {"--raise": raise_to, "--lower": lower_to, "--moved": moved, "--plan": plan}
    if len(given := [name for name, value in asked.items() if value]) > 1:
        raise RequestError(f"{' and '.join(given)}: one at a time.", "Give the command twice.")
    context = Context.default()
    if context.known_ledger is None and not plan and not dataset:
        _print([], json)
        return
    ledger = context.ledger
    if moved:
        ledger.move(reason)
    if plan is not None:
        _print_with(context, plan, json)
        return
    if change := raise_to or lower_to:
        if dataset is None:
            raise RequestError("Which data set's budget?", f"Name it before {given[0]}.")
        named = dict(zip(("epsilon", "delta"), change, strict=True))
        wanted = parse(Budget, named, given[0], RequestError)
        ledger.change_budget(dataset, wanted, reason, lower=lower_to is not None)
    names = [dataset] if dataset else ledger.datasets()
    _print([each for name in names for each in _accounts(ledger, name)], json)


def _accounts(ledger: Ledger, dataset: str) -> list[Account]:
    """The budget of a data set, or one for every calendar year of its data."""
    changes, charges = ledger.raises(dataset), ledger.charges(dataset)
    shared = sharing(ledger.sources(), dataset)
    return [
        Account(dataset, each, changes, [c for c in charges if c.window == each.window], shared)
        for each in ledger.statements(dataset)
    ]


def _print(accounts: list[Account], json: bool) -> None:
    if json:
        terminal.as_json(list(map(budget_facts, accounts)))
        return
    for each in accounts:
        budget_text(each)
    if not accounts:
        terminal.say("No data set is registered yet: a first release registers it.")


def _print_with(context: Context, request: Path, json: bool) -> None:
    """The budget of a planned release, and what the release would leave."""
    planned, ledger = make_plan(context, read_request(request)), context.ledger
    dataset, seen = planned.contract.id, outlook(context, planned)
    if json:
        terminal.as_json(plan_facts(planned, seen))
        return
    registered = dataset in ledger.datasets()
    changes, charges = (ledger.raises(dataset), ledger.charges(dataset)) if registered else ((), ())
    shown = [each for each in charges if each.window == seen.before.window]
    account = Account(dataset, seen.before, changes, shown, seen.shared)
    if seen.answered and seen.answered.answers:
        budget_text(account)
        terminal.say(f"published already, as {seen.answered.release}: it would cost nothing")
    else:
        budget_text(account, planned.guarantee)
