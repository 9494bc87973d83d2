"""Histograms of cells and of row lengths are exact, and every unit adds one to one bin of each."""

from __future__ import annotations

import gzip
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gramercy.tables.sums.row_transform
from gramercy.mechanisms.sampling import sampler
from gramercy.scaling.clipping_radius import length_edges
from gramercy.scaling.column_constants import Grid, LevelGrid, first_grid
from gramercy.schemas import families
from gramercy.schemas.column import Column, Levels
from gramercy.schemas.contract import Contract
from gramercy.tables.counts.counting import (
    BinCounts,
    RowLengths,
    count_bins,
    count_lengths,
    length_histogram,
    length_thresholds,
)
from gramercy.tables.formats.source import open_source
from tests.support.factories import contract_facts
from tests.support.problems import raises

Array = np.ndarray[Any, Any]

PERSONS: dict[str, Any] = {"privacy_unit": "who", "persons": 30}

COLUMNS: dict[str, Any] = {
    "x": {"lower": -2.0, "upper": 2.0, "centre": 0.5, "scale": 0.5},
    "s": {"levels": ["a", "b"]},
    "free": {},
    "y": {"lower": 0.0, "upper": 10.0},
}
X_GRID = Grid(np.array([-2.0, -1.0, 0.0, 0.5, 2.0]))
GRIDS = [X_GRID, LevelGrid(2), first_grid(None, None), first_grid(0.0, 10.0)]
NASTY = [0.0, -0.0, 0.5, 2.0, -2.0, -1.0, np.nan, np.inf, -np.inf, 1e308, 5e-324, -1e-200, 10.0]


def frame(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)

    def numbers() -> Array:
        strange = rng.random(rows) < 0.4
        return np.where(strange, rng.choice(NASTY, rows), rng.normal(size=rows))

    texts = rng.choice(np.array(["a", "b", "c", None], dtype=object), rows)
    return pd.DataFrame({"x": numbers(), "s": texts, "free": numbers(), "y": numbers()})


def contract(source: Any, rows: int, **changes: Any) -> Contract:
    facts = contract_facts(source, rows=rows) | {"columns": COLUMNS, "intercept": True}
    budget = {"epsilon": 1.0, "delta": 1e-8}
    return Contract.model_validate(facts | {"budget": budget} | changes)


def counted(source: Any, rows: int, **changes: Any) -> BinCounts:
    declared = contract(source, rows, **changes)
    return count_bins(open_source(str(source)), declared, GRIDS, draw_keys=sampler.random_keys)


def expected_counts(table: pd.DataFrame) -> list[list[int]]:
    """Histograms by pandas, from the definition of the bins."""
    histograms = []
    for name, grid in zip(COLUMNS, GRIDS, strict=True):
        if isinstance(grid, LevelGrid):
            known = [int((table[name] == level).sum()) for level in ("a", "b")]
            histograms.append([*known, len(table) - sum(known)])
            continue
        cells = table[name].to_numpy()
        finite = cells[np.isfinite(cells)].clip(grid.edges[0], grid.edges[-1])
        inside = np.histogram(finite, grid.edges)[0].tolist()
        histograms.append([*inside, len(table) - finite.size])
    return histograms


def as_lists(counts: BinCounts) -> list[list[int]]:
    return [histogram.tolist() for histogram in counts.counts]


def write_files(folder: Path, table: pd.DataFrame) -> str:
    """CSV, compressed CSV with malformed lines, and Parquet, a third of the rows in each."""
    third = len(table) // 3
    table[:third].to_csv(folder / "a.csv", index=False)
    lines = table[third : 2 * third].to_csv(index=False).splitlines()
    lines[7:7] = ["", '"open,1,2', "1,2"]
    (folder / "b.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    pq.write_table(
        pa.Table.from_pandas(table[2 * third :], preserve_index=False),
        folder / "c.parquet",
        row_group_size=33,
    )
    return str(folder / "*.*")


def test_histograms_over_several_files_are_exact(tmp_path: Path) -> None:
    """A malformed line is a row of missing cells."""
    table = frame(300)
    counts = counted(write_files(tmp_path, table), 303)
    missing = pd.DataFrame([[np.nan, None, np.nan, np.nan]] * 3, columns=list(COLUMNS))
    expected = [np.array(each) for each in expected_counts(table)]
    lost = map(np.array, expected_counts(missing))
    total = [first + second for first, second in zip(expected, lost, strict=True)]
    assert as_lists(counts) == [each.tolist() for each in total]
    assert (counts.units, counts.rows_read, counts.malformed) == (303, 303, 3)
    assert {int(histogram.sum()) for histogram in counts.counts} == {303}


