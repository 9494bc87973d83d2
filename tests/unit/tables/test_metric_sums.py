"""Sums over rows that are measured in a metric: the sensitivity, and one result however read."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gramercy.common.lattice import Lattice
from gramercy.common.metric import Metric
from gramercy.schemas.contract import Contract
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.normalisation import Clip, FurtherRows, Lost, Missing
from gramercy.tables.counts.counting import LengthJob
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.exact_sums import ONE_PART, Parts
from gramercy.tables.sums.further_sums import FurtherJob
from gramercy.tables.sums.passes import run_locally
from gramercy.tables.sums.streaming import GramJob
from tests.support.factories import contract_facts

Array = NDArray[Any]
FAR = 1e6
COLUMNS: dict[str, Any] = {
    f"c{k}": {"lower": -FAR, "upper": FAR, "centre": 0.0, "scale": 1.0} for k in range(3)
} | {
    "constant": {"lower": -1.0, "upper": 1.0},
    "wide": {"lower": -1e15, "upper": 1e15, "centre": 0.0, "scale": 1.0},
}
NAMES = list(COLUMNS)
Q = 6
LATTICE, WIDE = Lattice(Q, 14), Lattice(Q + 2, 14)
RADIUS, UNIT = 2.0, 3.0
GROUPS = Parts(by=LevelsFacts(name="ward", levels=("A", "B")))
BY_PERSON: dict[str, Any] = {"privacy_unit": "who", "persons": 40}
CLIP = Clip(radius=RADIUS)
FURTHER: dict[str, FurtherRows] = {
    "lost": Lost(radius=RADIUS, unit=UNIT, cut=1.0, intercept=UNIT / 2),
    "missing": Missing(radius=RADIUS, cut=2.0, columns=(0, 2), indicator=1.0),
}


def metric() -> Metric:
    """The metric of columns that are nearly copies of each other."""
    second = 0.995 * np.ones((Q, Q)) + 0.005 * np.eye(Q)
    second[0, 1:] = second[1:, 0] = 0.1
    values, vectors = np.linalg.eigh(second + 1e-3 * np.eye(Q))
    return Metric.near((vectors / np.sqrt(values)) @ vectors.T)


METRIC = metric()


def frame(rows: int = 500, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    cells = rng.normal(size=(rows, 1)) + 0.1 * rng.standard_t(2, size=(rows, 5))
    cells[:, 3] = 0.25
    cells[rng.random((rows, 5)) < 0.05] = np.nan
    cells[:6, 0] = [np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0]
    cells[3:9, 4] = [1e15, -1e15, 1e9, 1e300, 1e-300, 3e7]
    table = pd.DataFrame(cells, columns=NAMES)
    table["ward"] = rng.choice(["A", "B", "C"], rows)
    table["who"] = [f"id-{int(k)}" for k in rng.integers(0, 40, rows)]
    return table


def contract(path: Path, rows: int, **changes: Any) -> Contract:
    facts = contract_facts(path, rows=rows) | {"columns": COLUMNS, "intercept": True}
    budget = {"budget": {"epsilon": 1.0, "delta": 1e-6}}
    return Contract.model_validate(facts | budget | {"neighbours": "add-remove"} | changes)


Sums = dict[str, list[Array]]


def jobs(declared: Contract, groups: Parts, threads: int | None) -> dict[str, Any]:
    """All passes over the rows in the metric."""
    shared: dict[str, Any] = {"metric": METRIC, "threads": threads}
    of_further = {
        name: FurtherJob(
            declared, rows, LATTICE if name == "lost" else WIDE, LATTICE, groups, **shared
        )
        for name, rows in FURTHER.items()
    }
    edges = np.geomspace(0.1, 4000, 30)
    return {
        "matrix": GramJob(
            declared,
            CLIP,
            LATTICE,
            parts=groups,
            draw_keys=lambda rows: np.zeros((2, rows), np.uint64),
            **shared,
        ),
        **of_further,
        "lengths": LengthJob(declared, edges, **shared),
    }


def results(total: Any) -> list[Array]:
    if hasattr(total, "part_sums"):
        return [part.gram for part in total.part_sums]
    return list(total.units.histograms())


def summed(
    table: pd.DataFrame,
    path: Path,
    groups: Parts = ONE_PART,
    threads: int | None = None,
    **changes: Any,
) -> Sums:
    """The exact sums of a table, of every part, and its histogram of lengths."""
    table.to_parquet(path, index=False, row_group_size=changes.pop("row_group_size", None))
    declared, source = contract(path, len(table), **changes), open_source(str(path))
    return {
        name: results(run_locally(source, job, lambda _: None))
        for name, job in jobs(declared, groups, threads).items()
    }


def equal(first: Sums, second: Sums) -> bool:
    return all(
        (one == two).all()
        for name in first
        for one, two in zip(first[name], second[name], strict=True)
    )


@pytest.fixture(params=["plain", "compiled"])
def code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    kind: str = request.param
    limit = 1 if kind == "compiled" else 1 << 60
    monkeypatch.setattr("gramercy.tables.sums.row_transform._LARGE", limit)
    monkeypatch.setattr("gramercy.tables.sums.row_transform.is_loaded", lambda _: False)
    return kind


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, BY_PERSON], ids=["rows", "persons"])
@pytest.mark.parametrize("groups", [ONE_PART, GROUPS], ids=["all", "groups"])
def test_any_order_batch_threads_and_partitions_give_the_same_integers(
    groups: Parts, changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also rows that are read alone, and compiled code: a row has its integers by itself."""
    monkeypatch.setattr("gramercy.tables.sums.row_transform.is_loaded", lambda _: False)
    path, table = tmp_path / "t.parquet", frame(80)
    shuffled = table.sample(frac=1, random_state=1)
    expected = summed(table, path, groups, **changes)
    if not changes and groups is ONE_PART:
        alone = [summed(table[k : k + 1], path) for k in range(20)]
        total = {name: [reduce(add, (each[name][0] for each in alone))] for name in expected}
        assert equal(total, summed(table[:20], path))
    for limit in (1 << 60, 1):
        monkeypatch.setattr("gramercy.tables.sums.row_transform._LARGE", limit)
        for size, threads in ((None, 1), (1, 3)):
            with monkeypatch.context() as patch, threadpool_limits(threads):
                patch.setattr(
                    "gramercy.tables.batches.BATCH_CELLS", 1 << 20 if size is None else 6 * size
                )
                rows = {"row_group_size": 50} if size else {}
                again = summed(shuffled, path, groups, threads, **rows, **changes)
                assert equal(again, expected)
        parts = []
        for k, part in enumerate((table[:40], table[40:41], table[41:])):
            part.to_parquet(tmp_path / f"part{k}.parquet", index=False)
            parts.append(open_source(str(tmp_path / f"part{k}.parquet")))
        for name, job in jobs(contract(path, len(table), **changes), groups, None).items():
            persons = None
            for _ in range(job.passes - 1):
                persons = reduce(add, [job.measure(part, persons=persons) for part in parts])
            partial = results(reduce(add, [job.run(part, persons) for part in parts]))
            assert equal({name: partial}, {name: expected[name]})


