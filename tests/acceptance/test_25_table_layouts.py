"""Changing a record never exceeds the claim, even if the record moves to another file."""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.mechanisms.mechanism import COUNT_WEIGHT
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.schemas import families
from gramercy.schemas.normalisation import Unit
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.source import open_source, store_digest, verify_unchanged
from gramercy.tables.sums.row_transform import Repairs
from gramercy.tables.sums.streaming import accumulate as read
from gramercy.tables.sums.streaming import integer_batches
from tests.support.factories import as_flow_step, at_scale, read_plan, write_request
from tests.support.problems import raises

WARDS = ("A", "B", "C")
ROWS = 12
TOLERANCE = 1 + 1e-9
COLUMNS = {
    "ward": {"levels": ["A", "B"]},
    "x": {"lower": -1.0, "upper": 1.0},
    "y": {"lower": -1.0, "upper": 1.0},
}
HOSTILE_CELLS = ("", "nan", "1e400", "-7", "0.25", "1", "-1", "text", "5e-324")


@dataclass(frozen=True)
class Row:
    """A row with a number that identifies it in any file."""

    number: int
    ward: str
    x: str
    y: str
    person: str = ""


def random_row(rng: random.Random, number: int, persons: int) -> Row:
    def cell() -> str:
        return rng.choice(HOSTILE_CELLS) if rng.random() < 0.3 else f"{rng.uniform(-1, 1):.3f}"

    return Row(number, rng.choice(WARDS), cell(), cell(), f"p{rng.randrange(persons)}")


def random_rows(seed: int) -> list[Row]:
    rng = random.Random(seed)
    return [random_row(rng, number, 3) for number in range(ROWS)]


def write_layout(rows: list[Row], folder: Path, layout: str, file_format: str) -> list[int]:
    """Write a table; return the numbers of its rows in reading order."""
    shutil.rmtree(folder, ignore_errors=True)
    files: dict[Path, list[Row]] = {}
    for row in rows:
        name = {
            "one file": "all",
            "files": row.ward.lower(),
            "folders": f"ward={row.ward}/part",
            "other folders": f"place={row.ward}/part",
        }[layout]
        files.setdefault(folder / f"{name}.{file_format}", []).append(row)
    columns = ["x", "y", "person"] if layout == "folders" else ["ward", "x", "y", "person"]
    for file, file_rows in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        frame = pd.DataFrame([[getattr(row, name) for name in columns] for row in file_rows])
        frame.columns = pd.Index(columns)
        if file_format == "csv":
            frame.to_csv(file, index=False)
        else:
            frame[["x", "y"]] = frame[["x", "y"]].apply(pd.to_numeric, errors="coerce")
            frame.to_parquet(file, index=False)
    return [row.number for file in sorted(files) for row in files[file]]


def neighbours(rng: random.Random, relation: str, persons: int | None) -> tuple[Any, Any]:
    """Two tables that differ in one row, or in all rows of one person: replaced or removed."""
    base = [random_row(rng, number, persons or 3) for number in range(ROWS)]
    if persons is None:
        changed = {rng.randrange(ROWS)}
    else:
        person = rng.choice(base).person
        changed = {row.number for row in base if row.person == person}
    if relation == "add-remove":
        return base, [row for row in base if row.number not in changed]
    changed_table = [
        replace(random_row(rng, row.number, 1), person=row.person) if row.number in changed else row
        for row in base
    ]
    if persons and rng.random() < 0.2:
        rng.shuffle(changed_table)
    return base, changed_table


def plan_for(
    folder: Path, source: str, relation: str, folds: int, persons: int | None, **keys: Any
) -> Plan:
    facts: dict[str, Any] = {"columns": COLUMNS, "neighbours": relation, "rows": ROWS}
    if persons is not None:
        facts |= {"privacy_unit": "person", "persons": persons}
    request = {
        "mechanism": {"name": "gaussian", "epsilon": 1.0, "delta": 1e-6},
        "folds": folds,
        "estimates": [],
        **keys,
    }
    return read_plan(write_request(folder, source=source, request=request, **facts))


