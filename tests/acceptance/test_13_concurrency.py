"""Two hundred concurrent charges on a budget for a hundred: exactly a hundred are granted."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gramercy.ledger import Ledger
from tests.support.factories import FULL, at_scale
from tests.support.ledger_writers import (
    TENTH,
    charge,
    charge_concurrently,
    charge_same_request,
    mark_drawn,
)


def test_concurrent_charges_never_overspend(database: Path | str) -> None:
    """They also create the ledger concurrently, once."""
    began = time.monotonic()
    asked = [(database, f"v{turn}") for turn in range(at_scale(130, 200))]
    answers = charge_concurrently(asked, processes=at_scale(2, 4))
    elapsed = time.monotonic() - began
    ledger = Ledger(database)
    granted = [answer for answer in answers if answer != "refused"]
    statement = ledger.statement("toy")
    assert len(granted) == len(set(granted)) == len(ledger.charges("toy")) == 100
    assert statement.spent <= 3.0
    assert not statement.admits(TENTH)
    assert ledger.examine([ledger.head()]) == []
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
    ledger, inside, most = Ledger(database), list[int](), list[int]()

    def take(turn: int) -> None:
        with Ledger(database).alone("toy"):
            inside.append(turn)
            most.append(len(inside))
            time.sleep(0.01)
            inside.remove(turn)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(take, range(16)))
    assert max(most) == 1
    with ledger.alone("toy"), ledger.alone("other"):
        pass
