"""Three scheduled months of a table in PostgreSQL, by region, on a real Prefect server."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramercy
from gramercy.application.auditing import make_audit
from gramercy.application.catalogue_pages import write_site
from gramercy.application.context import Context
from gramercy.application.yaml_files import read_request
from gramercy.archive.layout import INDEX
from gramercy.common.home import Home
from tests.support.database_tables import execute, new_url
from tests.support.factories import MECHANISM, write_request

COLUMNS = {
    "glucose": {"lower": -6.0, "upper": 6.0},
    "sodium": {"lower": -6.0, "upper": 6.0},
    "region": {"levels": ["north", "south"]},
}
MONTHLY: dict[str, Any] = {
    "columns": COLUMNS,
    "rows": 900,
    "intercept": True,
    "neighbours": "add-remove",
    "budget": {"epsilon": 20.0, "delta": 1e-5, "per": "month"},
    "source": {"url": "env:CLINIC_DB", "table": "visits"},
    "period": {"column": "visited", "timezone": "Europe/Berlin"},
}
REQUEST = {
    "version": "{period}",
    "mechanism": MECHANISM | {"epsilon": 15.0},
    "normalisation": {"kind": "clip", "radius": 3.0},
    "by": "region",
    "timezone": "Europe/Berlin",
    "estimates": [],
}
CREATE = (
    "CREATE TABLE visits (glucose DOUBLE PRECISION, sodium DOUBLE PRECISION, region TEXT, "
    "visited TIMESTAMPTZ)"
)
INSERT = "INSERT INTO visits VALUES (:glucose, :sodium, :region, :visited)"


def visits(month: int, rows: int = 900) -> list[dict[str, Any]]:
    """Visits of one month of 2026 in Berlin; glucose is higher in the south, and in December."""
    stream = np.random.default_rng(month)
    south = stream.random(rows) < 0.4
    glucose = stream.normal(size=rows) + south + 0.7 * (month == 12)
    sodium = 0.5 * glucose + stream.normal(size=rows)
    # In Berlin the first of a month begins an hour earlier than in UTC.
    first = datetime.datetime(2026, month, 1, tzinfo=datetime.UTC) - datetime.timedelta(hours=1)
    return [
        {
            "glucose": float(glucose[k]),
            "sodium": float(sodium[k]),
            "region": "south" if south[k] else "north",
            "visited": first + datetime.timedelta(minutes=45 * k),
        }
        for k in range(rows)
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server")
def test_three_months_of_a_growing_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One charge a month in its own budget: a day late, and again in the next month."""
    from gramercy.flows.release import release

    url = new_url("postgresql", tmp_path)
    monkeypatch.setenv("CLINIC_DB", url)
    execute(url, CREATE, INSERT, rows=visits(10) + visits(11))
    scheduled = read_request(write_request(tmp_path, request=REQUEST, **MONTHLY))

    def run_of(due: datetime.datetime, days_late: int) -> str:
        monkeypatch.setattr("gramercy.flows.release.scheduled_time", lambda: due)
        now = due + datetime.timedelta(days_late)
        monkeypatch.setattr("gramercy.flows.release.utc_now", lambda: now)
        return release(scheduled)

    due = [datetime.datetime(2026, m, 2, 5, tzinfo=datetime.UTC) for m in (11, 12)]
    due.append(datetime.datetime(2027, 1, 2, 5, tzinfo=datetime.UTC))
    names = [run_of(due[0], 0)]
    execute(url, INSERT, rows=visits(12))
    names += [run_of(due[1], 1), run_of(due[2], 40)]
    assert names == ["toy/2026-10-r1", "toy/2026-11-r2", "toy/2026-12-r3"]
    assert run_of(due[1], 35) == names[1]

    months = ["2026-10", "2026-11", "2026-12"]
    ledger = Context.default().ledger
    assert [(each.version, each.window) for each in ledger.charges("toy")] == [
        (month, month) for month in months
    ]
    assert not make_audit(Context.default()).discrepancies
    periods = gramercy.open(Home.default().archive).periods("toy")
    assert list(periods) == months
    for opened in periods.values():
        rows = opened.manifest.rows
        assert abs(rows.observed - 900) < 10 * rows.sd
        north, south = opened.groups["north"], opened.groups["south"]
        assert abs(north.rows - 540) < 100 + 10 * north.rows_error
        assert south.means["glucose"] - north.means["glucose"] == pytest.approx(1, abs=0.9)
    changed = periods.changes().query("kind == 'mean' and column == 'glucose'")
    assert changed["adjusted"].item() < 0.01
    assert periods.pooled.rows == pytest.approx(2700, rel=0.1)
    write_site(Context.default())
    page = (Home.default().archive / "toy" / INDEX).read_text()
    assert "<h2>Over time</h2>" in page
    assert "mean of glucose" in page
