"""How results look on a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from ledger import Statement
from tasks.plan import Plan

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def as_json(facts: Any) -> None:
    """Print plain data as JSON."""
    print(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False))


def facts_table(title: str, facts: Mapping[str, str]) -> None:
    """Print names and values."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2))
    for name, value in facts.items():
        table.add_row(f"[dim]{name}[/dim]", value)
    out.print(table)


def plan_text(plan: Plan, before: Statement) -> None:
    """Print what a release will do."""
    facts, law = plan.facts(), plan.law
    after = before.after(plan.guarantee)
    n_known = "public" if plan.contract.neighbours == "replace-one" else "planning figure"
    facts_table(
        f"Release of {plan.contract.id}, version {plan.request.version}",
        {
            "table": f"{plan.contract.rows} rows ({n_known}) x {plan.lattice.p} columns",
            "protects": f"one row, {plan.contract.neighbours}",
            "rows": _normalisation(facts["normalisation"]),
            "mechanism": f"{plan.mechanism.name}, scale s = {facts['scale']:.6g} (Gram matrix)",
            "guarantee": (
                f"epsilon {facts['epsilon']:.6g} at delta {facts['delta']:g}; "
                f"exactly {facts['mu']:.6g}-GDP"
            ),
            "error of an entry": (
                f"sd {law.sd_off_diagonal:.3g} off the diagonal, {law.sd_diagonal:.3g} on it "
                "(entries lie in [-1, 1], and the trace is at most 1)"
            ),
            "error of the matrix": f"{plan.matrix_error:.3g} in Frobenius norm, before denoising",
            "budget before": _budget(before),
            "budget after": _budget(after)
            if before.admits(plan.guarantee)
            else "[red]does not fit: the release would be refused[/red]",
        },
    )


def statement_facts(dataset: str, statement: Statement) -> dict[str, Any]:
    """A budget statement as plain data."""
    return {
        "dataset": dataset,
        "epsilon": statement.budget.epsilon,
        "delta": statement.budget.delta,
        "spent_epsilon": statement.spent,
        "spent_mu": statement.total.mu,
        "remaining_epsilon": statement.remaining,
        "remaining_mu": statement.left.mu,
        "charges": [
            {
                "release": c.release,
                "version": c.version,
                "mu": c.guarantee.mu,
                "delta0": c.guarantee.delta0,
                "at": c.at,
                "state": c.state,
            }
            for c in statement.charges
        ],
    }


def statement_text(dataset: str, statement: Statement) -> None:
    """Print a budget statement, with a bar of what is spent."""
    budget = statement.budget
    share = min(1.0, statement.spent / budget.epsilon)
    filled = round(30 * share)
    bar = f"[red]{'█' * filled}[/red][green]{'█' * (30 - filled)}[/green]"
    out.print(f"[bold]{dataset}[/bold]  {bar}  {_budget(statement)}")
    table = Table("release", "version", "mu", "epsilon at delta", "state", "charged", box=None)
    for c in statement.charges:
        epsilon = f"{c.guarantee.epsilon(budget.delta):.4g} at {budget.delta:g}"
        table.add_row(c.release, c.version, f"{c.guarantee.mu:.4g}", epsilon, c.state, c.at)
    if statement.charges:
        out.print(table)


def panel(title: str, *lines: str) -> None:
    """Print a framed message."""
    out.print(Panel("\n".join(lines), title=title, title_align="left", expand=False, padding=1))


def _normalisation(how: Mapping[str, Any]) -> str:
    return "divided by their own length" if how["kind"] == "unit" else f"clipped at {how['radius']}"


def _budget(statement: Statement) -> str:
    budget = statement.budget
    return (
        f"epsilon {statement.spent:.4g} of {budget.epsilon:g} spent at delta {budget.delta:g}; "
        f"{statement.remaining:.4g} left for one more release"
    )