def far_rows() -> list[list[float]]:
    """Rows that are far out and orthogonal: in the metric, and in scaled columns."""
    of_columns = METRIC.matrix[:, 1:4]
    values, vectors = np.linalg.eigh(of_columns.T @ of_columns)
    in_metric = np.hstack([(vectors / np.sqrt(values)) @ vectors.T, np.zeros((3, 2))])
    return [*(1e5 * in_metric).tolist(), *(1e5 * np.eye(5)).tolist()]


ORDINARY = [
    [0.0] * 5,
    [np.nan] * 5,
    [np.inf, -np.inf, 1e308, np.nan, -1e308],
    [1e-300, 5e-324, -0.0, 1.0, 1e15],
    [1.0, -1.0, 1.0, -1.0, 1.0],  # short in scaled columns, long in the metric
    [1.0, 1.0, 1.0, 1.0, 1.0],
    [np.nan, 1e5, np.nan, 1.0, 0.0],
]
CLOSE = 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("groups", [ONE_PART, GROUPS], ids=["all", "groups"])
def test_one_row_moves_the_sums_by_at_most_the_sensitivity(
    groups: Parts, code: str, tmp_path: Path
) -> None:
    """And the bounds are attained; no other row moves."""
    path, table, tables = tmp_path / "t.parquet", frame(40), list[Sums]()
    for number, row in enumerate([*far_rows(), *ORDINARY]):
        changed = table.copy()
        changed.loc[17, NAMES] = row
        changed.loc[17, "ward"] = "ABC"[number % 3]
        tables.append(summed(changed, path, groups))
    removed = summed(table.drop(index=17), path, groups)
    for name in ("matrix", *FURTHER):
        unit = (LATTICE if name != "missing" else WIDE).squared_radius
        replaced = [distance(one[name], two[name]) / unit for one in tables for two in tables]
        added = [distance(one[name], removed[name]) / unit for one in tables]
        assert max(added) <= CLOSE
        assert max(replaced) <= math.sqrt(2) * CLOSE
        if name != "missing":  # no row has missing cells, and is as far out in all others
            assert max(added) > 0.998
            assert max(replaced) > 0.998 * math.sqrt(2)
        for one in tables:
            assert (
                max(
                    np.linalg.matrix_rank(each, tol=0.1)
                    for each in parts_moved(one[name], removed[name])
                )
                <= 1
            )
    for one in tables:
        (change,) = (x - y for x, y in zip(one["lengths"], removed["lengths"], strict=True))
        assert np.abs(change).sum() == change.sum() == 1


