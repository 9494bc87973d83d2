"""A Dask cluster gives the same integers, and nothing private is sent, written or logged."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import pickle
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.common.lattice import Lattice
from gramercy.common.metric import Metric
from gramercy.mechanisms.sampling import sampler
from gramercy.scaling.column_constants import first_grid
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Clip, FurtherRows, Lost, Missing, Unit
from gramercy.schemas.steps import Cumulative
from gramercy.tables.counts.counting import count_bins, count_lengths
from gramercy.tables.formats.reader import partitions
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums import cluster
from gramercy.tables.sums.cluster import Cluster
from gramercy.tables.sums.exact_sums import Parts
from gramercy.tables.sums.further_sums import sum_further_rows
from gramercy.tables.sums.passes import run_locally
from gramercy.tables.sums.streaming import Accumulated, accumulate
from tests.support.factories import contract_facts, read_plan, write_request
from tests.support.problems import raises

P = 4
MARK = "918273.645"  # a private value


@contextmanager
def local_cluster() -> Iterator[Any]:
    """A cluster of two worker processes, which keep everything in memory.

    They are forked from one that has imported what they need: it takes a second.
    """
    import dask
    from distributed import LocalCluster

    multiprocessing.set_forkserver_preload(["distributed.nanny", cluster.__name__])
    forkserver.ensure_running()  # before Dask states what it would import
    memory = {"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}
    with (
        dask.config.set(memory | {"distributed.worker.multiprocessing-method": "forkserver"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="2GB"
        ) as started,
    ):
        yield started


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a cluster that several tests share."""
    with local_cluster() as started:
        yield started.scheduler_address


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, P)), columns=[f"c{k}" for k in range(P)])
    frame.loc[::9, "c1"] = np.nan
    return frame.assign(who=[f"p{k % 37}" for k in range(rows)])


@pytest.fixture
def files(tmp_path: Path) -> str:
    """Two CSV files, one with malformed lines, and Parquet with several row groups."""
    table(700).to_csv(tmp_path / "a.csv", index=False)
    text = table(300, 1).to_csv(index=False).splitlines()
    text[7:7] = ["", '"open,1,2', "1,2"]
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress("\n".join(text).encode()))
    frame = pa.Table.from_pandas(table(2000, 2), preserve_index=False)
    pq.write_table(frame, tmp_path / "c.parquet", row_group_size=333)
    return str(tmp_path / "*.*")


def contract(source: str, **changes: Any) -> Contract:
    facts = contract_facts(source, rows=3003, p=P) | {"budget": {"epsilon": 1.0, "delta": 1e-5}}
    return Contract.model_validate(facts | changes)


def summed(
    source: str, declared: Contract, engine: Any = run_locally, **changes: Any
) -> Accumulated:
    return accumulate(
        open_source(source), declared, Unit(), Lattice(P, 14), engine=engine, **changes
    )


