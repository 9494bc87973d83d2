"""The page of a plan: its guarantee, predicted errors at other guarantees, and the budget.

It uses public facts and the ledger alone; the table is not read, and nothing is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gramercy import mechanisms
from gramercy.common.notation import in_symbols
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import Arithmetic, Mechanism
from gramercy.pipeline.plan.budget_preview import BudgetPreview, budget_effect, planned_step
from gramercy.pipeline.plan.calibration import calibrate, guarantee_facts
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.verdict import Colour, plan_verdict
from gramercy.reports.plan_page import BudgetFacts, PlanFacts, RankingRow, plan_page
from gramercy.reports.reader_notes import Level, Note
from gramercy.reports.rendering import Links, no_links
from gramercy.schemas.errors import GramercyError, RequestError
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.model import parse
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.request_parts import ClaimedPureSpec, MechanismSpec, PureSpec

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
            other_levels = [key for key in ("mu", "snr") if key in type(requested).model_fields]
            update: dict[str, Any] = {"epsilon": at, "calibration": "exact"}
            update |= dict.fromkeys(other_levels)
            for each in rank_mechanisms(spec, requested.model_copy(update=update))[0]:
                curves.setdefault(each.name, []).append((at, each.error))
    return curves


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
    before, charged = preview.statement, budget_effect(plan, preview).kind == "charged"
    after = before.after(preview.due) if charged else before
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
            count_sd=counts.of_columns.sd if counts else None,
            error=plan.matrix_error,
            share_of_entry=plan.share_of_entry,
            share_of_pilot=plan.share_of_pilot,
            epsilon=epsilon,
            verdict=_verdict(plan),
            effect=budget_effect(plan, preview),
            budget=BudgetFacts(
                epsilon=before.budget.epsilon,
                delta=before.budget.delta,
                window=before.window,
                spent=before.share,
                taken=after.share - before.share,
                spent_epsilon=before.spent,
                left_epsilon=after.remaining,
                releases_left=after.charges_left(plan.guarantee),
            ),
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
            step=planned_step(plan, preview),
            curves=curves,
        ),
        links,
    )


def _verdict(plan: Plan) -> Note | None:
    verdict = plan_verdict(plan)
    if verdict is None:
        return None
    level, head = _VERDICTS[verdict.level]
    return Note(level, head, in_symbols(verdict.text), verdict.code, facts=verdict.facts)


@dataclass(frozen=True)
class RankedMechanism:
    """A mechanism that can answer a request."""

    # name, publishes, arithmetic: properties of the mechanism
    name: str
    publishes: str
    arithmetic: Arithmetic
    # guarantee, law: its exact guarantee, and its noise law on the released matrix
    guarantee: Guarantee
    law: NoiseLaw
    error: float  # root mean square of the Frobenius norm of the noise, before any repair


@dataclass(frozen=True)
class UnsuitableMechanism:
    """A mechanism that cannot answer a request, and why."""

    name: str
    reason: str


def rank_mechanisms(
    spec: ReleaseSpec, requested: MechanismSpec
) -> tuple[list[RankedMechanism], list[UnsuitableMechanism]]:
    """Compare all mechanisms at the requested guarantee, each calibrated exactly.

    Returns
    -------
    ranked
        By the error of the second moment, in ascending order. A mechanism that publishes a
        precision matrix is unsuitable, because its error is not comparable.
    """
    target = _target(spec, requested)
    ranked: list[RankedMechanism] = []
    unsuitable: list[UnsuitableMechanism] = []
    for name, mechanism_type in mechanisms.registry.items():
        if not mechanism_type.publishes.is_moment:
            reason = f"publishes {mechanism_type.publishes.short}, not a second moment"
            unsuitable.append(UnsuitableMechanism(name, reason))
        elif spec.cumulative is not None and not mechanism_type.takes_series:
            reason = "has no guarantee for all steps of a cumulative series"
            unsuitable.append(UnsuitableMechanism(name, reason))
        elif name == requested.name:
            keys = requested.model_copy(update={"calibration": "exact"}).non_default_keys()
            keys.pop("paper", None)
            ranked.append(_calibrated(spec, mechanism_type, keys))
        elif target["delta"] == 0 and not _is_pure(mechanism_type):
            unsuitable.append(UnsuitableMechanism(name, "is not pure epsilon-DP: needs a delta"))
        elif (level := next(iter(target))) not in mechanism_type.spec.level_keys:
            unsuitable.append(UnsuitableMechanism(name, f"cannot be calibrated by {level}"))
        else:
            try:
                keys = {"name": name, "arithmetic": mechanism_type.arithmetic, **target}
                ranked.append(_calibrated(spec, mechanism_type, keys))
            except GramercyError as error:
                unsuitable.append(UnsuitableMechanism(name, str(error)))
    return sorted(ranked, key=lambda each: each.error), unsuitable


def _target(spec: ReleaseSpec, requested: MechanismSpec) -> dict[str, float]:
    """The requested epsilon or mu, with delta; if neither is requested, the exact mu."""
    if requested.epsilon is not None:
        return {"epsilon": requested.epsilon, "delta": requested.delta}
    mu = requested.mu
    if mu is None:
        requested_spec = spec.model_copy(update={"mechanism": requested.non_default_keys()})
        mu = calibrate(requested_spec).guarantee.mu
    return {"mu": mu, "delta": requested.delta}


def _is_pure(mechanism_type: type[Mechanism]) -> bool:
    spec = mechanism_type.spec
    return issubclass(spec, PureSpec) and not issubclass(spec, ClaimedPureSpec)


def _calibrated(
    spec: ReleaseSpec, mechanism_type: type[Mechanism], keys: dict[str, Any]
) -> RankedMechanism:
    name = mechanism_type.name
    requested = parse(mechanism_type.spec, keys, f"mechanism '{name}'", RequestError)
    update: dict[str, Any] = {"mechanism": requested.non_default_keys()}
    if spec.scaling is not None and not mechanism_type.takes_pilot:
        update["scaling"] = spec.scaling.model_copy(update={"pilot": 0.0, "turned": 0.0})
    calibration = calibrate(spec.model_copy(update=update))
    mechanism = calibration.mechanism
    law = mechanism.matrix_law(spec.dataset.count, spec.parts)
    return RankedMechanism(
        name,
        mechanism.publishes.name,
        mechanism.arithmetic,
        calibration.guarantee,
        law,
        law.norm(len(spec.names)),
    )
