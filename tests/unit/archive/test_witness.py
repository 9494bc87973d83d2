"""A witness keeps every anchor, in a folder or at a URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from gramercy.archive.store.opening import Witness
from gramercy.common.home import Home
from gramercy.schemas import families
from gramercy.schemas.ledger_history import Anchor
from tests.support.problems import raises

LEDGER = "0123456789abcdef" * 2


def anchor(seq: int, digit: str = "a") -> Anchor:
    return Anchor(ledger=LEDGER, seq=seq, hash=digit * 64)


@pytest.fixture
def witness(url: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Witness:
    monkeypatch.setenv("GRAMERCY_WITNESS_URL", f"{url}/witness")
    of_home = Witness.of(Home.default())
    assert of_home is not None
    return of_home


def test_every_anchor_is_kept(witness: Witness) -> None:
    assert witness.newest() is None
    assert witness.all() == []
    for seq in (3, 9, 6):
        witness.write_anchor(anchor(seq))
    assert witness.newest() == anchor(9)
    assert witness.all() == [anchor(3), anchor(6), anchor(9)]


def test_unsigned_anchors_and_forks_are_refused(witness: Witness) -> None:
    witness.write_anchor(anchor(3))
    (name,) = witness.store.names(".ledger")
    signed = witness.store.read(name) or b""
    witness.store.write(name, signed.split(b"\n")[0])
    for read in (witness.newest, witness.all):
        with raises(families.ANCHOR):
            read()
    witness.store.write(name, signed)
    witness.write_anchor(anchor(3, "b"))
    with raises(families.ANCHOR):
        witness.newest()


def test_no_witness_unless_one_is_named(home: Path) -> None:
    assert Witness.of(Home.default()) is None


def test_a_witness_cannot_be_at_a_web_address(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAMERCY_WITNESS_URL", "https://example.org/witness")
    with raises(families.NOT_AN_ARCHIVE):
        Witness.of(Home.default())