def sums(plan: Plan, order: list[int], fold_of: dict[int, int]) -> list[Any]:
    """The exact matrix and weighted count of every part; a row's number determines its fold.

    It also determines the key by which a row of a person is chosen.
    """
    remaining: Iterator[int] = iter(order)

    def keys(size: int) -> Any:
        numbers = [next(remaining) for _ in range(size)]
        return np.array([[7 * number % 13 for number in numbers], numbers], dtype=np.uint64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sampler,
            "uniform_integers",
            lambda count, size: np.array(
                [fold_of[next(remaining)] for _ in range(size)], dtype=int
            ),
        )
        patch.setattr(sampler, "random_keys", keys)
        parts = as_flow_step(accumulate)(plan).sums.part_sums
    weight = COUNT_WEIGHT if plan.spec.publishes_noisy_count else 0.0
    unit = plan.mechanism.lattice.squared_radius
    return [np.append(part.gram.astype(float) / unit, weight * part.rows) for part in parts]


# A flaw of one layout, relation and unit (a pair in 30) is missed by 100 pairs with 3 %.
@pytest.mark.parametrize("turn", range(at_scale(5, 50)))
def test_changed_record_changes_few_parts_within_the_claim(turn: int, tmp_path: Path) -> None:
    """Twenty pairs of tables per turn, over every layout, format, relation, unit and grouping.

    Without groups one fold changes. A row that is replaced may move to another group, and the rows
    of a person may be in all groups.
    """
    rng = random.Random(turn)
    farthest = 0.0
    for pair in range(20):
        layout = rng.choice(("one file", "files", "folders", "folders", "other folders"))
        file_format = rng.choice(("csv", "parquet"))
        relation = rng.choice(("replace-one", "add-remove"))
        persons = rng.choice((None, None, 3))
        folds = 1 if persons else rng.choice((1, 2, 3))
        fold_of = {number: rng.randrange(folds) for number in range(ROWS)}
        grouping = rng.choice(({}, {"by": "ward"}))
        normalisation = rng.choice(("unit", {"kind": "clip", "radius": 1.0}))
        folder = tmp_path / f"{pair}" / "t"
        source = f"{folder}/*.{file_format}" if layout == "files" else str(folder)
        keys = {"normalisation": normalisation, **grouping}
        plan, part_sums = None, []
        for rows in neighbours(rng, relation, persons):
            order = write_layout(rows, folder, layout, file_format)
            # The same plan for both tables: it states public facts only.
            plan = plan or plan_for(folder.parent, source, relation, folds, persons, **keys)
            part_sums.append(sums(plan, order, fold_of))
        assert plan is not None
        distances = [
            float(np.linalg.norm(first - second)) for first, second in zip(*part_sums, strict=True)
        ]
        distance = float(np.linalg.norm(distances))
        claim = plan.mechanism.scale * plan.guarantee.mu  # type: ignore[attr-defined]
        case = (layout, file_format, relation, persons, grouping, normalisation)
        changed = 1 if not grouping or (relation == "add-remove" and not persons) else 2
        assert persons or sum(distance > 0 for distance in distances) <= changed, case
        assert distance <= claim * TOLERANCE, case
        farthest = max(farthest, distance / claim)
    assert farthest > 0.3  # the pairs come close to the claim


def rows_plan(folder: Path, source: str, columns: Any, **facts: Any) -> Plan:
    request = {
        "mechanism": {"name": "rows", "epsilon": 8.0, "delta": 1e-6},
        "estimates": [],
        **facts.pop("request", {}),
    }
    request_path = write_request(
        folder, source=source, columns=columns, rows=ROWS, request=request, **facts
    )
    return read_plan(request_path)


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
@pytest.mark.parametrize("partition", ["ward", "Ward", "w%61rd"])
def test_published_rows_refuse_declared_partition_columns(
    partition: str, file_format: str, tmp_path: Path
) -> None:
    """Also with patterns, other capitalisation or guarantees per cell; no charge is made."""
    write_layout(random_rows(3), tmp_path / "t", "folders", file_format)
    for folder in (tmp_path / "t").iterdir():
        folder.rename(folder.with_name(folder.name.replace("ward=", f"{partition}=")))
    columns = {name: COLUMNS[name] for name in ("x", "y")}
    per_cell = {"privacy_unit": "cell", "request": {"normalisation": "box"}}
    for source in ("t", f"t/*/part.{file_format}"):
        for changes in ({}, per_cell) if file_format == "parquet" else ({},):
            plan = rows_plan(tmp_path, str(tmp_path / source), columns | COLUMNS, **changes)
            with raises(families.TABLE_COLUMNS, column="ward"):
                as_flow_step(accumulate)(plan)
    assert not (tmp_path / "home" / "ledger.sqlite").exists()


