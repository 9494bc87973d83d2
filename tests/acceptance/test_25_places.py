"""Item 25: no change of a record exceeds its claim, even if it moves the record to another file."""

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

from gramercy.application.accumulation import accumulate
from gramercy.application.planning import Plan
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.errors import TableError
from gramercy.schemas.normalisation import Unit
from gramercy.tables.csv_reader import Malformed
from gramercy.tables.repair import Repairs
from gramercy.tables.source import open_source
from gramercy.tables.streaming import accumulate as read
from gramercy.tables.streaming import integer_batches
from gramercy.tables.unchanged import hold_to, state
from tests.support.factories import at_scale, read_plan, seal_step, write_request

WARDS = ("A", "B", "C")
ROWS = 12
CLOSE = 1 + 1e-9
COLUMNS = {
    "ward": {"levels": ["A", "B"]},
    "x": {"lower": -1.0, "upper": 1.0},
    "y": {"lower": -1.0, "upper": 1.0},
}
NASTY = ("", "nan", "1e400", "-7", "0.25", "1", "-1", "text", "5e-324")


@dataclass(frozen=True)
class Row:
    """A row with a number that identifies it in any file."""

    number: int
    ward: str
    x: str
    y: str
    person: str = ""


def made(rng: random.Random, number: int, persons: int) -> Row:
    def cell() -> str:
        return rng.choice(NASTY) if rng.random() < 0.3 else f"{rng.uniform(-1, 1):.3f}"

    return Row(number, rng.choice(WARDS), cell(), cell(), f"p{rng.randrange(persons)}")


def laid_out(rows: list[Row], folder: Path, layout: str, form: str) -> list[int]:
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
        files.setdefault(folder / f"{name}.{form}", []).append(row)
    inside = ["x", "y", "person"] if layout == "folders" else ["ward", "x", "y", "person"]
    for file, found in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        frame = pd.DataFrame([[getattr(row, name) for name in inside] for row in found])
        frame.columns = pd.Index(inside)
        if form == "csv":
            frame.to_csv(file, index=False)
        else:
            frame[["x", "y"]] = frame[["x", "y"]].apply(pd.to_numeric, errors="coerce")
            frame.to_parquet(file, index=False)
    return [row.number for file in sorted(files) for row in files[file]]


def source_of(folder: Path, layout: str, form: str) -> str:
    return f"{folder}/*.{form}" if layout == "files" else str(folder)


def neighbours(rng: random.Random, relation: str, persons: int | None) -> tuple[Any, Any]:
    """Two tables that differ in one row, or in all rows of one person: replaced or removed."""
    base = [made(rng, number, persons or 3) for number in range(ROWS)]
    if persons is None:
        changed = {rng.randrange(ROWS)}
    else:
        who = rng.choice(base).person
        changed = {row.number for row in base if row.person == who}
    if relation == "add-remove":
        return base, [row for row in base if row.number not in changed]
    fresh = [
        replace(made(rng, row.number, 1), person=row.person) if row.number in changed else row
        for row in base
    ]
    if persons and rng.random() < 0.2:
        rng.shuffle(fresh)
    return base, fresh


def planned(folder: Path, source: str, relation: str, folds: int, persons: int | None) -> Plan:
    facts: dict[str, Any] = {"columns": COLUMNS, "neighbours": relation, "rows": ROWS}
    if persons is not None:
        facts |= {"unit": "person", "persons": persons}
    request = {
        "mechanism": {"name": "gaussian", "epsilon": 1.0, "delta": 1e-6},
        "folds": folds,
        "estimates": [],
    }
    return read_plan(write_request(folder, source=source, request=request, **facts))


def sums(plan: Plan, order: list[int], fold_of: dict[int, int]) -> list[Any]:
    """The exact matrix of every fold; a row's number determines its fold."""
    left: Iterator[int] = iter(order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sampler,
            "parts",
            lambda count, size: np.array([fold_of[next(left)] for _ in range(size)], dtype=int),
        )
        parts = seal_step(accumulate)(plan).sums.parts
    return [part.gram.astype(float) / plan.mechanism.lattice.ball for part in parts]


@pytest.mark.parametrize("turn", range(at_scale(8, 50)))
def test_one_record_moves_one_fold_within_the_claim(turn: int, tmp_path: Path) -> None:
    """Twenty pairs of tables per turn, over every layout, format, relation and unit."""
    rng = random.Random(turn)
    farthest = 0.0
    for pair in range(20):
        layout = rng.choice(("one file", "files", "folders", "folders", "other folders"))
        form = rng.choice(("csv", "parquet"))
        relation = rng.choice(("replace-one", "add-remove"))
        persons = rng.choice((None, None, 3))
        folds = 1 if persons else rng.choice((1, 2, 3))
        fold_of = {number: rng.randrange(folds) for number in range(ROWS)}
        found = []
        for rows in neighbours(rng, relation, persons):
            folder = tmp_path / f"{pair}" / "t"
            order = laid_out(rows, folder, layout, form)
            source = source_of(folder, layout, form)
            plan = planned(tmp_path / f"{pair}", source, relation, folds, persons)
            found.append(sums(plan, order, fold_of))
        moved = [float(np.linalg.norm(one - other)) for one, other in zip(*found, strict=True)]
        claim = plan.mechanism.scale * plan.guarantee.mu  # type: ignore[attr-defined]
        assert sum(distance > 0 for distance in moved) <= 1, (layout, form, relation, persons)
        assert max(moved) <= claim * CLOSE, (layout, form, relation, persons)
        farthest = max(farthest, max(moved) / claim)
    assert farthest > 0.3  # the pairs do come near


