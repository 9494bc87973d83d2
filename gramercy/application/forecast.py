"""A plan as a page: its guarantee, its error beside those of other guarantees, what it would leave.

From public facts and the ledger alone; nothing is read of the table, and nothing is charged.
"""

from __future__ import annotations

import math
from typing import Any

from gramercy.application.calibration import guarantee_facts
from gramercy.application.outlook import Outlook, effect
from gramercy.application.planning import Plan
from gramercy.application.ranking import compare
from gramercy.reports.plan_page import BudgetFacts, Planned, Ranked, plan_page
from gramercy.schemas.manifest import Asked
from gramercy.schemas.specs import MechanismSpec

_REACH, _STEPS = 8.0, 7  # from an eighth of the epsilon that is asked for, to eight times as much
_LEAST, _MOST = 1e-4, 1e3  # epsilons that a request may ask for

Curves = dict[str, list[tuple[float, float]]]


def forecast(public: Asked, spec: MechanismSpec, epsilon: float) -> Curves:
    """The predicted error of every mechanism that can answer, around an epsilon.

    Parameters
    ----------
    public, spec
        See `compare`; at the delta of `spec`, and in its own setting.
    epsilon
        In the middle.

    Returns
    -------
    dict
        By mechanism, pairs of epsilon and the root mean square of the noise's Frobenius norm.
    """
    found: Curves = {}
    for step in range(_STEPS):
        at = epsilon * _REACH ** (2 * step / (_STEPS - 1) - 1)
        if _LEAST <= at <= _MOST:
            for offer in compare(public, _at(spec, at))[0]:
                found.setdefault(offer.name, []).append((at, offer.error))
    return found


def _at(spec: MechanismSpec, epsilon: float) -> MechanismSpec:
    others = [key for key in ("mu", "snr") if key in type(spec).model_fields]
    named: dict[str, Any] = {"epsilon": epsilon, "calibration": "exact", **dict.fromkeys(others)}
    return spec.model_copy(update=named)


def page_of(plan: Plan, seen: Outlook) -> str:
    """The page of a plan: self-contained HTML.

    Parameters
    ----------
    plan
        What is asked for.
    seen
        What the ledger says of it.
    """
    request, contract = plan.request, plan.contract
    delta = request.mechanism.delta
    exact = plan.guarantee.epsilon(delta)
    epsilon = request.mechanism.epsilon or exact
    public = plan.asked
    offers, declined = compare(public, request.mechanism)
    # The error of a precision matrix is of another kind.
    compared = plan.mechanism.publishes != "precision" and math.isfinite(epsilon)
    curves = forecast(public, request.mechanism, epsilon) if compared else {}
    return plan_page(
        Planned(
            title=contract.title,
            curator=contract.curator,
            dataset=contract.id,
            unit=contract.protects,
            count=contract.count,
            count_key=contract.count_key,
            count_is_public=contract.neighbours == "replace-one",
            neighbours=contract.neighbours,
            version=request.version,
            columns=plan.columns,
            declared=[column.model_dump() for column in public.columns],
            intercept=contract.intercept,
            normalisation=request.normalisation,
            folds=request.folds,
            mechanism=plan.mechanism.name,
            publishes=plan.mechanism.publishes,
            arithmetic=plan.mechanism.arithmetic,
            guarantee=guarantee_facts(plan.guarantee, delta),
            law=plan.law,
            error=plan.matrix_error,
            share_of_entry=plan.share_of_entry,
            epsilon=epsilon,
            effect=effect(plan, seen),
            budget=_budget(plan, seen),
            ranking=[
                Ranked(
                    each.name,
                    each.error,
                    each.guarantee.mu,
                    each.guarantee.epsilon(delta),
                    each.arithmetic,
                    each.publishes,
                )
                for each in offers
            ],
            declined={each.name: each.why for each in declined},
            curves=curves,
        )
    )


def _budget(plan: Plan, seen: Outlook) -> BudgetFacts:
    before, charged = seen.before, effect(plan, seen).kind == "charged"
    after = before.after(plan.guarantee) if charged else before
    return BudgetFacts(
        epsilon=before.budget.epsilon,
        delta=before.budget.delta,
        window=before.window,
        spent=before.share,
        taken=after.share - before.share,
        spent_epsilon=before.spent,
        left_epsilon=after.remaining,
        more=after.times(plan.guarantee),
    )
