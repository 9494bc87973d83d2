"""Partial correlations by nodewise lasso: correct where no inverse exists, each on its own."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.estimators.discoveries import Discoveries
from gramercy.estimators.intervals import Intervals
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.noise.draws import draw
from gramercy.estimators.uncertainty.entries import edge_errors
from gramercy.estimators.uncertainty.moment_errors import moment_errors
from gramercy.estimators.uncertainty.partial_correlations import inverse_errors, nodewise_lasso
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import Family, NoiseLaw
from tests.support.noisy_matrices import family_law
from tests.support.survey import survey_evidence, survey_table

Array = NDArray[np.float64]


def chain(p: int, correlation: float = 0.6) -> Array:
    covariance: Array = correlation ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    return covariance


def hubs(p: int) -> Array:
    links = np.zeros((p, p))
    for hub in range(0, p, 10):
        links[hub, hub + 1 : hub + 10] = 0.3
    precision = links + links.T
    precision += (0.2 - np.linalg.eigvalsh(precision)[0]) * np.eye(p)
    covariance = np.linalg.inv(precision)
    root = np.sqrt(np.diag(covariance))
    scaled: Array = covariance / np.outer(root, root)
    return scaled


def partial_correlations(covariance: Array) -> Array:
    precision = np.linalg.inv(covariance)
    root = np.sqrt(np.diag(precision))
    partial: Array = -precision / np.outer(root, root)
    np.fill_diagonal(partial, 0.0)
    partial[np.abs(partial) < 1e-9] = 0.0
    return partial


def releases(
    covariance: Array, rows: int, noise: float, times: int, family: Family = "gaussian-isotropic"
) -> Iterator[Evidence]:
    """Second moments of Gaussian rows; noise in units of 1 / sqrt(rows)."""
    rng, stream, p = np.random.default_rng(6), np.random.RandomState(6), len(covariance)
    root = np.linalg.cholesky(covariance)
    law = family_law(family, noise / math.sqrt(rows), p) if noise else NoiseLaw.none()
    for _ in range(times):
        drawn = rng.normal(size=(rows, p)) @ root.T
        raw = drawn.T @ drawn / rows + (draw(stream, p, law) if noise else 0.0)
        yield Evidence(raw, denoise(raw, law, 2.0 * p), law, float(rows), unit=False, trace=2.0 * p)


def shares(covariance: Array, seen: Iterator[Evidence], rate: float = 0.05) -> tuple[float, float]:
    """Mean share of false edges, and of true edges that are discovered."""
    true = partial_correlations(covariance) != 0
    false, power = [], []
    for evidence in seen:
        found = Discoveries(rate=rate).fit(evidence).edges
        assert found is not None
        false.append(((found != 0) & ~true).sum() / max((found != 0).sum(), 1))
        power.append(((found != 0) & true).sum() / true.sum())
    return float(np.mean(false)), float(np.mean(power))


def test_without_noise_it_agrees_with_the_inverse() -> None:
    """With many rows both estimate the same, and so do their errors."""
    covariance = hubs(20)
    (seen,) = releases(covariance, 100_000, 0.0, 1)
    found, inverse = (
        edge_errors(seen, "partial-correlation"),
        inverse_errors(seen, moment_errors(seen))[0],
    )
    np.testing.assert_allclose(
        found.estimate, inverse.estimate - np.diag(np.diag(inverse.estimate)), atol=2e-3
    )
    off = ~np.eye(20, dtype=bool)
    assert found.estimable[off].all()
    np.testing.assert_allclose(found.standard_error[off], inverse.standard_error[off], rtol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [
        "gaussian-isotropic",
        pytest.param("laplace", marks=pytest.mark.slow),
        pytest.param("matrix-laplace", marks=pytest.mark.slow),
    ],
)
def test_noise_costs_power_gradually(family: Family) -> None:
    """With noise like the sampling error the inverse does not exist any more, but edges do."""
    covariance, powers = hubs(40), []
    # At twice the sampling error, the tails of Laplace noise hide all edges.
    for noise in (0.5, 1.0) if family == "laplace" else (0.5, 1.0, 2.0):
        seen = list(releases(covariance, 2000, noise, 4, family))
        known = [inverse_errors(each, moment_errors(each))[0].estimable.any() for each in seen]
        assert all(known) if noise < 1 else not any(known)
        false, power = shares(covariance, iter(seen))
        assert false <= 0.13
        powers.append(power)
    assert powers[0] > 0.99
    assert powers[1] > 0.95
    assert 0.6 < powers[-1] <= powers[0]


@pytest.mark.slow
def test_strong_noise_and_common_neighbours_keep_the_rate() -> None:
    """The lasso's bias is largest between columns that share a hub, under strong noise."""
    false, power = shares(hubs(40), releases(hubs(40), 2000, 3.0, 12))
    assert false <= 0.08
    assert power > 0.3


@pytest.mark.slow
def test_more_columns_than_an_inverse_can_bear() -> None:
    """A third as many columns as rows, and noise of half the sampling error."""
    covariance = chain(60)
    false, power = shares(covariance, releases(covariance, 200, 0.5, 6))
    assert false <= 0.12
    assert power > 0.8


def test_p_values_of_unconnected_columns_are_uniform() -> None:
    p_values = np.concatenate(
        [
            edge_errors(seen, "partial-correlation").p_values[np.triu_indices(20, 1)]
            for seen in releases(np.eye(20), 1000, 1.0, 15)
        ]
    )
    for level in (0.01, 0.05, 0.2):
        share = float((p_values <= level).mean())
        assert share <= 1.3 * level + 0.005  # the allowance for bias makes it smaller
        assert share >= 0.4 * level


