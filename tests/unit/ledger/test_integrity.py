"""Every rule of a journal, on journals whose hashes are right and of which one entry breaks it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gramercy.ledger.entry import FIRST_PREVIOUS, Entry
from gramercy.ledger.integrity import find_inconsistencies
from gramercy.mechanisms.accounting.composition import NO_CHARGES, Total
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.contract import Contract
from gramercy.schemas.ledger_history import Anchor
from gramercy.schemas.model import canonical_json
from gramercy.schemas.problem import Notice
from tests.support.ledgers import TENTH, contract
from tests.support.problems import like

ID = "0" * 32
TERMS = contract()  # epsilon 3, delta 1e-5, of 40 rows
OPENED, REGISTERED = Entry.opened("here"), Entry.registered(TERMS)
MONTHLY = contract(
    source="{year}-{month}.csv", budget={"epsilon": 3.0, "delta": 1e-5, "per": "month"}
)


def chained(*events: Entry) -> list[Entry]:
    """The entries as the journal would append them."""
    journal, previous = list[Entry](), FIRST_PREVIOUS
    for seq, event in enumerate(events, 1):
        entry = replace(event, seq=seq, at="2026", salt="0" * 32, previous=previous)
        journal.append(replace(entry, hash=entry.digest()))
        previous = journal[-1].hash
    return journal


def found(journal: list[Entry], *anchors: Anchor) -> list[tuple[int, Notice]]:
    """The findings: numbers of entries, and notices."""
    head = Anchor(ledger=ID, seq=journal[-1].seq, hash=journal[-1].hash)
    return [(each.entry, each.notice) for each in find_inconsistencies(journal, head, anchors)]


def findings(*events: Entry) -> list[tuple[int, Notice]]:
    return found(chained(OPENED, REGISTERED, *events))


def charged(
    number: int = 1,
    guarantee: Guarantee = TENTH,
    total: Total | None = None,
    version: str = "v",
    terms: Contract = TERMS,
    turn: int | None = None,
) -> Entry:
    """A charge, of one version unless a `turn` is given.

    Its total is that of `number` equal charges, unless stated.
    """
    turn = turn or number
    stated = total or NO_CHARGES.plus(guarantee, number)
    return Entry.reserved(terms, version, f"r{turn}", turn, number, guarantee, stated, "")


def marked(state: str, release: str = "v-r1") -> Entry:
    return Entry.marked("toy", release, state, {"reason": "", "sha256": ""})


def derived(kind: str = "estimate", release: str = "v-r1") -> Entry:
    return Entry.derived("toy", release, kind, "e1", "0" * 64)


def budget(kind: str, epsilon: float, delta: float = 1e-5, rows: int = 40, per: str = "") -> Entry:
    new = Budget.model_validate({"epsilon": epsilon, "delta": delta, "per": per or "lifetime"})
    return Entry.budget_changed(kind, "toy", new, rows, "because")


def with_facts(entry: Entry, **facts: object) -> Entry:
    """The entry with other facts; None removes one."""
    changed = {**json.loads(entry.facts), **facts}
    kept = {name: value for name, value in changed.items() if value is not None}
    return replace(entry, facts=canonical_json(kept))


PUBLISHED = (charged(), marked("drawn"), marked("sealed"), marked("published"))


def test_journal_with_entries_of_every_kind_is_consistent() -> None:
    assert not findings(
        *PUBLISHED,
        derived(),
        marked("withdrawn"),
        derived("report"),
        charged(2),
        marked("spent", "v-r2"),
        charged(3),
        marked("drawn", "v-r3"),
        marked("spent", "v-r3"),
        budget("raised", 4.0),
        budget("raised", 4.0, 2e-5),
        budget("lowered", 3.5, 2e-5),
        budget("lowered", 3.5, 1e-5),
        Entry.moved("there", "because"),
        charged(4),
        marked("drawn", "v-r4"),
        marked("sealed", "v-r4"),
        marked("spent", "v-r4"),
    )


@pytest.mark.parametrize(
    ("events", "notices"),
    [
        ([REGISTERED], [(3, like(families.ENTRY, entry=3))]),
        ([replace(charged(), dataset="other")], [(3, like(families.ENTRY, entry=3))]),
        ([Entry.opened("here")], [(3, like(families.ENTRY, entry=3, kind="opened"))]),
        (
            [replace(Entry.moved("there", "because"), dataset="toy")],
            [(3, like(families.ENTRY, entry=3, kind="moved"))],
        ),
        ([replace(charged(), dataset=None)], [(3, like(families.ENTRY, entry=3, kind="reserved"))]),
    ],
    ids=["registered twice", "not registered", "opened twice", "moved data set", "no data set"],
)
def test_wrong_subject_is_found(events: list[Entry], notices: list[tuple[int, Notice]]) -> None:
    assert [each for each in findings(*events) if each in notices] == notices


def test_journal_begins_with_its_opening() -> None:
    moved = Entry.moved("here", "because")
    assert found(chained(moved, REGISTERED)) == [(1, like(families.ENTRY, entry=1, kind="moved"))]


@pytest.mark.parametrize(
    ("before", "state", "new_state"),
    [
        ((), "unknown", "drawn"),
        ((), "unknown", "spent"),
        (PUBLISHED[:1], "reserved", "sealed"),
        (PUBLISHED[:1], "reserved", "published"),
        (PUBLISHED[:1], "reserved", "withdrawn"),
        (PUBLISHED[:2], "drawn", "drawn"),
        (PUBLISHED[:2], "drawn", "published"),
        (PUBLISHED[:2], "drawn", "withdrawn"),
        (PUBLISHED[:3], "sealed", "drawn"),
        (PUBLISHED[:3], "sealed", "withdrawn"),
        (PUBLISHED, "published", "drawn"),
        (PUBLISHED, "published", "sealed"),
        (PUBLISHED, "published", "spent"),
        (PUBLISHED, "published", "forgotten"),
        ((*PUBLISHED, marked("withdrawn")), "withdrawn", "published"),
        ((PUBLISHED[0], marked("spent")), "spent", "drawn"),
    ],
)
def test_state_out_of_order_is_found(before: tuple[Entry, ...], state: str, new_state: str) -> None:
    """Above all a second draw, and one after the charge was given up."""
    seq = 3 + len(before)
    expected = (seq, like(families.ENTRY, entry=seq, state=state, new_state=new_state))
    assert findings(*before, marked(new_state)) == [expected]


@pytest.mark.parametrize(
    ("before", "state"), [((), "unknown"), (PUBLISHED[:1], "reserved"), (PUBLISHED[:3], "sealed")]
)
def test_derived_files_of_an_unpublished_release_are_found(
    before: tuple[Entry, ...], state: str
) -> None:
    seq = 3 + len(before)
    expected = (seq, like(families.ENTRY, entry=seq, state=state, new_state="derived"))
    assert findings(*before, derived()) == [expected]


def test_malformed_derived_files_are_found() -> None:
    other_kind = findings(*PUBLISHED, derived("second draw"))
    assert other_kind == [
        (7, like(families.ENTRY, entry=7, state="published", new_state="derived"))
    ]
    for fact in ("artifact", "name", "sha256"):
        missing = with_facts(derived(), **{fact: None})
        assert findings(*PUBLISHED, missing) == [(7, like(families.ENTRY, entry=7))]


def test_wrong_total_or_number_of_a_charge_is_found() -> None:
    one, two = NO_CHARGES.plus(TENTH), NO_CHARGES.plus(TENTH, 2)
    wrong = [(4, like(families.ENTRY, entry=4))]
    assert findings(charged(), charged(2)) == []
    for total in (one, replace(two, squared_mu=two.squared_mu - 1), replace(two, delta0=1)):
        assert findings(charged(), charged(2, total=total)) == wrong
    assert findings(charged(), with_facts(charged(2), turn=3)) == wrong
    assert findings(charged(), with_facts(charged(2), turn="2")) == [
        (4, like(families.ENTRY, entry=4))
    ]
    # A pure epsilon is summed, too.
    cheaper = Guarantee(TENTH.mu, pure=0.1)
    total = replace(NO_CHARGES.plus(cheaper), pure=1)
    assert findings(charged(guarantee=cheaper, total=total)) == [(3, like(families.ENTRY, entry=3))]


def test_release_that_was_not_the_next_one_is_found() -> None:
    wrong = [(3, like(families.ENTRY, entry=3))]
    for name in ("v-r2", "w-r1", "v"):
        assert findings(replace(charged(), release=name)) == wrong


def test_charge_to_another_period_is_found() -> None:
    opened = OPENED, Entry.registered(MONTHLY)
    right = charged(version="2026-11", terms=MONTHLY)
    assert found(chained(*opened, right)) == []
    for window in ("2026-10", ""):
        wrong = found(chained(*opened, replace(right, window=window)))
        assert wrong == [(3, like(families.ENTRY, entry=3, window=window))]
    assert findings(replace(charged(), window="2026-11")) == [
        (3, like(families.ENTRY, entry=3, window="2026-11"))
    ]
    # A version without a period has no budget at all.
    without = with_facts(right, version="latest")
    assert found(chained(*opened, without)) == [(3, like(families.ENTRY, entry=3))]


@pytest.mark.parametrize(
    ("kind", "epsilon", "delta"),
    [
        ("raised", 2.9, 1e-5),
        ("raised", 3.1, 0.9e-5),
        ("raised", 2.9, 1.1e-5),
        ("lowered", 3.1, 1e-5),
        ("lowered", 2.9, 1.1e-5),
        ("lowered", 3.1, 0.9e-5),
    ],
)
def test_budget_that_changes_in_another_direction_is_found(
    kind: str, epsilon: float, delta: float
) -> None:
    expected = [(3, like(families.ENTRY, entry=3, kind=kind))]
    assert findings(budget(kind, epsilon, delta)) == expected


@pytest.mark.parametrize("kind", ["raised", "lowered"])
def test_budget_that_changes_its_period_is_found(kind: str) -> None:
    """A budget for each day would be spent again every day."""
    changed = budget(kind, 3.0, per="day")
    assert findings(changed) == [(3, like(families.ENTRY, entry=3, kind=kind))]


def test_delta_of_one_row_is_found() -> None:
    too_large = [(3, like(families.ENTRY, entry=3))]
    assert findings(budget("raised", 3.0, 1 / 40)) == too_large
    assert findings(budget("raised", 3.0, 1 / 41)) == []
    assert findings(budget("raised", 3.0, rows=10**5)) == too_large
    registered = with_facts(REGISTERED, rows=10**5)
    assert found(chained(OPENED, registered)) == [(2, like(families.ENTRY, entry=2))]


def test_budget_without_a_share_for_failures_is_found() -> None:
    assert findings(with_facts(budget("raised", 4.0), failures=None)) == [
        (3, like(families.ENTRY, entry=3))
    ]


def test_another_share_for_failures_is_found() -> None:
    """All of delta for mu would fit more charges."""
    changed = with_facts(budget("raised", 4.0), failures=1e-7)
    assert findings(changed) == [(3, like(families.ENTRY, entry=3))]


def test_first_charge_beyond_the_budget_of_its_time_is_found() -> None:
    half = Guarantee(TENTH.mu * 7)  # two of these fit, three do not
    charges = [charged(number, half) for number in (1, 2, 3, 4)]
    assert findings(*charges[:2]) == []
    assert findings(*charges[:3]) == [(5, like(families.ENTRY, entry=5))]
    # Only the first one of a budget is named; a larger budget that comes later changes nothing.
    assert findings(*charges) == [(5, like(families.ENTRY, entry=5))]
    assert findings(*charges[:3], budget("raised", 9.0)) == [(5, like(families.ENTRY, entry=5))]
    assert findings(*charges[:2], budget("raised", 9.0), *charges[2:]) == []
    # Charges before a budget was lowered were admitted by the larger one.
    assert findings(*charges[:2], budget("lowered", 1.0)) == []
    lowered = findings(*charges[:2], budget("lowered", 1.0), charges[2])
    assert lowered == [(6, like(families.ENTRY, entry=6))]


def test_periods_are_overspent_separately() -> None:
    opened, most = (OPENED, Entry.registered(MONTHLY)), Guarantee(TENTH.mu * 9)
    alone = NO_CHARGES.plus(most)
    november = charged(1, most, version="2026-11", terms=MONTHLY)
    december = charged(1, most, alone, version="2026-12", terms=MONTHLY, turn=2)
    again = charged(1, most, alone.plus(most), "2026-11.b", MONTHLY, 3)
    assert found(chained(*opened, november, december)) == []
    overspent = found(chained(*opened, november, december, again))
    assert overspent == [(5, like(families.ENTRY, entry=5))]


def test_failures_beyond_their_share_are_found() -> None:
    within = Guarantee(1e-3, 1e-6)
    assert findings(charged(guarantee=within)) == []
    assert findings(charged(guarantee=within), charged(2, within)) == [
        (4, like(families.ENTRY, entry=4))
    ]


def test_broken_chain_is_found() -> None:
    journal = chained(OPENED, REGISTERED, *PUBLISHED)
    edited = [*journal[:3], replace(journal[3], at="2025"), *journal[4:]]
    assert found(edited) == [(4, like(families.ENTRY, entry=4))]
    salted = replace(journal[3], salt="1" * 32)
    rehashed = [*journal[:3], replace(salted, hash=salted.digest()), *journal[4:]]
    assert found(rehashed) == [(5, like(families.ENTRY, entry=5))]
    missing = found([*journal[:3], *journal[4:]])
    assert missing[:2] == [
        (5, like(families.ENTRY, entry=5, count=1)),
        (5, like(families.ENTRY, entry=5)),
    ]


def test_head_and_anchors_are_compared() -> None:
    journal = chained(OPENED, REGISTERED, *PUBLISHED)

    def anchor(seq: int, digest: str = "", ledger: str = ID) -> Anchor:
        return Anchor(ledger=ledger, seq=seq, hash=digest or journal[seq - 1].hash)

    assert found(journal, anchor(1), anchor(4), anchor(4), anchor(6)) == []
    differs = [(4, like(families.ENTRY, entry=4))]
    assert found(journal, anchor(4, "f" * 64)) == differs
    assert found(journal, anchor(4), anchor(4, "f" * 64)) == differs
    assert found(journal, anchor(4, "f" * 64, ledger="1" * 32)) == []
    behind = [
        (7, like(families.ENTRY, last=6, anchored=7)),
        (7, like(families.ENTRY, last=6, anchored=9)),
    ]
    assert found(journal, anchor(9, "f" * 64), anchor(7, "f" * 64)) == behind
    for head in (anchor(6, "f" * 64), anchor(5), anchor(7, journal[-1].hash)):
        (finding,) = find_inconsistencies(journal, head, [])
        assert finding.notice == like(families.ENTRY, last=6, head=head.seq)
        assert (finding.entry, finding.subject) == (7, "ledger")
