"""The sums of what clipping takes away from rows: the formula, and the sensitivity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.schemas.contract import Contract
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.normalisation import Clip, Lost
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.exact_sums import ONE_PART, Parts
from gramercy.tables.sums.further_sums import FurtherJob, sum_further_rows
from gramercy.tables.sums.row_transform import LARGEST, LEAST, integer_rows, lost_rows, normalise
from gramercy.tables.sums.streaming import GramJob
from tests.support.factories import contract_facts

Array = NDArray[np.float64]
P = 4
LATTICE = Lattice(P, 14)
CUTS = (0.125, 1.0, 8.0)


def lost_of(radius: float, cut: float = 1.0, intercept: float | None = None) -> Lost:
    intercept = radius / 2 if intercept is None else intercept
    return Lost(radius=radius, unit=radius, cut=cut, intercept=intercept)


def rows_with_intercept(count: int, seed: int = 0) -> Array:
    """Rows with a heavy tail; shape (P, count)."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_t(1.5, size=(P, count))
    rows[0] = 1.0
    return rows


def moments(rows: Array, lost: Lost) -> Array:
    """The sum of what rows lose, by the plain formula; shape (P, P)."""
    total = np.zeros((P, P))
    for z in rows.T:
        w = min(1.0, lost.radius**2 / float(z @ z))
        y = np.append(lost.intercept, z[1:])
        part = (1 - w) * np.outer(y, y)
        norm = np.linalg.norm(part)
        total += part * min(1.0, lost.largest / norm) if norm else 0.0
    return total


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("radius", [1.5, 3.0, 30.0])
def test_lost_rows_are_those_of_the_formula(radius: float, cut: float) -> None:
    rows, lost = rows_with_intercept(2000), lost_of(radius, cut)
    found = normalise(rows, lost)
    np.testing.assert_allclose(lost.largest * found @ found.T, moments(rows, lost), rtol=1e-9)
    assert (np.linalg.norm(found, axis=0) <= 1 + 1e-12).all()
    inside = np.linalg.norm(rows, axis=0) <= radius
    assert inside.any()
    assert not found[:, inside].any()
    assert found[:, ~inside].any(axis=0).all()


def test_what_is_kept_and_what_is_lost_are_the_whole_row() -> None:
    """Where the intercept keeps its number, and nothing is cut off."""
    rows = rows_with_intercept(500)
    rows = rows[:, np.linalg.norm(rows, axis=0) < 5]
    lost = lost_of(2.0, 8.0, 1.0)
    kept, taken = normalise(rows, Clip(radius=2.0)), normalise(rows, lost)
    whole = 4.0 * kept @ kept.T + lost.largest * taken @ taken.T
    np.testing.assert_allclose(whole, rows @ rows.T, rtol=1e-9)


HOSTILE = np.array(
    [0.0, 5e-324, -1e-300, LEAST**0.5, 1.0, -3.0, 1e10, LARGEST**0.5, -1e200, 1e308, -1.7e308]
)


@pytest.mark.parametrize("radius", [1e-300, 1.0, 7.0, 1e150])
@pytest.mark.parametrize("intercept", [0.0, 1.0])
def test_hostile_rows_stay_in_the_ball(radius: float, intercept: float) -> None:
    """A row's result depends on no other row, and integer rows are in the ball."""
    rng = np.random.default_rng(1)
    rows = rng.choice(HOSTILE, size=(P, 3000))
    if intercept:
        rows[0] = 1.0
    for cut in CUTS:
        lost = lost_of(radius, cut, radius / 2 * intercept)
        found = lost_rows(rows, lost)
        assert np.isfinite(found).all()
        assert (np.linalg.norm(found, axis=0) <= 1 + 1e-12).all()
        alone = np.concatenate([lost_rows(rows[:, [k]], lost) for k in range(200)], axis=1)
        assert np.array_equal(alone, found[:, :200])
        backwards = lost_rows(rows[:, ::-1], lost)[:, ::-1]
        assert np.array_equal(backwards, found)
        q = integer_rows(found, LATTICE).astype(np.int64)
        assert ((q * q).sum(axis=0) <= LATTICE.squared_radius).all()


