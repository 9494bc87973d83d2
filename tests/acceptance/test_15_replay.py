"""The same request for the same version: one charge, one artifact, whatever the table holds."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from gramercy.application.internal_record import recall
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from tests.support.factories import at_scale, bundle_bytes, run_steps, scene, table


def once(request: str, turn: int) -> str:
    """One process's release; every seventh changes a table that is not there to be replayed."""
    path = Path(request)
    done = run_steps(path)
    if turn % 7 == 0:
        fresh = path.parent / f"fresh-{turn}.csv"
        table(fresh, seed=turn)
        os.replace(fresh, path.parent / "table.csv")
    return done


def test_in_parallel(tmp_path: Path, home: Path) -> None:
    request = scene(tmp_path)
    turns = at_scale(12, 200)
    with ProcessPoolExecutor(at_scale(2, 4), mp_context=get_context("spawn")) as pool:
        done = list(pool.map(once, [str(request)] * turns, range(turns)))
    assert set(done) == {"v1-r1"}
    charges = Ledger(Home.default().ledger).charges("toy")
    assert [c.state for c in charges] == ["published"]
    assert [p.name for p in (home / "archive/toy").iterdir()] == ["v1-r1"]
    assert not list((home / "archive/.staging").iterdir())


def test_the_table_changed_in_between(tmp_path: Path, home: Path) -> None:
    request = scene(tmp_path)
    assert run_steps(request) == "v1-r1"
    sealed = bundle_bytes(home / "archive/toy/v1-r1/release")
    assert run_steps(request) == "v1-r1"
    assert recall("toy", "v1-r1")["table_changed_since"] is False

    table(tmp_path / "table.csv", seed=8)
    assert run_steps(request) == "v1-r1"
    assert recall("toy", "v1-r1")["table_changed_since"] is True
    (tmp_path / "table.csv").unlink()
    assert run_steps(request) == "v1-r1"
    assert recall("toy", "v1-r1")["table_changed_since"] is True

    assert bundle_bytes(home / "archive/toy/v1-r1/release") == sealed
    assert len(Ledger(Home.default().ledger).charges("toy")) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"version": "v2"},
        {"mechanism": {"name": "gaussian", "epsilon": 0.5, "delta": 1e-6}},
        {"normalisation": {"kind": "clip", "radius": 2.0}},
    ],
    ids=["version", "mechanism", "normalisation"],
)
def test_another_request_is_another_charge(tmp_path: Path, home: Path, change: dict) -> None:
    first = run_steps(scene(tmp_path))
    second = run_steps(scene(tmp_path, request=change))
    assert first != second
    assert len(Ledger(Home.default().ledger).charges("toy")) == 2
    raw = [np.load(home / "archive/toy" / r / "release/second_moment.npy") for r in (first, second)]
    assert (raw[0] != raw[1]).any()


def test_other_estimates_are_no_other_release(tmp_path: Path) -> None:
    assert run_steps(scene(tmp_path)) == run_steps(scene(tmp_path, request={"estimates": []}))
