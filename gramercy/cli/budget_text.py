"""A budget on the terminal and as data: changes, charges, spent and left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from gramercy.cli import terminal
from gramercy.cli.terminal import bold, privacy_loss_text, say
from gramercy.ledger import BudgetChange, Charge, Statement
from gramercy.ledger.timelines import approximate_epsilons_of, approximate_spent
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import wordings
from gramercy.schemas.model import finite_or_none

_BAR_WIDTH = 30
_LISTED_CHARGES = 30


@dataclass(frozen=True)
class Account:
    """One budget: of a data set, or of a calendar year of its data."""

    dataset: str
    statement: Statement
    changes: Sequence[BudgetChange] = ()  # as registered, raised and lowered
    charges: Sequence[Charge] | None = ()  # None if they are only counted
    shared: Sequence[str] = ()  # other data sets that read the same table
    charged: int = 0  # number of charges, if they are only counted


def budget_facts(account: Account) -> dict[str, Any]:
    """A budget as plain data."""
    statement = account.statement
    return {
        "dataset": account.dataset,
        **statement.facts(),
        "remaining_gaussian_epsilon": statement.remaining_gaussian,
        "spent_pure_epsilon": finite_or_none(statement.total.pure),
        "remaining_pure_epsilon": max(0.0, statement.budget.epsilon - statement.total.pure),
        "same_table_as": list(account.shared),
        "budgets": [
            {**each.budget.model_dump(), "reason": each.reason, "at": each.at}
            for each in account.changes
        ],
        "charges": [charge.facts() for charge in account.charges or ()],
    }


def print_budget(
    account: Account, planned: Guarantee | None = None, *, in_detail: bool = False
) -> None:
    """Print a budget, with a bar of what is spent and what a planned release takes."""
    statement, charges = account.statement, account.charges
    window = f", data of {statement.window}" if statement.window else ""
    bar = _bar(statement, planned)
    say(bold(account.dataset + window), "  ", bar, "\n", budget_line(statement))
    if in_detail:
        say(detail_line(statement))
    if planned is not None:
        fits = statement.admits(planned)
        after = statement.after(planned)
        outcome = budget_line(after) if fits else "does not fit and would be refused"
        say(Text("planned: ", style="cyan"), outcome)
    if account.shared:
        say(
            Text("same table: ", style="red"),
            str(wordings.table_shared((account.dataset, *account.shared))),
        )
    for change in account.changes[1:]:
        budget = privacy_loss_text(change.budget.epsilon, change.budget.delta, 6)
        say(f"changed to {budget} on {change.at.partition('T')[0]}: {change.reason}")
    if account.charged:
        command = f"'gramercy budget {account.dataset}'"
        if account.charged == 1:
            say(f"1 charge; {command} lists it.")
        else:
            say(f"{account.charged} charges; {command} lists them.")
    if charges:
        terminal.out.print(_charges_table(statement, charges))
    if charges and len(charges) > _LISTED_CHARGES:
        say(f"... the last {_LISTED_CHARGES} of {len(charges)}; --json lists all.")


def budget_line(statement: Statement) -> str:
    """What is spent and left, in one line."""
    budget, failed = statement.budget, statement.total.delta0
    failures = f"; failures: {failed:.3g} of {budget.failure_share:g}" if failed else ""
    return (
        f"epsilon={statement.spent:.4g} of {budget.epsilon:g} spent at delta={budget.delta:g}; "
        f"{statement.remaining:.4g} left for one more release{failures}"
    )


def detail_line(statement: Statement) -> str:
    """What is spent and left as mu and as pure epsilon, by which charges add up."""
    total, pure = statement.total, statement.total.pure
    at_delta = ""
    if statement.remaining_gaussian < statement.remaining:  # a pure release may have more
        at_delta = f" (epsilon={statement.remaining_gaussian:.4g})"
    line = (
        f"mu={total.mu:.4g} spent; {statement.left.mu:.4g} left for one more Gaussian "
        f"release{at_delta}; {100 * statement.share:.3g} % of the budget is spent"
    )
    if not 0 < pure < math.inf:
        return line
    left = max(0.0, statement.budget.epsilon - pure)
    return f"{line}; pure epsilon={pure:.4g} spent, {left:.4g} left"


def print_other_periods(statements: Sequence[Statement]) -> None:
    """Print what the periods that were not charged have, if each period has its own budget."""
    full = Statement(statements[0].budget)
    if full.budget.per == "lifetime":
        return
    other = "Every other" if any(each.window for each in statements) else "Every"
    budget = privacy_loss_text(full.budget.epsilon, full.budget.delta, 6)
    whole = f"{budget} (mu={full.left.mu:.4g})"
    say(f"{other} {full.budget.per} of the data has all of its budget: {whole}.")


def _bar(statement: Statement, planned: Guarantee | None = None) -> Text:
    """How much of the budget is spent, planned and left."""
    spent = math.ceil(_BAR_WIDTH * statement.share)
    share_after = statement.after(planned).share if planned else 0.0
    taken = max(0, math.ceil(_BAR_WIDTH * share_after) - spent)
    bar = Text("█" * spent, style="yellow").append("▒" * taken, style="cyan")
    return bar.append("░" * (_BAR_WIDTH - spent - taken), style="dim")


def _charges_table(statement: Statement, charges: Sequence[Charge]) -> Table:
    """The last charges, each with the total spent after it."""
    budget, first = statement.budget, max(0, len(charges) - _LISTED_CHARGES)
    columns = ("release", "version", "mu", f"epsilon at delta={budget.delta:g}", "spent after it")
    table = Table(*columns, "state", "charged", box=None)
    total, shown, after = Statement(budget), charges[first:], []
    for charge in charges:
        total = total.after(charge.guarantee)
        after.append(total)
    spent = approximate_spent(after[first:])
    own = approximate_epsilons_of([(each.loss, budget.delta) for each in shown])
    rows = zip(shown, after[first:], spent, own, strict=True)
    for charge, total, so_far, epsilon in rows:
        included = charge.series.included if charge.series else ""
        table.add_row(
            charge.release,
            charge.version,
            f"in {included}" if included else f"{charge.guarantee.mu:.4g}",
            f"{epsilon:.4g}",
            Text(f"{so_far:.4g} ").append("▪" * math.ceil(10 * total.share), style="yellow"),
            charge.state,
            charge.at.partition("T")[0],
        )
    return table
