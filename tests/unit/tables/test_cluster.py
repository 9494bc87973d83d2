"""On a Dask cluster: the same integers, and nothing private is sent, written or logged."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.common.lattice import Lattice
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import GramercyError, RequestError, TableError
from gramercy.schemas.normalisation import Unit
from gramercy.tables import cluster
from gramercy.tables.cluster import Cluster
from gramercy.tables.passes import here
from gramercy.tables.read import pieces
from gramercy.tables.source import open_source
from gramercy.tables.streaming import Accumulated, accumulate
from tests.support.factories import contract_facts, read_plan, write_request

P = 4
MARK = "918273.645"  # a private value


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Two processes, which keep everything in memory."""
    import dask
    from distributed import LocalCluster

    memory = {"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}
    with (
        dask.config.set(memory),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="2GB"
        ) as made,
    ):
        yield made.scheduler_address


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(rng.normal(size=(rows, P)), columns=[f"c{k}" for k in range(P)])
    found.loc[::9, "c1"] = np.nan
    return found.assign(who=[f"p{k % 37}" for k in range(rows)])


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


def contract(source: str, **more: Any) -> Contract:
    facts = contract_facts(source, rows=3003, p=P) | {"budget": {"epsilon": 1.0, "delta": 1e-5}}
    return Contract.model_validate(facts | more)


def summed(source: str, terms: Contract, engine: Any = here, **more: Any) -> Accumulated:
    return accumulate(open_source(source), terms, Unit(), Lattice(P, 14), engine=engine, **more)


