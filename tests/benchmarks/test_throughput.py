"""The throughput benchmark: contenders do the same job, and the page reports the measurements."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.measuring import append
from benchmarks.throughput import cells, page, tables
from benchmarks.throughput.cells import Cell, Contender, Measured, Result
from benchmarks.throughput.jobs import (
    csv,
    gram,
    inputs,
    noise,
    parquet,
    parts,
    persons,
    rows,
    stream,
)


def test_contenders_sum_the_same_rows(tmp_path: Path) -> None:
    """Sums in memory and from files are equal, and agree with numpy up to rounding."""
    cell = Cell("gram", 3000, 4)
    with gram.job(cell, tmp_path) as found:
        whole = found["Gramercy: repair, normalisation, Gram"].run()
        alone = found["Gramercy: Gram of integer rows"].run()
        unit = found["numpy: normalisation, X.T @ X"].run()
    np.testing.assert_array_equal(whole.gram, alone)  # type: ignore[attr-defined]
    lattice = inputs.lattice(4)
    np.testing.assert_allclose(alone / lattice.divisor, unit, atol=3000 * 2.0**-14)
    for job in (parquet, csv):
        with job.job(cell, tmp_path) as found:
            ours, theirs, *_ = (each.run() for each in found.values())
            assert ours.rows == 3000  # type: ignore[attr-defined]
            assert np.trace(theirs) > 0  # type: ignore[call-overload]
            if job is parquet:
                np.testing.assert_array_equal(ours.gram, alone)  # type: ignore[attr-defined]


def test_person_contenders_count_all_persons(tmp_path: Path) -> None:
    with persons.job(Cell("persons", 500, 3), tmp_path) as found:
        of_persons, of_rows = (each.run() for each in found.values())
    assert of_persons.rows == 50  # type: ignore[attr-defined]
    assert of_rows.rows == 500  # type: ignore[attr-defined]


def test_contenders_of_parts_sum_all_rows(tmp_path: Path) -> None:
    with parts.job(Cell("parts", 500, 3), tmp_path) as found:
        folds, groups, whole = (each.run() for each in found.values())
    for sums in (folds.part_sums, groups.part_sums):  # type: ignore[attr-defined]
        assert len(sums) == parts.COUNT
        assert sum(each.rows for each in sums) == 500
        assert (sum(each.gram for each in sums) == whole.gram).all()  # type: ignore[attr-defined]


def test_stream_contender_reads_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_ROWS", 200)
    with stream.job(Cell("stream", 600, 3), tmp_path) as found:
        summed = found["Gramercy"].run()
    assert summed.rows == 600  # type: ignore[attr-defined]
    assert summed.gram is not None  # type: ignore[attr-defined]


def test_noise_and_row_contenders_draw_noise(tmp_path: Path) -> None:
    with noise.job(Cell("noise", 1000, 1), tmp_path) as found:
        for name, each in found.items():
            drawn = np.asarray(each.run())
            assert drawn.shape == (1000,)
            assert np.unique(drawn).size > 100, name
    with rows.job(Cell("rows", 400, 3), tmp_path) as found:
        found["Gramercy: Parquet to noisy Parquet"].run()
        moment = found["Gramercy: second moment from noisy rows"].run()
    assert np.asarray(moment).shape == (3, 3)


def test_seconds_and_peak_memory_are_measured() -> None:
    """Seconds are scaled up from a share; peak memory includes memory that is freed again."""

    def greedy() -> None:
        time.sleep(0.05)
        np.ones(1 << 23).sum()

    found = cells._once(Contender(greedy, share=0.5))
    assert found.seconds[0] >= 0.1
    assert tables.added(found) > 60
    again = cells._once(Contender(lambda: None))
    assert tables.added(again) < 5


def test_time_ratios_compare_one_round() -> None:
    one, other = Measured([1.0, 4.0, 9.0], 10, 30), Measured([1.0, 2.0], 10, 20)
    result = Result(Cell("gram", 10, 2), 1.0, {"a": one, "b": other})
    assert tables.ratio(result, "a", "b") == 1.5
    assert tables.ratio(result, "a", "c") is None
    assert tables.seconds(one) == 4.0
    assert tables.slope([(1, 2.0), (10, 200.0), (100, 20_000.0)]) == pytest.approx(2.0)


def test_page_is_written_from_results(tmp_path: Path) -> None:
    """The page depends only on the stored results."""
    contenders = {
        "gram": [page.OURS, page.PRODUCT],
        "parquet": ["ours", "pyarrow: read, X.T @ X"],
        "csv": ["ours", "pyarrow: read, X.T @ X"],
        "database": ["ours", "psycopg: fetch all rows"],
        "persons": ["Gramercy: persons", "Gramercy: rows"],
        "parts": ["Gramercy: 20 folds", "Gramercy: one sum"],
        "noise": ["ours", "numpy: normal doubles"],
        "rows": ["ours"],
        "stream": ["Gramercy"],
        "cluster": ["Dask: 2 workers", "Dask: 1 worker"],
        "flow": ["Prefect flow", "its steps alone"],
    }
    path = tmp_path / "results.jsonl"
    for k, cell in enumerate(cells.plan(quick=True)):
        found = {
            name: Measured([0.1 * (k + i + 1)], 100, 123 + k)
            for i, name in enumerate(contenders[cell.what])
        }
        append(path, Result(cell, 1.0, found))
    assert len(cells.read(path)) == len(list(cells.plan(quick=True)))
    page.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert "| 10,000 × 10 | 0.1 (**0.50**) | 0.2 |" in text
    assert "0.10 s more" in text or "-0.10 s more" in text
    for name in ("growth", "memory", "noise"):
        assert f"figures/{name}.svg" in text
        assert (tmp_path / "figures" / f"{name}.svg").stat().st_size > 1000
