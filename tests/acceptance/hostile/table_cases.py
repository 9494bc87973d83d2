"""Hostile tables: their description, their files, and a reference in plain Python."""

from __future__ import annotations

import dataclasses
import io
import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.common.lattice import Lattice
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.pipeline.plan.checking import TableCheck, check_table
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.schemas.problem import Family
from gramercy.tables.sums.streaming import Accumulated
from tests.support.factories import as_flow_step, read_plan, write_request

NAN, INF = math.nan, math.inf
BIG = 2**53

# Cells of refused tables. Messages must not contain them.
SECRET, OTHER, WORD = 271828.182845, 314159.265358, "Rosalind"
PLANTED = ("271828", "314159", "Rosalind")
CELLS = f"{SECRET},{OTHER}\n{WORD},{OTHER}\n"
PLAIN = f"c0,c1\n{CELLS}".encode()

COLUMNS: dict[str, Any] = {
    "c0": {"lower": -10, "upper": 10, "centre": 1, "scale": 2},
    "c1": {"lower": -4, "upper": 8},  # centre 2, scale 6
}

Row = Sequence[Any] | None  # NaN for a cell without number or level; None for a malformed line
Content: TypeAlias = bytes | pa.Table


@dataclasses.dataclass(frozen=True)
class Read:
    """A table that is read, and its expected rows."""

    name: str
    files: Mapping[str, Content]
    rows: Sequence[Row]
    source: str = ""  # if it is not the only file
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class Refused:
    """A table that is refused.

    Parameters
    ----------
    problem, facts
        The expected problem, and some of its facts besides the name of a file.
    named
        The end of the file's name in the error, if it is not the source.
    key
        The key of the contract that the problem is about, for a wrong contract.
    """

    name: str
    files: Mapping[str, Content]
    problem: Family[Any]
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    source: str = ""
    named: str = ""
    key: str | None = None
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def write_case(folder: Path, case: Read | Refused) -> Path:
    """The case's files, contract and request; returns the request."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            pq.write_table(content, path)
    rows = len(case.rows) if isinstance(case, Read) else 2
    facts = {"source": case.source or next(iter(case.files)), "rows": rows, "columns": COLUMNS}
    return write_request(folder, **(facts | dict(case.changes)))


def steps(request: Path) -> tuple[TableCheck, Accumulated, Lattice]:
    """Check the table, and accumulate on the finest lattice."""
    checked = as_flow_step(check_table)(read_plan(request).contract)
    return checked, *summed(request)


def summed(request: Path) -> tuple[Accumulated, Lattice]:
    plan = read_plan(request)
    fine = Lattice(plan.columns, 20)
    with pytest.MonkeyPatch.context() as finest:
        finest.setattr(Gaussian, "lattice", fine)
        return as_flow_step(accumulate)(plan).sums, fine


@dataclasses.dataclass
class Reference:
    """The exact Gram matrix and the repairs, computed cell by cell in plain Python."""

    columns: Mapping[str, Mapping[str, Any]]
    intercept: bool = False
    malformed: int = 0

    def __post_init__(self) -> None:
        self.filled, self.clamped = [0] * len(self.columns), [0] * len(self.columns)
        self.units: list[list[float]] = []

    def add(self, row: Row) -> None:
        if row is None:
            self.malformed += 1
            return
        scaled = [1.0] if self.intercept else []
        for i, (cell, facts) in enumerate(zip(row, self.columns.values(), strict=True)):
            if "levels" in facts:
                self.filled[i] += cell not in facts["levels"]
                scaled += [float(cell == level) for level in facts["levels"]]
                continue
            lower, upper = facts["lower"], facts["upper"]
            centre = facts.get("centre", (lower + upper) / 2)
            scale = facts.get("scale", (upper - lower) / 2)
            finite = cell if math.isfinite(cell) else centre
            clamped = min(max(finite, lower), upper)
            self.filled[i] += not math.isfinite(cell)
            self.clamped[i] += clamped != finite
            scaled.append((clamped - centre) / scale)
        length = math.hypot(*scaled)
        self.units.append([x / length if length else 0.0 for x in scaled])

    def gram(self) -> list[list[float]]:
        p = range(
            int(self.intercept) + sum(len(c.get("levels", [0])) for c in self.columns.values())
        )
        return [[math.fsum(x[i] * x[j] for x in self.units) for j in p] for i in p]


def csv(name: str, text: str | bytes, expected: Sequence[Row], /, **changes: Any) -> Read:
    data = text.encode() if isinstance(text, str) else text
    return Read(name, {"t.csv": data}, expected, changes=changes)


def parquet(name: str, values: pa.Array, numbers: Sequence[float]) -> Read:
    """A Parquet column next to one of threes."""
    table = pa.table({"c1": [3.0] * len(values), "c0": values})
    return Read(name, {"t.parquet": table}, [[x, 3] for x in numbers])


def written(table: pa.Table, **options: Any) -> bytes:
    """A Parquet file, written with unusual options."""
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def zipped(text: str, *names: str) -> bytes:
    """A ZIP with the same text under each name."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, text)
    return stream.getvalue()
