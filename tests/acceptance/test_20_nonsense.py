"""Nonsense privacy parameters: a typed error before any data is read, the ledger untouched."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from ledger import Ledger
from ledger.tables import charges
from mechanisms.guarantee import Guarantee
from schemas.errors import Invalid
from schemas.home import Home
from tables import read
from tasks.request import Request
from tests.making import MECHANISM, run_steps, scene

NONSENSE: list[Any] = [0, -1.0, math.nan, math.inf, -math.inf, 1e308, "1", True, None, [1]]
TOO_LARGE_DELTAS: list[Any] = [1.0, 2.0, 0.5, 1 / 40]


@pytest.fixture
def nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("data was read")

    for name in ("open_source", "cells", "column_types"):
        monkeypatch.setattr(read, name, refuse)
    monkeypatch.setattr("tasks.accumulate.open_source", refuse)
    monkeypatch.setattr("tasks.publish.open_source", refuse)


CASES = [("mechanism", "epsilon", x) for x in NONSENSE]
CASES += [("mechanism", "delta", x) for x in NONSENSE + TOO_LARGE_DELTAS]
CASES += [("budget", "epsilon", x) for x in NONSENSE]
CASES += [("budget", "delta", x) for x in NONSENSE + TOO_LARGE_DELTAS]


@pytest.mark.usefixtures("nothing_is_read")
@pytest.mark.parametrize(("where", "key", "value"), CASES, ids=str)
def test_refused(where: str, key: str, value: Any, tmp_path: Path, home: Path) -> None:
    good = {"epsilon": 3.0, "delta": 1e-5}
    if where == "budget":
        request = scene(tmp_path, budget=good | {key: value})
    else:
        request = scene(tmp_path, request={"mechanism": MECHANISM | {key: value}})
    with pytest.raises(Invalid, match=key):
        run_steps(request)
    assert not home.exists()


@pytest.mark.parametrize("value", NONSENSE, ids=str)
def test_flow_parameters_are_as_strict(value: Any) -> None:
    """As Prefect validates them, from the user interface or a deployment."""
    with pytest.raises(ValueError, match="epsilon"):
        Request.model_validate(
            {"dataset": "toy", "version": "v1", "mechanism": MECHANISM | {"epsilon": value}}
        )


def test_impossible_charges_are_refused_by_code_and_by_the_database(tmp_path: Path) -> None:
    run_steps(scene(tmp_path))
    ledger = Ledger(Home.default().ledger)
    for mu in (-1.0, math.nan):
        with pytest.raises(ValueError, match="mu"):
            Guarantee(mu)
    good = {
        "dataset": "toy",
        "release": "x",
        "version": "x",
        "request": "x",
        "mu": 0.1,
        "delta0": 0.0,
        "pure": None,
        "fingerprint": "",
        "at": "",
    }
    for bad in (
        {"mu": -1.0},
        {"mu": 0.0},
        {"mu": math.nan},
        {"mu": math.inf},
        {"delta0": -1e-9},
        {"delta0": math.nan},
        {"delta0": 1.0},
        {"pure": -1.0},
    ):
        with pytest.raises(IntegrityError, match=r"CHECK|NOT NULL"), ledger._transaction() as db:
            db.execute(insert(charges).values(good | bad))
    assert len(ledger.statement("toy").charges) == 1
