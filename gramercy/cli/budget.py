"""``gramercy budget``: show spent and remaining budget, or change it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gramercy.application.budget_preview import preview_budget
from gramercy.application.context import Context
from gramercy.application.planning import make_plan
from gramercy.application.yaml_files import read_request
from gramercy.cli.options import AsJson, DatasetName
from gramercy.cli.output import terminal
from gramercy.cli.output.budget_text import Account, budget_facts, print_budget
from gramercy.cli.output.plan_text import plan_facts
from gramercy.ledger import Ledger
from gramercy.ledger.sources import datasets_with_same_source
from gramercy.schemas.budget import Budget
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse
from gramercy.schemas.problems.command_line import conflicting_options, dataset_missing


def budget(
    dataset: DatasetName = None,
    raise_to: Annotated[
        tuple[float, float] | None,
        typer.Option("--raise", metavar="EPSILON DELTA", help="Raise the budget to these values."),
    ] = None,
    lower_to: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--lower",
            metavar="EPSILON DELTA",
            help="Lower the budget to these values; charges stay spent.",
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="REQUEST", help="Also show what this release would leave."),
    ] = None,
    moved: Annotated[
        bool,
        typer.Option("--moved", help="Accept a ledger that was moved, or whose archive is lost."),
    ] = False,
    reason: Annotated[
        str, typer.Option(help="Reason for a change; one line, kept in the ledger.")
    ] = "",
    json: AsJson = False,
) -> None:
    """Show spent and remaining budget, or change a budget.

    A change needs a reason, which is kept in the ledger.

    Example: gramercy budget clinic --raise 4 1e-6 --reason "board, 3 May"
    """
    actions = {"--raise": raise_to, "--lower": lower_to, "--moved": moved, "--plan": plan}
    given = tuple(name for name, value in actions.items() if value)
    if len(given) > 1:
        raise conflicting_options(given)
    context = Context.default()
    if context.existing_ledger is None and not plan and not dataset:
        _print([], json)
        return
    ledger = context.ledger
    if moved:
        ledger.move(reason)
    if plan is not None:
        _print_planned(context, plan, json)
        return
    if change := raise_to or lower_to:
        if dataset is None:
            raise dataset_missing(given[0])
        keys = dict(zip(("epsilon", "delta"), change, strict=True))
        new_budget = parse(Budget, keys, given[0], RequestError)
        ledger.change_budget(dataset, new_budget, reason, lower=lower_to is not None)
    names = [dataset] if dataset else ledger.datasets()
    _print([account for name in names for account in _accounts(ledger, name)], json)


def _accounts(ledger: Ledger, dataset: str) -> list[Account]:
    """The budget of a data set, or one for every calendar year of its data."""
    changes, charges = ledger.budget_history(dataset), ledger.charges(dataset)
    shared = datasets_with_same_source(ledger.sources(), dataset)
    return [
        Account(dataset, each, changes, [c for c in charges if c.window == each.window], shared)
        for each in ledger.statements(dataset)
    ]


def _print(accounts: list[Account], json: bool) -> None:
    if json:
        terminal.print_json(list(map(budget_facts, accounts)))
        return
    for account in accounts:
        print_budget(account)
    if not accounts:
        terminal.say("No data set is registered yet; its first release registers it.")


def _print_planned(context: Context, request: Path, json: bool) -> None:
    """Print the budget of a planned release and what the release would leave."""
    planned, ledger = make_plan(context, read_request(request)), context.ledger
    dataset, preview = planned.contract.id, preview_budget(context, planned)
    if json:
        terminal.print_json(plan_facts(planned, preview))
        return
    registered = dataset in ledger.datasets()
    changes, charges = (
        (ledger.budget_history(dataset), ledger.charges(dataset)) if registered else ((), ())
    )
    of_window = [charge for charge in charges if charge.window == preview.statement.window]
    account = Account(dataset, preview.statement, changes, of_window, preview.sharing_datasets)
    if preview.previous_charge and preview.previous_charge.is_published:
        print_budget(account)
        terminal.say(f"already published as {preview.previous_charge.release}: no further charge")
    else:
        print_budget(account, planned.guarantee)
