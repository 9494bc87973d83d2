"""A table that is retyped within the window of a series is refused before its noise is drawn."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.schemas import families
from tests.support.cumulative import MONTHLY, STEPS, TERMS
from tests.support.factories import run_release, write_request
from tests.support.problems import raises


def write(folder: Path, kind: pa.DataType, step: str, timezone: str = "UTC") -> Path:
    rng, first = np.random.default_rng(3), datetime.datetime(2026, 1, 1, 12)
    times = [first + datetime.timedelta(int(k)) for k in rng.integers(0, 89, 40)]
    table = {f"c{k}": rng.normal(size=40) for k in range(3)}
    visited = pa.array(times, pa.timestamp("us")).cast(kind)
    pq.write_table(pa.table(table | {"visited": visited}), folder / "table.parquet")
    terms: dict[str, Any] = TERMS | {"source": "table.parquet"}
    terms["period"] = {"column": "visited", "timezone": timezone}
    return write_request(folder, request=MONTHLY | {"version": step}, **terms)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.string()])
def test_retyped_dates_are_refused(tmp_path: Path, kind: pa.DataType) -> None:
    """A time with a zone may be on another day than the same one without."""
    first = run_release(write(tmp_path, pa.date32(), STEPS[0]))
    with raises(families.TERMS, release=f"toy/{first}"):
        run_release(write(tmp_path, kind, STEPS[1]))
    assert len(Ledger.of(Home.default()).charges("toy")) == 1
    run_release(write(tmp_path, pa.date32(), STEPS[1]))


@pytest.mark.slow
def test_another_time_zone_is_refused(tmp_path: Path) -> None:
    run_release(write(tmp_path, pa.date32(), STEPS[0]))
    with raises(families.TERMS, terms=("period.timezone",)):
        run_release(write(tmp_path, pa.date32(), STEPS[1], "Asia/Tokyo"))
