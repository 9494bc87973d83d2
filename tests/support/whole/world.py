"""A home with two data sets, whose tables have recognisable cells, and its steward's requests."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gramercy.common.home import Home
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from tests.support.databases import ledger_location
from tests.support.factories import contract_facts, read_plan, write_yaml

ROWS = 8

CONTRACTS: dict[str, dict[str, Any]] = {
    "one": {"source": "one.csv", "budget": {"epsilon": 2.5, "delta": 1e-5}},
    "two": {
        "source": "two-{year}.csv",
        "budget": {"epsilon": 1.2, "delta": 1e-5, "per": "year"},
        "neighbours": "add-remove",
    },
}
TABLES = {"one": ["one.csv"], "two": ["two-2025.csv", "two-2026.csv"]}


def _request(dataset: str, version: str, name: str, epsilon: float, **more: Any) -> dict[str, Any]:
    delta = {} if name == "laplace" else {"delta": 1e-6}
    mechanism = {"name": name, "epsilon": epsilon, **delta}
    return {"dataset": f"{dataset}.yaml", "version": version, "mechanism": mechanism, **more}


REQUESTS = (
    _request("one", "v1", "gaussian", 1.0),
    _request("one", "v2", "gaussian", 1.0),
    _request("one", "v1", "laplace", 0.8),
    _request("one", "v1", "rows", 0.9),
    _request("one", "v3", "gaussian", 0.7, folds=2),
    _request("two", "2025", "gaussian", 0.6),
    _request("two", "2025-12-31", "marginals", 0.5),
    _request("two", "2026", "gaussian", 0.6),
    _request("two", "2026", "gaussian", 0.8, scaling={"kind": "private", "share": 0.3}),
)


def dataset_of(request: int) -> str:
    return str(REQUESTS[request]["dataset"]).removesuffix(".yaml")


@dataclass
class World:
    """A home, its tables and its requests.

    Parameters
    ----------
    folder
        An empty folder.
    kind
        The ledger's kind of database.
    neighbour
        Whether every table differs in one row.
    """

    folder: Path
    kind: str
    neighbour: bool = False
    cells: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        for dataset, facts in CONTRACTS.items():
            columns = {f"c{i}": {"lower": -5.0, "upper": 5.0} for i in range(2)}
            path = self.folder / f"{dataset}.yaml"
            terms = contract_facts() | {"id": dataset, "rows": ROWS, "columns": columns} | facts
            write_yaml(path, terms)
            self.replace_tables(dataset, "new", seed=0)
        for number, request in enumerate(REQUESTS):
            write_yaml(self.request(number), request)
        self.home.root.mkdir()
        self.location = ledger_location(self.kind, self.home.root)
        self._plans: dict[int, Plan] = {}

    @property
    def home(self) -> Home:
        return Home((self.folder / "home").resolve())

    def request(self, number: int) -> Path:
        """The file of a request."""
        return self.folder / f"request-{number}.yaml"

    def plan(self, number: int) -> Plan:
        """The plan of a request; requests and contracts never change."""
        if number not in self._plans:
            self._plans[number] = read_plan(self.request(number))
        return self._plans[number]

    @cached_property
    def environ(self) -> dict[str, str]:
        """The environment variables of its processes."""
        environ = {"GRAMERCY_HOME": str(self.home.root), "TMPDIR": str(self.folder)}
        if self.kind != "sqlite":
            environ["GRAMERCY_LEDGER_URL"] = str(self.location)
        return environ

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """This process uses this home during the block."""
        names = ("GRAMERCY_HOME", "GRAMERCY_LEDGER_URL")
        before = {name: os.environ.pop(name, None) for name in names}
        os.environ.update({name: self.environ[name] for name in names if name in self.environ})
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value

    def context(self) -> Context:
        """The stores, opened again."""
        return Context(self.home)

    def neutral(self, text: str) -> str:
        """A text without the names of this world's folder and database."""
        for own in (str(self.folder.resolve()), str(self.folder)):
            text = text.replace(own, "")
        return re.sub(r"\bledger_\d+\b", "", text)

    def replace_tables(self, dataset: str, how: str, seed: int) -> None:
        """Replace the tables of a data set: ``new`` ones, ``garbled`` ones, or none (``missing``).

        The neighbouring world's differ in one row.
        """
        for index, name in enumerate(TABLES[dataset]):
            path = self.folder / name
            path.unlink(missing_ok=True)
            if how == "garbled":
                path.write_bytes(b"\x00\xff\n" * seed)
            elif how == "new":
                rows = self._rows(np.random.default_rng([seed, index]), dataset)
                path.write_text("\n".join(["c0,c1", *rows]) + "\n")

    def _rows(self, rng: np.random.Generator, dataset: str) -> list[str]:
        cells = rng.uniform(1, 5, (ROWS, 2)) * rng.choice([-1, 1], (ROWS, 2))
        other = rng.uniform(1, 5, 2)
        odd = ["", "1e300", "-inf", "abc", "nan", f"{other[1]!r}"][rng.integers(6)]
        rows = [f"{a!r},{b!r}" for a, b in cells.tolist()]
        self.cells += cells.ravel().tolist()
        if self.neighbour:
            self.cells += other.tolist()
            rows[int(rng.integers(ROWS))] = f"{float(other[0])!r},{odd}"
            if dataset == "two" and rng.random() < 0.5:  # neighbours by adding or removing a row
                rows.pop()
        return rows

    def private_values(self) -> list[bytes]:
        """Every cell that any table has had, as files could contain it."""
        return [
            form
            for cell in self.cells
            for form in (
                repr(abs(cell))[:10].encode(),
                np.float64(cell).tobytes(),
                np.float64(cell / 5).tobytes(),
            )
        ]