PERSONS = {"privacy_unit": "who", "persons": 37}


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"neighbours": "add-remove"}, PERSONS], ids=str)
def test_cluster_sums_equal_local_sums(
    changes: dict[str, Any], files: str, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_PARTITION_CELLS", 1)
    declared = contract(files, **changes)
    reported: list[int] = []
    local = summed(files, declared)
    remote = summed(files, declared, Cluster(scheduler), on_rows=reported.append)
    assert local.part_sums[0].gram is not None
    assert remote.part_sums[0].gram is not None
    assert (local.part_sums[0].gram == remote.part_sums[0].gram).all()
    assert (local.rows, local.rows_read, local.malformed) == (
        remote.rows,
        remote.rows_read,
        remote.malformed,
    )
    assert local.rows_without_person == remote.rows_without_person
    assert (local.repairs.filled == remote.repairs.filled).all()
    assert (local.repairs.clamped == remote.repairs.clamped).all()
    assert sum(reported) == declared.rows * (2 if "privacy_unit" in changes else 1)
    assert len(reported) >= 9


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, PERSONS], ids=str)
@pytest.mark.parametrize(
    "further",
    [
        Lost(radius=0.2, unit=0.2, cut=1.0, intercept=0.0),
        Missing(radius=0.2, cut=1.0, columns=(0, 1), indicator=1.0),
    ],
    ids=["lost", "missing"],
)
def test_cluster_sums_further_rows_as_one_process_does(
    further: FurtherRows,
    changes: dict[str, Any],
    files: str,
    scheduler: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster, "_PARTITION_CELLS", 1)
    declared, rows = contract(files, **changes), Lattice(P, 14)
    lattice = Lattice(further.width(P), 14)
    local, remote = (
        sum_further_rows(open_source(files), declared, further, lattice, rows, engine=engine)
        for engine in (run_locally, Cluster(scheduler))
    )
    assert local[0].gram is not None
    assert remote[0].gram is not None
    assert np.trace(local[0].gram) > lattice.squared_radius
    assert (local[0].gram == remote[0].gram).all()


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, PERSONS], ids=str)
def test_cluster_measures_rows_in_a_metric_as_one_process_does(
    changes: dict[str, Any], files: str, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_PARTITION_CELLS", 1)
    declared, rows, source = contract(files, **changes), Lattice(P, 14), open_source(files)
    metric = Metric.near(np.full((P, P), 0.7) + 0.4 * np.eye(P))
    lost = Lost(radius=0.3, unit=0.2, cut=1.0, intercept=0.0)
    found = []
    for engine in (run_locally, Cluster(scheduler)):
        in_metric: dict[str, Any] = {"metric": metric, "engine": engine}
        matrix = accumulate(source, declared, Clip(radius=0.3), rows, **in_metric)
        further = sum_further_rows(source, declared, lost, rows, rows, **in_metric)
        lengths = count_lengths(source, declared, np.linspace(0, 2, 50), **in_metric)
        found.append((matrix.gram, further[0].gram, lengths.counts[0]))
    for local, remote in zip(*found, strict=True):
        assert np.trace(local) > 0 if local.ndim == 2 else local.sum() > 0
        assert (local == remote).all()


@pytest.mark.slow
def test_killed_workers_change_no_sum(files: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both workers die, with the sums that they hold; others repeat their partitions."""
    monkeypatch.setattr(cluster, "_PARTITION_CELLS", 1)
    declared, killed = contract(files, **PERSONS), list[int]()
    local = summed(files, declared)
    with local_cluster() as workers:
        alive = [worker.process.pid for worker in workers.workers.values()]

        def kill_one(_: int) -> None:
            if alive:  # after the first partition, and after the second
                killed.append(alive.pop())
                os.kill(killed[-1], signal.SIGKILL)

        remote = summed(files, declared, Cluster(workers.scheduler_address), on_rows=kill_one)
    assert len(killed) == 2
    assert local.part_sums[0].gram is not None
    assert (local.part_sums[0].gram == remote.part_sums[0].gram).all()
    assert (local.rows, local.rows_read, local.malformed, local.rows_without_person) == (
        remote.rows,
        remote.rows_read,
        remote.malformed,
        remote.rows_without_person,
    )
    assert (local.repairs.filled == remote.repairs.filled).all()


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, PERSONS], ids=str)
def test_cluster_histograms_equal_local_histograms(
    changes: dict[str, Any], files: str, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The histograms of persons depend on random keys, unless a column is the same in all rows."""
    monkeypatch.setattr(cluster, "_PARTITION_CELLS", 1)
    declared, source = contract(files, **changes), open_source(files)
    reported: list[int] = []
    grids = [first_grid(-5.0, 5.0)] * P
    counts = [
        count_bins(
            source, declared, grids, reported.append, draw_keys=sampler.random_keys, engine=engine
        )
        for engine in (run_locally, Cluster(scheduler))
    ]
    edges = np.linspace(0.0, 2.0, 50)
    counts += [
        count_lengths(source, declared, edges, engine=engine)
        for engine in (run_locally, Cluster(scheduler))
    ]
    assert [len(each.counts) for each in counts] == [P, P, 1, 1]
    units = 37 if changes else 3003
    for each in counts:
        assert (each.units, each.rows_read, each.malformed) == (units, 3003, 3)
        assert {int(histogram.sum()) for histogram in each.counts} == {units}
    compared = counts[2:] if changes else counts
    for local, remote in zip(compared[::2], compared[1::2], strict=True):
        for first, second in zip(local.counts, remote.counts, strict=True):
            np.testing.assert_array_equal(first, second)
    assert sum(reported) == 3003 + 3000  # locally, malformed lines are not reported


@pytest.mark.slow
def test_cluster_chooses_one_row_of_each_person(
    tmp_path: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows of a person are the same, in every partition, so that any of them is right."""
    monkeypatch.setattr(cluster, "_PARTITION_CELLS", 1)
    person = pd.DataFrame(np.linspace(-4.9, 4.9, 20 * P).reshape(20, P), columns=list(table(1))[:P])
    person["who"] = [f"p{k}" for k in range(20)]
    for k in range(3):
        person.sample(frac=k + 1, replace=k > 0, random_state=k).to_csv(
            tmp_path / f"{k}.csv", index=False
        )
    declared = contract(str(tmp_path), rows=120, privacy_unit="who", persons=20)
    grids = [first_grid(-5.0, 5.0)] * P
    counts = count_bins(
        open_source(declared.source),
        declared,
        grids,
        draw_keys=sampler.random_keys,
        engine=Cluster(scheduler),
    )
    assert counts.rows_read == 120
    for k, histogram in enumerate(counts.counts):
        expected = np.histogram(person[f"c{k}"], grids[k].edges)[0]
        assert histogram.tolist() == [*expected, 0]


@pytest.mark.slow
def test_cluster_folds_sum_to_all_rows(
    files: str, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each worker draws the folds of the rows that it reads."""
    monkeypatch.setattr(cluster, "_PARTITION_CELLS", 1)
    declared = contract(files)
    local = summed(files, declared)
    remote = summed(
        files,
        declared,
        Cluster(scheduler),
        parts=Parts(5),
        assign=partial(sampler.uniform_integers, 5),
    )
    assert len(remote.part_sums) == 5
    assert min(part.rows for part in remote.part_sums) > 0
    assert remote.rows == local.rows
    assert local.gram is not None
    assert (remote.gram == local.gram).all()


@pytest.mark.slow
def test_cluster_sums_steps_as_one_process_does(
    tmp_path: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_PARTITION_CELLS", 1)
    frame = table(3003).assign(day=pd.date_range("2025-12-28", periods=3003, freq="h").date)
    pq.write_table(pa.table(frame), tmp_path / "table.parquet", row_group_size=333)
    source = str(tmp_path / "table.parquet")
    yearly = {"budget": {"epsilon": 1.0, "delta": 1e-5, "per": "year"}, "exclude": ["who"]}
    declared = contract(source, period={"column": "day"}, neighbours="add-remove", **yearly)
    dated = declared.for_steps(Cumulative(every="week").series("year", "2026"), 12)
    local, remote = (
        summed(source, dated, engine, parts=Parts(12))
        for engine in (run_locally, Cluster(scheduler))
    )
    rows = [each.rows for each in local.part_sums]
    assert rows == [each.rows for each in remote.part_sums] == [96, *[168] * 11]
    for one, other in zip(local.part_sums, remote.part_sums, strict=True):
        assert one.gram is not None
        assert (one.gram == other.gram).all()


def test_partitions_cover_every_row_group_once(files: str) -> None:
    source = open_source(files)
    for size, count in ((1, 7), (333 * 5 * 3, 3), (1 << 40, 1)):
        groups = [each.files[0].row_groups for each in partitions(source, size)]
        parts = [part for part in groups if part is not None]
        assert len(parts) == count
        assert sorted(k for part in parts for k in part) == list(range(7))
    assert [Path(each.files[0].path).name for each in partitions(source, 1 << 40)] == [
        "a.csv",
        "b.csv.gz",
        "c.parquet",
    ]


@pytest.mark.slow
def test_client_sends_only_public_constants_and_names(
    files: str, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test checks everything that the client submits, except for futures."""
    from distributed import Client, Future

    frame = table(50)
    frame.loc[3, "c0"] = float(MARK)
    frame.loc[3, "who"] = "Maria-private"
    path = Path(files).parent / "secret.csv"
    frame.to_csv(path, index=False)
    sent: list[bytes] = []
    submit = Client.submit

    def recorded(self: Any, step: Any, *args: Any, **options: Any) -> Any:
        sent.append(pickle.dumps([x for x in args if not isinstance(x, Future)]))
        return submit(self, step, *args, **options)

    monkeypatch.setattr(Client, "submit", recorded)
    declared = contract(str(path), rows=50, privacy_unit="who", persons=38)
    assert summed(str(path), declared, Cluster(scheduler)).rows == 38
    grids = [first_grid(-5.0, 5.0)] * P
    count_bins(
        open_source(str(path)),
        declared,
        grids,
        draw_keys=sampler.random_keys,
        engine=Cluster(scheduler),
    )
    assert len(sent) == 3
    submitted = b"".join(sent)
    assert b"secret.csv" in submitted
    assert b"Maria-private" not in submitted
    assert np.float64(MARK).tobytes() not in submitted


@pytest.mark.slow
def test_worker_errors_carry_no_private_values(
    tmp_path: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gone.csv"
    table(20).to_csv(path, index=False)
    source, declared = open_source(str(path)), contract(str(path), rows=20)
    path.unlink()
    with raises(families.FILE, file=str(path), format="CSV"):
        accumulate(source, declared, Unit(), Lattice(P, 14), engine=Cluster(scheduler))
    table(20).to_csv(path, index=False)
    monkeypatch.setattr(cluster, "run", _raise_private_value)
    with raises(families.DASK_FAILED, step="_raise_private_value", error="KeyError") as caught:
        summed(str(path), declared, Cluster(scheduler))
    assert MARK not in str(caught.value)
    assert MARK not in repr(caught.value.__context__)
    monkeypatch.undo()
    with raises(families.ROW_COUNT, rows=20, declared=21):
        summed(str(path), contract(str(path), rows=21), Cluster(scheduler))


def _raise_private_value(*args: Any) -> Any:
    raise KeyError(MARK)


def test_error_from_a_worker_keeps_code_and_facts_without_history() -> None:
    def fail(*args: Any) -> Any:
        error = families.FILE("{file}: cannot be read.", file="t.parquet", format="Parquet")
        error.add_note(MARK)
        raise error from KeyError(MARK)

    sent = pickle.dumps(_caught(fail).without_history())
    assert MARK.encode() not in sent
    error = pickle.loads(sent)
    assert (error.__cause__, error.__context__, error.__traceback__) == (None, None, None)
    assert error.code == families.FILE.code
    assert error.facts == {"file": "t.parquet", "format": "Parquet"}


def _caught(step: Any) -> Any:
    with raises(families.FILE) as caught:
        step()
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x"])
def test_unreachable_scheduler_is_refused(
    address: str, files: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_TIMEOUT", "1s")
    with raises(families.DASK, address=address):
        summed(files, contract(files), Cluster(address))


@pytest.mark.slow
def test_missing_scheduler_address_is_refused(files: str) -> None:
    with raises(families.DASK):
        summed(files, contract(files), Cluster(None))


def test_workers_that_may_spill_to_disk_are_refused(
    files: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask
    from distributed import LocalCluster

    with (
        dask.config.set({"distributed.worker.memory.spill": 0.7}),
        LocalCluster(
            n_workers=1, processes=False, dashboard_address=":0", memory_limit="16GB"
        ) as local_cluster,
    ):
        with raises(families.DASK):
            summed(files, contract(files), Cluster(local_cluster.scheduler_address))
        # As on a worker that joined after the check.
        monkeypatch.setattr(cluster, "_check_workers", lambda client: None)
        with raises(families.DASK):
            summed(files, contract(files), Cluster(local_cluster.scheduler_address))


@pytest.mark.slow
def test_workers_without_gramercy_are_refused(
    files: str, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_gramercy(dask_worker: Any) -> Any:
        raise ModuleNotFoundError("tables")

    monkeypatch.setattr(cluster, "_worker_status", without_gramercy)
    with raises(families.DASK):
        summed(files, contract(files), Cluster(scheduler))


@pytest.mark.slow
def test_workers_with_another_version_are_refused(
    files: str, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_version", lambda: "9.9")
    with raises(families.DASK, version="9.9"):
        summed(files, contract(files), Cluster(scheduler))


@pytest.mark.slow
def test_engine_does_not_change_the_request_key(tmp_path: Path) -> None:
    """The engine does not affect the result; mechanisms that publish rows need one process."""
    local = read_plan(write_request(tmp_path))
    dask = {"kind": "dask", "scheduler": "tcp://127.0.0.1:1"}
    remote = read_plan(write_request(tmp_path, request={"engine": dask}))
    assert local.key == remote.key
    assert "engine" not in remote.spec.model_dump_json()
    rows = {"name": "rows", "epsilon": 1.0, "delta": 1e-6}
    with raises(families.REQUEST_USE, mechanism="rows"):
        read_plan(write_request(tmp_path, request={"engine": dask, "mechanism": rows}))
    nowhere = {"kind": "dask", "scheduler": "nowhere"}
    for engine, problem, key in (
        ("dusk", families.KEY, "engine"),
        (nowhere, families.VALUE, "engine.scheduler"),
        ({"kind": "local", "x": 1}, families.KEY, "engine"),
    ):
        with raises(problem, key=key):
            read_plan(write_request(tmp_path, request={"engine": engine}))