def test_columns_in_folder_names_are_counted(tmp_path: Path) -> None:
    table = frame(60).assign(s=["a", "b", "c"] * 20)
    for level, part in table.groupby("s"):
        folder = tmp_path / f"s={level}"
        folder.mkdir()
        part.drop(columns="s").to_csv(folder / "t.csv", index=False)
    assert as_lists(counted(tmp_path, 60)) == expected_counts(table)


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_counts_are_independent_of_batches_and_threads(
    large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = frame(2000)
    source = write_files(tmp_path, table)
    bins, edges = counted(source, 2003), length_edges(6)
    declared = contract(source, 2003)
    lengths = count_lengths(open_source(source), declared, edges)
    monkeypatch.setattr(gramercy.tables.sums.row_transform, "_LARGE", 0 if large else 1 << 60)
    monkeypatch.setattr("gramercy.tables.batches._CELLS", 100)
    monkeypatch.setattr("gramercy.tables.batches._MIN_ROWS", 7)
    for threads, cells in ((1, 500), (3, 77), (5, 4000)):
        monkeypatch.setattr(
            "gramercy.tables.sums.passes.thread_count", lambda threads=threads: threads
        )
        monkeypatch.setattr("gramercy.tables.batches.BATCH_CELLS", cells)
        assert as_lists(counted(source, 2003)) == as_lists(bins)
        again = count_lengths(open_source(source), declared, edges)
        assert as_lists(again) == as_lists(lengths)
        assert again.units == 2003


def test_changed_row_moves_at_most_one_unit_of_each_histogram(tmp_path: Path) -> None:
    """A row is replaced by hostile cells, by a malformed line, or is removed."""
    path, table = tmp_path / "t.csv", frame(40)
    lines = table.to_csv(index=False).splitlines()
    edges = length_edges(6)

    def histograms(changed: list[str], **changes: Any) -> list[Array]:
        path.write_text("\n".join(changed) + "\n")
        declared = contract(path, 40, **changes)
        lengths = count_lengths(open_source(str(path)), declared, edges)
        return [*counted(path, 40, **changes).counts, *lengths.counts]

    before, moved = histograms(lines), []
    for line in ("2,b,2,10", "inf,a,1e308,-inf", ",,,", "", '"x', "1,2", "1e308,c,-1e308,0", "x,a"):
        after = histograms([*lines[:9], line, *lines[10:]])
        for first, second in zip(before, after, strict=True):
            assert (second - first).sum() == 0
            moved.append(int(abs(second - first).sum()))
    assert set(moved) == {0, 2}
    for first, second in zip(
        before, histograms([*lines[:9], *lines[10:]], neighbours="add-remove"), strict=True
    ):
        assert abs(second - first).sum() == 1


@pytest.mark.parametrize("persons", [False, True])
def test_empty_table_has_empty_histograms(persons: bool, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("who,x,s,free,y\n")
    changes = {"neighbours": "add-remove"} | (PERSONS if persons else {})
    declared = contract(path, 900, **changes)
    bins = counted(path, 900, **changes)
    lengths = count_lengths(open_source(str(path)), declared, length_edges(6))
    for counts in (bins, lengths):
        assert (counts.units, counts.rows_read) == (0, 0)
        assert not any(histogram.any() for histogram in counts.counts)
    assert [histogram.size for histogram in bins.counts] == [grid.size for grid in GRIDS]


@pytest.mark.parametrize("count", ["bins", "lengths"])
def test_wrong_number_of_rows_is_refused_only_where_it_is_public(
    count: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    frame(50).to_csv(path, index=False)

    def run(rows: int, **changes: Any) -> BinCounts:
        if count == "bins":
            return counted(path, rows, **changes)
        declared = contract(path, rows, **changes)
        return count_lengths(open_source(str(path)), declared, length_edges(6))

    with raises(families.ROW_COUNT, source=str(path), rows=50, declared=49):
        run(49)
    assert run(49, neighbours="add-remove").units == 50
    for module in ("passes", "streaming"):
        monkeypatch.setattr(f"gramercy.tables.sums.{module}.EXCESS_ROWS", 10)
    with raises(families.ROW_COUNT, limit=17, declared=7):
        run(7)


def scaled_lengths(table: pd.DataFrame) -> Array:
    """|z|^2 by the definition of scaled rows, in doubles."""
    declared = contract("t.csv", 1).columns
    total = np.ones(len(table))
    for name, column in declared.items():
        if isinstance(column, Levels):
            total += table[name].isin(column.levels)
            continue
        cells = table[name].to_numpy()
        filled = np.where(np.isfinite(cells), cells, column.effective_centre)
        z = (filled.clip(*column.limits) - column.effective_centre) / column.effective_scale
        with np.errstate(over="ignore"):
            total += z * z
    return total


def test_length_histogram_is_exact(tmp_path: Path) -> None:
    table = frame(3000)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), path)
    edges = length_edges(6)
    counts = count_lengths(open_source(str(path)), contract(path, 3000), edges)
    lengths = np.sqrt(scaled_lengths(table))
    expected = np.bincount(np.searchsorted(edges, lengths * (1 + 1e-12), side="right") - 1)
    assert counts.counts[0].tolist() == [*expected, *[0] * (edges.size - expected.size)]
    assert counts.units == 3000


def test_length_at_an_edge_is_in_the_upper_bin(tmp_path: Path) -> None:
    """Lengths 1, sqrt(2), almost 3, 3 and more; a malformed line has length 0."""
    path = tmp_path / "t.csv"
    path.write_text("x\n0\n1\n2.82842\n2.8284271247461903\n,,\n1e308\n")
    declared = contract(path, 6, columns={"x": {"lower": -9.0, "upper": 9.0, "scale": 1.0}})
    edges = np.array([1.0, np.sqrt(2), 3.0])
    counts = count_lengths(open_source(str(path)), declared, edges)
    assert counts.counts[0].tolist() == [2, 2, 2]
    assert counts.malformed == 1


@pytest.mark.parametrize("intercept", [True, False])
def test_compiled_lengths_equal_plain_ones(
    intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = (
        Column(lower=-1.0, upper=1.0),
        Levels(levels=("a", "b", "c")),
        Column(lower=-1e308, upper=1e307, centre=0.0, scale=1e3),
        Column(),
        Column(lower=0.0, upper=10.0, centre=7.0, scale=0.25),
    )
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(5, 1000)) * 10.0 ** rng.integers(-4, 4, size=(5, 1000))
    strange = rng.random(cells.shape) < 0.3
    cells[strange] = rng.choice(NASTY, size=int(strange.sum()))
    cells[1] = rng.choice([0.0, 1.0, 2.0, np.nan], 1000)
    plain = RowLengths(columns, intercept, 8, large=False).squares(cells)
    compiled = RowLengths(columns, intercept, 8, large=True)
    np.testing.assert_array_equal(compiled.squares(cells), plain)
    np.testing.assert_array_equal(compiled.squares(cells[:, ::-1]), plain[::-1])
    monkeypatch.setattr("gramercy.tables.counts.counting.compiled", lambda function: function)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(compiled.squares(cells[:, :50]), plain[:50])
    assert plain.max() == 1 << 46


def test_bins_of_lengths_include_their_lower_edge() -> None:
    """The double next to the square root of 2 is above it; a squared length of 2 is at the edge."""
    thresholds = length_thresholds(np.array([0.5, 1.0, np.sqrt(2), 8191.5]))
    assert thresholds.tolist() == [1 << 18, 1 << 20, 2 << 20, (16383**2) << 18]
    squares = np.array([0, 1 << 18, (1 << 20) - 1, 1 << 20, (2 << 20) - 1, 2 << 20, 1 << 62])
    assert length_histogram(squares.astype(np.uint64), thresholds).tolist() == [3, 2, 1, 1]


# Persons.


def person_frame(seed: int = 0) -> pd.DataFrame:
    """Thirty persons with one to twenty rows, in random order, and some rows without a person."""
    rng = np.random.default_rng(seed)
    names = np.repeat([f"id-{k}" for k in range(30)], rng.integers(1, 20, size=30))
    names = np.concatenate([names, np.repeat("", 5)])
    rng.shuffle(names)
    return frame(names.size, seed).assign(who=names)


class KeysOf:
    """Gives each row its own key, in the order of the table."""

    def __init__(self, keys: Array) -> None:
        self._keys, self._position = keys, 0

    def __call__(self, rows: int) -> Array:
        self._position += rows
        return self._keys[:, self._position - rows : self._position]


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_each_person_counts_by_the_row_with_the_least_key(
    large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gramercy.tables.sums.row_transform, "_LARGE", 0 if large else 1 << 60)
    monkeypatch.setattr("gramercy.tables.batches.BATCH_CELLS", 150)
    table = person_frame()
    rng = np.random.default_rng(1)
    table["key"] = rng.permutation(len(table))
    chosen = table[table["who"] != ""].sort_values("key").groupby("who").head(1)
    for turn in range(3):
        shuffled = table.sample(frac=1, random_state=turn)
        source = tmp_path / f"{turn}.csv"
        shuffled.drop(columns="key").to_csv(source, index=False)
        keys = np.stack([np.full(len(table), 3), shuffled["key"]]).astype(np.uint64)
        counts = count_bins(
            open_source(str(source)),
            contract(source, 900, **PERSONS),
            GRIDS,
            draw_keys=KeysOf(keys),
        )
        assert as_lists(counts) == expected_counts(chosen)
        assert (counts.units, counts.rows_read) == (30, len(table))
        assert counts.rows_without_person == 5


@pytest.mark.slow
def test_changed_person_moves_at_most_one_unit_of_each_histogram(tmp_path: Path) -> None:
    """All rows of one person change, while the rows of other persons keep their keys."""
    path, table = tmp_path / "t.csv", person_frame()
    rng, edges = np.random.default_rng(3), length_edges(6)
    table["key"] = rng.permutation(len(table))

    def histograms(changed: pd.DataFrame, **changes: Any) -> list[Array]:
        changed.drop(columns="key").to_csv(path, index=False)
        keys = np.stack([changed["key"], changed["key"]]).astype(np.uint64)
        declared, source = contract(path, 900, **PERSONS, **changes), open_source(str(path))
        bins = count_bins(source, declared, GRIDS, draw_keys=KeysOf(keys))
        return [*bins.counts, *count_lengths(source, declared, edges).counts]

    before, moved = histograms(table), []
    for turn in range(12):
        new = frame(int(rng.integers(1, 40)), seed=turn + 10).assign(who="id-4")
        new["key"] = rng.integers(0, len(table), len(new))
        both = pd.concat([table[table["who"] != "id-4"], new])
        after = histograms(both.sample(frac=1, random_state=turn))
        for first, second in zip(before, after, strict=True):
            assert (second - first).sum() == 0
            moved.append(int(abs(second - first).sum()))
    assert set(moved) == {0, 2}
    without = histograms(table[table["who"] != "id-4"], neighbours="add-remove")
    for first, second in zip(before, without, strict=True):
        assert abs(second - first).sum() == 1


def test_lengths_of_persons_do_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    """In doubles the sum of one large and many small squares depends on their order."""
    columns = {"x": {"lower": 0.0, "upper": 1e6, "centre": 0.0, "scale": 1.0}}
    rng, path = np.random.default_rng(4), tmp_path / "t.csv"
    cells = np.concatenate([10.0 ** rng.uniform(-3, 3, size=400), [1e308, 8e3]])
    table = pd.DataFrame({"x": cells, "who": rng.integers(0, 20, cells.size)})
    units = [round(min(Fraction(x) ** 2, 1 << 26) * (1 << 20)) for x in cells.clip(0, 1e6)]
    # Edges at the exact lengths of persons: an error of one unit would move them.
    totals = [sum(u for u, w in zip(units, table["who"], strict=True) if w == k) for k in range(20)]
    edges = np.sqrt(np.array(sorted(set(totals)), dtype=float) / (1 << 20))
    edges = edges[edges < 1 << 13]
    declared = contract(path, 900, columns=columns, intercept=False, **PERSONS)
    reference = None
    for turn in range(5):
        table.sample(frac=1, random_state=turn).to_csv(path, index=False)
        counts = count_lengths(open_source(str(path)), declared, edges)
        reference = reference or as_lists(counts)
        assert as_lists(counts) == reference
        assert counts.units == 20
    exact = length_histogram(np.array(totals, np.uint64), length_thresholds(edges))
    assert reference == [exact.tolist()]
