"""A cumulative series of a small data set, charged to a ledger step by step."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

from gramercy.ledger import Charge, Ledger, SeriesCharge
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import RequestError, SpentFailure
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.model import digest
from tests.support.ledgers import contract

YEARLY = {"source": "visits-{year}.csv", "budget": {"epsilon": 3.0, "delta": 1e-5, "per": "year"}}
WINDOW = Guarantee(gdp_mu(3.0, 0.9e-5) / 2)  # four of these fill the budget
_FIRST_DAY = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def step_of(
    step: int, steps: int = 12, key: str = "visits", column: str = "day", kind: str = "date"
) -> SeriesCharge:
    """Step `step` of a series of weeks in 2026."""
    days = [_FIRST_DAY + datetime.timedelta(weeks=n) for n in range(steps + 1)]
    boundaries = tuple(each.isoformat() for each in days)
    return SeriesCharge(
        digest({"key": key, "steps": steps}), step, "week", boundaries, column, kind
    )


def moved(series: SeriesCharge) -> SeriesCharge:
    """The step with days that begin an hour later, in another time zone."""
    return replace(series, boundaries=tuple(x.replace("T00", "T01") for x in series.boundaries))


def charge_step(
    ledger: Ledger,
    series: SeriesCharge,
    *,
    version: str = "",
    instead_of: str | None = None,
    guarantee: Guarantee = WINDOW,
    terms: Contract | None = None,
) -> Charge:
    """Charge a step of the series."""
    label = version or f"2026-W{series.step:02}"
    return ledger.charge(
        terms or contract(**YEARLY),
        label,
        f"{series.series} {label}",
        guarantee,
        "",
        instead_of=instead_of,
        series=series,
    )


def publish(ledger: Ledger, release: str, until: ChargeState = ChargeState.PUBLISHED) -> None:
    """Enter all states of a release up to one."""
    for state in ChargeState:
        if state is ChargeState.SPENT:
            continue
        if state is not ChargeState.RESERVED:
            ledger.mark("toy", release, state, sha256="0" * 64, reason="wrong file")
        if state is until:
            return


def publish_steps(ledger: Ledger, last: int, first: int = 1, steps: int = 12) -> list[Charge]:
    """Charge and publish steps in order."""
    charges = [charge_step(ledger, step_of(first, steps))]
    publish(ledger, charges[0].release)
    for step in range(first + 1, last + 1):
        charges.append(charge_step(ledger, step_of(step, steps)))
        publish(ledger, charges[-1].release)
    return charges


def spend(ledger: Ledger, release: str) -> None:
    """Record a charge as spent after its noise was drawn."""
    publish(ledger, release, ChargeState.DRAWN)
    ledger.mark("toy", release, ChargeState.SPENT, reason="interrupted when drawn")


def charge_step_or_refused(job: tuple[Path | str, int]) -> str:
    """Charge a step in another process, and publish it; the release or why it is refused."""
    location, step = job
    ledger = Ledger(location)
    try:
        release = charge_step(ledger, step_of(step)).release
    except SpentFailure:
        return "spent"
    except RequestError:
        return "not drawn before"
    publish(ledger, release)
    return release


def charge_until_published(job: tuple[Path | str, int]) -> str:
    """Try to charge a step until it is published by this or another process."""
    location, step = job
    ledger = Ledger(location)
    while True:
        answer = charge_step_or_refused(job)
        if answer not in {"spent", "not drawn before"}:
            return answer
        charges = ledger.charges("toy") if "toy" in ledger.datasets() else ()
        if any(c.series and c.series.step == step and c.is_published for c in charges):
            return "answered"


def redraw_or_refused(job: tuple[Path | str, str]) -> str:
    """Draw step 3 again in place of a spent release."""
    location, spent = job
    try:
        return charge_step(Ledger(location), step_of(3), instead_of=spent).release
    except SpentFailure:
        return "spent"
