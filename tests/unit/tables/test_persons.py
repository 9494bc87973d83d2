"""Person-level privacy: a person's total stays in the ball, and a row is chosen uniformly."""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gramercy.tables.sums.row_transform
from gramercy.common.lattice import Lattice
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.plan.checking import check_table_header
from gramercy.schemas import families
from gramercy.schemas.column import Column
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import ContractError
from gramercy.schemas.model import parse
from gramercy.schemas.normalisation import Clip, Unit
from gramercy.schemas.problem import Family
from gramercy.tables.formats.source import open_source
from gramercy.tables.persons.person_index import MAX_ROW_SQUARES, Persons, PersonSample
from gramercy.tables.sums.exact_sums import ONE_PART
from gramercy.tables.sums.row_transform import RowTransform
from gramercy.tables.sums.streaming import Accumulated, MeasuringWorker, ScalingWorker, accumulate
from tests.support.factories import contract_facts
from tests.support.problems import raises

P = 3
NASTY = ["", "nan", "1e308", "-1e308", "5e-324", "inf", "x", "0"]


def frame(persons: int, seed: int = 0) -> pd.DataFrame:
    """A table with one to forty rows per person, in random order."""
    rng = np.random.default_rng(seed)
    names = np.repeat([f"id-{k}" for k in range(persons)], rng.integers(1, 40, size=persons))
    rng.shuffle(names)
    return pd.DataFrame({"who": names} | {f"c{k}": rng.normal(size=names.size) for k in range(P)})


def contract(path: Path, persons: int, **changes: Any) -> Contract:
    facts = contract_facts(path, rows=40 * persons, p=P)
    return Contract.model_validate(facts | {"privacy_unit": "who", "persons": persons} | changes)


def summed(
    table: pd.DataFrame,
    folder: Path,
    persons: int,
    normalisation: Any = None,
    bits: int = 12,
    **changes: Any,
) -> Accumulated:
    path = folder / "t.csv"
    table.to_csv(path, index=False)
    declared = contract(path, persons, **changes)
    return accumulate(open_source(str(path)), declared, normalisation or Unit(), Lattice(P, bits))


def test_gram_is_that_of_rows_scaled_per_person(tmp_path: Path) -> None:
    table = frame(50)
    sums = summed(table, tmp_path, 50, bits=20)
    assert sums.rows == 50
    assert sums.rows_read == len(table)
    x = table[["c0", "c1", "c2"]].to_numpy() / 5
    x /= np.linalg.norm(x, axis=1)[:, None]
    x /= np.sqrt(table.groupby("who")["who"].transform("size").to_numpy())[:, None]
    released = sums.gram.astype(float) / Lattice(P, 20).divisor
    np.testing.assert_allclose(released, x.T @ x, atol=1e-3)


def test_person_contributes_unit_trace_for_any_number_of_rows(tmp_path: Path) -> None:
    """The lattice is a fitted one; no bias grows with the number of persons."""
    lattice = Lattice.fitting(P, 10**6, 5.0, rows_per_person=20.0)
    assert lattice.rows_in_ball == 320
    path = tmp_path / "t.csv"
    for rows in (1, 3, 300):
        frame(1, seed=rows).head(1).loc[[0] * rows].to_csv(path, index=False)
        sums = accumulate(open_source(str(path)), contract(path, 1), Unit(), lattice)
        trace = np.trace(sums.gram) / lattice.divisor
        assert trace == pytest.approx(1, abs=math.sqrt(P * rows) / 2.0**lattice.bits)


def test_one_row_per_person_equals_row_level_result(tmp_path: Path) -> None:
    table = frame(400).drop_duplicates("who").reset_index(drop=True)
    by_person = summed(table, tmp_path, 400)
    declared = Contract.model_validate(contract_facts(tmp_path / "t.csv", rows=400, p=P))
    by_row = accumulate(open_source(declared.source), declared, Unit(), Lattice(P, 12))
    assert by_person.gram is not None
    assert (by_person.gram == by_row.gram).all()


