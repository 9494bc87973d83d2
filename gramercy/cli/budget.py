"""``gramercy budget``: show spent and remaining budget, or change it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from gramercy.cli import terminal
from gramercy.cli.budget_text import Account, budget_facts, print_budget, print_other_periods
from gramercy.cli.options import AsJson, DatasetName
from gramercy.ledger import Charge, Ledger
from gramercy.ledger.budget_ledger import DatasetAccounts
from gramercy.ledger.entry import datasets_with_same_source
from gramercy.pipeline.context import Context
from gramercy.schemas import families, wordings
from gramercy.schemas.budget import Budget
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse

_LISTED_IN_FULL = 20  # budgets; of more, the charges are only counted
_NO_BUDGET = "No data set is registered yet; its first release registers it."


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
        raise wordings.conflicting_options(given)
    context = Context.default()
    if context.existing_ledger is None and not plan and not dataset:
        if json:
            terminal.print_json([])
        else:
            terminal.say(_NO_BUDGET)
        return
    ledger = context.ledger
    if moved:
        context.move_ledger(reason)
    if plan is not None:
        _print_planned(context, plan, json)
        return
    if change := raise_to or lower_to:
        if dataset is None:
            raise families.USAGE(
                "{option} needs a data set.", "Name it before the option.", option=given[0]
            )
        keys = dict(zip(("epsilon", "delta"), change, strict=True))
        new_budget = parse(Budget, keys, given[0], RequestError)
        ledger.change_budget(dataset, new_budget, reason, lower=lower_to is not None)
        context.record_head(outside=True)
    accounts = _accounts(ledger, dataset, json)
    if json:
        terminal.print_json_list(map(budget_facts, accounts))
        return
    statements = []
    for account in accounts:
        print_budget(account, in_detail=dataset is not None)
        statements.append(account.statement)
    if not statements:
        terminal.say(_NO_BUDGET)
    elif dataset is not None:
        print_other_periods(statements)


def _accounts(ledger: Ledger, dataset: str | None, json: bool) -> Iterator[Account]:
    """The budget of each data set, or one for every period of its data that was charged.

    Charges are read for one data set at a time, or only counted if there are many budgets.
    """
    sources = ledger.sources()
    if dataset is None:
        by_dataset = ledger.accounts()
    else:
        statements = ledger.statements(dataset)
        by_dataset = {dataset: DatasetAccounts(ledger.budget_history(dataset), statements, {})}
    budgets = sum(len(of_dataset.statements) for of_dataset in by_dataset.values())
    in_full = json or budgets <= _LISTED_IN_FULL or dataset is not None
    for name, of_dataset in by_dataset.items():
        shared = datasets_with_same_source(sources, name)
        by_window: dict[str, list[Charge]] = {}
        for charge in ledger.charges(name) if in_full else ():
            by_window.setdefault(charge.window, []).append(charge)
        for each in of_dataset.statements:
            charges = by_window.get(each.window, []) if in_full else None
            charged = 0 if in_full else of_dataset.charged.get(each.window, 0)
            yield Account(name, each, of_dataset.changes, charges, shared, charged)


def _print_planned(context: Context, request: Path, json: bool) -> None:
    """Print the budget of a planned release and what the release would leave."""
    from gramercy.cli.plan_text import plan_facts  # plans: imported only if needed
    from gramercy.pipeline.plan.budget_preview import preview_budget
    from gramercy.pipeline.plan.planning import make_plan
    from gramercy.pipeline.plan.request_files import read_request

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
        print_budget(account, preview.due)
