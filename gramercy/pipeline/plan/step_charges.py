"""What a step of a cumulative series is charged, and the charges of the steps before it.

The first step is charged for all steps of its window, and a later one costs nothing, unless it was
drawn before and is drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence

from gramercy.ledger import Charge, Ledger, SeriesCharge, spent_failure
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, make_plan
from gramercy.schemas import families
from gramercy.schemas.errors import SpentFailure
from gramercy.schemas.problem import Notice
from gramercy.schemas.steps import StepDays


def series_charge(plan: Plan, kind: str = "") -> SeriesCharge | None:
    """The step of a plan as the ledger registers it; None without a series.

    `kind`: what gives the step of a row; see `PrivateSums.dates`.
    """
    facts, contract, request = plan.spec.cumulative, plan.contract, plan.request
    if facts is None:
        return None
    days = facts.days(contract.window(request.version))
    dates = contract.period
    instants = days.instants("UTC" if dates is None else dates.timezone)
    return SeriesCharge(
        series=request.series_key(contract, plan.spec.scaling),
        step=facts.step,
        every=facts.every,
        boundaries=tuple(each.isoformat() for each in instants),
        column="" if dates is None else dates.column,
        kind=kind,
    )


def due(ledger: Ledger, plan: Plan) -> Guarantee:
    """What a plan would be charged, as the ledger is now; see `Ledger.due`."""
    series = series_charge(plan)
    if series is None:
        return plan.guarantee
    if not series_charges(ledger, plan):
        _check_not_registered(ledger, plan, series)
    return ledger.due(plan.contract, plan.request.version, plan.guarantee, series)


def _check_not_registered(ledger: Ledger, plan: Plan, series: SeriesCharge) -> None:
    """Refuse to go on with a series by another request: that would charge another window.

    Another series can only begin with its first step, so that it is never begun by mistake.
    """
    window = plan.contract.window(plan.request.version)
    others = [
        charge
        for charge in ledger.charges(plan.contract.id)
        if charge.window == window and charge.series and charge.series.series != series.series
    ]
    if series.step > 1 and others:
        raise families.TERMS(
            "{version} is step {step} of a series that was registered with another request, by "
            "{release}.",
            "Restore the request: mechanism, normalisation, scaling, 'by' and 'cumulative' are "
            "the same for all steps. To begin another series, at another charge, publish its "
            "first step alone.",
            version=plan.request.version,
            step=series.step,
            release=f"{plan.contract.id}/{others[0].release}",
        )


def times_drawn(ledger: Ledger, plan: Plan) -> tuple[int, ...]:
    """How often every step will have been drawn when that of a plan is, up to the last one."""
    facts = plan.spec.cumulative
    steps = [each.series.step for each in series_charges(ledger, plan) if each.series is not None]
    steps += [] if facts is None else [facts.step]
    return tuple(steps.count(step) for step in range(1, max(steps, default=0) + 1))


def earlier_charges(ledger: Ledger | None, plan: Plan) -> list[Charge | None]:
    """The charge of every step before that of a plan: the published one, or the last; or None."""
    facts = plan.spec.cumulative
    found: list[Charge | None] = [None] * (facts.step - 1 if facts else 0)
    for charge in () if ledger is None else series_charges(ledger, plan):
        number = charge.series.step if charge.series else 0
        if 1 <= number <= len(found):
            earlier = found[number - 1]
            found[number - 1] = earlier if earlier and earlier.is_published else charge
    return found


def missing_steps(context: Context, plan: Plan) -> list[Plan]:
    """Plans of the steps that must be published before that of a plan, oldest first.

    Raises
    ------
    SpentFailure
        If one of them is spent: later ones cannot be decoded without it.
    """
    ledger, missing = context.existing_ledger, list[Plan]()
    own = None if ledger is None else ledger.find_charge(plan.contract.id, plan.key)
    if own is not None and own.is_published:
        return missing
    found = earlier_charges(ledger, plan)
    if (spent := spent_step(found)) is not None:
        raise step_is_spent(plan, spent)
    for label in unpublished(plan, found):
        update = {"version": label, "period": None, "new_charge": None}
        request = plan.request.model_copy(update=update)
        missing.append(make_plan(context, request, at=plan.planned_for))
    return missing


def unpublished(plan: Plan, earlier: Sequence[Charge | None]) -> tuple[str, ...]:
    """The versions of the steps before that of a plan that are not published, oldest first."""
    days = _days(plan)
    charges = zip(days.labels if days else (), earlier, strict=False)
    return tuple(label for label, each in charges if each is None or not each.is_published)


def spent_step(earlier: Sequence[Charge | None]) -> Charge | None:
    """The first of the earlier steps that is spent, which blocks later ones."""
    return next((each for each in earlier if each is not None and each.state.is_closed), None)


def step_is_spent(plan: Plan, charge: Charge) -> SpentFailure:
    """The error for a step that cannot be decoded, because an earlier one is spent."""
    reason = spent_failure(plan.contract.id, charge).sentence
    return families.SPENT(
        "{version} needs the numbers of all steps before it. {reason}",
        "Publish step {earlier} under a new charge: run 'gramercy release REQUEST --period "
        "{earlier} --new-charge'. It shows the charge, and asks.",
        version=plan.request.version,
        reason=reason,
        earlier=charge.version,
    )


def withdrawal_of_step(ledger: Ledger, dataset: str, release: str) -> Notice | None:
    """What it means for its series if a step is withdrawn; None of other releases.

    It names the releases of later steps that were decoded from its numbers.
    """
    charges = ledger.charges(dataset)
    numbers = {each.release: number for number, each in enumerate(charges)}
    own = charges[numbers[release]].series if release in numbers else None
    if own is None:
        return None
    decoded = []
    for each in charges[numbers[release] + 1 :]:
        if each.series is None or each.series.series != own.series:
            continue
        if each.series.step == own.step:
            break  # drawn again: what follows is decoded from the new numbers
        if each.series.step > own.step and each.is_published:
            decoded.append(each.release)
    return families.WITHDRAWN(
        "Without {release} no later step of its series can be published until it is drawn again, "
        "which is charged. Releases that were decoded from it: {decoded}.",
        "Drawing it again repairs this step alone: withdraw later steps that read what is wrong as "
        "well, and draw all of them again, the oldest first. 'gramercy release REQUEST --period "
        "{version} --new-charge' shows the charge, and asks.",
        release=release,
        decoded=tuple(decoded) or ("none",),
        version=charges[numbers[release]].version,
    )


def series_charges(ledger: Ledger, plan: Plan) -> tuple[Charge, ...]:
    """All charges of the series of a plan, oldest first; empty without a series."""
    series = series_charge(plan)
    if series is None:
        return ()
    return ledger.series_charges(plan.contract, plan.request.version, series)


def _days(plan: Plan) -> StepDays | None:
    facts = plan.spec.cumulative
    return None if facts is None else facts.days(plan.contract.window(plan.request.version))