def rows_plan(folder: Path, source: str, columns: Any, **facts: Any) -> Plan:
    request = {
        "mechanism": {"name": "rows", "epsilon": 8.0, "delta": 1e-6},
        "estimates": [],
        **facts.pop("request", {}),
    }
    made = write_request(
        folder, source=source, columns=columns, rows=ROWS, request=request, **facts
    )
    return read_plan(made)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("named", ["ward", "Ward", "w%61rd"])
def test_published_rows_refuse_declared_partition_columns(
    named: str, form: str, tmp_path: Path
) -> None:
    """Also in a pattern, with other capitalisation, and per cell; before anything is charged."""
    rng = random.Random(3)
    rows = [made(rng, number, 3) for number in range(ROWS)]
    laid_out(rows, tmp_path / "t", "folders", form)
    for folder in (tmp_path / "t").iterdir():
        folder.rename(folder.with_name(folder.name.replace("ward=", f"{named}=")))
    inside = {name: COLUMNS[name] for name in ("x", "y")}
    cell = {"unit": "cell", "request": {"normalisation": "box"}}
    for source in ("t", f"t/*/part.{form}"):
        for more in ({}, cell) if form == "parquet" else ({},):
            plan = rows_plan(tmp_path, str(tmp_path / source), inside | COLUMNS, **more)
            with pytest.raises(TableError, match="column 'ward'"):
                seal_step(accumulate)(plan)
    assert not (tmp_path / "home" / "ledger.sqlite").exists()


def test_undeclared_partition_folders_are_public(tmp_path: Path) -> None:
    """Of published rows only the changed one moves, by at most its bound."""
    rng = random.Random(5)
    rows = [made(rng, number, 3) for number in range(ROWS)]
    other = [replace(rows[0], x="1", y="-1"), *rows[1:]]
    columns = {name: COLUMNS[name] for name in ("x", "y")}
    found = []
    for table in (rows, other):
        laid_out(table, tmp_path / "t", "other folders", "csv")
        plan = rows_plan(tmp_path, str(tmp_path / "t"), columns)
        source = open_source(plan.contract.source)
        given = (source, plan.contract, Unit(), plan.mechanism.lattice)
        read(*given, in_place=True)
        batches = integer_batches(*given, Repairs.none(2), Malformed(), in_place=True)
        found.append(np.concatenate(list(batches), axis=1) / 2.0**plan.mechanism.lattice.bits)
    apart = np.linalg.norm(found[0] - found[1], axis=0)
    assert (apart > 0).sum() <= 1
    assert apart.max() <= 2 * CLOSE


def test_table_changed_while_read_is_not_charged(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that moves between two reads may count twice without changing the row count."""
    rng = random.Random(1)
    laid_out([made(rng, number, 3) for number in range(ROWS)], tmp_path / "t", "files", "csv")
    plan = planned(tmp_path, f"{tmp_path}/t/*.csv", "replace-one", 1, None)
    last = max((tmp_path / "t").iterdir())

    def meanwhile(*given: Any, **named: Any) -> Any:
        done = read(*given, **named)
        last.write_text(last.read_text())  # the same bytes, written again
        return done

    monkeypatch.setattr("gramercy.application.accumulation.room.accumulate", meanwhile)
    with pytest.raises(TableError):
        seal_step(accumulate)(plan)
    assert not (home / "ledger.sqlite").exists()


@pytest.mark.parametrize("change", ["added", "removed", "replaced"])
def test_every_change_of_the_files_is_detected(change: str, tmp_path: Path) -> None:
    rng = random.Random(2)
    laid_out([made(rng, number, 3) for number in range(ROWS)], tmp_path / "t", "files", "csv")
    source = f"{tmp_path}/t/*.csv"
    known = state(open_source(source))
    hold_to(known, source)
    file = min((tmp_path / "t").iterdir())
    if change == "added":
        shutil.copy(file, file.with_name("z.csv"))
    elif change == "removed":
        file.unlink()
    else:
        copy = file.with_name("copy")
        shutil.copy2(file, copy)
        copy.replace(file)
    with pytest.raises(TableError):
        hold_to(known, source)


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
    known = state(open_source(served))
    hold_to(known, served)
    (tmp_path / "t.csv").write_text("x,y\n2,2\n")  # of the same size
    os.utime(tmp_path / "t.csv", (1, 1))
    with pytest.raises(TableError):
        hold_to(known, served)


def test_store_that_states_only_a_size_is_refused(
    served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_source(served)
    file = type(source.files[0])
    monkeypatch.setattr(file, "info", lambda self: {"name": self.path, "size": 8})
    with pytest.raises(TableError):
        state(source)
