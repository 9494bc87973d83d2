"""Concurrent writers of one ledger."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gramercy.ledger import Ledger
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import BudgetRefused, SpentFailure
from gramercy.schemas.ledger_history import ChargeState
from tests.support.processes import processes as pool_of

FACTS: dict[str, Any] = {
    "id": "toy",
    "title": "A toy",
    "curator": "A curator",
    "source": "table.csv",
    "rows": 40,
    "intercept": False,
    "budget": {"epsilon": 3.0, "delta": 1e-5},
    "columns": {f"c{i}": {"lower": -5.0, "upper": 5.0} for i in range(3)},
}
TENTH = Guarantee(gdp_mu(3.0, 0.9e-5) / 10 * (1 - 1e-12))  # a hundred of these fill the budget


def contract(**changes: object) -> Contract:
    return Contract.model_validate(FACTS | changes)


def charge(
    ledger: Ledger, name: str, guarantee: Guarantee = TENTH, terms: Contract | None = None
) -> str:
    declared = terms or contract()
    return ledger.charge(declared, name, f"request {name}", guarantee, "").release


def charge_or_refused(job: tuple[Path | str, str]) -> str:
    location, name = job
    try:
        return charge(Ledger(location), name)
    except BudgetRefused:
        return "refused"


def charge_same_request(location: Path | str) -> str:
    try:
        return Ledger(location).charge(contract(), "v1", "same", TENTH, "").release
    except SpentFailure:
        return "spent"


def mark_drawn(job: tuple[Path | str, str]) -> str:
    location, release = job
    try:
        Ledger(location).mark("toy", release, ChargeState.DRAWN)
    except SpentFailure:
        return "refused"
    return "drawn"


def _charge_in_threads(jobs: list[tuple[Path | str, str]]) -> list[str]:
    with ThreadPoolExecutor(len(jobs)) as threads:
        return list(threads.map(charge_or_refused, jobs))


def charge_concurrently(jobs: list[tuple[Path | str, str]], processes: int) -> list[str]:
    """Charge all at once: a thread for each charge, in several processes."""
    shares = [jobs[k::processes] for k in range(processes)]
    with pool_of(processes) as pool:
        return [answer for share in pool.map(_charge_in_threads, shares) for answer in share]