def test_longest_rows_reach_the_cut() -> None:
    rows = np.array([[1.0, 1.0], [1e308, 1e200], [1e308, 0.0], [0.0, -1e200]])
    found = lost_rows(rows, lost_of(2.0))
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(found[1:, 0], [2**-0.5, 2**-0.5, 0.0], atol=1e-12)


COLUMNS = {f"c{k}": {"lower": -1e6, "upper": 1e6, "centre": 0.0, "scale": 1.0} for k in range(3)}
WARD = LevelsFacts(name="ward", levels=("A", "B"))
GROUPS = Parts(by=WARD)
PERSONS = 40


def frame(rows: int = 800, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    cells = rng.standard_t(1.5, size=(rows, 3))
    cells[rng.random((rows, 3)) < 0.05] = np.nan
    table = pd.DataFrame(cells, columns=list(COLUMNS))
    table["ward"] = rng.choice(["A", "B", "C"], rows)
    table["who"] = [f"id-{int(k)}" for k in rng.integers(0, PERSONS, rows)]
    return table


def contract(path: Path, **changes: Any) -> Contract:
    facts = contract_facts(path, rows=800) | {"columns": COLUMNS, "intercept": True}
    return Contract.model_validate(facts | {"neighbours": "add-remove"} | changes)


BY_PERSON: dict[str, Any] = {"privacy_unit": "who", "persons": PERSONS}


def summed(
    table: pd.DataFrame,
    folder: Path,
    lost: Lost,
    groups: Parts = ONE_PART,
    **changes: Any,
) -> NDArray[np.int64]:
    """The sums of all groups as one block-diagonal matrix."""
    path = folder / "t.csv"
    table.to_csv(path, index=False)
    sums = sum_further_rows(
        open_source(str(path)), contract(path, **changes), lost, LATTICE, LATTICE, groups=groups
    )
    blocks = np.zeros((len(sums), P, len(sums), P), np.int64)
    for k, each in enumerate(sums):
        assert each.gram is not None
        blocks[k, :, k] = each.gram
    return blocks.reshape(len(sums) * P, len(sums) * P)


def scaled(table: pd.DataFrame) -> Array:
    cells = table[list(COLUMNS)].fillna(0.0).to_numpy().T
    return np.concatenate([np.ones((1, cells.shape[1])), cells])


@pytest.mark.parametrize("cut", CUTS)
def test_sums_are_those_of_the_table(tmp_path: Path, cut: float) -> None:
    table, lost = frame(), lost_of(2.0, cut)
    found = lost.largest * summed(table, tmp_path, lost) / LATTICE.divisor
    expected = moments(scaled(table), lost)
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.trace(expected))


def test_groups_add_up(tmp_path: Path) -> None:
    table, lost = frame(), lost_of(2.0)
    groups = summed(table, tmp_path, lost, GROUPS).reshape(3, P, 3, P)
    whole = summed(table, tmp_path, lost)
    assert np.array_equal(np.trace(groups, axis1=0, axis2=2), whole)
    own = summed(table[table["ward"] == "B"], tmp_path, lost)
    assert np.array_equal(groups[1, :, 1], own)


def person_moments(table: pd.DataFrame, lost: Lost) -> Array:
    """The sum of what persons lose, by the plain formula, where no row alone reaches the cut."""
    total = np.zeros((P, P))
    for _, own in table.groupby("who"):
        rows = scaled(own)
        row_factors = np.minimum(1.0, lost.radius / np.linalg.norm(rows, axis=0))
        length = np.linalg.norm(row_factors * rows) / lost.radius
        w = (row_factors * min(1.0, 1 / length)) ** 2
        y = rows.copy()
        y[0] = lost.intercept
        part = (1 - w) * y @ y.T
        total += part * min(1.0, lost.largest / np.trace(part))
    return total


