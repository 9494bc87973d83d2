"""An entry as it is hashed and read; what Gramercy never wrote is malformed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gramercy.ledger.entry import FIRST_PREVIOUS, Entry, account
from gramercy.mechanisms.accounting.composition import Filter, Total
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from tests.support.problems import raises

CHARGE = Entry(
    "reserved",
    "toy",
    "v1-r1",
    "2026",
    "key",
    mu=0.1,
    delta0=1e-9,
    facts='{"total":"1:2:-","turn":1}',
    at="2026-01-02T03:04:05+00:00",
    seq=3,
    salt="5a" * 16,
    previous="ab" * 32,
)
BUDGET = Entry(
    "raised",
    "toy",
    epsilon=2.0,
    delta=1e-5,
    facts='{"failures":1.0000000000000002e-06,"per":"year","rows":40}',
)


@pytest.mark.parametrize(
    ("login", "stated"),
    [("0", "root"), ("1", "daemon as root"), ("4294967295", "root"), ("?", "root")],
)
def test_who_charges_is_the_account_and_who_had_logged_in(
    login: str, stated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loginuid").write_text(login)
    monkeypatch.setattr("gramercy.ledger.entry._LOGIN", tmp_path / "loginuid")
    monkeypatch.setattr("os.getuid", lambda: 0)
    monkeypatch.setenv("LOGNAME", "somebody else")
    assert account() == stated
    (tmp_path / "loginuid").unlink()  # not on Linux
    assert account() == "root"
    monkeypatch.setattr("os.getuid", lambda: 3_999_999_999)
    assert account() == "3999999999"


def test_who_charged_is_a_fact_that_older_entries_lack() -> None:
    assert CHARGE.by == ""
    assert replace(CHARGE, facts='{"by":"anna"}').by == "anna"
    with raises(families.UNTRUSTED, entry=3):
        _ = replace(CHARGE, facts='{"by":7}').by


def test_hash_never_changes() -> None:
    """Else all ledgers that exist would have been rewritten."""
    assert CHARGE.digest() == "4150dcadf1c8ba0a49f31a103ec573cae64af6456f5a3bf982a1834a029687c1"
    assert FIRST_PREVIOUS == "0" * 64


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "drawn"},
        {"dataset": "others"},
        {"release": "v1-r2"},
        {"window": None},
        {"request": "kez"},
        {"mu": math.nextafter(0.1, 0)},
        {"delta0": 0.0},
        {"pure": 0.5},
        {"epsilon": 1.0},
        {"delta": 1e-5},
        {"facts": "{}"},
        {"at": ""},
        {"seq": 4},
        {"salt": ""},
        {"previous": FIRST_PREVIOUS},
    ],
    ids=str,
)
def test_every_field_is_hashed(changes: dict[str, Any]) -> None:
    changed: Entry = replace(CHARGE, **changes)
    assert changed.digest() != CHARGE.digest()
    assert replace(CHARGE, hash="f" * 64).digest() == CHARGE.digest()


def test_facts_are_read_as_they_were_written() -> None:
    assert CHARGE.guarantee == Guarantee(0.1, 1e-9)
    assert replace(CHARGE, pure=0.5).guarantee == Guarantee(0.1, 1e-9, 0.5)
    assert CHARGE.total == Total(1, 2, None)
    assert BUDGET.budget == Budget(epsilon=2.0, delta=1e-5, per="year")
    assert BUDGET.rule == Filter(2.0, 1e-5, 1e-5 / 10)
    assert CHARGE.fact("turn", int) == 1


def test_subject_names_release_data_set_or_ledger() -> None:
    assert CHARGE.subject == "toy/v1-r1"
    assert BUDGET.subject == "toy"
    assert Entry("moved").subject == "ledger"


@pytest.mark.parametrize(
    "facts", ["", "{", "[1]", '"turn"', "[" * 100_000, None, 7, '{"turn":"1"}', '{"turn":true}']
)
def test_malformed_facts_are_refused(facts: Any) -> None:
    entry = replace(CHARGE, facts=facts)
    for read in (lambda: entry.fact("turn", int), lambda: entry.total):
        with raises(families.UNTRUSTED, entry=3, subject="toy/v1-r1"):
            read()


Read = Callable[[Entry], object]


@pytest.mark.parametrize(
    ("read", "entry", "changes"),
    [
        *(
            (lambda entry: entry.guarantee, CHARGE, changes)
            for changes in (
                {"mu": None},
                {"mu": 1},
                {"mu": "0.1"},
                {"mu": -0.1},
                {"mu": math.nan},
                {"delta0": None},
                {"delta0": 0},
                {"delta0": -1e-9},
                {"delta0": 1.1},
                {"pure": 1},
                {"pure": -1.0},
            )
        ),
        *(
            (lambda entry: entry.budget, BUDGET, changes)
            for changes in (
                {"epsilon": None},
                {"epsilon": -1.0},
                {"delta": 0.0},
                {"delta": math.nan},
                {"facts": '{"per":"century"}'},
                {"facts": "{}"},
            )
        ),
        *(
            (lambda entry: entry.rule, BUDGET, {"facts": facts})
            for facts in (
                '{"per":"year"}',
                '{"failures":1e-7,"per":"year"}',
                '{"failures":null,"per":"year"}',
            )
        ),
        *(
            (lambda entry: entry.total, CHARGE, {"facts": f'{{"total":"{text}"}}'})
            for text in ("", "1:2", "x:0:0")
        ),
    ],
)
def test_malformed_numbers_are_refused(read: Read, entry: Entry, changes: dict[str, Any]) -> None:
    with raises(families.UNTRUSTED):
        read(replace(entry, **changes))