def test_undeclared_partition_folders_are_public(tmp_path: Path) -> None:
    """Only the changed row of the published rows differs, by at most its bound."""
    rows = random_rows(5)
    changed_rows = [replace(rows[0], x="1", y="-1"), *rows[1:]]
    columns = {name: COLUMNS[name] for name in ("x", "y")}
    published = []
    for table in (rows, changed_rows):
        write_layout(table, tmp_path / "t", "other folders", "csv")
        plan = rows_plan(tmp_path, str(tmp_path / "t"), columns)
        source = open_source(plan.contract.source)
        arguments = (source, plan.contract, Unit(), plan.mechanism.lattice)
        read(*arguments, in_order=True)
        batches = integer_batches(
            *arguments, Repairs.zeros(2), MalformedLines(), keep_malformed=True
        )
        published.append(np.concatenate(list(batches), axis=1) / 2.0**plan.mechanism.lattice.bits)
    distances = np.linalg.norm(published[0] - published[1], axis=0)
    assert (distances > 0).sum() <= 1
    assert distances.max() <= 2 * TOLERANCE


def test_table_changed_while_read_is_not_charged(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that moves between two reads may count twice without changing the row count."""
    write_layout(random_rows(1), tmp_path / "t", "files", "csv")
    plan = plan_for(tmp_path, f"{tmp_path}/t/*.csv", "replace-one", 1, None)
    last = max((tmp_path / "t").iterdir())

    def accumulate_and_rewrite(*arguments: Any, **options: Any) -> Any:
        accumulated = read(*arguments, **options)
        last.write_text(last.read_text())  # the same bytes, written again
        return accumulated

    monkeypatch.setattr(
        "gramercy.pipeline.publish.private_table.streaming.accumulate", accumulate_and_rewrite
    )
    with raises(families.CHANGED):
        as_flow_step(accumulate)(plan)
    assert not (home / "ledger.sqlite").exists()


@pytest.mark.parametrize("change", ["added", "removed", "replaced"])
def test_every_change_of_the_files_is_detected(change: str, tmp_path: Path) -> None:
    write_layout(random_rows(2), tmp_path / "t", "files", "csv")
    source = f"{tmp_path}/t/*.csv"
    digest = store_digest(open_source(source))
    verify_unchanged(digest, source)
    file = min((tmp_path / "t").iterdir())
    if change == "added":
        shutil.copy(file, file.with_name("z.csv"))
    elif change == "removed":
        file.unlink()
    else:
        copy = file.with_name("copy")
        shutil.copy2(file, copy)
        copy.replace(file)
    with raises(families.CHANGED):
        verify_unchanged(digest, source)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """A file served over HTTP with a date and without an ETag."""
    (tmp_path / "t.csv").write_text("x,y\n1,1\n")
    handler = partial(QuietHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/t.csv"
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def test_change_behind_a_url_is_detected(served: str, tmp_path: Path) -> None:
    digest = store_digest(open_source(served))
    verify_unchanged(digest, served)
    (tmp_path / "t.csv").write_text("x,y\n2,2\n")  # the same size
    os.utime(tmp_path / "t.csv", (1, 1))
    with raises(families.CHANGED):
        verify_unchanged(digest, served)


def test_store_that_states_only_a_size_is_refused(
    served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_source(served)
    file = type(source.files[0])
    monkeypatch.setattr(file, "info", lambda self: {"name": self.path, "size": 8})
    with raises(families.SOURCE, file=source.files[0].display_name):
        store_digest(source)
