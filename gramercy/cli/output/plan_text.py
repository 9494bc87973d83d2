"""What a plan says: what a release will do, and what it will do to the budget."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from gramercy.application.calibration import guarantee_facts
from gramercy.application.outlook import Outlook, effect
from gramercy.application.planning import Plan
from gramercy.cli.output.budget_text import Account, budget_facts, budget_line, shared_text
from gramercy.cli.output.phrases import attacker_text, guarantee_text, normalisation
from gramercy.cli.output.terminal import facts_table

_PUBLISHES = {
    "second-moment": "a noisy second moment",
    "rows": "noisy rows, and the second moment that follows from them",
    "reports": "one noisy report a row, and their average",
    "precision": "a noisy precision matrix",
}


def plan_text(plan: Plan, seen: Outlook) -> None:
    """Print what a release will do."""
    contract, request, mechanism, law = plan.contract, plan.request, plan.mechanism, plan.law
    guarantee = guarantee_facts(plan.guarantee, request.mechanism.delta)
    n_known = "public" if contract.neighbours == "replace-one" else "planning figure"
    facts_table(
        f"Release of {contract.id}, version {request.version}",
        {
            "table": f"{contract.count} {contract.count_key} ({n_known}) x {plan.columns} columns",
            "protects": f"one {contract.protects}, {contract.neighbours}",
            "rows": normalisation(request.normalisation),
            "publishes": _PUBLISHES[mechanism.publishes] + _folds(request.folds),
            "mechanism": f"{mechanism.name}, {mechanism.arithmetic} arithmetic",
            **{
                f"  {name.replace('_', ' ')}": f"{value:.6g}"
                for name, value in mechanism.plan().items()
            },
            "guarantee": guarantee_text(guarantee),
            "best attacker": attacker_text(guarantee.power, contract.protects),
            "error of an entry": (
                f"sd {law.sd_off_diagonal:.3g} off the diagonal, {law.sd_diagonal:.3g} on it"
                + ("" if law.family != "noisy-rows" else ", about")
            ),
            **_in_proportion(plan),
            "error of the matrix": f"{plan.matrix_error:.3g} in Frobenius norm, before repair",
            **_effect(plan, seen),
            **({"same table": Text(shared_text(seen.shared), style="red")} if seen.shared else {}),
        },
    )


def plan_facts(plan: Plan, seen: Outlook) -> dict[str, Any]:
    """A plan and its effect on the budget as plain data."""
    before, answered = seen.before, seen.answered
    replayed = answered is not None and answered.state == "published"
    after = before if replayed else before.after(plan.guarantee)
    return plan.facts() | {
        "published_as": answered.release if answered and replayed else None,
        "admitted": replayed or before.admits(plan.guarantee),
        "budget_before": budget_facts(Account(plan.contract.id, before)),
        "budget_after": budget_facts(Account(plan.contract.id, after)),
        "more_like_this": after.times(plan.guarantee),
        "same_table_as": list(seen.shared),
    }


def _in_proportion(plan: Plan) -> dict[str, str]:
    """The error of an entry beside an entry, where the public knows how large that is."""
    if plan.share_of_entry is None:
        return {}
    words = f"{100 * plan.share_of_entry:.3g} % of an average diagonal entry"
    return {"  in proportion": f"{words}, which is 1/{plan.columns}: the rows have length 1"}


def _folds(folds: int) -> str:
    return f", in {folds} folds with noise of their own" if folds > 1 else ""


def _effect(plan: Plan, seen: Outlook) -> dict[str, str | Text]:
    """What the release would do to the budget, in words."""
    before, found = seen.before, effect(plan, seen)
    if found.kind != "charged":
        style = "green" if found.kind == "free" else "red"
        return {"budget": budget_line(before), "effect": Text(found.words, style=style)}
    after = before.after(plan.guarantee)
    more = f"{budget_line(after)} ({after.times(plan.guarantee)} more like this one)"
    return {"budget before": budget_line(before), "budget after": more}
