"""Common constants for the releases of a series, such as one of each month.

A release with private constants clamps and clips its rows in its own way. So two of them are
compared within bounds of the bias on both sides. With the constants of the first one, the bias is
the same in both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gramercy.archive.bundles.bundle_kinds import describe_release
from gramercy.ledger.entry import next_number
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, shares_of_released_constants
from gramercy.schemas import families, wordings
from gramercy.schemas.problem import Notice
from gramercy.schemas.request_parts import ScalingFacts


@dataclass(frozen=True)
class Series:
    """The release of a planned series whose constants later ones can have."""

    first: str  # its id
    is_published: bool  # otherwise, it is the planned release
    saved: float  # share of mu squared that a later release saves


def planned_series(context: Context, plan: Plan) -> Series | None:
    """The series that a plan belongs to; None if its constants cannot be those of another release.

    The first release is the earliest one of the data set that has constants for the plan.
    """
    scaling, own = plan.spec.scaling, shares_of_released_constants(plan.spec, plan.spec)
    if not _is_repeated(plan) or scaling is None or own is None:
        return None
    if not plan.spec.estimates_constants:
        return None
    saved = scaling.spent - math.fsum(own.all)
    ledger = context.existing_ledger
    charges = () if ledger is None else ledger.charges(plan.contract.id)
    for charge in charges:
        if charge.is_published and _has_constants_for(context, plan, scaling, charge.release):
            return Series(charge.release, is_published=True, saved=saved)
    version = plan.request.version
    number = next_number([each.release for each in charges], version)
    return Series(f"{version}-r{number}", is_published=False, saved=saved)


def _is_repeated(plan: Plan) -> bool:
    """Whether other versions will follow: of a schedule, or of other periods of the data."""
    by_period = plan.contract.budget.per != "lifetime" or plan.request.names_period
    return by_period or plan.pattern != plan.request.version


def _has_constants_for(context: Context, plan: Plan, scaling: ScalingFacts, release: str) -> bool:
    if not context.archive.contains(context.archive.release(plan.contract.id, release)):
        return False
    other = describe_release(context.archive, plan.contract.id, release)
    facts = other.manifest
    return (
        other.withdrawn is None
        and facts.scaling is not None
        and facts.estimates_constants
        and (facts.names, facts.privacy_unit) == (plan.spec.names, plan.spec.privacy_unit)
        and facts.scaling.bounds == scaling.bounds
    )


def common_constants(series: Series) -> Notice:
    """What common constants save and cost, and the line that asks for them."""
    line, saved = f"scaling: {{from: {series.first}}}", 100 * series.saved
    if series.is_published:
        return families.READING(
            "The constants of {release} would save {saved:.2g} % of the squared mu, and releases "
            "that take them can be compared without a bound for clipping; but constants age.",
            "Write '{line}'.",
            release=series.first,
            saved=saved,
            line=line,
        )
    return families.READING(
        "Later releases can take the constants of {release}: that saves {saved:.2g} % of the "
        "squared mu, and they can be compared without a bound for clipping; but constants age.",
        "Write '{line}' in the request after this release.",
        release=series.first,
        saved=saved,
        line=line,
    )


def withdrawn_constants(context: Context, plan: Plan) -> Notice | None:
    """A warning if the constants of a plan are those of a release that was withdrawn."""
    scaling = plan.spec.scaling
    if scaling is None or scaling.release is None:
        return None
    other = describe_release(context.archive, plan.contract.id, scaling.release)
    if other.withdrawn is None:
        return None
    return wordings.release_withdrawn(scaling.release, other.withdrawn)
