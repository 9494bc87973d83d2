"""The sums of rows with the indicators of their missing cells: the formula, and the sensitivity."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.schemas.contract import Contract
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.normalisation import Clip, Missing
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.exact_sums import ONE_PART, Parts
from gramercy.tables.sums.further_sums import FurtherJob, sum_further_rows
from gramercy.tables.sums.row_transform import LARGEST, integer_rows, missing_rows, normalise
from gramercy.tables.sums.streaming import GramJob
from tests.support.factories import contract_facts

Array = NDArray[np.float64]
P, HOLES = 4, (0, 2)
ROW_LATTICE, LATTICE = Lattice(P, 14), Lattice(P + len(HOLES), 14)
COLUMNS = {f"c{k}": {"lower": -1e6, "upper": 1e6, "centre": 0.0, "scale": 1.0} for k in range(3)}
GROUPS = Parts(by=LevelsFacts(name="ward", levels=("A", "B")))
PERSONS = 40
BY_PERSON: dict[str, Any] = {"privacy_unit": "who", "persons": PERSONS}
CUTS = (0.3, 1.0, 2.0)


def missing_of(radius: float, cut: float = 1.0, indicator: float = 1.0) -> Missing:
    return Missing(radius=radius, cut=cut, columns=HOLES, indicator=indicator)


def frame(rows: int = 800, seed: int = 0) -> pd.DataFrame:
    """Cells of which some are missing alone, and some together."""
    rng = np.random.default_rng(seed)
    cells = rng.standard_t(3, size=(rows, 3))
    cells[rng.random((rows, 3)) < 0.1] = np.nan
    cells[np.ix_(rng.random(rows) < 0.2, [0, 2])] = np.nan
    table = pd.DataFrame(cells, columns=list(COLUMNS))
    table["ward"] = rng.choice(["A", "B", "C"], rows)
    table["who"] = [f"id-{int(k)}" for k in rng.integers(0, PERSONS, rows)]
    return table


def scaled(table: pd.DataFrame) -> tuple[Array, Array]:
    """Scaled rows, shape (P, rows), and the cells."""
    cells = table[list(COLUMNS)].to_numpy().T
    return np.concatenate([np.ones((1, cells.shape[1])), np.nan_to_num(cells)]), cells


def rows_of(table: pd.DataFrame, missing: Missing, factor: float = 1.0) -> Array:
    """The rows by the plain formula, shape (P + holes, rows)."""
    rows, cells = scaled(table)
    result = []
    for z, own in zip(rows.T, cells.T, strict=True):
        x = factor * z * min(1.0, missing.radius / np.linalg.norm(z)) / missing.radius
        m = missing.indicator * np.isnan(own[list(HOLES)])
        if m.any():
            m = m * min(1.0, math.sqrt(missing.cut) / np.linalg.norm(m))
        result.append(np.concatenate([math.sqrt(missing.cut) * x, m]))
    return np.array(result).T


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("radius", [1.5, 3.0, 30.0])
def test_rows_are_those_of_the_formula(radius: float, cut: float) -> None:
    table, missing = frame(), missing_of(radius, cut)
    rows, cells = scaled(table)
    found = normalise(rows, missing, None, cells)
    expected = rows_of(table, missing) / math.sqrt(missing.norm)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    assert (np.linalg.norm(found, axis=0) <= 1 + 1e-12).all()


@pytest.mark.parametrize("cut", CUTS)
def test_hostile_rows_stay_in_the_ball(cut: float) -> None:
    """A row's result depends on no other row, and integer rows are in the ball."""
    rng = np.random.default_rng(1)
    hostile = [0.0, 5e-324, -1e-300, 1.0, -3.0, 1e10, LARGEST**0.5, -1e200, 1e308, np.nan, np.inf]
    cells = rng.choice(hostile, size=(3, 3000))
    rows = np.concatenate([np.ones((1, 3000)), np.where(np.isfinite(cells), cells, 0.0)])
    for radius in (1.0, 7.0, 1e150):
        missing = missing_of(radius, cut)
        found = missing_rows(rows, cells, missing)
        assert (np.linalg.norm(found, axis=0) <= 1 + 1e-12).all()
        alone = [missing_rows(rows[:, [k]], cells[:, [k]], missing) for k in range(200)]
        assert np.array_equal(np.concatenate(alone, axis=1), found[:, :200])
        q = integer_rows(found, LATTICE).astype(np.int64)
        assert ((q * q).sum(axis=0) <= LATTICE.squared_radius).all()


