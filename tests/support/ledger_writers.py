"""Concurrent writers of one ledger. Imports little, because every process imports it again."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gramercy.ledger import Ledger
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import BudgetRefused, SpentFailure

FACTS: dict[str, Any] = {
    "id": "toy",
    "title": "A toy",
    "curator": "Nobody",
    "source": "table.csv",
    "rows": 40,
    "budget": {"epsilon": 3.0, "delta": 1e-5},
    "columns": {f"c{i}": {"lower": -5.0, "upper": 5.0} for i in range(3)},
}
TENTH = Guarantee(gdp_mu(3.0, 0.9e-5) / 10 * (1 - 1e-12))  # a hundred of these fill the budget


def contract(**changes: object) -> Contract:
    return Contract.model_validate(FACTS | changes)


def charge(
    ledger: Ledger, name: str, guarantee: Guarantee = TENTH, under: Contract | None = None
) -> str:
    chosen = under or contract()
    return ledger.charge(chosen, name, f"request {name}", guarantee, "").release


def charge_or_refused(place: tuple[Path | str, str]) -> str:
    where, name = place
    try:
        return charge(Ledger(where), name)
    except BudgetRefused:
        return "refused"


def charge_same_request(where: Path | str) -> str:
    try:
        return Ledger(where).charge(contract(), "v1", "same", TENTH, "").release
    except SpentFailure:
        return "spent"


def mark_drawn(place: tuple[Path | str, str]) -> str:
    try:
        Ledger(place[0]).mark("toy", place[1], "drawn")
    except SpentFailure:
        return "refused"
    return "drawn"


def _many(places: list[tuple[Path | str, str]]) -> list[str]:
    with ThreadPoolExecutor(len(places)) as threads:
        return list(threads.map(charge_or_refused, places))


def charge_concurrently(places: list[tuple[Path | str, str]], processes: int) -> list[str]:
    """Charge all at once: a thread for each charge, in several processes."""
    context = multiprocessing.get_context("spawn")
    parts = [places[k::processes] for k in range(processes)]
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        return [answer for part in pool.map(_many, parts) for answer in part]
