"""What a budget was, what was spent of it, and what is left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from gramercy.cli.output.terminal import bold, out, say
from gramercy.ledger import Charge, Raise, Statement
from gramercy.mechanisms.accounting.guarantee import Guarantee

_BAR, _SHOWN = 30, 30


@dataclass(frozen=True)
class Account:
    """One budget: of a data set, or of a calendar year of its data.

    Parameters
    ----------
    dataset
        Its id.
    statement
        What is spent and left.
    changes
        The budget as it was registered, raised and lowered.
    charges
        What was charged to it.
    shared
        Other data sets that read the same table.
    """

    dataset: str
    statement: Statement
    changes: Sequence[Raise] = ()
    charges: Sequence[Charge] = ()
    shared: Sequence[str] = ()


def budget_facts(account: Account) -> dict[str, Any]:
    """A budget as plain data."""
    return {
        "dataset": account.dataset,
        **account.statement.facts(),
        "same_table_as": list(account.shared),
        "budgets": [
            {**each.budget.model_dump(), "reason": each.reason, "at": each.at}
            for each in account.changes
        ],
        "charges": [charge.facts() for charge in account.charges],
    }


def budget_text(account: Account, planned: Guarantee | None = None) -> None:
    """Print a budget, with a bar of what is spent and what a planned release takes."""
    statement, charges = account.statement, account.charges
    of = f", data of {statement.window}" if statement.window else ""
    bar = _bar(statement, planned)
    say(bold(account.dataset + of), "  ", bar, "\n", budget_line(statement))
    if planned is not None:
        fits = statement.admits(planned)
        after = statement.after(planned)
        words = budget_line(after) if fits else "it does not fit, and is refused"
        say(Text("planned: ", style="cyan"), words)
    if account.shared:
        say(Text("same table: ", style="red"), shared_text(account.shared))
    for each in account.changes[1:]:
        to = f"epsilon {each.budget.epsilon:g}, delta {each.budget.delta:g}"
        say(f"changed to {to} on {each.at.partition('T')[0]}: {each.reason}")
    if charges:
        out.print(_charges_table(statement, charges))
    if len(charges) > _SHOWN:
        say(f"... the last {_SHOWN} of {len(charges)}; --json has all.")


def budget_line(statement: Statement) -> str:
    """What is spent and left, in one line."""
    budget, failed = statement.budget, statement.total.delta0
    failures = f"; failures: {failed:.3g} of {budget.failures:g}" if failed else ""
    return (
        f"epsilon {statement.spent:.4g} of {budget.epsilon:g} spent at delta {budget.delta:g}; "
        f"{statement.remaining:.4g} left for one more release{failures}"
    )


def shared_text(shared: Sequence[str]) -> str:
    """A warning about data sets whose budgets protect the same rows apart."""
    return f"also read as {', '.join(shared)}: budgets of different ids do not add up; use one id"


def _bar(statement: Statement, planned: Guarantee | None = None) -> Text:
    """How much of the budget is spent, planned and left."""
    filled = math.ceil(_BAR * statement.share)
    after = statement.after(planned).share if planned else 0.0
    wanted = max(0, math.ceil(_BAR * after) - filled)
    bar = Text("█" * filled, style="yellow").append("▒" * wanted, style="cyan")
    return bar.append("░" * (_BAR - filled - wanted), style="dim")


def _charges_table(statement: Statement, charges: Sequence[Charge]) -> Table:
    """The last charges, each with what was spent after it."""
    budget, first = statement.budget, max(0, len(charges) - _SHOWN)
    columns = ("release", "version", "mu", f"epsilon at {budget.delta:g}", "spent after it")
    table = Table(*columns, "state", "charged", box=None)
    running = Statement(budget)
    for place, charge in enumerate(charges):
        running = running.after(charge.guarantee)
        if place < first:
            continue
        table.add_row(
            charge.release,
            charge.version,
            f"{charge.guarantee.mu:.4g}",
            f"{charge.guarantee.epsilon(budget.delta):.4g}",
            Text(f"{running.spent:.4g} ").append(
                "▪" * math.ceil(10 * running.share), style="yellow"
            ),
            charge.state,
            charge.at.partition("T")[0],
        )
    return table