def contract(path: Path, **changes: Any) -> Contract:
    facts = contract_facts(path, rows=800) | {"columns": COLUMNS, "intercept": True}
    return Contract.model_validate(facts | {"neighbours": "add-remove"} | changes)


def summed(
    table: pd.DataFrame, folder: Path, missing: Missing, groups: Parts = ONE_PART, **changes: Any
) -> NDArray[np.int64]:
    """The sums of all groups as one block-diagonal matrix."""
    path = folder / "t.csv"
    table.to_csv(path, index=False)
    sums = sum_further_rows(
        open_source(str(path)),
        contract(path, **changes),
        missing,
        LATTICE,
        ROW_LATTICE,
        groups=groups,
    )
    blocks = np.zeros((len(sums), LATTICE.p, len(sums), LATTICE.p), np.int64)
    for k, each in enumerate(sums):
        assert each.gram is not None
        blocks[k, :, k] = each.gram
    return blocks.reshape(len(sums) * LATTICE.p, -1)


@pytest.mark.parametrize("cut", CUTS)
def test_sums_are_those_of_the_table(tmp_path: Path, cut: float) -> None:
    table, missing = frame(), missing_of(2.0, cut)
    found = missing.norm * summed(table, tmp_path, missing) / LATTICE.divisor
    rows = rows_of(table, missing)
    expected = rows @ rows.T
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.trace(expected))
    own = summed(table[table["ward"] == "B"], tmp_path, missing)
    groups = summed(table, tmp_path, missing, GROUPS).reshape(3, LATTICE.p, 3, LATTICE.p)
    assert np.array_equal(groups[1, :, 1], own)


@pytest.mark.parametrize("indicator", [1.0, math.sqrt(PERSONS / 800)])
def test_sums_of_persons_are_those_of_the_table(tmp_path: Path, indicator: float) -> None:
    table, missing = frame(), missing_of(8.0, 0.6, indicator)
    found = missing.norm * summed(table, tmp_path, missing, **BY_PERSON) / LATTICE.divisor
    expected, cut_off = np.zeros_like(found), 0
    for _, own in table.groupby("who"):
        z = scaled(own)[0]
        factor = min(
            1.0, 1 / np.linalg.norm(np.minimum(1.0, 8.0 / np.linalg.norm(z, axis=0)) * z / 8.0)
        )
        rows = rows_of(own, missing, factor)
        share = min(1.0, missing.norm / float((rows**2).sum()))
        cut_off += share < 1
        expected += share * rows @ rows.T
    assert cut_off == PERSONS if indicator == 1 else 0 < cut_off < PERSONS
    np.testing.assert_allclose(found, expected, atol=1e-2 * np.trace(expected))


def test_persons_are_measured_as_for_the_released_matrix(tmp_path: Path) -> None:
    table, missing = frame(), missing_of(2.0)
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    declared, source = contract(path, **BY_PERSON), open_source(str(path))
    own = FurtherJob(declared, missing, LATTICE, ROW_LATTICE).measure(source)
    main = GramJob(declared, Clip(radius=2.0), ROW_LATTICE).measure(source)
    assert np.array_equal(own.squares, main.squares)


