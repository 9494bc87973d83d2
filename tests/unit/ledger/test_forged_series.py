"""A journal of a cumulative series of which one fact was changed, consistently: it is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gramercy.ledger import Ledger
from gramercy.ledger.entry import Entry
from gramercy.ledger.integrity import find_inconsistencies
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from gramercy.schemas.ledger_history import Anchor, ChargeState
from gramercy.schemas.model import canonical_json
from gramercy.schemas.problem import Notice
from tests.support.ledgers import rewritten
from tests.support.problems import like
from tests.support.series import WINDOW, charge_step, moved, publish, publish_steps, spend, step_of

Change = Callable[[Entry], Entry | None]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    """Steps 1 to 4 with step 3 drawn twice; then step 2 is withdrawn, drawn again, and step 5."""
    ledger = Ledger(tmp_path_factory.mktemp("series") / "ledger.sqlite")
    second = publish_steps(ledger, 2)[1].release
    third = charge_step(ledger, step_of(3)).release
    spend(ledger, third)
    publish(ledger, charge_step(ledger, step_of(3), instead_of=third).release)
    publish(ledger, charge_step(ledger, step_of(4)).release)
    ledger.mark("toy", second, ChargeState.WITHDRAWN, reason="wrong file")
    publish(ledger, charge_step(ledger, step_of(2), instead_of=second).release)
    publish(ledger, charge_step(ledger, step_of(5)).release)
    return ledger.entries()


def found(journal: list[Entry], change: Change) -> list[Notice]:
    """The findings after a change of each entry; totals and hashes agree with it."""
    made = rewritten(journal, change)
    head = Anchor(ledger="0" * 32, seq=made[-1].seq, hash=made[-1].hash)
    return [each.notice for each in find_inconsistencies(made, head, [])]


def of_release(release: str, **facts: Any) -> Change:
    """The change of facts of a charge; None removes one."""

    def change(entry: Entry) -> Entry:
        if entry.kind != "reserved" or entry.release != release:
            return entry
        changed = json.loads(entry.facts) | facts
        kept = {name: value for name, value in changed.items() if value is not None}
        return replace(entry, facts=canonical_json(kept))

    return change


def seq(journal: list[Entry], release: str, kind: str = "reserved") -> int:
    return next(e.seq for e in journal if (e.kind, e.release) == (kind, release))


RELEASES = (
    "2026-W01-r1",
    "2026-W02-r1",
    "2026-W03-r1",
    "2026-W03-r2",
    "2026-W04-r1",
    "2026-W02-r2",
    "2026-W05-r1",
)


@pytest.mark.slow
def test_honest_journal_is_consistent(journal: list[Entry]) -> None:
    charged = [entry for entry in journal if entry.kind == "reserved"]
    assert tuple(entry.release for entry in charged) == RELEASES
    assert [entry.is_included for entry in charged] == [False, True, True, False, True, False, True]
    assert found(journal, lambda entry: entry) == []


def test_a_first_charge_below_its_window_is_found(journal: list[Entry]) -> None:
    """Every step is included in the first charge, so a redraw and all included ones disagree."""

    def cheaper(entry: Entry) -> Entry:
        return replace(entry, mu=WINDOW.mu / 100) if entry.release == RELEASES[0] else entry

    named = [each.facts["entry"] for each in found(journal, cheaper)]
    assert named == [seq(journal, release) for release in RELEASES[1:]]


def test_a_first_charge_that_is_included_is_found(journal: list[Entry]) -> None:
    notices = found(journal, of_release(RELEASES[0], included=RELEASES[0]))
    assert like(families.ENTRY, entry=seq(journal, RELEASES[0]), mu=0.0) in notices


@pytest.mark.parametrize("guarantee", [Guarantee(0.1, 1e-7), Guarantee(0.1, pure=0.5)])
def test_a_first_charge_that_is_not_gaussian_is_found(
    journal: list[Entry], guarantee: Guarantee
) -> None:
    pure = guarantee.pure if guarantee.pure < 1 else None

    def change(entry: Entry) -> Entry:
        if entry.kind != "reserved" or entry.release != RELEASES[0]:
            return entry
        return replace(entry, mu=guarantee.mu, delta0=guarantee.delta0, pure=pure)

    notices = found(journal, change)
    assert like(families.ENTRY, entry=seq(journal, RELEASES[0]), mu=0.1) in notices


@pytest.mark.parametrize(
    "registered",
    [
        None,
        moved(step_of(1)).terms,
        step_of(1, column="hour").terms,
        step_of(1, kind="timestamp").terms,
        step_of(1, steps=11).terms,
        step_of(1).terms | {"boundaries": "2026"},
    ],
)
def test_facts_that_were_not_registered_are_found(
    journal: list[Entry], registered: dict[str, Any] | None
) -> None:
    notices = found(journal, of_release(RELEASES[0], registered=registered))
    assert notices == [like(families.ENTRY, entry=seq(journal, RELEASES[0]), steps=12)]


@pytest.mark.parametrize(
    "facts",
    [
        {"terms": "0" * 64},
        {"steps": 13},
        {"registered": step_of(2).terms},
    ],
)
def test_a_step_of_other_facts_is_found(journal: list[Entry], facts: dict[str, Any]) -> None:
    last, first = RELEASES[-1], seq(journal, RELEASES[0])
    notices = found(journal, of_release(last, **facts))
    assert notices == [like(families.ENTRY, entry=seq(journal, last), first=first)]


@pytest.mark.parametrize(
    "facts",
    [
        {"series": None},
        {"step": None},
        {"step": 0},
        {"step": 13},
        {"step": "5"},
        {"steps": 10**9},
        {"included": None},
        {"included": True},
        {"registered": [], "series": None},
    ],
)
def test_a_malformed_step_is_found(journal: list[Entry], facts: dict[str, Any]) -> None:
    for release in (RELEASES[0], RELEASES[-1]):
        entry = seq(journal, release)
        made = _malformed(journal, of_release(release, **facts))
        head = Anchor(ledger="0" * 32, seq=made[-1].seq, hash=made[-1].hash)
        found = [each.entry for each in find_inconsistencies(made, head, [])]
        assert entry in found


def _malformed(journal: list[Entry], change: Change) -> list[Entry]:
    """The journal chained again, with the totals that it states."""
    made, previous = list[Entry](), journal[0].previous
    for entry in journal:
        changed = replace(change(entry) or entry, previous=previous)
        made.append(replace(changed, hash=changed.digest()))
        previous = made[-1].hash
    return made


def test_included_steps_of_a_series_that_was_not_charged_are_found(journal: list[Entry]) -> None:
    """A free release states the digest of a series of its own."""
    last = RELEASES[-1]
    notices = found(journal, of_release(last, series="f" * 64))
    assert like(families.ENTRY, entry=seq(journal, last), mu=0.0) in notices
    assert like(families.ENTRY, entry=seq(journal, last), steps=12) in notices
    assert like(families.ENTRY, entry=seq(journal, last), step=5) in notices


def test_a_second_draw_of_a_step_is_found(journal: list[Entry]) -> None:
    last = RELEASES[-1]
    entry = seq(journal, last)
    notices = found(journal, of_release(last, step=4))
    assert like(families.ENTRY, entry=entry, step=4) in notices
    assert [each.facts.get("mu") for each in notices] == [None, WINDOW.mu]


@pytest.mark.parametrize("release", [RELEASES[3], RELEASES[5]])
def test_a_redraw_that_is_included_is_found(journal: list[Entry], release: str) -> None:
    (notice,) = found(journal, of_release(release, included=RELEASES[0]))
    assert notice.facts["entry"] == seq(journal, release)
    assert 0 < notice.facts["price"] < WINDOW.mu


@pytest.mark.parametrize("release", [RELEASES[1], RELEASES[3], RELEASES[6]])
@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_another_mu_is_found(journal: list[Entry], release: str, factor: float) -> None:
    def change(entry: Entry) -> Entry:
        if entry.kind != "reserved" or entry.release != release or entry.mu is None:
            return entry
        return replace(entry, mu=entry.mu * factor)

    (notice,) = found(journal, change)
    assert notice.facts["entry"] == seq(journal, release)


def test_an_included_step_that_is_charged_is_found(journal: list[Entry]) -> None:
    """It would state that more was spent than the steps guarantee."""
    (notice,) = found(journal, of_release(RELEASES[4], included=""))
    assert (notice.facts["entry"], notice.facts["price"]) == (seq(journal, RELEASES[4]), 0.0)


@pytest.mark.parametrize(
    ("release", "blocked"),
    [(RELEASES[0], RELEASES[1:]), (RELEASES[3], (RELEASES[4], RELEASES[6]))],
)
def test_steps_after_one_that_was_not_published_are_found(
    journal: list[Entry], release: str, blocked: tuple[str, ...]
) -> None:
    published = seq(journal, release, "published")
    notices = found(journal, lambda entry: None if entry.seq == published else entry)
    later = [seq(journal, each) - 1 for each in blocked]  # one entry is missing before them
    assert [each.facts["entry"] for each in notices if "step" in each.facts] == later


def test_a_step_that_was_left_out_is_found(journal: list[Entry]) -> None:
    notices = found(journal, of_release(RELEASES[-1], step=7))
    assert notices == [like(families.ENTRY, entry=seq(journal, RELEASES[-1]), step=7)]
