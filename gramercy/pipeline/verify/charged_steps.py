"""Whether a step of a cumulative series is the one that the ledger has charged."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle
from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.schemas import families
from gramercy.schemas.facts import CumulativeFacts

if TYPE_CHECKING:
    from gramercy.ledger import Charge, Ledger

_ONE_DAY = datetime.timedelta(days=1)


def check_step(place: Path, bundle: ReleaseBundle, charge: Charge, ledger: Ledger) -> None:
    """Check what a step states about its series: its window, and the draws and digests of steps."""
    if wrong := list(_contradictions(bundle, charge, ledger)):
        raise families.CHARGE(
            "{path} is a step of a series, but the ledger has other facts of it: {wrong}.",
            "Ask the curator for the bundle that was published.",
            path=str(place / DESCRIPTOR),
            wrong=tuple(wrong),
        )


def _contradictions(bundle: ReleaseBundle, charge: Charge, ledger: Ledger) -> Iterator[str]:
    """Names of the facts that differ."""
    facts, own = bundle.manifest.cumulative, charge.series
    if facts is None or own is None:
        yield "cumulative"
        return
    if (facts.step, facts.steps) != (own.step, own.steps):
        yield "step"
        return
    dataset = bundle.manifest.dataset.id
    charged = ledger.series(dataset, charge.window, own.series).up_to(charge.release)
    first = charged.charges[0]
    registered = ledger.registered_series(dataset, first.release)
    if not _same_days(facts, registered.get("boundaries")) or registered["every"] != facts.every:
        yield "starts"
    period = bundle.manifest.period
    if period is not None and registered["column"] != (period.column or ""):
        yield "column"
    whole = facts.model_copy(update={"draws": ()})
    spec = bundle.manifest.model_copy(update={"cumulative": whole})
    if calibrate(spec).guarantee != first.guarantee:
        yield "guarantee"
    if facts.draws != charged.draws():
        yield "draws"
    earlier = [
        {(each.release, each.sha256) for each in charged.of_step(step) if each.state.was_published}
        for step in range(1, facts.step)
    ]
    stated = [(each.release, each.sha256) for each in facts.earlier]
    if len(stated) != len(earlier) or any(x not in y for x, y in zip(stated, earlier, strict=True)):
        yield "earlier"


def _same_days(facts: CumulativeFacts, boundaries: object) -> bool:
    """Whether steps begin on the registered days, which begin in some time zone."""
    if not isinstance(boundaries, list) or len(boundaries) != len(facts.starts):
        return False
    midnight = datetime.time(tzinfo=datetime.UTC)
    days = [datetime.datetime.combine(day, midnight) for day in facts.starts]
    instants = map(datetime.datetime.fromisoformat, boundaries)
    return all(abs(day - at) < _ONE_DAY for day, at in zip(days, instants, strict=True))
