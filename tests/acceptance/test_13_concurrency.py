"""Two hundred at once, and a budget for a hundred: a hundred are granted, and none overspends."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gramercy.ledger import Ledger
from tests.support.factories import FULL, at_scale
from tests.support.table_writers import TENTH, all_at_once, charge, draws, same_request


def test_a_hundred_of_two_hundred(database: Path | str) -> None:
    """They make the ledger, too: nobody comes too early, and nobody makes it twice."""
    began = time.monotonic()
    asked = [(database, f"v{turn}") for turn in range(at_scale(130, 200))]
    answers = all_at_once(asked, processes=at_scale(2, 4))
    elapsed = time.monotonic() - began
    ledger = Ledger(database)
    granted = [answer for answer in answers if answer != "refused"]
    statement = ledger.statement("toy")
    assert len(granted) == len(set(granted)) == len(ledger.charges("toy")) == 100
    assert statement.spent <= 3.0
    assert not statement.admits(TENTH)
    assert ledger.examine([ledger.head()]) == []
    assert elapsed < 30 or not FULL


def test_the_same_request_is_charged_once(database: Path | str) -> None:
    Ledger(database)
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(same_request, [database] * 48))
    assert sorted(answers) == ["spent"] * 47 + ["v1-r1"]


def test_noise_is_drawn_for_once(database: Path | str) -> None:
    release = charge(Ledger(database), "v1")
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(draws, [(database, release)] * 32))
    assert Counter(answers) == {"drawn": 1, "refused": 31}


def test_turns_are_taken_one_at_a_time(database: Path | str) -> None:
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
