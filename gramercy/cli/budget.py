"""``gramercy budget``: show spent and remaining budget, or change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from gramercy.application.context import Context
from gramercy.cli.options import AsJson, DatasetName
from gramercy.cli.output import terminal
from gramercy.cli.output.budget_text import Account, budget_facts, print_budget
from gramercy.ledger import Charge
from gramercy.ledger.overview import DatasetAccounts
from gramercy.ledger.sources import datasets_with_same_source
from gramercy.schemas.budget import Budget
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse
from gramercy.schemas.problems.command_line import conflicting_options, dataset_missing

_LISTED_IN_FULL = 20  # budgets; of more, the charges are only counted


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
        from gramercy.cli.planned_budget import print_planned  # plans: imported only if needed

        print_planned(context, plan, json)
        return
    if change := raise_to or lower_to:
        if dataset is None:
            raise dataset_missing(given[0])
        keys = dict(zip(("epsilon", "delta"), change, strict=True))
        new_budget = parse(Budget, keys, given[0], RequestError)
        ledger.change_budget(dataset, new_budget, reason, lower=lower_to is not None)
    sources = ledger.sources()
    if dataset is None:
        all_accounts = ledger.accounts()
    else:
        of_dataset = DatasetAccounts(
            ledger.budget_history(dataset), ledger.statements(dataset), ledger.charges(dataset)
        )
        all_accounts = {dataset: of_dataset}
    shared = {name: datasets_with_same_source(sources, name) for name in all_accounts}
    _print([a for name, each in all_accounts.items() for a in _budgets(name, each, shared)], json)


def _budgets(
    dataset: str, accounts: DatasetAccounts, shared: Mapping[str, Sequence[str]]
) -> list[Account]:
    """The budget of a data set, or one for every period of its data that was charged."""
    by_window: dict[str, list[Charge]] = {}
    for charge in accounts.charges:
        by_window.setdefault(charge.window, []).append(charge)
    return [
        Account(dataset, each, accounts.changes, by_window.get(each.window, []), shared[dataset])
        for each in accounts.statements
    ]


def _print(accounts: list[Account], json: bool) -> None:
    if json:
        terminal.print_json(list(map(budget_facts, accounts)))
        return
    for account in accounts:
        print_budget(account, with_charges=len(accounts) <= _LISTED_IN_FULL)
    if not accounts:
        terminal.say("No data set is registered yet; its first release registers it.")