@pytest.mark.parametrize("bits", [10, 14, 20])
@pytest.mark.parametrize(
    "normalisation", [Unit(), Clip(kind="clip", radius=0.3)], ids=["unit", "clip"]
)
def test_contribution_of_a_person_stays_in_the_ball(
    bits: int, normalisation: Any, tmp_path: Path
) -> None:
    """Up to ten thousand rows of one person with hostile cells add a trace of at most one."""
    rng = np.random.default_rng(1)
    for rows in (1, 2, 7, 10_000):
        cells = rng.normal(size=(rows, P)).astype(object)
        strange = rng.random((rows, P)) < 0.2
        cells[strange] = rng.choice(NASTY, size=int(strange.sum()))
        table = pd.DataFrame(cells, columns=[f"c{k}" for k in range(P)]).assign(who="me")
        sums = summed(table, tmp_path, 1, normalisation, bits)
        assert np.trace(sums.gram) <= Lattice(P, bits).squared_radius


@pytest.mark.slow
def test_replacing_a_person_moves_gram_by_at_most_the_sensitivity(tmp_path: Path) -> None:
    """All rows of one person are replaced or removed."""
    table, lattice = frame(12, seed=3), Lattice(P, 12)
    mine = table["who"] == "id-4"
    changes: list[pd.DataFrame] = []
    for cells in itertools.product(["5", "-5", "0", "", "1e308"], repeat=2):
        changes.append(table.astype(object).copy())
        changes[-1].loc[mine, ["c0", "c1"]] = cells
    for times in (2, 100):
        changes.append(pd.concat([table, *[table[mine]] * times]))
    changes.append(pd.concat([table[~mine], table[mine].head(1)]))
    changes.append(pd.concat([table[mine], table[~mine]]))  # at other positions
    changes.append(table.replace({"who": {"id-4": "somebody else"}}))
    before = summed(table, tmp_path, 12).gram
    assert before is not None
    moved = []
    for change in changes:
        after = summed(change, tmp_path, 12).gram
        assert after is not None
        moved.append(float(np.linalg.norm((after - before).astype(float))) / lattice.squared_radius)
    assert max(moved) <= np.sqrt(2)
    assert max(moved) > 0.7  # the changes are large
    gone = summed(table[~mine], tmp_path, 12, neighbours="add-remove")
    assert gone.rows == 11
    assert gone.gram is not None
    change = (before - gone.gram).astype(float)
    assert np.linalg.eigvalsh(change)[0] >= -1e-9 * lattice.squared_radius
    assert np.trace(change) <= lattice.squared_radius


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_sums_are_independent_of_format_order_and_id_type(
    large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same integers from CSV and Parquet, for any type of the ids."""
    monkeypatch.setattr(gramercy.tables.sums.row_transform, "_LARGE", 0 if large else 1 << 60)
    monkeypatch.setattr("gramercy.tables.batches.BATCH_CELLS", 500)
    table = frame(30, seed=5)
    table["who"] = table["who"].str.removeprefix("id-").astype(int)
    expected = summed(table, tmp_path, 30)
    types = [pa.int64(), pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.int16()]
    for k, kind in enumerate(types):
        shuffled = table.sample(frac=1, random_state=k)
        who = pa.array(shuffled["who"].astype(str if kind not in {pa.int64(), pa.int16()} else int))
        columns = {"who": who.cast(kind)} | {c: pa.array(shuffled[c]) for c in ("c0", "c1", "c2")}
        path = tmp_path / f"{k}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=100)
        sums = accumulate(open_source(str(path)), contract(path, 30), Unit(), Lattice(P, 12))
        assert sums.gram is not None
        assert (sums.gram == expected.gram).all()
        assert sums.rows == 30


@pytest.mark.parametrize("name", ["", "NA", "x" * 300, "  "])
def test_rows_without_a_person_are_left_out(name: str, tmp_path: Path) -> None:
    table = frame(10)
    extra = table.head(3).assign(who=name)
    sums = summed(pd.concat([table, extra]), tmp_path, 10)
    assert sums.rows_without_person == 3
    assert sums.gram is not None
    assert (sums.gram == summed(table, tmp_path, 10).gram).all()


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_wrong_declared_number_of_persons_is_not_refused(neighbours: str, tmp_path: Path) -> None:
    """Otherwise one misspelled or missing name would decide whether the table is refused."""
    for persons in (9, 10, 11):
        assert summed(frame(10), tmp_path, persons, neighbours=neighbours).rows == 10


def test_person_without_valid_rows_does_not_refuse_the_table(tmp_path: Path) -> None:
    """A quote in one cell, or a missing name, must not decide whether the table is refused."""
    path = tmp_path / "t.csv"
    for line in ('b,"5,5,5', ",5,5,5", "b,5,5"):
        path.write_text(f"who,c0,c1,c2\na,5,5,5\n{line}\n")
        sums = accumulate(open_source(str(path)), contract(path, 2), Unit(), Lattice(P, 12))
        assert sums.rows == 1


SPELLINGS = [
    ["7", ' "7"', "7 ", " 7", "7.0", "7.", '"7" ', ' " "7" " ', "+7", "7e0", "\ufeff7", "７"],
    ["é", "e\u0301", " é\u00a0", "\u200bé"],
]


@pytest.mark.parametrize("spelled", SPELLINGS, ids=["7", "accents"])
def test_spellings_of_one_name_are_one_person(spelled: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = "".join(f"{name},1,2,3\n" for name in spelled)
    path.write_text(f"who,c0,c1,c2\n{rows}")
    sums = accumulate(open_source(str(path)), contract(path, 1), Unit(), Lattice(P, 12))
    assert sums.rows == 1
    assert np.trace(sums.gram) <= Lattice(P, 12).squared_radius


def parquet(path: Path, who: pa.Array) -> Path:
    columns = {f"c{k}": pa.array([1.0 + k] * len(who)) for k in range(P)}
    pq.write_table(pa.table({"who": who, **columns}), path)
    return path


def test_invalid_or_unused_parquet_names_are_not_extra_persons(tmp_path: Path) -> None:
    broken = pa.array([b"a", b"\xff\xfe", b"b\xe9"]).view(pa.string())
    unused = pa.DictionaryArray.from_arrays([1, 1, 4], ["p", "q", "r", "s", "t"])
    for who, count in ((broken, 2), (unused, 2), (pa.nulls(3), 0)):
        path = parquet(tmp_path / "t.parquet", who)
        sums = accumulate(open_source(str(path)), contract(path, 3), Unit(), Lattice(P, 12))
        assert sums.rows == count
        assert sums.rows_read == 3


@pytest.mark.parametrize(
    "name", [b"Jos\xe9 Mu\xf1oz", b"J\xed\xa0\x80", b"x\xe2\x80", b"\x80-7\xff"]
)
def test_non_utf8_name_is_one_person_in_csv_and_parquet(name: bytes, tmp_path: Path) -> None:
    for folder, kind in (("text", pa.string()), ("long", pa.large_string())):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.csv").write_bytes(b"who,c0,c1,c2\n" + (name + b",1,2,3\n") * 2)
        stored = pa.array([name], pa.binary()).view(pa.string())
        parquet(tmp_path / folder / "t.parquet", stored.cast(kind))
        files = tmp_path / folder / "*.*"
        declared = contract(files, 1, neighbours="add-remove")
        sums = accumulate(open_source(str(files)), declared, Unit(), Lattice(P, 12))
        assert (sums.rows_read, sums.rows, sums.rows_without_person) == (3, 1, 0)


def _cast(value: list[Any], kind: pa.DataType) -> pa.Array:
    through = pa.array(value).cast(pa.int32()) if pa.types.is_date(kind) else pa.array(value)
    return through.cast(kind)


@pytest.mark.parametrize(
    ("kinds", "problem", "facts"),
    [
        ([pa.int64(), pa.string()], families.TABLE_COLUMNS, {"column": "who"}),
        ([pa.int64(), None], families.TABLE_COLUMNS, {"column": "who"}),
        ([pa.float64(), pa.string()], families.TABLE_COLUMNS, {"column": "who"}),
        ([pa.float64(), None], families.TABLE_COLUMNS, {"column": "who"}),
        ([pa.bool_()], families.TABLE_COLUMNS, {"type": "bool"}),
        ([pa.date32()], families.TABLE_COLUMNS, {"type": "date32"}),
        ([pa.int64(), pa.int16(), pa.uint64()], None, {}),
        ([pa.float64(), pa.int64(), pa.float32(), pa.decimal128(21, 2)], None, {}),
        ([pa.string(), pa.dictionary(pa.int32(), pa.string()), None], None, {}),
    ],
)
def test_files_must_agree_on_the_type_of_the_person_column(
    kinds: list[Any], problem: Family[Any] | None, facts: dict[str, str], tmp_path: Path
) -> None:
    """Types that files state are compared before any row is read."""
    for k, kind in enumerate(kinds):
        if kind is None:
            (tmp_path / f"{k}.csv").write_text("who,c0,c1,c2\n1,1,2,3\n")
        else:
            value = ["1"] if pa.types.is_string(kind) or pa.types.is_dictionary(kind) else [1]
            parquet(tmp_path / f"{k}.parquet", _cast(value, kind))
    declared = contract(tmp_path / "*.*", 3)
    if problem is None:
        check_table_header(declared)
    else:
        with raises(problem, file=str(tmp_path / "0.parquet"), **facts):
            check_table_header(declared)


@pytest.mark.parametrize(("kind", "exact"), [("e", 2**11), ("f", 2**24), ("d", 2**53)])
def test_a_rounded_number_is_not_another_name_of_a_person(
    kind: str, exact: int, tmp_path: Path
) -> None:
    """The person 2^24 + 1 of a file of whole numbers would be 2^24 in one of single precision."""
    names = [exact - 1, exact, exact + 1]
    parquet(tmp_path / "0.parquet", pa.array(names))
    parquet(tmp_path / "1.parquet", pa.array(np.array(names, kind)))
    declared = contract(tmp_path / "*.*", 3, neighbours="add-remove")
    sums = accumulate(open_source(declared.source), declared, Unit(), Lattice(P, 12))
    assert (sums.rows, sums.rows_without_person) == (3, 2)


@pytest.mark.slow
def test_contribution_never_decreases_with_more_rows(tmp_path: Path) -> None:
    """The contribution of clipped rows does not jump where scaling begins, nor exceed one row."""
    lattice = Lattice(P, 10, rows_in_ball=2000.0)
    assert lattice.shrinkage < 0.97
    path = tmp_path / "t.csv"
    before = 0.0
    for rows in range(1, 40):
        line = "me,1,1,1\n" * rows
        path.write_text(f"who,c0,c1,c2\n{line}")
        clip = Clip(kind="clip", radius=1.5)
        sums = accumulate(open_source(str(path)), contract(path, 1), clip, lattice)
        trace = np.trace(sums.gram) / lattice.divisor
        assert trace <= 1.02
        assert trace >= before - 0.02
        before = trace
    assert before > 0.98


@pytest.mark.parametrize("p", [1, 50, 1000, 5000])
@pytest.mark.parametrize("each", [1.0, 1.5, 100.0, 1e4, 1e9])
@pytest.mark.parametrize("scale", [0.5, 20.0, 700.0, 1e7])
@pytest.mark.parametrize("persons", [1, 10**4, 10**10])
def test_fitted_lattice_of_persons_cannot_overflow(
    p: int, each: float, scale: float, persons: int
) -> None:
    lattice = Lattice.fitting(p, persons, scale, each)
    assert lattice.shrinkage >= 0.9 - 1e-12
    assert lattice.rows_in_ball >= 1
    assert persons * lattice.squared_radius < 1 << 62
    assert scale * lattice.squared_radius < 2.0**56


def test_too_coarse_lattice_is_refused() -> None:
    with raises(families.REQUEST_KEYS, bits=10, columns=1000, rows=1e5):
        Lattice(1000, 10, rows_in_ball=1e5)


def test_table_that_changes_between_passes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factors = Persons.factors

    def changing(text: str) -> Any:
        def factors_then(self: Persons, lattice: Lattice) -> Any:
            with (tmp_path / "t.csv").open("a") as file:
                file.write(text)
            return factors(self, lattice)

        return factors_then

    for text in ("someone,1,1,1\n", "id-3,5,5,5\n" * 100):
        monkeypatch.setattr(Persons, "factors", changing(text))
        with raises(families.CHANGED):
            summed(frame(10), tmp_path, 10)


def test_persons_of_two_tables_are_merged() -> None:
    first, second = Persons(), Persons()
    first.add(first.indices(pa.array(["a", "b", "a", None])), np.array([1.0, 2.0, 4.0, 8.0]))
    second.add(second.indices(pa.array(["c", "a"])), np.array([16.0, 32.0]))
    both = first + second
    assert both.names == ["a", "b", "c"]
    assert both.rows_without_person == 1
    reverse = second + first
    lattice = Lattice(2, 2)
    order = [reverse.names.index(name) for name in both.names]
    np.testing.assert_array_equal(reverse.factors(lattice)[order], both.factors(lattice))
    assert not both.are_in_ball(lattice)
    assert Persons().are_in_ball(lattice)


def test_person_with_overflowing_squares_contributes_nothing() -> None:
    persons, lattice = Persons(), Lattice(1, 20)
    indices = persons.indices(pa.array(["a", "b"]))
    for _ in range(1025):
        persons.add(indices, np.array([2.0**52, 1.0]))
    assert persons.factors(lattice).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("change", "problem", "key"),
    [
        ({"persons": None}, families.PERSONS, ""),
        ({"privacy_unit": "row"}, families.PERSONS, ""),
        ({"privacy_unit": "c0"}, families.PERSONS, ""),
        ({"persons": 0}, families.VALUE, "persons"),
        ({"persons": 10_000}, families.PERSONS, ""),
        ({"privacy_unit": " who"}, families.PERSONS, ""),
        ({"privacy_unit": "w\no"}, families.PERSONS, ""),
    ],
)
def test_inconsistent_person_contract_is_refused(
    change: dict[str, Any], problem: Family[Any], key: str
) -> None:
    facts = contract_facts("t.csv", p=P) | {"privacy_unit": "who", "persons": 7}
    with raises(problem, key=key):
        parse(Contract, facts | change, "c.yaml", ContractError)


COLUMNS = tuple(Column(lower=-2.0 - k, upper=3.0) for k in range(4))
LATTICE = Lattice(4, 18)
FACTS = ("squares", "rows", "rows_without_person")


def persons_of(count: int, *, large: bool) -> Persons:
    persons = Persons(large=large)
    persons.indices(pa.array([f"person {k}" for k in range(count)]))
    return persons


def cells(rows: int, count: int) -> Any:
    """The indices of persons, NaN for some, and cells."""
    rng = np.random.default_rng(rows)
    indices = rng.integers(0, count, rows).astype(float)
    indices[rng.random(rows) < 0.1] = np.nan
    numbers = rng.normal(size=(4, rows))
    numbers[rng.random((4, rows)) < 0.1] = np.nan
    return np.vstack([indices, numbers])


@pytest.mark.parametrize("rows", [0, 1, 255, 256, 257, 5000])
@pytest.mark.parametrize("normalisation", [Unit(), Clip(kind="clip", radius=0.5)])
def test_both_passes_equal_those_of_numpy(rows: int, normalisation: Any) -> None:
    transform = RowTransform(COLUMNS, False, normalisation, LATTICE)
    table, sums = cells(rows, 20), []
    for large in (False, True):
        persons = persons_of(20, large=large)
        assert persons.large == large
        MeasuringWorker(transform, persons).add(table)
        contributions = Persons(persons.known, closed=True, large=large)
        worker = ScalingWorker(transform, ONE_PART, persons.factors(LATTICE), contributions)
        q = worker._integers(table)
        assert contributions.are_in_ball(LATTICE)
        sums.append([q, *(getattr(x, y) for x in (persons, contributions) for y in FACTS)])
    for plain, quick in zip(*sums, strict=True):
        np.testing.assert_array_equal(plain, quick)
        np.testing.assert_array_equal(np.signbit(plain), np.signbit(quick))


@pytest.mark.parametrize("dtype", [np.float64, np.uint64])
def test_sums_of_squares_saturate_in_any_order(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    indices = np.repeat([0.0, 1.0, np.nan], [1 << 17, 5, 3])
    squares = np.where(indices == 1, 7, MAX_ROW_SQUARES).astype(dtype)
    for large in (False, True):
        order = rng.permutation(indices.size)
        persons = persons_of(2, large=large)
        for part in np.array_split(order, 3):
            persons.add(indices[part], squares[part])
        assert persons.squares.tolist() == [1 << 62, 35]
        assert persons.rows.tolist() == [1 << 17, 5]
        assert persons.rows_without_person == 3
        assert persons.factors(LATTICE).tolist() == [0.0, 1.0]


SIZES = (7, 300)  # bins of two columns; the second needs two bytes


def rows_of(persons: int, rows: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Names, bins and keys of rows; the high halves of many keys are equal."""
    rng = np.random.default_rng(seed)
    names = [f"p{k}" if k else None for k in rng.integers(0, persons + 1, rows)]
    bins = np.stack([rng.integers(0, size, rows) for size in SIZES]).astype(np.uint16)
    keys = np.stack([rng.integers(0, 5, rows), rng.permutation(rows)]).astype(np.uint64)
    return names, bins, keys


def sample_of(names: Any, bins: Any, keys: Any) -> PersonSample:
    sample = PersonSample(SIZES)
    add(sample, names, bins, keys)
    return sample


def add(sample: PersonSample, names: Any, bins: Any, keys: Any) -> None:
    sample.add(sample.indices(pa.array(names, pa.string())), bins, keys)


def expected(names: Any, bins: Any, keys: Any) -> tuple[list[list[int]], int]:
    """Histograms of the rows with the least keys, and the number of persons."""
    least: dict[str, tuple[int, int, int]] = {}
    for row, name in enumerate(names):
        if name is not None:
            key = (int(keys[0, row]), int(keys[1, row]), row)
            least[name] = min(key, least.get(name, key))
    chosen = [row for _, _, row in least.values()]
    histograms = [
        np.bincount(column[chosen], minlength=size).tolist()
        for column, size in zip(bins, SIZES, strict=True)
    ]
    return histograms, len(least)


@pytest.mark.parametrize("persons", [1, 40])
def test_row_with_the_least_key_is_kept(persons: int) -> None:
    names, bins, keys = rows_of(persons, 600)
    sample = sample_of(names, bins, keys)
    histograms, count = expected(names, bins, keys)
    assert [each.tolist() for each in sample.histograms()] == histograms
    assert len(sample) == count
    assert sample.rows_without_person == names.count(None)


def test_sample_is_independent_of_order_batches_and_partitions() -> None:
    names, bins, keys = rows_of(40, 600)
    histograms, count = expected(names, bins, keys)
    rng = np.random.default_rng(1)
    for _ in range(20):
        order = rng.permutation(len(names))
        cuts = np.sort(rng.integers(0, len(names), 4))
        parts = [PersonSample(SIZES) for _ in range(3)]
        for part in np.split(order, cuts):
            chosen = [names[row] for row in part]
            add(parts[rng.integers(3)], chosen, bins[:, part], keys[:, part])
        first, second, third = (pickle.loads(pickle.dumps(part)) for part in parts)
        for total in ((first + second) + third, third + (second + first)):
            assert [each.tolist() for each in total.histograms()] == histograms
            assert len(total) == count
            assert total.rows_without_person == names.count(None)


def test_changing_a_person_moves_one_row_of_the_histograms() -> None:
    """The rows of one person are replaced, in any number and at any positions."""
    names, bins, keys = rows_of(30, 400)
    before = sample_of(names, bins, keys).histograms()
    rng, largest = np.random.default_rng(2), 0
    for turn in range(50):
        kept = np.array([row for row, name in enumerate(names) if name != "p4"])
        new_names, new_bins, new_keys = rows_of(0, int(rng.integers(1, 60)), seed=turn + 3)
        joined = [names[row] for row in kept] + ["p4"] * len(new_names)
        order = rng.permutation(len(joined))
        after = sample_of(
            [joined[row] for row in order],
            np.concatenate([bins[:, kept], new_bins], axis=1)[:, order],
            np.concatenate([keys[:, kept], new_keys], axis=1)[:, order],
        ).histograms()
        for first, second in zip(before, after, strict=True):
            moved = second - first
            assert moved.sum() == 0
            assert abs(moved).sum() in {0, 2}
            largest = max(largest, int(abs(moved).sum()))
    assert largest == 2


def test_every_row_of_a_person_is_equally_likely_to_be_kept() -> None:
    """Ten thousand persons with five rows each; the bin is the position among them."""
    persons, rows = 10_000, 5
    names = [f"p{k}" for _ in range(rows) for k in range(persons)]
    bins = np.repeat(np.arange(rows), persons)[None].astype(np.uint16)
    sample = PersonSample((rows,))
    add(sample, names, bins, sampler.random_keys(len(names)))
    (counts,) = sample.histograms()
    assert counts.sum() == persons
    sd = np.sqrt(persons * 0.2 * 0.8)
    assert abs(counts - persons / rows).max() < 7 * sd  # chance fails this once in 10^11 runs
