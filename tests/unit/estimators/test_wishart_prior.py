"""The Wishart prior: closed form, decision rule and empirical Bayes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import multigammaln, ndtr
from scipy.stats import wishart

from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.wishart_prior import (
    WishartPrior,
    decided,
    marginal_strength,
    posterior_scale,
)
from gramercy.schemas.evidence import Evidence
from tests.support.noisy_matrices import gaussian_law, goe

Array = NDArray[np.float64]


def chain(p: int) -> Array:
    """The precision matrix of a chain, of columns with a total variance of one half."""
    precision = np.eye(p) + 0.35 * (np.eye(p, k=1) + np.eye(p, k=-1))
    precision *= 2 * np.trace(np.linalg.inv(precision))
    return precision


def released(precision: Array, rows: int, sd: float) -> Evidence:
    rng = np.random.default_rng(4)
    p = len(precision)
    table = rng.multivariate_normal(np.zeros(p), np.linalg.inv(precision), rows)
    raw, law = table.T @ table / rows + goe(rng, p, sd), gaussian_law(sd)
    return Evidence(raw, denoise(raw, law, unit=False), law, float(rows), unit=False)


def test_mode_is_the_inverse_of_the_weighted_mean() -> None:
    S = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.2], [0.0, 0.2, 1.0]])
    mode = decided(S, rows=30.0, strength=10.0, level=0.0)
    np.testing.assert_allclose(mode, np.linalg.inv(0.75 * S + 0.25 * np.eye(3)), rtol=1e-12)


def test_mode_maximises_the_posterior_density() -> None:
    S, rows, strength = np.array([[1.0, -0.4], [-0.4, 1.0]]), 12.0, 5.0
    law = wishart(2 + 1 + strength + rows, posterior_scale(S, rows, strength))
    mode = decided(S, rows, strength, level=0.0)
    for change in ([[0.1, 0], [0, 0]], [[0, 0.1], [0.1, 0]], [[-0.1, 0], [0, 0.1]]):
        assert law.logpdf(mode) > law.logpdf(mode + np.array(change))
        assert law.logpdf(mode) > law.logpdf(mode - np.array(change))


def test_decision_rule_uses_the_posterior_deviation() -> None:
    """An entry is kept if it exceeds 1.96 posterior standard deviations, here by simulation."""
    S, rows, strength = np.array([[1.0, 0.2], [0.2, 1.0]]), 50.0, 1.0
    V = posterior_scale(S, rows, strength)
    degrees = 2 + 1 + strength + rows
    drawn = wishart(degrees, V).rvs(40_000, random_state=np.random.RandomState(1))[:, 0, 1]
    ratio = abs(drawn.mean()) / drawn.std()
    confidence = np.array([0.98, 1.02])  # of the simulated ratio
    below, above = 2 * ndtr(ratio * confidence) - 1
    assert decided(S, rows, strength, float(below))[0, 1] != 0
    assert decided(S, rows, strength, float(above))[0, 1] == 0


def test_strength_maximises_the_marginal_likelihood() -> None:
    S, rows, p = np.linalg.inv(chain(4)), 40.0, 4
    S = S / np.sqrt(np.outer(np.diag(S), np.diag(S)))

    def log_likelihood(k: float) -> float:
        """Gaussian rows with precision W(p + 1 + k, (k I)^-1), integrated; without constants."""
        prior = p + 1 + k
        determinants = prior / 2 * p * np.log(k)
        determinants -= (prior + rows) / 2 * np.linalg.slogdet(k * np.eye(p) + rows * S)[1]
        return float(
            multigammaln((prior + rows) / 2, p) - multigammaln(prior / 2, p) + determinants
        )

    best = marginal_strength(S, rows)
    assert log_likelihood(best) >= max(log_likelihood(best * 1.3), log_likelihood(best / 1.3))
    assert marginal_strength(np.eye(4), rows) == pytest.approx(rows * 1e4)


@pytest.mark.parametrize(("sd", "false"), [(1e-9, 0.45), (5e-4, 0.55)])
def test_chain_is_found(sd: float, false: float) -> None:
    precision = chain(12)
    edges = np.triu(precision != 0, 1)
    estimate = WishartPrior().fit(released(precision, 3_000, sd))
    assert estimate.kind == "precision"
    assert estimate.edges is not None
    found = np.triu(estimate.edges != 0, 1)
    assert found[edges].all()
    assert (found & ~edges).sum() / found.sum() < false
    diagonal = np.sqrt(np.diag(precision))
    kept = estimate.matrix[edges] / np.outer(diagonal, diagonal)[edges]
    assert np.abs(kept - 0.35).max() < 0.12


def test_noise_counts_as_fewer_rows() -> None:
    precision = chain(12)
    exact, noisy = (WishartPrior().fit(released(precision, 3_000, sd)) for sd in (1e-9, 5e-4))
    assert exact.tuning["rows"] == pytest.approx(3_000, rel=1e-3)
    assert noisy.tuning["rows"] < 2_500


def test_matrix_that_is_not_positive_definite_is_a_graph() -> None:
    """Zeros can make it indefinite: strong dependences among many columns, and few rows."""
    factor = np.random.default_rng(2).normal(size=(25, 2))
    covariance = factor @ factor.T + 0.3 * np.eye(25)
    precision = np.linalg.inv(covariance / np.trace(covariance) / 2)
    estimate = WishartPrior(strength=1.0, level=0.5).fit(released(precision, 40, 1e-9))
    assert estimate.tuning["smallest_eigenvalue"] < -0.1
    assert estimate.kind == "graph"
    assert list(estimate.matrices) == ["coefficients"]
