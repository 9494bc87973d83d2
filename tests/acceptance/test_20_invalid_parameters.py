"""Invalid privacy parameters give a typed error before data is read or a budget charged."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from gramercy.ledger import Ledger
from gramercy.ledger.database import entries
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.plan.request_model import Request
from gramercy.schemas import families
from gramercy.schemas.errors import Invalid
from tests.support.factories import MECHANISM, run_release, write_request
from tests.support.ledgers import charge
from tests.support.problems import raises

INVALID: list[Any] = [0, -1.0, math.nan, math.inf, -math.inf, 1e308, "1", True, None, [1]]
TOO_LARGE_DELTAS: list[Any] = [1.0, 2.0, 0.5, 1 / 40]
TOO_LARGE = {families.VALUE.code, families.BUDGET_DELTA.code}


@pytest.fixture
def reading_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("data was read")

    readers = ("plan.checking", "publish.private_table", "publish.charging", "publish.drawing")
    for module in readers:
        monkeypatch.setattr(f"gramercy.pipeline.{module}.open_source", refuse)


CASES = [("mechanism", "epsilon", x) for x in INVALID]
CASES += [("mechanism", "delta", x) for x in INVALID + TOO_LARGE_DELTAS]
CASES += [("budget", "epsilon", x) for x in INVALID]
CASES += [("budget", "delta", x) for x in INVALID + TOO_LARGE_DELTAS]


def is_about(error: Any, key: str) -> bool:
    """Whether a problem names this key, in its path or in its facts."""
    named = [*getattr(error, "facts", {}).get("keys", ()), getattr(error, "key", "").split(".")[-1]]
    return key in named or (key == "delta" and error.code in TOO_LARGE)


@pytest.mark.usefixtures("reading_fails")
@pytest.mark.parametrize(("where", "key", "value"), CASES, ids=str)
def test_invalid_parameters_are_refused_before_reading(
    where: str, key: str, value: Any, tmp_path: Path, home: Path
) -> None:
    good = {"epsilon": 3.0, "delta": 1e-5}
    if where == "budget":
        request = write_request(tmp_path, budget=good | {key: value})
    else:
        request = write_request(tmp_path, request={"mechanism": MECHANISM | {key: value}})
    with pytest.raises(Invalid) as refused:
        run_release(request)
    assert any(is_about(each, key) for each in (refused.value, *refused.value.details))
    assert not home.exists()


@pytest.mark.parametrize("value", INVALID, ids=str)
def test_flow_parameters_are_validated_as_strictly(value: Any) -> None:
    """Prefect validates parameters of its user interface and of deployments in this way."""
    with pytest.raises(ValidationError) as refused:
        Request.model_validate(
            {"dataset": "toy", "version": "v1", "mechanism": MECHANISM | {"epsilon": value}}
        )
    assert any(
        "epsilon" in each["loc"] or is_about(each.get("ctx", {}).get("error"), "epsilon")
        for each in refused.value.errors()
    )


def test_impossible_charges_are_refused_by_code_and_database(database: Path | str) -> None:
    ledger = Ledger(database)
    charge(ledger, "v1")
    for mu in (-1.0, math.nan):
        with raises(families.ARGUMENT, argument="mu"):
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
    with ledger._writing() as db, db.begin_nested() as undone:  # unchanged, it is accepted
        db.execute(insert(entries).values(good))
        undone.rollback()
    assert len(ledger.charges("toy")) == 1
    assert ledger.find_inconsistencies([ledger.head()]) == []
