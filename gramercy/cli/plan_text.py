"""A plan on the terminal and as data: the release and its effect on the budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

from rich.text import Text

from gramercy.cli.budget_text import Account, budget_facts, budget_line
from gramercy.cli.terminal import (
    attacker_text,
    facts_table,
    guarantee_text,
    normalisation_text,
    privacy_loss_text,
    verdict_text,
)
from gramercy.pipeline.plan.budget_preview import (
    BudgetPreview,
    Decision,
    budget_effect,
    decide,
    planned_step,
    unfinished_period,
)
from gramercy.pipeline.plan.calibration import guarantee_facts, proposed_folds
from gramercy.pipeline.plan.planning import Plan, rows_needed
from gramercy.pipeline.plan.series import Series, common_constants
from gramercy.pipeline.plan.verdict import plan_verdict, share_of_typical_entry
from gramercy.schemas import wordings
from gramercy.schemas.column import Derived
from gramercy.schemas.contract import Contract
from gramercy.schemas.problem import Notice

_MOST_COMPUTED = 12


def print_plan(plan: Plan, preview: BudgetPreview, series: Series | None = None) -> None:
    """Print what a release would do."""
    contract, request, mechanism = plan.contract, plan.request, plan.mechanism
    guarantee = guarantee_facts(plan.guarantee, request.mechanism.delta, request.mechanism.epsilon)
    folds = f", in {request.folds} folds with independent noise"
    notice = period_warning(plan, preview)
    others = preview.sharing_datasets
    shared = str(wordings.table_shared((contract.id, *others))) if others else ""
    status = "public" if contract.neighbours.count_is_public else "planning figure"
    facts_table(
        f"Release of {contract.id}, version {request.version}",
        {
            "table": f"{contract.count} {contract.count_key} ({status}) x {plan.columns} columns",
            # What the patterns of columns stand for: the first release fixes it.
            **{f"  {pattern}": ", ".join(names) for pattern, names in contract.patterns.items()},
            **{f"  {name}": words for name, words in islice(computed(contract), _MOST_COMPUTED)},
            **_step(plan, preview),
            "protects": f"one {contract.protected_unit}, {contract.neighbours}",
            "rows": normalisation_text(plan.normalisation),
            **_constants(plan),
            **_directions(plan),
            "publishes": mechanism.publishes.planned + folds * (request.folds > 1),
            **_groups(plan),
            "mechanism": f"{mechanism.name}, {mechanism.arithmetic} arithmetic",
            **{
                f"  {name.replace('_', ' ')}": f"{value:.6g}"
                for name, value in plan.calibration.constants().items()
            },
            "guarantee": guarantee_text(guarantee),
            **_at_delta_of_budget(plan, preview),
            "best attacker": attacker_text(guarantee.power),
            **_error(plan),
            **_verdict(plan),
            **_proposal(plan),
            **_effect(plan, preview),
            **({} if notice is None else {"period": Text(str(notice), style="yellow")}),
            **({} if series is None else {"series": str(common_constants(series))}),
            **({"same table": Text(shared, style="red")} if others else {}),
        },
    )


def plan_facts(plan: Plan, preview: BudgetPreview, series: Series | None = None) -> dict[str, Any]:
    """A plan and its effect on the budget as plain data."""
    before, answered = preview.statement, preview.previous_charge
    replayed = decide(plan, answered) is Decision.ANSWER
    after = before if replayed else before.after(preview.due)
    step = planned_step(plan, preview)
    unfinished, notice = unfinished_period(plan), common_constants(series) if series else None
    return plan.facts() | {
        "published_as": answered.release if answered and replayed else None,
        "admitted": replayed or before.admits(preview.due),
        "budget_before": budget_facts(Account(plan.contract.id, before)),
        "budget_after": budget_facts(Account(plan.contract.id, after)),
        "more_like_this": after.charges_left(plan.guarantee),
        "same_table_as": list(preview.sharing_datasets),
        "patterns": {pattern: list(names) for pattern, names in plan.contract.patterns.items()},
        "computed": dict(computed(plan.contract)),
        "proposed_folds": proposed_folds(plan.spec, plan.calibration),
        "verdict": asdict(verdict) if (verdict := plan_verdict(plan)) else None,
        "unfinished_period": dict(unfinished.facts) if unfinished else None,
        "series": {"code": notice.code, **notice.facts} if notice else None,
        "cumulative": step.described() if step else None,
    }


def computed(contract: Contract) -> Iterator[tuple[str, str]]:
    """The columns that are computed from others, in words, with their bounds."""
    for name, column in contract.columns.items():
        if isinstance(column, Derived):
            lower, upper = column.limits
            bounds = f"{lower:.6g} to {upper:.6g}" if column.has_bounds else "bounds are estimated"
            yield name, f"{column.facts.in_words}, {bounds}"


def _step(plan: Plan, preview: BudgetPreview) -> dict[str, str]:
    """The step of a series: its rows, its noise, what it costs, and what else could be done."""
    step = planned_step(plan, preview)
    if step is None:
        return {}
    facts, noise, every = step.facts, step.noise, step.facts.every
    single = "a single release with this guarantee"
    due = "the charge of the first step includes it" if step.included else "it is charged now"
    charge = f"one for all {facts.steps} steps: {due}, and later steps cost nothing"
    if step.again:
        charge = (
            f"only what another draw of this step adds, {preview.due.mu:.6g}-GDP; the guarantee "
            f"below is that of all {facts.steps} steps, each drawn once"
        )
    lines = {
        "cumulative": f"{facts.in_words}; the errors below are for all {facts.steps} steps",
        "  charge": charge,
        "  noise": f"{noise.end:.3g} times that of {single} for all steps, {noise.so_far:.3g} "
        f"times for the steps up to this one; {noise.average:.3g} times for one {every} on average",
        "  instead": f"a release of every {every} alone: {noise.otherwise:.3g} times for all "
        f"steps, once for one {every}",
        "": f"a release of all rows in every {every}: {noise.otherwise:.3g} times for each",
    }
    if len(step.published) > 1:
        lines["  publishes"] = (
            f"{len(step.published)} steps now: {step.published[0]} to {step.published[-1]}"
        )
    if step.rows_are_public:
        lines["  rows"] = (
            "the number of rows of every step is public, and fixed when the step is read first; "
            "so the date of a row is not protected"
        )
    return lines


def _constants(plan: Plan) -> dict[str, str]:
    """Where centres and scales come from, if they are not declared."""
    facts, requested = plan.spec.scaling, plan.request.scaling
    if facts is None:
        if requested.kind == "declared":
            return {}
        needed = rows_needed(plan.columns - int(plan.contract.intercept), plan.guarantee.mu)
        declared = "middle and half width of the bounds: private ones need about"
        return {"constants": f"{declared} {needed} {plan.contract.count_key}"}
    if facts.kind == "release":
        constants = f"those of release {facts.release}, at no cost"
        if facts.lengths:
            spent = f"{100 * facts.lengths:.2g} % of the squared mu for the lengths of rows"
            constants += f" ({spent}, and {100 * facts.lost:.0f} % for what clipping cuts off)"
        return {"constants": constants}
    share = 100 * (sum(facts.stages) + facts.lengths)
    spent = f"{share:.0f} % of the squared mu"
    if facts.lost:
        spent += f", and {100 * facts.lost:.0f} % for what clipping cuts off"
    return {"constants": f"private, from histograms in {len(facts.stages)} stages ({spent})"}


def _directions(plan: Plan) -> dict[str, str]:
    """What is spent on the directions in which the columns vary."""
    if not plan.share_of_pilot:
        return {}
    spent = f"{100 * plan.share_of_pilot:.0f} % of the squared mu"
    scaling = plan.spec.scaling
    own = scaling is not None and scaling.pilot
    pilot = "a pilot matrix looks for them" if own else "those of that release"
    return {
        "directions": f"{pilot} ({spent}). If its metric pays, the matrix is "
        "drawn in it: the errors of entries below are then upper bounds on average, and those of "
        "coefficients much smaller"
    }


def _error(plan: Plan) -> dict[str, str]:
    """The error of the matrix, if there is one, and of an entry."""
    noise = plan.calibration.constants_noise
    counts = {} if noise is None else {"error of a count": f"sd {noise.of_columns.sd:.3g}"}
    if not plan.mechanism.publishes.has_matrix:
        return counts
    law = plan.group_law
    return counts | {
        "error of an entry": (
            ("" if law.family != "noisy-rows" else "about ")
            + f"sd {law.sd_off_diagonal:.3g} off the diagonal, {law.sd_diagonal:.3g} on it"
        ),
        **_relative_error(plan),
        "error of the matrix": f"{plan.matrix_error:.3g} in Frobenius norm, before repair",
    }


def _at_delta_of_budget(plan: Plan, preview: BudgetPreview) -> dict[str, str]:
    """The guarantee at the delta of the budget, if the request has another delta."""
    delta = preview.statement.budget.delta
    if delta == plan.request.mechanism.delta:
        return {}
    return {
        "  for the budget": f"the same as {privacy_loss_text(plan.guarantee.epsilon(delta), delta)}"
    }


def _relative_error(plan: Plan) -> dict[str, str]:
    """The error relative to a diagonal entry: an average one, or what is typical of one."""
    if not plan.mechanism.publishes.is_moment:
        return {}
    if plan.share_of_entry is None:
        typical = share_of_typical_entry(plan)
        return {"  in proportion": f"about {100 * typical:.3g} % of a typical diagonal entry"}
    share = f"{100 * plan.share_of_entry:.3g} % of an average diagonal entry"
    return {"  in proportion": f"{share}, which is 1/{plan.columns}: the rows have length 1"}


def _groups(plan: Plan) -> dict[str, str]:
    """How rows are grouped, if they are."""
    by = plan.spec.by
    if by is None:
        return {}
    rows = round(plan.contract.count / len(by.levels))
    size = f"errors are for a group of {rows} {plan.contract.count_key}"
    return {"groups": f"{len(by.levels)} levels of {by.name}, and all other rows; {size}"}


def _verdict(plan: Plan) -> dict[str, Text]:
    """Whether the release would be of use, in its colour."""
    verdict = plan_verdict(plan)
    if verdict is None:
        return {}
    return {"verdict": verdict_text(verdict.level, verdict.code, verdict.text)}


def _proposal(plan: Plan) -> dict[str, str]:
    """Folds, where they cost next to nothing."""
    folds = proposed_folds(plan.spec, plan.calibration)
    if folds == plan.request.folds:
        return {}
    gain = "intervals then need no assumption about the data, and the noise stays below a third of"
    return {"proposal": f"folds: {folds}: {gain} the sampling error"}


def _effect(plan: Plan, preview: BudgetPreview) -> dict[str, str | Text]:
    """The effect of the release on the budget."""
    before, outcome = preview.statement, budget_effect(plan, preview)
    if outcome.kind != "charged":
        style = "red" if outcome.kind == "refused" else "green"
        return {"budget": budget_line(before), "effect": Text(outcome.words, style=style)}
    after = before.after(preview.due)
    line = budget_line(after)
    if preview.due == plan.guarantee:  # another draw of a step costs as much as it adds
        line += f" ({after.charges_left(plan.guarantee)} more like this one)"
    return {"budget before": budget_line(before), "budget after": line}


def period_warning(plan: Plan, preview: BudgetPreview) -> Notice | None:
    """A warning before a period that is not over is charged."""
    kind = budget_effect(plan, preview).kind
    return unfinished_period(plan) if kind in ("charged", "included") else None
