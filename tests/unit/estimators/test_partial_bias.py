"""Partial correlations and edges of releases whose clipped rows are unlike the others."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators import registry
from gramercy.estimators.uncertainty.entries import CorrelationKind, correlation, edge_errors
from tests.support.simulated_release import privately_scaled

Array = NDArray[np.float64]
ROWS = 20_000


def partial(table: Array) -> Array:
    inverse = np.linalg.inv(np.cov(table.T))
    root = np.sqrt(np.diag(inverse))
    result: Array = -inverse / np.outer(root, root)
    return result


def two_laws(share: float, times: float, seed: int) -> Array:
    """Columns 0 and 1 with correlation .3, and -.3 in a small share of much longer rows."""
    stream = np.random.default_rng(seed)
    table = stream.normal(size=(ROWS, 5))
    long = stream.random(ROWS) < share
    table[:, 1] = np.where(long, -0.3, 0.3) * table[:, 0] + np.sqrt(0.91) * table[:, 1]
    table[long] *= times
    return table


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_partial_correlations_of_the_table_are_covered(epsilon: float) -> None:
    stream = np.random.default_rng(1)
    roots = np.linalg.cholesky(np.array([0.5 * np.eye(6) + 0.5, np.eye(6)]))
    table = stream.normal(size=(ROWS, 6)) @ roots[0].T
    long = stream.random(ROWS) < 0.01
    table[long] = 6 * stream.normal(size=(int(long.sum()), 6)) @ roots[1].T
    covered = []
    for seed in range(4):
        release = privately_scaled(table, [(-50.0, 50.0)] * 6, epsilon, seed)
        found = correlation(release, "partial-correlation")
        lower, upper = found.interval(0.95, "table")
        truth = partial(table)
        inside = (lower <= truth) & (truth <= upper)
        covered.extend(inside[found.estimable & ~np.eye(6, dtype=bool)].tolist())
        assert (found.bias.deviation[0][~np.eye(6, dtype=bool)] > 0).all()
    assert len(covered) > 30  # of 120
    assert np.mean(covered) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("of", ["correlation", "partial-correlation"])
def test_edges_that_hidden_rows_undo_are_not_discovered(of: CorrelationKind) -> None:
    found = []
    for seed in range(4):
        table = two_laws(0.03, 5.7, seed)
        assert abs(np.corrcoef(table.T)[0, 1]) < 0.1
        release = privately_scaled(table, [(-100.0, 100.0)] * 5, 0.5, seed)
        estimate = registry["discoveries"](of=of).fit(release)
        found.append(estimate.matrices["adjusted"][1, 2])
    assert np.median(found) > 0.05


def test_edges_of_plain_tables_are_discovered() -> None:
    table = two_laws(0.0, 1.0, 1)
    release = privately_scaled(table, [(-5.0, 5.0)] * 5, 1.0)
    for of in ("correlation", "partial-correlation"):
        estimate = registry["discoveries"](of=of).fit(release)
        edges = estimate.tables["discoveries"]
        assert edges[["row", "column"]].to_numpy().tolist()[0] == ["c0", "c1"]
        assert edges["lower"][0] < 0.3 < edges["upper"][0]


def test_pairs_of_columns_that_are_clipped_far_are_unknown() -> None:
    stream = np.random.default_rng(3)
    table = stream.normal(size=(ROWS, 5))
    table[:, :2] = np.exp(3 * table[:, :2])
    release = privately_scaled(table, [(0.0, 1e6)] * 2 + [(-5.0, 5.0)] * 3, 0.5)
    errors = edge_errors(release, "partial-correlation")
    truth = partial(table)
    lower, upper = errors.interval(0.95)
    known = errors.estimable
    assert ((lower <= truth) & (truth <= upper))[known].all()
    assert known[2:, 2:].any()


@pytest.mark.parametrize("seed", range(5))
def test_errors_are_symmetric_to_the_last_digit(seed: int) -> None:
    """As those of every published matrix are."""
    table = two_laws(0.01, 5.0, seed)
    table[:, 3] = np.exp(table[:, 3])
    release = privately_scaled(table, [(-100.0, 100.0)] * 5, 1.0, seed)
    errors = edge_errors(release, "partial-correlation")
    for matrix in (errors.observed, errors.z_score, errors.clipping):
        np.testing.assert_array_equal(matrix, matrix.T)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [8, 3])
def test_heavy_tails_alone_give_few_edges(columns: int) -> None:
    """Columns without any correlation, the first of which have a random factor in common."""
    found = []
    for seed in range(8):
        stream = np.random.default_rng(seed)
        table = stream.normal(size=(4000, 8))
        table[:, :columns] *= np.exp(0.7 * stream.normal(size=(4000, 1)))
        release = privately_scaled(table, [(-60.0, 60.0)] * 8, 100.0, seed)
        p_values = registry["discoveries"]().fit(release).matrices["p_values"]
        found.extend(p_values[1 : columns + 1, 1 : columns + 1][np.triu_indices(columns, 1)])
    assert np.mean(np.array(found) < 0.05) < 0.13
