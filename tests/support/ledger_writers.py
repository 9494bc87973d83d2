"""Many writers of one ledger at the same time. Imports little: every process imports it anew."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gramercy.ledger import Ledger
from gramercy.mechanisms.accounting.guarantee import Guarantee, gdp_mu
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


def one_of_many(place: tuple[Path | str, str]) -> str:
    where, name = place
    try:
        return charge(Ledger(where), name)
    except BudgetRefused:
        return "refused"


def same_request(where: Path | str) -> str:
    try:
        return Ledger(where).charge(contract(), "v1", "same", TENTH, "").release
    except SpentFailure:
        return "spent"


def draws(place: tuple[Path | str, str]) -> str:
    try:
        Ledger(place[0]).mark("toy", place[1], "drawn")
    except SpentFailure:
        return "refused"
    return "drawn"


def _many(places: list[tuple[Path | str, str]]) -> list[str]:
    with ThreadPoolExecutor(len(places)) as threads:
        return list(threads.map(one_of_many, places))


def all_at_once(places: list[tuple[Path | str, str]], processes: int) -> list[str]:
    """A charge for each, a thread for each, in a few processes."""
    context = multiprocessing.get_context("spawn")
    parts = [places[k::processes] for k in range(processes)]
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        return [answer for part in pool.map(_many, parts) for answer in part]
