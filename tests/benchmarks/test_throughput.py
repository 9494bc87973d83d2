"""The throughput benchmark: contenders do the same job, and the page reports the measurements."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.throughput import cells, page, tables
from benchmarks.throughput.cells import Cell, Contender, Measured, Result
from benchmarks.throughput.jobs import (
    blocks,
    csv,
    estimation,
    gram,
    inputs,
    metric,
    noise,
    parquet,
    parts,
    persons,
    problems,
    rows,
    scale,
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


@pytest.mark.slow
def test_costs_of_a_block_are_measured(tmp_path: Path) -> None:
    with blocks.job(Cell("blocks", 300, 3), tmp_path) as found:
        sums = found[blocks.BLOCK].run()
        twice, *_ = found[blocks.SUM].run()  # type: ignore[misc]
        copy, *_ = found[blocks.COPY].run()  # type: ignore[misc]
        found[blocks.TASK].run()
    assert sums.rows == copy.rows == 300  # type: ignore[attr-defined]
    assert twice.rows == 600  # type: ignore[has-type]
    assert (copy.part_sums[0].gram == sums.part_sums[0].gram).all()  # type: ignore[attr-defined]


@pytest.mark.slow
def test_releases_in_the_metric_sum_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_HOME", str(tmp_path / "home"))
    with metric.job(Cell("metric", 5000, 4), tmp_path) as contenders:
        for contender in contenders.values():
            sums, further = contender.run()  # type: ignore[misc]
            assert [part.rows for part in sums.part_sums] == [5000]
            assert set(further) == {"lost"}


def test_problems_have_the_same_solutions_by_processes(tmp_path: Path) -> None:
    with problems.job(Cell("problems", 3, 6), tmp_path) as found:
        together = found[problems.BY_PROCESSES].run()
        alone = found[problems.ONE_BY_ONE].run()
    for graphs, (same,) in zip(together, alone, strict=True):  # type: ignore[call-overload]
        assert graphs.any()
        assert (graphs == same).all()


@pytest.mark.parametrize(("columns", "law"), [(6, "jackknife"), (201, "Gaussian")])
def test_estimates_are_of_one_release(tmp_path: Path, columns: int, law: str) -> None:
    with estimation.job(Cell("estimation", 4000, columns), tmp_path) as found:
        names, intervals = set(found), found["intervals"].run()
        values, _ = found[estimation.EIGH].run()  # type: ignore[misc]
    assert names >= {"denoising", "discoveries", "regression", "pca", "graph by stability"}
    assert len(values) == columns + 1  # type: ignore[has-type]
    first = intervals.tables["clearest"].iloc[0]  # type: ignore[attr-defined]
    assert int(first.column[1:]) - int(first.row[1:]) == 1  # neighbours in the chain
    assert first.estimate == pytest.approx(0.5, abs=0.1)
    assert law in first.law


def test_workers_share_blocks_and_additions() -> None:
    """Eight blocks on three workers: 3 rounds of reading, 2 + 1 + 1 of adding, 15 tasks."""
    costs = page.Costs(100, 1000, block=2.0, addition=0.1, copy=0.02, task=0.001)
    assert costs.reading(8, 3) == 6.0
    assert costs.adding(8, 3) == pytest.approx(4 * (0.1 + 0.02 + 8e6 / 1.25e9))
    assert costs.adding(8, 1) == pytest.approx(7 * 0.1)  # nothing travels
    assert costs.adding(7, 100) == costs.adding(8, 100)
    assert costs.adding(1, 3) == 0.0
    assert costs.scheduling(8) == pytest.approx(0.015)
    assert costs.total(8, 3) == pytest.approx(costs.reading(8, 3) + costs.adding(8, 3))
    assert costs.total(10_000, 100_000) == costs.scheduling(10_000)


def test_contenders_of_many_files_sum_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "MOST_IN_FILE", 200)
    with scale.job(Cell("scale", 600, 3), tmp_path) as found:
        ours, theirs = (each.run() for each in found.values())
    assert ours.rows == 600  # type: ignore[attr-defined]
    assert np.trace(theirs) == pytest.approx(1800, rel=0.2)  # type: ignore[call-overload]


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
