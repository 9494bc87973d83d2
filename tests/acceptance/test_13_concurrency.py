"""Two hundred concurrent charges on a budget for a hundred: exactly a hundred are granted."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gramercy.ledger import Ledger
from tests.support.factories import FULL, at_scale
from tests.support.ledgers import (
    TENTH,
    charge,
    charge_concurrently,
    charge_same_request,
    mark_drawn,
)


def test_concurrent_charges_never_overspend(database: Path | str) -> None:
    """The ledger is created concurrently, too."""
    began = time.monotonic()
    jobs = [(database, f"v{turn}") for turn in range(at_scale(130, 200))]
    answers = charge_concurrently(jobs, processes=at_scale(2, 4))
    elapsed = time.monotonic() - began
    ledger = Ledger(database)
    granted = [answer for answer in answers if answer != "refused"]
    statement = ledger.statement("toy")
    assert len(granted) == len(set(granted)) == len(ledger.charges("toy")) == 100
    assert statement.spent <= 3.0
    assert not statement.admits(TENTH)
    assert ledger.find_inconsistencies([ledger.head()]) == []
    assert elapsed < 30 or not FULL


def test_concurrent_identical_requests_are_charged_once(database: Path | str) -> None:
    Ledger(database)
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(charge_same_request, [database] * 48))
    assert sorted(answers) == ["spent"] * 47 + ["v1-r1"]


def test_concurrent_draws_are_granted_once(database: Path | str) -> None:
    release = charge(Ledger(database), "v1")
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(mark_drawn, [(database, release)] * 32))
    assert Counter(answers) == {"drawn": 1, "refused": 31}


def test_lock_of_a_data_set_is_exclusive(database: Path | str) -> None:
    ledger, holders, counts = Ledger(database), list[int](), list[int]()

    def take(turn: int) -> None:
        with Ledger(database).lock("toy"):
            holders.append(turn)
            counts.append(len(holders))
            time.sleep(0.01)
            holders.remove(turn)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(take, range(16)))
    assert max(counts) == 1
    with ledger.lock("toy"), ledger.lock("other"):
        pass
