"""Nonsense privacy parameters: a typed error before any data is read, the ledger untouched."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from gramercy.application.request_model import Request
from gramercy.ledger import Ledger
from gramercy.ledger.database_tables import entries
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.errors import Invalid
from tests.support.factories import MECHANISM, run_release, write_request
from tests.support.ledger_writers import charge

NONSENSE: list[Any] = [0, -1.0, math.nan, math.inf, -math.inf, 1e308, "1", True, None, [1]]
TOO_LARGE_DELTAS: list[Any] = [1.0, 2.0, 0.5, 1 / 40]


@pytest.fixture
def nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("data was read")

    for module in ("accumulation", "drawing", "publishing", "validation"):
        monkeypatch.setattr(f"gramercy.application.{module}.open_source", refuse)


CASES = [("mechanism", "epsilon", x) for x in NONSENSE]
CASES += [("mechanism", "delta", x) for x in NONSENSE + TOO_LARGE_DELTAS]
CASES += [("budget", "epsilon", x) for x in NONSENSE]
CASES += [("budget", "delta", x) for x in NONSENSE + TOO_LARGE_DELTAS]


@pytest.mark.usefixtures("nothing_is_read")
@pytest.mark.parametrize(("where", "key", "value"), CASES, ids=str)
def test_nonsense_parameters_are_refused_before_reading(
    where: str, key: str, value: Any, tmp_path: Path, home: Path
) -> None:
    good = {"epsilon": 3.0, "delta": 1e-5}
    if where == "budget":
        request = write_request(tmp_path, budget=good | {key: value})
    else:
        request = write_request(tmp_path, request={"mechanism": MECHANISM | {key: value}})
    with pytest.raises(Invalid, match=key):
        run_release(request)
    assert not home.exists()


@pytest.mark.parametrize("value", NONSENSE, ids=str)
def test_flow_parameters_are_validated_as_strictly(value: Any) -> None:
    """As Prefect validates them from its user interface or a deployment."""
    with pytest.raises(ValueError, match="epsilon"):
        Request.model_validate(
            {"dataset": "toy", "version": "v1", "mechanism": MECHANISM | {"epsilon": value}}
        )


def test_impossible_charges_are_refused_by_code_and_database(
    database: Path | str,
) -> None:
    ledger = Ledger(database)
    charge(ledger, "v1")
    for mu in (-1.0, math.nan):
        with pytest.raises(ValueError, match="mu"):
            Guarantee(mu)
    good = asdict(ledger.entries()[-1]) | {"release": "x", "seq": ledger.head().seq + 1}
    for bad in (
        {"mu": -1.0},
        {"mu": 0.0},
        {"mu": None},
        {"mu": math.nan},
        {"mu": math.inf},
        {"delta0": -1e-9},
        {"delta0": math.nan},
        {"delta0": None},
        {"delta0": 1.0},
        {"pure": -1.0},
        {"pure": math.inf},
        {"kind": "refunded"},
        {"seq": 0},
        {"release": "v1-r1"},
        {"kind": "raised", "epsilon": math.nan, "delta": 1e-6},
        {"kind": "raised", "epsilon": 1.0, "delta": 1.0},
        {"kind": "raised", "epsilon": None, "delta": None},
    ):
        with pytest.raises(IntegrityError) as refused, ledger._engine.begin() as db:
            db.execute(insert(entries).values(good | bad))
        assert "parameters hidden" in str(refused.value)  # a fingerprint is among them
    with ledger._writing() as db, db.begin_nested() as undone:  # it is those that are refused
        db.execute(insert(entries).values(good))
        undone.rollback()
    assert len(ledger.charges("toy")) == 1
    assert ledger.examine([ledger.head()]) == []