@pytest.mark.parametrize("cut", [1.0, 64.0])
def test_sums_of_persons_are_those_of_the_table(tmp_path: Path, cut: float) -> None:
    table, lost = frame(), lost_of(6.0, cut)
    table[list(COLUMNS)] = table[list(COLUMNS)].clip(-3, 3)
    found = lost.largest * summed(table, tmp_path, lost, **BY_PERSON) / LATTICE.divisor
    expected = person_moments(table, lost)
    np.testing.assert_allclose(found, expected, atol=1e-2 * np.trace(expected))


def test_one_row_per_person_loses_what_a_row_loses(tmp_path: Path) -> None:
    table, lost = frame().drop_duplicates("who"), lost_of(2.0)
    by_person = summed(table, tmp_path, lost, **BY_PERSON)
    by_row = summed(table, tmp_path, lost)
    np.testing.assert_allclose(by_person, by_row, atol=1e-3 * np.trace(by_row))


def test_rows_without_a_person_are_left_out(tmp_path: Path) -> None:
    table, lost = frame(), lost_of(2.0)
    unnamed = table.assign(who=np.where(table["ward"] == "C", None, table["who"]))
    found = summed(unnamed, tmp_path, lost, **BY_PERSON)
    rest = summed(table[table["ward"] != "C"], tmp_path, lost, **BY_PERSON)
    assert np.array_equal(found, rest)


@pytest.mark.parametrize("changes", [{}, BY_PERSON], ids=["rows", "persons"])
@pytest.mark.parametrize("groups", [ONE_PART, GROUPS], ids=["all", "groups"])
def test_partitions_and_batches_give_the_same_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], groups: Parts
) -> None:
    table, lost = frame(), lost_of(2.0)
    expected = summed(table, tmp_path, lost, groups, **changes)
    job = FurtherJob(contract(tmp_path / "t.csv", **changes), lost, LATTICE, LATTICE, groups)
    parts = []
    for k, part in enumerate((table[:300], table[300:310], table[310:])):
        part.to_csv(tmp_path / f"part{k}.csv", index=False)
        parts.append(open_source(str(tmp_path / f"part{k}.csv")))
    persons = None
    for _ in range(job.passes - 1):
        first, *rest = [job.measure(part, persons=persons) for part in parts]
        persons = sum(rest, first)
    first_sums, *other_sums = [job.run(part, persons) for part in parts]
    total = sum(other_sums, first_sums)
    blocks = expected.reshape(groups.count, P, groups.count, P)
    for k, each in enumerate(total.part_sums):
        assert each.gram is not None
        assert np.array_equal(each.gram, blocks[k, :, k])
    monkeypatch.setattr("gramercy.tables.batches.BATCH_CELLS", 100)
    assert np.array_equal(
        summed(table.sample(frac=1, random_state=1), tmp_path, lost, groups, **changes), expected
    )


ADVERSARIAL = [
    (1e6, 0.0, 0.0),
    (0.0, 1e6, 0.0),
    (-1e6, 1e6, -1e6),
    (5.0, 0.0, 0.0),
    (2.0, 0.0, 0.0),
    (0.0, 0.0, 0.0),
    (np.nan, 1e6, np.nan),
    (1e-300, 1e6, 1e-300),
]
CLOSE = 1 + 1e-9


