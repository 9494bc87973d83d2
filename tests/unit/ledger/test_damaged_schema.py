"""A damaged SQLite schema is an error that names the ledger, or changes nothing."""

from __future__ import annotations

from pathlib import Path

from gramercy.ledger import Ledger
from gramercy.schemas.errors import LedgerError
from tests.support.factories import at_scale

PAGE = 4096  # the first page of the file has the schema


def test_flipped_bytes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    assert Ledger(path).datasets() == []
    genuine = path.read_bytes()
    texts = [k for k in range(100, PAGE) if genuine[k] > 31]
    refused = 0
    for k in texts[:: at_scale(40, 1)]:
        damaged = bytearray(genuine)
        damaged[k] ^= 0xFF
        path.write_bytes(damaged)
        try:
            assert Ledger(path).datasets() == []
        except LedgerError as error:
            assert error.facts["ledger"] == str(path)
            refused += 1
    assert refused