def parts_moved(one: list[Array], two: list[Array]) -> list[Array]:
    return [(x - y).astype(np.float64) for x, y in zip(one, two, strict=True)]


def distance(one: list[Array], two: list[Array]) -> float:
    """The Frobenius norm of the change of all parts together."""
    return math.hypot(*(float(np.linalg.norm(each)) for each in parts_moved(one, two)))


@pytest.mark.slow
@pytest.mark.parametrize("groups", [ONE_PART, GROUPS], ids=["all", "groups"])
def test_one_person_moves_the_sums_by_at_most_the_sensitivity(
    groups: Parts, code: str, tmp_path: Path
) -> None:
    path, table, tables = tmp_path / "t.parquet", frame(400), list[Sums]()
    others = table[table["who"] != "id-4"]
    rows = [*far_rows(), *ORDINARY]
    for number, row in enumerate(rows):
        for times in (1, 100):
            own = pd.DataFrame([row] * times, columns=NAMES)
            wards = ["ABC"[(number + k) % 3] for k in range(times)]
            tables.append(
                summed(
                    pd.concat([others, own.assign(ward=wards, who="id-4")]),
                    path,
                    groups,
                    **BY_PERSON,
                )
            )
    own = pd.DataFrame(rows * 5, columns=NAMES).assign(ward="A", who="id-4")
    tables.append(summed(pd.concat([others, own]), path, groups, **BY_PERSON))
    removed = summed(others, path, groups, **BY_PERSON)
    for name in ("matrix", *FURTHER):
        unit = (LATTICE if name != "missing" else WIDE).squared_radius
        replaced = [distance(one[name], two[name]) / unit for one in tables for two in tables]
        added = [distance(one[name], removed[name]) / unit for one in tables]
        assert max(added) <= CLOSE
        assert max(replaced) <= math.sqrt(2) * CLOSE
        if name != "missing":
            assert max(added) > 0.99
            assert max(replaced) > 0.99 * math.sqrt(2)
