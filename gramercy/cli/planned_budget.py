"""``gramercy budget --plan``: the budget of a planned release, and what the release would leave."""

from __future__ import annotations

from pathlib import Path

from gramercy.cli.output import terminal
from gramercy.cli.output.budget_text import Account, print_budget
from gramercy.cli.output.plan_text import plan_facts
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.budget_preview import preview_budget
from gramercy.pipeline.plan.planning import make_plan
from gramercy.pipeline.plan.request_files import read_request


def print_planned(context: Context, request: Path, json: bool) -> None:
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
