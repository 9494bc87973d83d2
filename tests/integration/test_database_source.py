"""A release of a table in PostgreSQL, which another process updates in the meantime."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.private_table import PrivateSums
from gramercy.pipeline.verify.verification import verify_release
from gramercy.tasks import steps
from tests.support.factories import MECHANISM, read_registered, write_request
from tests.support.leaks import prefect_texts
from tests.support.source_tables import execute, new_url

pytestmark = pytest.mark.usefixtures("prefect_server")

CANARY = "618033.98875"
ROWS, UPDATED = 3000, 40
# Every transaction moves all rows and changes them together: in one state, all have one value.
UPDATE = """
import sys, psycopg
with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    number = 0
    while True:
        number += 1
        connection.execute("UPDATE visits SET x = %s, y = 1 - %s", [number % 2, number % 2])
        print(number, flush=True)
"""


@contextmanager
def updating(url: str) -> Iterator[subprocess.Popen[str]]:
    """Another process, which updates the table until the end of the block."""
    command = [sys.executable, "-c", UPDATE, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "1"
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_release_of_a_table_that_is_being_updated(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums are those of one state of the table; the copy and the URL leave no trace."""
    from gramercy.flows.release import release

    url = new_url("postgresql", tmp_path)
    monkeypatch.setenv("CLINIC_DB", url)
    execute(
        url,
        "CREATE TABLE visits (x DOUBLE PRECISION, y DOUBLE PRECISION, name TEXT)",
        f"INSERT INTO visits SELECT 0, 1, 'kept' FROM generate_series(1, {ROWS})",
        f"INSERT INTO visits SELECT {CANARY}, 0, 'left out' FROM generate_series(1, 50)",
        "CREATE VIEW named AS SELECT * FROM visits",
    )
    bounds = {"lower": -1.0, "upper": 1.0}
    path = write_request(
        tmp_path,
        source={"url": "env:CLINIC_DB", "view": "named", "where": "name = 'kept'"},
        columns={"x": bounds, "y": bounds},
        rows=ROWS,
        intercept=False,
        request={"mechanism": MECHANISM, "estimates": []},
    )
    sums: list[PrivateSums] = []
    step = steps.accumulate.step

    def accumulate(plan: Any) -> Any:
        sums.append(step(plan))
        return sums[-1]

    monkeypatch.setattr(steps, "accumulate", accumulate)
    with updating(url):
        time.sleep(0.2)
        (name,) = release(read_registered(path))
    (one,) = sums
    assert one.sums.rows == ROWS
    gram = np.asarray(one.sums.gram, float)
    # In one state, all rows are (1, 0) or all are (0, 1): a mixture would have both.
    assert np.count_nonzero(gram) == 1
    context = Context.default()
    dataset, identifier = name.split("/")
    verify_release(context.archive, dataset, identifier, context.ledger)
    manifest = json.loads(
        (context.archive.release(dataset, identifier) / "datapackage.json").read_text()
    )["dp"]
    assert manifest["selection"]["view"] == "named"
    assert [each for each in (home / "tables").rglob("*") if each.is_file()] == []
    stored = [path.read_bytes().decode("latin-1") for path in home.rglob("*") if path.is_file()]
    secret = url.partition("?")[0]
    for text in [*stored, *prefect_texts()]:
        assert secret not in text
        assert CANARY not in text
