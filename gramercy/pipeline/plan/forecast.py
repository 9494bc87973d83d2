"""The page of a plan: its guarantee, predicted errors at other guarantees, and the budget.

It uses public facts and the ledger alone; the table is not read, and nothing is charged.
"""

from __future__ import annotations

import math
from typing import Any

from gramercy.common.notation import in_symbols
from gramercy.pipeline.plan.budget_preview import BudgetPreview, budget_effect
from gramercy.pipeline.plan.calibration import guarantee_facts
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.ranking import rank_mechanisms
from gramercy.pipeline.plan.verdict import Colour, plan_verdict
from gramercy.reports.plan_page import BudgetFacts, PlanFacts, RankingRow, plan_page
from gramercy.reports.reader_notes import Level, Note
from gramercy.reports.rendering import Links, no_links
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.request_parts import MechanismSpec

_FACTOR, _STEPS = 8.0, 7  # from an eighth of the requested epsilon to eight times as much
_LEAST, _MOST = 1e-4, 1e3  # range of epsilon that a request may state

_VERDICTS: dict[Colour, tuple[Level, str]] = {
    "green": ("good", "The correlations would be accurate"),
    "orange": ("warning", "The correlations would be uncertain"),
    "red": ("danger", "This release would be useless"),
}

Curves = dict[str, list[tuple[float, float]]]


def forecast(spec: ReleaseSpec, requested: MechanismSpec, epsilon: float) -> Curves:
    """The predicted error of every suitable mechanism, at several epsilons.

    Returns
    -------
    dict
        By mechanism, pairs of epsilon and the root mean square of the noise's Frobenius norm.
    """
    curves: Curves = {}
    for step in range(_STEPS):
        at = epsilon * _FACTOR ** (2 * step / (_STEPS - 1) - 1)
        if _LEAST <= at <= _MOST:
            for each in rank_mechanisms(spec, _with_epsilon(requested, at))[0]:
                curves.setdefault(each.name, []).append((at, each.error))
    return curves


def _with_epsilon(requested: MechanismSpec, epsilon: float) -> MechanismSpec:
    other_levels = [key for key in ("mu", "snr") if key in type(requested).model_fields]
    update: dict[str, Any] = {"epsilon": epsilon, "calibration": "exact"}
    update |= dict.fromkeys(other_levels)
    return requested.model_copy(update=update)


def plan_html(plan: Plan, preview: BudgetPreview, links: Links = no_links) -> str:
    """The page of a plan, as self-contained HTML."""
    request, contract = plan.request, plan.contract
    delta = request.mechanism.delta
    exact = plan.guarantee.epsilon(delta)
    epsilon = request.mechanism.epsilon or exact
    ranked, unsuitable = rank_mechanisms(plan.spec, request.mechanism)
    # The error of a precision matrix or of histograms is not comparable.
    comparable = plan.mechanism.publishes.is_moment
    comparable &= math.isfinite(epsilon)
    curves = forecast(plan.spec, request.mechanism, epsilon) if comparable else {}
    counts = plan.calibration.constants_noise
    return plan_page(
        PlanFacts(
            title=contract.title,
            curator=contract.curator,
            dataset=contract.id,
            privacy_unit=contract.protected_unit,
            count=contract.count,
            count_key=contract.count_key,
            count_is_public=contract.neighbours.count_is_public,
            neighbours=contract.neighbours,
            version=request.version,
            columns=plan.columns,
            declared=[column.model_dump() for column in plan.spec.columns],
            intercept=contract.intercept,
            normalisation=plan.normalisation,
            folds=request.folds,
            mechanism=plan.mechanism.name,
            publishes=plan.mechanism.publishes,
            arithmetic=plan.mechanism.arithmetic,
            guarantee=guarantee_facts(plan.guarantee, delta, request.mechanism.epsilon),
            law=plan.group_law,
            count_sd=counts.stages[-1].sd if counts else None,
            error=plan.matrix_error,
            share_of_entry=plan.share_of_entry,
            epsilon=epsilon,
            verdict=_verdict(plan),
            effect=budget_effect(plan, preview),
            budget=_budget(plan, preview),
            ranking=[
                RankingRow(
                    each.name,
                    each.error,
                    each.guarantee.mu,
                    each.guarantee.epsilon(delta),
                    each.arithmetic,
                    each.publishes,
                )
                for each in ranked
            ],
            declined={each.name: each.reason for each in unsuitable},
            curves=curves,
        ),
        links,
    )


def _verdict(plan: Plan) -> Note | None:
    verdict = plan_verdict(plan)
    if verdict is None:
        return None
    level, head = _VERDICTS[verdict.level]
    return Note(level, head, in_symbols(verdict.text), verdict.code)


def _budget(plan: Plan, preview: BudgetPreview) -> BudgetFacts:
    before, charged = preview.statement, budget_effect(plan, preview).kind == "charged"
    after = before.after(plan.guarantee) if charged else before
    return BudgetFacts(
        epsilon=before.budget.epsilon,
        delta=before.budget.delta,
        window=before.window,
        spent=before.share,
        taken=after.share - before.share,
        spent_epsilon=before.spent,
        left_epsilon=after.remaining,
        releases_left=after.charges_left(plan.guarantee),
    )
