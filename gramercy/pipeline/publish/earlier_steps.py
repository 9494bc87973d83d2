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
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.step_charges import earlier_charges, step_is_spent, times_drawn
from gramercy.pipeline.publish.drawing import PrivateData
from gramercy.pipeline.publish.private_table import PrivateSums
from gramercy.schemas import families
from gramercy.schemas.facts import CumulativeFacts, EarlierStep


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
    earlier, published = list[EarlierStep](), list[tuple[Encoded, ...]]()
    for charge in earlier_charges(context.ledger, plan):
        if charge is None or not charge.is_published:
            raise _not_published(plan, charge)
        folder = context.archive.release(plan.contract.id, charge.release)
        earlier.append(EarlierStep(release=charge.release, sha256=check(folder)))
        published.append(read_encoded(folder, read_release_manifest(folder)))
    update = {
        "draws": times_drawn(context.ledger, plan),
        "earlier": tuple(earlier),
        "rows": _rows(plan, facts, data),
    }
    spec = plan.spec.model_copy(update={"cumulative": facts.model_copy(update=update)})
    return replace(plan, spec=spec, calibration=calibrate(spec), earlier=tuple(published))


def _rows(plan: Plan, facts: CumulativeFacts, data: PrivateSums) -> tuple[int, ...]:
    """The number of rows of every step so far, where it is public."""
    if not plan.contract.neighbours.count_is_public:
        return ()
    steps = range(facts.step)
    return tuple(sum(part.rows for part in data.sums.part_sums[k :: facts.step]) for k in steps)


def _not_published(plan: Plan, charge: Charge | None) -> Exception:
    if charge is not None and charge.state.is_closed:
        return step_is_spent(plan, charge)
    return families.PERIOD(
        "A step before {version} is not published.",
        "Run 'gramercy release' with the same request: it publishes the steps in order.",
        version=plan.request.version,
    )