@pytest.mark.slow
def test_intervals_are_nodewise_where_the_inverse_is_unknown() -> None:
    covariance = hubs(30)
    truth = partial_correlations(covariance)
    pairs, strong = np.triu_indices(30, 1), np.abs(truth) > 0.1
    covered, of_edges = [], []
    for seen in releases(covariance, 2000, 1.0, 12):
        found = Intervals(of="partial-correlation").fit(seen)
        assert found.tuning["unknown"] == 0
        held = (found.matrices["lower"] <= truth) & (truth <= found.matrices["upper"])
        covered.append(held[pairs].mean())
        of_edges.append(held[strong].mean())
    assert 0.93 <= np.mean(covered) <= 0.98
    assert np.mean(of_edges) >= 0.88


def test_a_column_lost_in_the_noise_leaves_the_others_known() -> None:
    covariance = chain(6)
    scale = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.02])
    (seen,) = releases(covariance * np.outer(scale, scale), 5000, 1.0, 1)
    found = Discoveries().fit(seen)
    assert found.edges is not None
    assert found.tuning["untested"] == 5
    assert (found.edges[[0, 1, 2, 3], [1, 2, 3, 4]] != 0).all()
    assert (found.matrices["p_values"][5, :5] == 1).all()
    assert Intervals(of="partial-correlation").fit(seen).tuning["unknown"] == 15


def test_overwhelming_noise_tests_nothing() -> None:
    (seen,) = releases(chain(8), 50, 3.0, 1)
    found = Discoveries().fit(seen)
    assert found.tuning["edges"] == 0
    assert found.tuning["untested"] == 28


def test_duplicate_columns_are_unknown_and_the_others_known() -> None:
    """Given its duplicate, a column has no residual, so its partial correlations are undefined."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(5000, 6)) @ np.linalg.cholesky(chain(6)).T
    rows = np.column_stack([rows, rows[:, 0]])
    raw = rows.T @ rows / 5000
    seen = Evidence(raw, raw, NoiseLaw.none(), 5000.0, unit=False, trace=100.0)
    found = Discoveries().fit(seen)
    assert found.edges is not None
    assert (found.edges[[2, 3, 4], [3, 4, 5]] > 0.3).all()
    assert (found.edges[[0, 6]] == 0).all()
    assert found.tuning["untested"] == 11


def test_levels_are_known_given_the_reference_of_their_column() -> None:
    """Every row has a ward, so the wards add up to one; the first one is the reference."""
    table = survey_table(20_000)
    numbers = pd.get_dummies(table, columns=["ward", "sex"], dtype=float)
    names = ("income", "age", "hours", "ward_B", "ward_C", "sex_m")
    exact = partial_correlations(numbers[list(names)].cov().to_numpy())
    for seed in range(3):
        seen = survey_evidence(table, 1e-3, seed)
        errors = edge_errors(seen, "partial-correlation")
        kept = [seen.names[1:].index(name.replace("_", "=")) for name in names]
        among = np.ix_(kept, kept)
        assert (errors.testable[among] | np.eye(6, dtype=bool)).all()
        references = [k for k in range(8) if k not in kept]
        assert not errors.testable[references].any()
        found = Discoveries().fit(seen)
        assert set(found.tables["discoveries"]["row"]) >= {"income", "hours", "ward=B"}
        discovered = found.edges[1:, 1:][among] != 0
        assert discovered[np.abs(exact) > 0.1].all()
        assert not discovered[np.abs(exact) < 0.01].any()
        assert errors.estimate[among] == pytest.approx(exact, abs=0.12)


def test_a_reference_is_a_level_that_is_known() -> None:
    """A level that no row has is lost in the noise, so that the next one is the reference."""
    table = survey_table(20_000)
    table["ward"] = table["ward"].replace("A", "B")
    seen = survey_evidence(table, 1e-3)
    testable = edge_errors(seen, "partial-correlation").testable
    wards = [seen.names[1:].index(f"ward={name}") for name in "ABC"]
    assert [bool(testable[k].any()) for k in wards] == [False, False, True]


def test_partial_correlations_of_noisy_moments_follow_their_error() -> None:
    """For fixed residuals, the error by noise is that of the exact law."""
    covariance, law = chain(5), family_law("gaussian-isotropic", 0.002, 5)
    seen = Evidence(covariance, covariance, law, 1e9, unit=False, trace=10.0)
    lasso = nodewise_lasso(moment_errors(seen), law, 1e9)
    assert lasso is not None
    stream = np.random.RandomState(3)
    drawn = np.array(
        [lasso.partial_correlations(covariance + draw(stream, 5, law)) for _ in range(4000)]
    )
    off = ~np.eye(5, dtype=bool)
    expected = np.sqrt(lasso.errors.variance(lasso.errors.estimate)[1])
    np.testing.assert_allclose(drawn.std(axis=0)[off], expected[off], rtol=0.05)


def test_a_denoised_variance_of_rounding_errors_is_zero() -> None:
    """Of a column that denoising removes, the errors of a change of metric may be left."""
    raw = np.diag([1.0, 0.5, 0.5, 1.0])
    repaired = np.diag([1.0, 1e-31, 1e-31, 1.0])
    repaired[1, 2] = repaired[2, 1] = -1.4e-31
    law = family_law("gaussian-isotropic", 0.05, 4)
    found = Discoveries().fit(Evidence(raw, repaired, law, 100.0, unit=False, trace=8.0))
    assert found.edges is None or not found.edges[1:3].any()