PERSONS = {"unit": "who", "persons": 37}


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"neighbours": "add-remove"}, PERSONS], ids=str)
def test_cluster_sums_equal_local_sums(
    more: dict[str, Any], files: str, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_PIECE", 1)
    terms = contract(files, **more)
    told: list[int] = []
    alone = summed(files, terms)
    there = summed(files, terms, Cluster(scheduler), on_rows=told.append)
    assert alone.parts[0].gram is not None
    assert there.parts[0].gram is not None
    assert (alone.parts[0].gram == there.parts[0].gram).all()
    assert (alone.rows, alone.read, alone.malformed) == (there.rows, there.read, there.malformed)
    assert alone.nobodys == there.nobodys
    assert (alone.repairs.filled == there.repairs.filled).all()
    assert (alone.repairs.clamped == there.repairs.clamped).all()
    assert sum(told) == terms.rows * (2 if "unit" in more else 1)
    assert len(told) >= 9


@pytest.mark.slow
def test_cluster_folds_sum_to_all_rows(
    files: str, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each worker draws the folds of the rows that it reads."""
    monkeypatch.setattr(cluster, "_PIECE", 1)
    terms = contract(files)
    alone = summed(files, terms)
    there = summed(files, terms, Cluster(scheduler), folds=5, assign=partial(sampler.parts, 5))
    assert len(there.parts) == 5
    assert min(part.rows for part in there.parts) > 0
    assert there.rows == alone.rows
    assert alone.gram is not None
    assert (there.gram == alone.gram).all()


def test_pieces_cover_every_row_group_once(files: str) -> None:
    source = open_source(files)
    for size, count in ((1, 7), (333 * 5 * 3, 3), (1 << 40, 1)):
        groups = [each.files[0].groups for each in pieces(source, size)]
        found = [each for each in groups if each is not None]
        assert len(found) == count
        assert sorted(k for each in found for k in each) == list(range(7))
    assert [Path(each.files[0].path).name for each in pieces(source, 1 << 40)] == [
        "a.csv",
        "b.csv.gz",
        "c.parquet",
    ]


@pytest.mark.slow
def test_client_sends_only_public_constants_and_names(
    files: str, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything it submits, except for futures."""
    from distributed import Client, Future

    frame = table(50)
    frame.loc[3, "c0"] = float(MARK)
    frame.loc[3, "who"] = "Maria-private"
    path = Path(files).parent / "secret.csv"
    frame.to_csv(path, index=False)
    sent: list[bytes] = []
    submit = Client.submit

    def recorded(self: Any, step: Any, *given: Any, **options: Any) -> Any:
        sent.append(pickle.dumps([x for x in given if not isinstance(x, Future)]))
        return submit(self, step, *given, **options)

    monkeypatch.setattr(Client, "submit", recorded)
    terms = contract(str(path), rows=50, unit="who", persons=38)
    assert summed(str(path), terms, Cluster(scheduler)).rows == 38
    assert len(sent) == 2
    together = b"".join(sent)
    assert b"secret.csv" in together
    assert b"Maria-private" not in together
    assert np.float64(MARK).tobytes() not in together


@pytest.mark.slow
def test_worker_errors_carry_no_private_values(
    tmp_path: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gone.csv"
    table(20).to_csv(path, index=False)
    source, terms = open_source(str(path)), contract(str(path), rows=20)
    path.unlink()
    with pytest.raises(TableError, match=r"gone\.csv"):
        accumulate(source, terms, Unit(), Lattice(P, 14), engine=Cluster(scheduler))
    table(20).to_csv(path, index=False)
    monkeypatch.setattr(cluster, "summed", _raise_private_value)
    with pytest.raises(GramercyError) as caught:
        summed(str(path), terms, Cluster(scheduler))
    assert str(caught.value).startswith("_raise_private_value: KeyError on a worker.")
    assert MARK not in repr(caught.value.__context__)
    monkeypatch.undo()
    with pytest.raises(TableError, match="'rows' is 21"):
        summed(str(path), contract(str(path), rows=21), Cluster(scheduler))


def _raise_private_value(*given: Any) -> Any:
    raise KeyError(MARK)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x"])
def test_unreachable_scheduler_is_refused(
    address: str, files: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_PATIENCE", "1s")
    with pytest.raises(RequestError, match="no Dask scheduler answers"):
        summed(files, contract(files), Cluster(address))


def test_missing_scheduler_address_is_refused(files: str) -> None:
    with pytest.raises(RequestError, match="no address is given"):
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
        ) as made,
    ):
        with pytest.raises(RequestError, match="may write to disk"):
            summed(files, contract(files), Cluster(made.scheduler_address))
        monkeypatch.setattr(cluster, "_check", lambda client: None)  # it came afterwards
        with pytest.raises(RequestError, match="may write to disk"):
            summed(files, contract(files), Cluster(made.scheduler_address))


@pytest.mark.slow
def test_workers_without_gramercy_are_refused(
    files: str, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(dask_worker: Any) -> Any:
        raise ModuleNotFoundError("tables")

    monkeypatch.setattr(cluster, "_of_worker", elsewhere)
    with pytest.raises(RequestError, match="not all workers"):
        summed(files, contract(files), Cluster(scheduler))


@pytest.mark.slow
def test_workers_with_another_version_are_refused(
    files: str, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_version", lambda: "9.9")
    with pytest.raises(RequestError, match=r"not all workers .* have Gramercy 9\.9"):
        summed(files, contract(files), Cluster(scheduler))


@pytest.mark.slow
def test_engine_does_not_change_the_request_key(tmp_path: Path) -> None:
    """Where the table is read changes nothing; published rows need one process."""
    alone = read_plan(write_request(tmp_path))
    dask = {"kind": "dask", "scheduler": "tcp://127.0.0.1:1"}
    there = read_plan(write_request(tmp_path, request={"engine": dask}))
    assert alone.key == there.key
    assert "engine" not in there.asked.model_dump_json()
    rows = {"name": "rows", "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(RequestError, match="'rows' publishes rows, in their order"):
        read_plan(write_request(tmp_path, request={"engine": dask, "mechanism": rows}))
    for engine in ("dusk", {"kind": "dask", "scheduler": "nowhere"}, {"kind": "here", "x": 1}):
        with pytest.raises(RequestError, match="engine"):
            read_plan(write_request(tmp_path, request={"engine": engine}))
