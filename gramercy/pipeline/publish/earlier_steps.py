"""The earlier steps of a cumulative series, from which the sum so far is decoded.

A step is drawn when all steps before it are published: then its sum is there as soon as its own
numbers are. A step that is missing is published first, and one that is spent blocks the later ones.
"""

from __future__ import annotations

from dataclasses import replace

from gramercy.archive.bundles.bundle_kinds import read_release_manifest
from gramercy.archive.bundles.encoded_file import Encoded, read_encoded
from gramercy.archive.seal.bundle import check
from gramercy.ledger import Charge
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.plan.planning import Plan, make_plan
from gramercy.pipeline.publish.drawing import PrivateData
from gramercy.pipeline.publish.private_table import PrivateSums
from gramercy.schemas import families
from gramercy.schemas.facts import CumulativeFacts, EarlierStep


def step_charges(context: Context, plan: Plan) -> list[Charge | None]:
    """The charge of every step before that of a plan; None for one that was never charged."""
    ledger, step = context.existing_ledger, plan.request.step(plan.contract)
    if step is None:
        return []
    days, number = step
    requests = (plan.request.model_copy(update={"version": x}) for x in days.labels[: number - 1])
    keys = [each.key(plan.contract, plan.spec.scaling) for each in requests]
    if ledger is None:
        return [None] * len(keys)
    return [ledger.find_charge(plan.contract.id, key) for key in keys]


def missing_steps(context: Context, plan: Plan) -> list[Plan]:
    """Plans of the steps before that of a plan which are to be published first, oldest first."""
    step = plan.request.step(plan.contract)
    if step is None:
        return []
    labels = step[0].labels
    return [
        make_plan(
            context,
            plan.request.model_copy(update={"version": label, "period": None, "new_charge": None}),
            at=plan.planned_for,
        )
        for label, charge in zip(labels, step_charges(context, plan), strict=False)
        if charge is None or not charge.is_published
    ]


def charged(plan: Plan) -> Guarantee:
    """What a release is charged: a series at its first step, for all of its steps."""
    facts = plan.spec.cumulative
    return plan.guarantee if facts is None or facts.step == 1 else Guarantee(1e-12)


def with_earlier_steps(context: Context, plan: Plan, data: PrivateData) -> Plan:
    """The plan of a step, to be charged, with what all steps before it published.

    Raises
    ------
    SpentFailure
        If one of them is not published.
    """
    facts = plan.spec.cumulative
    if facts is None or not isinstance(data, PrivateSums):
        return plan
    earlier, published, draws = list[EarlierStep](), list[tuple[Encoded, ...]](), list[int]()
    for charge in step_charges(context, plan):
        if charge is None or not charge.is_published:
            raise _not_published(plan, charge)
        folder = context.archive.release(plan.contract.id, charge.release)
        earlier.append(EarlierStep(release=charge.release, sha256=check(folder)))
        published.append(read_encoded(folder, read_release_manifest(folder)))
        draws.append(1)
    update = {"draws": (*draws, 1), "earlier": tuple(earlier), "rows": _rows(plan, facts, data)}
    spec = plan.spec.model_copy(update={"cumulative": facts.model_copy(update=update)})
    return replace(plan, spec=spec, calibration=calibrate(spec), earlier=tuple(published))


def _rows(plan: Plan, facts: CumulativeFacts, data: PrivateSums) -> tuple[int, ...]:
    """The number of rows of every step so far, where it is public."""
    if not plan.contract.neighbours.count_is_public:
        return ()
    steps = range(facts.step)
    return tuple(sum(part.rows for part in data.sums.part_sums[k :: facts.step]) for k in steps)


def _not_published(plan: Plan, charge: Charge | None) -> Exception:
    if charge is None:
        return families.PERIOD(
            "A step before {version} is not published.",
            "Publish the steps in order: run 'gramercy release' with the same request.",
            version=plan.request.version,
        )
    return families.SPENT(
        "{version} needs all steps before it, and {release} is not published.",
        "Publish version {earlier} under a new charge: add --new-charge.",
        version=plan.request.version,
        release=f"{plan.contract.id}/{charge.release}",
        earlier=charge.version,
    )
