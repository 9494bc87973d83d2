"""The same request for the same version gives one charge and one bundle, for any table."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.publish.internal_record import read_record
from tests.support.factories import at_scale, bundle_bytes, run_release, write_request, write_table
from tests.support.processes import processes


def publish_and_change_table(request: str, turn: int) -> str:
    """Publish in one process; every seventh call then changes the table, which replay ignores."""
    path = Path(request)
    release = run_release(path)
    if turn % 7 == 0:
        new_table = path.parent / f"fresh-{turn}.csv"
        write_table(new_table, seed=turn)
        os.replace(new_table, path.parent / "table.csv")
    return release


def test_parallel_identical_requests_give_one_release(tmp_path: Path, home: Path) -> None:
    request = write_request(tmp_path)
    turns = at_scale(12, 200)
    with processes(at_scale(2, 4)) as pool:
        releases = list(pool.map(publish_and_change_table, [str(request)] * turns, range(turns)))
    assert set(releases) == {"v1-r1"}
    charges = Ledger(Home.default().ledger).charges("toy")
    assert [c.state for c in charges] == ["published"]
    assert [p.name for p in (home / "archive/toy").iterdir()] == ["v1-r1"]
    assert not list((home / "archive/.staging").iterdir())


def test_changed_table_does_not_change_the_release(tmp_path: Path, home: Path) -> None:
    request = write_request(tmp_path)
    assert run_release(request) == "v1-r1"
    sealed = bundle_bytes(home / "archive/toy/v1-r1/release")
    assert run_release(request) == "v1-r1"
    assert read_record(Home.default(), "toy", "v1-r1")["table_changed_since"] is False

    write_table(tmp_path / "table.csv", seed=8)
    assert run_release(request) == "v1-r1"
    assert read_record(Home.default(), "toy", "v1-r1")["table_changed_since"] is True
    (tmp_path / "table.csv").unlink()
    assert run_release(request) == "v1-r1"
    assert read_record(Home.default(), "toy", "v1-r1")["table_changed_since"] is True

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
def test_different_request_is_charged_again(tmp_path: Path, home: Path, change: dict) -> None:
    first = run_release(write_request(tmp_path))
    second = run_release(write_request(tmp_path, request=change))
    assert first != second
    assert len(Ledger(Home.default().ledger).charges("toy")) == 2
    matrices = [
        np.load(home / "archive/toy" / r / "release/second_moment.npy") for r in (first, second)
    ]
    assert (matrices[0] != matrices[1]).any()
