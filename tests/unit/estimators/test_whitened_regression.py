"""Regressions and partial correlations where noise was drawn in the metric of the columns."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators.discoveries import Discoveries
from gramercy.estimators.intervals import Intervals
from gramercy.estimators.regression import LinearRegression
from gramercy.estimators.uncertainty.entry_covariance import (
    EntryCovariance,
    noise_covariance,
    noise_of_scores,
)
from gramercy.schemas.evidence import Evidence
from tests.support.noisy_matrices import gaussian_law, goe
from tests.support.simulated_release import privately_scaled

Array = NDArray[np.float64]

P = 20


@cache
def chain() -> Array:
    """Rows of a chain of columns, each of which is close to its neighbours."""
    covariance = 0.9 ** np.abs(np.subtract.outer(np.arange(P), np.arange(P)))
    stream = np.random.default_rng(1)
    return stream.normal(size=(20_000, P)) @ np.linalg.cholesky(covariance).T


@cache
def release(seed: int = 3, *, whitened: bool = True) -> Evidence:
    return privately_scaled(chain(), [(-6.0, 6.0)] * P, 1.0, seed, whitened=whitened)


def table_of(evidence: Evidence, outcome: int) -> tuple[Array, Array, Array, Array]:
    """Coefficients and their bounds, which of them are known, and those of the table."""
    others = [f"c{j}" for j in range(P) if j != outcome]
    tables = LinearRegression(outcome=f"c{outcome}").fit(evidence).tables
    found = tables["coefficients"].set_index("term").loc[others]
    rows = np.delete(chain(), outcome, axis=1)
    design = np.column_stack([np.ones(len(rows)), rows])
    actual = np.linalg.lstsq(design, chain()[:, outcome])[0][1:]
    bounds = found[["lower", "upper"]].to_numpy().T
    return found["coefficient"].to_numpy(), bounds, found["known"].eq("yes").to_numpy(), actual


@pytest.mark.slow
def test_coefficients_of_correlated_columns_are_known_and_covered() -> None:
    errors, widths, covered = [], [], []
    for seed in range(3):
        for outcome in (0, 9, 15):
            estimate, (lower, upper), known, actual = table_of(release(seed), outcome)
            assert known.all()
            errors.append(np.sqrt(np.mean((estimate - actual) ** 2)))
            widths.append(np.median(upper - lower) / 2)
            covered.extend((lower <= actual) & (actual <= upper))
    assert np.mean(errors) < 0.035
    assert np.mean(widths) < 0.1
    assert np.mean(covered) > 0.93


def test_noise_of_one_size_hides_the_same_coefficients() -> None:
    _, _, known, _ = table_of(release(whitened=False), 9)
    assert known.mean() < 0.5


def test_r_squared_of_correlated_columns() -> None:
    facts = LinearRegression(outcome="c9").fit(release()).tables["fit"].set_index("quantity")
    correlations = np.corrcoef(chain().T)
    actual = 1 - 1 / np.linalg.inv(correlations)[9, 9]
    assert abs(facts.loc["R squared of the fitted coefficients", "value"] - actual) < 0.02


def test_regressors_of_correlated_columns_are_selected() -> None:
    found = LinearRegression(outcome="c9", selection="lasso").fit(release())
    table = found.tables["coefficients"].set_index("term")
    selected = table.index[table["selected"].eq("yes")]
    assert {"c8", "c10"} <= set(selected)
    assert len(selected) < 8


@pytest.mark.slow
def test_partial_correlations_of_correlated_columns_have_narrow_intervals() -> None:
    found = Intervals(of="partial-correlation").fit(release()).matrices
    lower, upper = found["lower"][1:, 1:], found["upper"][1:, 1:]
    pairs = np.triu_indices(P, 1)
    inverse = np.linalg.inv(np.corrcoef(chain().T))
    root = np.sqrt(np.diag(inverse))
    actual = (-inverse / np.outer(root, root))[pairs]
    assert np.median(upper[pairs] - lower[pairs]) / 2 < 0.08
    assert np.mean((lower[pairs] <= actual) & (actual <= upper[pairs])) > 0.93


def test_neighbours_are_discovered() -> None:
    edges = Discoveries(of="partial-correlation").fit(release()).edges
    assert edges is not None
    found = np.abs(edges[1:, 1:]) > 0
    neighbours = np.abs(np.subtract.outer(np.arange(P), np.arange(P))) == 1
    assert (found & neighbours).sum() == neighbours.sum()
    assert (found & ~neighbours).sum() <= 0.08 * found.sum()


def test_variance_of_scores_in_a_metric_is_that_of_draws() -> None:
    stream, p = np.random.default_rng(4), 6
    root, vectors = stream.normal(size=(p, p)), stream.normal(size=(p, 2))
    noise = noise_covariance(gaussian_law(0.3), np.eye(p), 1.0).transformed(root)
    draws = np.array([root @ goe(stream, p, 0.3) @ root.T @ vectors for _ in range(4000)])
    np.testing.assert_allclose(
        noise.mean_variance_of_scores(vectors), (draws**2).mean(axis=(0, 1)), rtol=0.08
    )


def test_mean_variance_of_scores_is_that_of_their_covariance() -> None:
    stream, p = np.random.default_rng(5), 5
    left, right = (each @ each.T for each in stream.normal(size=(2, p, p)))
    noise = EntryCovariance(((left, right),), ((0.4, right),), ((0.3, left),))
    vectors = stream.normal(size=(p, 3))
    expected = [np.trace(noise_of_scores(noise, each)) / p for each in vectors.T]
    np.testing.assert_allclose(noise.mean_variance_of_scores(vectors), expected)


def test_independent_entries_in_axes_have_their_variances() -> None:
    stream, p = np.random.default_rng(6), 4
    axes = stream.normal(size=(p, p))
    sizes = np.array([0.01, 0.1, 1.0, 3.0])
    variance = 1 / (1 + np.outer(sizes, sizes))
    draws = stream.normal(size=(20_000, p, p)) * np.sqrt(variance)
    upper = np.triu(draws, 1)
    diagonal = np.sqrt(2) * draws * np.eye(p)
    found = axes @ (upper + upper.transpose(0, 2, 1) + diagonal) @ axes.T
    stated = EntryCovariance.in_axes(axes, variance).variance(p)
    np.testing.assert_allclose(stated, (found**2).mean(axis=0), rtol=0.05)
