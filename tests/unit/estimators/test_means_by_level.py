"""Means within levels of releases whose rows were clipped."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators import registry
from gramercy.schemas.evidence import Evidence
from tests.support.private_release import level_column, numeric_columns, privately_scaled

Array = NDArray[np.float64]
ROWS = 20_000


def release(cells: Array, levels: Array, limit: float, epsilon: float, seed: int) -> Evidence:
    stream = np.random.default_rng(seed)
    facts = (*numeric_columns([(-limit, limit)] * cells.shape[1]), level_column("ward", 3))
    scaled = privately_scaled(np.column_stack([cells, levels]), facts, epsilon, stream)
    assert scaled is not None
    return scaled.release(stream)


def levels_of(cells: Array, seed: int) -> Array:
    """Levels that depend on the first column, with half, three tenths and two tenths of rows."""
    ranks = cells[:, 0].argsort().argsort() / ROWS
    mixed = 0.6 * ranks + 0.4 * np.random.default_rng(seed).random(ROWS)
    return np.digitize(mixed, np.quantile(mixed, [0.5, 0.8])).astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_means_by_level_cover_what_clipping_hides(epsilon: float) -> None:
    covered = []
    for seed in range(4):
        stream = np.random.default_rng(100 + seed)
        shared = stream.normal(size=(ROWS, 1))
        cells = np.exp(1.3 * (0.7 * shared + 0.7 * stream.normal(size=(ROWS, 5))))
        levels = levels_of(cells, seed)
        seen = release(cells, levels, 1e4, epsilon, seed)
        groups = registry["moments"](by="ward").fit(seen).tables["groups"]
        truth = np.array([cells[levels == k].mean(axis=0) for k in range(3)]).ravel()
        covered.append(((groups["lower"] <= truth) & (truth <= groups["upper"])).mean())
    assert np.mean(covered) > 0.9


@pytest.mark.slow
def test_means_by_level_average_to_the_mean() -> None:
    stream = np.random.default_rng(1)
    cells = 100 + 5 * stream.normal(size=(ROWS, 4))
    levels = levels_of(cells, 1)
    seen = release(cells, levels, 200.0, 4.0, 1)
    found = registry["moments"](by="ward").fit(seen).tables
    groups = found["groups"].set_index(["level", "column"])["mean"].unstack()
    shares = found["levels"].set_index("level")["share"].iloc[:3]
    together = shares.to_numpy() @ groups.to_numpy()
    np.testing.assert_allclose(together, found["columns"]["mean"], atol=0.3)
    truth = np.array([cells[levels == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(groups.to_numpy(), truth, atol=0.4)


@pytest.mark.slow
def test_means_by_level_are_unknown_where_only_signs_are_published() -> None:
    cells = np.random.default_rng(2).normal(size=(ROWS, 4))
    cells[:, 1] = np.where(np.arange(ROWS) % 500 == 0, 9e4, 0.0)
    seen = release(cells, levels_of(cells, 2), 1e5, 1.0, 2)
    assert "c1" in seen.signs
    groups = registry["moments"](by="ward").fit(seen).tables["groups"].set_index("column")
    assert groups.loc["c1", ["mean", "lower", "upper"]].isna().all().all()