@pytest.mark.parametrize("changes", [{}, BY_PERSON], ids=["rows", "persons"])
@pytest.mark.parametrize("groups", [ONE_PART, GROUPS], ids=["all", "groups"])
def test_partitions_and_batches_give_the_same_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], groups: Parts
) -> None:
    table, missing = frame(), missing_of(2.0)
    expected = summed(table, tmp_path, missing, groups, **changes)
    monkeypatch.setattr("gramercy.tables.batches.BATCH_CELLS", 100)
    shuffled = table.sample(frac=1, random_state=1)
    assert np.array_equal(summed(shuffled, tmp_path, missing, groups, **changes), expected)


ADVERSARIAL = [
    (1e6, 0.0, 0.0),
    (-1e6, 1e6, -1e6),
    (0.0, 0.0, 0.0),
    (np.nan, 1e6, np.nan),
    (np.nan, 0.0, 3.0),
    (3.0, 0.0, np.nan),
    (np.nan, np.nan, np.nan),
]
CLOSE = 1 + 1e-9


@pytest.mark.parametrize("groups", [ONE_PART, GROUPS], ids=["all", "groups"])
@pytest.mark.parametrize("radius", [1.0, 2.5, 1e3])
@pytest.mark.parametrize("cut", CUTS)
def test_one_row_moves_the_sums_by_at_most_the_sensitivity(
    tmp_path: Path, radius: float, cut: float, groups: Parts
) -> None:
    """A row is replaced, also by one of another group, or removed."""
    table, missing = frame(60), missing_of(radius, cut)
    rng = np.random.default_rng(2)
    cells = [*ADVERSARIAL, *(rng.standard_t(1.0, size=(4, 3)) * 100).tolist()]
    tables = []
    for number, row in enumerate(cells):
        changed = table.copy()
        changed.loc[7, list(COLUMNS)] = row
        changed.loc[7, "ward"] = "ABC"[number % 3]
        tables.append(summed(changed, tmp_path, missing, groups))
    removed = summed(table.drop(index=7), tmp_path, missing, groups)
    squared_radius = LATTICE.squared_radius
    replaced = [np.linalg.norm((a - b).astype(float)) for a in tables for b in tables]
    assert max(replaced) <= np.sqrt(2) * squared_radius * CLOSE
    added = [np.linalg.norm((a - removed).astype(float)) for a in tables]
    assert max(added) <= squared_radius * CLOSE
    if radius == 1 and cut <= 1:  # and the bound of a removed row is nearly attained
        assert max(added) > 0.99 * squared_radius


@pytest.mark.slow
@pytest.mark.parametrize("groups", [ONE_PART, GROUPS], ids=["all", "groups"])
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("indicator", [0.2, 1.0, 5.0])
def test_one_person_moves_the_sums_by_at_most_the_sensitivity(
    tmp_path: Path, cut: float, indicator: float, groups: Parts
) -> None:
    table, missing = frame(400), missing_of(3.0, cut, indicator)
    others = table[table["who"] != "id-4"]
    tables = [table]
    for number, row in enumerate(ADVERSARIAL):
        for times in (1, 200):
            own = pd.DataFrame([row] * times, columns=list(COLUMNS))
            wards = ["ABC"[(number + k) % 3] for k in range(times)]
            tables.append(pd.concat([others, own.assign(ward=wards, who="id-4")]))
    grams = [summed(each, tmp_path, missing, groups, **BY_PERSON) for each in tables]
    removed = summed(others, tmp_path, missing, groups, **BY_PERSON)
    squared_radius = LATTICE.squared_radius
    replaced = [np.linalg.norm((a - b).astype(float)) for a in grams for b in grams]
    assert max(replaced) <= np.sqrt(2) * squared_radius * CLOSE
    added = [np.linalg.norm((a - removed).astype(float)) for a in grams]
    # The rows of three groups are three blocks, whose norm is less than their trace.
    assert (0.5 if groups.by else 0.9) * squared_radius < max(added) <= squared_radius * CLOSE