@pytest.mark.parametrize("groups", [ONE_PART, GROUPS], ids=["all", "groups"])
@pytest.mark.parametrize("radius", [1.0, 2.5, 1e3])
@pytest.mark.parametrize("cut", CUTS)
def test_one_row_moves_the_sums_by_at_most_the_sensitivity(
    tmp_path: Path, radius: float, cut: float, groups: Parts
) -> None:
    """A row is replaced, also by one of another group, or removed."""
    table, lost = frame(60), lost_of(radius, cut)
    rng = np.random.default_rng(2)
    cells = [*ADVERSARIAL, *(rng.standard_t(1.0, size=(5, 3)) * 100).tolist()]
    tables = []
    for number, row in enumerate(cells):
        changed = table.copy()
        changed.loc[7, list(COLUMNS)] = row
        changed.loc[7, "ward"] = "ABC"[number % 3]
        tables.append(summed(changed, tmp_path, lost, groups))
    removed = summed(table.drop(index=7), tmp_path, lost, groups)
    squared_radius = LATTICE.squared_radius
    replaced = [np.linalg.norm((a - b).astype(float)) for a in tables for b in tables]
    assert max(replaced) <= np.sqrt(2) * squared_radius * CLOSE
    added = [np.linalg.norm((a - removed).astype(float)) for a in tables]
    assert max(added) <= squared_radius * CLOSE
    if radius < 1e3:  # and the bounds are nearly attained
        assert max(added) > 0.99 * squared_radius
        assert max(replaced) > 1.4 * squared_radius * (0.99 if cut > 1 else 0.9)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [ONE_PART, GROUPS], ids=["all", "groups"])
@pytest.mark.parametrize("cut", CUTS)
def test_one_person_moves_the_sums_by_at_most_the_sensitivity(
    tmp_path: Path, cut: float, groups: Parts
) -> None:
    table, lost = frame(400), lost_of(3.0, cut)
    mine = (table["who"] == "id-4").to_numpy()
    others = table[~mine]
    tables = [table]
    for number, row in enumerate(ADVERSARIAL):
        for times in (1, 5, 200):
            own = pd.DataFrame([row] * times, columns=list(COLUMNS))
            wards = ["ABC"[(number + k) % 3] for k in range(times)]
            tables.append(pd.concat([others, own.assign(ward=wards, who="id-4")]))
    grams = [summed(each, tmp_path, lost, groups, **BY_PERSON) for each in tables]
    removed = summed(others, tmp_path, lost, groups, **BY_PERSON)
    squared_radius = LATTICE.squared_radius
    replaced = [np.linalg.norm((a - b).astype(float)) for a in grams for b in grams]
    assert max(replaced) <= np.sqrt(2) * squared_radius * CLOSE
    added = [np.linalg.norm((a - removed).astype(float)) for a in grams]
    assert 0.9 * squared_radius < max(added) <= squared_radius * CLOSE


def test_persons_are_measured_as_for_the_matrix(tmp_path: Path) -> None:
    """The factor of a person's rows is that of the pass for the matrix."""
    table, lost = frame(), lost_of(2.0)
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    declared, source = contract(path, **BY_PERSON), open_source(str(path))
    own = FurtherJob(declared, lost, LATTICE, LATTICE).measure(source)
    main = GramJob(declared, Clip(radius=2.0), LATTICE).measure(source)
    assert own.names == main.names
    assert np.array_equal(own.squares, main.squares)


def test_malformed_lines_of_a_person_count_as_for_the_matrix(tmp_path: Path) -> None:
    """In folders that name the person, and with groups, malformed lines stay as empty rows."""
    for k in range(3):
        (folder := tmp_path / f"who=p{k}").mkdir()
        lines = ["9.0,8.0,-7.0,A", *["1,2"] * (50 if k == 0 else 0)]
        (folder / "t.csv").write_text("\n".join(["c0,c1,c2,ward", *lines]) + "\n")
    declared, source = contract(tmp_path, **BY_PERSON), open_source(str(tmp_path))
    job = FurtherJob(declared, lost_of(2.0), LATTICE, LATTICE, keep_malformed=True)
    main = GramJob(declared, Clip(radius=2.0), LATTICE, keep_malformed=True).measure(source)
    assert np.array_equal(job.measure(source).squares, main.squares)


def test_overflow_of_a_short_radius_gives_no_warning() -> None:
    """It would tell of a cell; warnings are errors here."""
    inside = normalise(np.array([[1e308], [0.0]]), Clip(radius=0.1))
    np.testing.assert_allclose(inside, [[1.0], [0.0]])
