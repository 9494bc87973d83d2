"""A plan on the terminal and as data: the release and its effect on the budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from gramercy.application.budget_preview import BudgetPreview, budget_effect
from gramercy.application.calibration import guarantee_facts
from gramercy.application.planning import Plan
from gramercy.cli.output.budget_text import Account, budget_facts, budget_line
from gramercy.cli.output.phrases import attacker_text, guarantee_text, normalisation_text
from gramercy.cli.output.terminal import facts_table
from gramercy.schemas.problems.verification import table_shared

_PUBLISHES = {
    "second-moment": "a noisy second moment",
    "rows": "noisy rows, and the second moment computed from them",
    "reports": "one noisy report per row, and their average",
    "precision": "a noisy precision matrix",
}


def print_plan(plan: Plan, preview: BudgetPreview) -> None:
    """Print what a release would do."""
    contract, request, mechanism, law = plan.contract, plan.request, plan.mechanism, plan.law
    guarantee = guarantee_facts(plan.guarantee, request.mechanism.delta)
    status = "public" if contract.neighbours == "replace-one" else "planning figure"
    facts_table(
        f"Release of {contract.id}, version {request.version}",
        {
            "table": f"{contract.count} {contract.count_key} ({status}) x {plan.columns} columns",
            "protects": f"one {contract.protected_unit}, {contract.neighbours}",
            "rows": normalisation_text(request.normalisation),
            "publishes": _PUBLISHES[mechanism.publishes] + _folds(request.folds),
            "mechanism": f"{mechanism.name}, {mechanism.arithmetic} arithmetic",
            **{
                f"  {name.replace('_', ' ')}": f"{value:.6g}"
                for name, value in mechanism.constants().items()
            },
            "guarantee": guarantee_text(guarantee),
            "best attacker": attacker_text(guarantee.power),
            "error of an entry": (
                ("" if law.family != "noisy-rows" else "about ")
                + f"sd {law.sd_off_diagonal:.3g} off the diagonal, {law.sd_diagonal:.3g} on it"
            ),
            **_relative_error(plan),
            "error of the matrix": f"{plan.matrix_error:.3g} in Frobenius norm, before repair",
            **_effect(plan, preview),
            **_same_table(plan.contract.id, preview.sharing_datasets),
        },
    )


def plan_facts(plan: Plan, preview: BudgetPreview) -> dict[str, Any]:
    """A plan and its effect on the budget as plain data."""
    before, answered = preview.statement, preview.previous_charge
    replayed = answered is not None and answered.state == "published"
    after = before if replayed else before.after(plan.guarantee)
    return plan.facts() | {
        "published_as": answered.release if answered and replayed else None,
        "admitted": replayed or before.admits(plan.guarantee),
        "budget_before": budget_facts(Account(plan.contract.id, before)),
        "budget_after": budget_facts(Account(plan.contract.id, after)),
        "more_like_this": after.charges_left(plan.guarantee),
        "same_table_as": list(preview.sharing_datasets),
    }


def _relative_error(plan: Plan) -> dict[str, str]:
    """The error relative to an average diagonal entry, where that is public."""
    if plan.share_of_entry is None:
        return {}
    share = f"{100 * plan.share_of_entry:.3g} % of an average diagonal entry"
    return {"  in proportion": f"{share}, which is 1/{plan.columns}: the rows have length 1"}


def _folds(folds: int) -> str:
    return f", in {folds} folds with independent noise" if folds > 1 else ""


def _effect(plan: Plan, preview: BudgetPreview) -> dict[str, str | Text]:
    """The effect of the release on the budget."""
    before, outcome = preview.statement, budget_effect(plan, preview)
    if outcome.kind != "charged":
        style = "green" if outcome.kind == "free" else "red"
        return {"budget": budget_line(before), "effect": Text(outcome.words, style=style)}
    after = before.after(plan.guarantee)
    line = f"{budget_line(after)} ({after.charges_left(plan.guarantee)} more like this one)"
    return {"budget before": budget_line(before), "budget after": line}


def _same_table(dataset: str, others: Sequence[str]) -> dict[str, Text]:
    if not others:
        return {}
    return {"same table": Text(str(table_shared((dataset, *others))), style="red")}
