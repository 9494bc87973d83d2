"""Two hundred concurrent charges on a budget for a hundred: exactly a hundred are granted."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gramercy.ledger import Ledger
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.auditing import make_audit
from tests.support.archives import update_listing
from tests.support.cumulative import STEPS, catch_up, write_step
from tests.support.factories import FULL, at_scale
from tests.support.ledgers import (
    TENTH,
    charge,
    charge_concurrently,
    charge_same_request,
    mark_drawn,
)
from tests.support.processes import processes
from tests.support.series import (
    WINDOW,
    charge_step,
    charge_step_or_refused,
    charge_until_published,
    redraw_or_refused,
    spend,
    step_of,
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


def test_concurrent_charges_of_one_step_are_granted_once(database: Path | str) -> None:
    """Of a first step, of a later one, and of one that is drawn again."""
    ledger = Ledger(database)
    for step in (1, 2):
        with processes(2) as pool:
            answers = list(pool.map(charge_step_or_refused, [(database, step)] * 16))
        assert answers.count("spent") == 15
    spent = charge_step(ledger, step_of(3)).release
    spend(ledger, spent)
    again = [(database, spent)] * 16
    with processes(2) as pool:
        answers = list(pool.map(redraw_or_refused, again))
    assert answers.count("spent") == 15
    first, *others = ledger.charges("toy")
    assert first.guarantee == WINDOW
    assert [each.guarantee.mu > 0 for each in others] == [False, False, True]
    assert ledger.find_inconsistencies([ledger.head()]) == []


def test_concurrent_successive_steps_are_charged_in_order(database: Path | str) -> None:
    """Whatever step each process tries first."""
    ledger = Ledger(database)
    jobs = [(database, step) for step in (5, 4, 3, 2, 1) for _ in range(2)]
    with ThreadPoolExecutor(len(jobs)) as threads:
        answers = list(threads.map(charge_until_published, jobs))
    charged = [each.series.step for each in ledger.charges("toy") if each.series]
    assert charged == [1, 2, 3, 4, 5]
    assert answers.count("answered") == 5
    assert ledger.statement("toy", "2026").total == WINDOW
    assert ledger.find_inconsistencies([ledger.head()]) == []


def test_processes_that_catch_up_at_once_draw_every_step_once(
    tmp_path: Path, database: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One starts with the second step, the other with the third; the steps before are missing."""
    if isinstance(database, str):
        monkeypatch.setenv("GRAMERCY_LEDGER_URL", database)
    requests = [write_step(tmp_path / step, step) for step in STEPS[1:]]
    with processes(2) as pool:
        second, third = pool.map(catch_up, requests)
    context = Context.default()
    drawn = [each.release for each in context.ledger.charges("toy")]
    assert drawn == [f"{step}-r1" for step in STEPS]
    assert {*second, *third} <= {*drawn}
    update_listing(context, "toy", drawn[-1])
    assert make_audit(context).discrepancies == []


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
