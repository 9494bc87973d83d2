"""What a step of a cumulative series is charged, and the charges of the steps before it.

The first step is charged for all steps of its window, and a later one costs nothing, unless it was
drawn before and is drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence

from gramercy.ledger import Charge, ChargedSeries, Ledger, SeriesCharge, check_before
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, make_plan
from gramercy.pipeline.plan.request_model import Request
from gramercy.schemas import families
from gramercy.schemas.problem import Notice


def series_charge(plan: Plan, kind: str = "") -> SeriesCharge | None:
    """The step of a plan as the ledger registers it; None without a series.

    `kind`: what gives the step of a row; see `PrivateSums.dates`.
    """
    facts, contract, request = plan.spec.cumulative, plan.contract, plan.request
    if facts is None:
        return None
    dates = contract.period
    instants = plan.spec.step_days.instants("UTC" if dates is None else dates.timezone)
    return SeriesCharge(
        series=request.series_key(contract, plan.spec.scaling),
        step=facts.step,
        every=facts.every,
        boundaries=tuple(each.isoformat() for each in instants),
        column="" if dates is None else dates.column,
        kind=kind,
    )


def due(ledger: Ledger, plan: Plan) -> Guarantee:
    """What a plan would be charged, as the ledger is now; the table may be unknown."""
    series = series_charge(plan)
    if series is None:
        return plan.guarantee
    charged = charged_series(ledger, plan)
    if not charged.charges:
        _check_not_registered(ledger, plan, series)
    return charged.due(series.step, plan.guarantee)


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


def charged_series(
    ledger: Ledger | None, plan: Plan, request: Request | None = None
) -> ChargedSeries:
    """All charges of the series of a plan, or of a request for a step of another window."""
    request = request or plan.request
    if ledger is None or request.cumulative is None:
        return ChargedSeries()
    key = request.series_key(plan.contract, plan.spec.scaling)
    return ledger.series(plan.contract.id, plan.contract.window(request.version), key)


def earlier_charges(ledger: Ledger | None, plan: Plan) -> list[Charge | None]:
    """The charge of every step before that of a plan: the published one, or the last; or None."""
    facts = plan.spec.cumulative
    return charged_series(ledger, plan).before(facts.step if facts else 1)


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
    check_closed(plan, found)
    for label in unpublished(plan, found):
        update = {"version": label, "period": None, "new_charge": None}
        request = plan.request.model_copy(update=update)
        missing.append(make_plan(context, request, at=plan.planned_for))
    return missing


def check_closed(plan: Plan, earlier: Sequence[Charge | None]) -> None:
    """Refuse a plan if a step before it is spent or withdrawn; others are published with it."""
    closed = [each for each in earlier if each is not None and each.state.is_closed]
    check_before(plan.contract.id, plan.request.version, closed)


def unpublished(plan: Plan, earlier: Sequence[Charge | None]) -> tuple[str, ...]:
    """The versions of the steps before that of a plan that are not published, oldest first."""
    labels = plan.spec.step_days.labels if earlier else ()
    charges = zip(labels, earlier, strict=False)
    return tuple(label for label, each in charges if each is None or not each.is_published)


def withdrawal_of_step(ledger: Ledger, dataset: str, release: str) -> Notice | None:
    """What it means for its series if a step is withdrawn; None of other releases.

    It names the releases of later steps that were decoded from its numbers.
    """
    charge = ledger.charge_of(dataset, release)
    own = None if charge is None else charge.series
    if charge is None or own is None:
        return None
    charges = ledger.series(dataset, charge.window, own.series).charges
    decoded = []
    for each in charges[1 + [each.release for each in charges].index(release) :]:
        step = each.series.step if each.series else 0
        if step == own.step:
            break  # drawn again: what follows is decoded from the new numbers
        if step > own.step and each.is_published:
            decoded.append(each.release)
    return families.WITHDRAWN(
        "Without {release} no later step of its series can be published until it is drawn again, "
        "which is charged. Releases that were decoded from it: {decoded}.",
        "Drawing it again repairs this step alone: withdraw later steps that read what is wrong as "
        "well, and draw all of them again, the oldest first. 'gramercy release REQUEST --period "
        "{version} --new-charge' shows the charge, and asks.",
        release=release,
        decoded=tuple(decoded) or ("none",),
        version=charge.version,
    )
