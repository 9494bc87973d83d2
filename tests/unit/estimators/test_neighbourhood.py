"""Neighbourhood selection: scikit-learn's lasso column by column, and the graph it finds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from gramercy.estimators.neighbourhood import (
    NeighbourhoodSelection,
    auto_penalty,
    neighbourhood_coefficients,
    symmetrised,
)
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw
from tests.support.factories import at_scale
from tests.support.noisy_matrices import hub_release


def correlation(seed: int, p: int, n: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, p))
    rows[:, 1:] += 0.7 * rows[:, :-1]
    return np.asarray(np.corrcoef(rows.T))


@pytest.mark.parametrize("penalty", [0.02, 0.1, 0.3])
@pytest.mark.parametrize(("p", "n"), [(5, 100), (15, 60), (30, 25)])
def test_coefficients_equal_lasso_of_every_column(p: int, n: int, penalty: float) -> None:
    """The lasso is fitted to a square root of R; its columns stand for data.

    With fewer rows than columns, the coefficients are unique with probability one.
    """
    R = correlation(p, p, n)
    found = neighbourhood_coefficients(R, penalty)
    values, vectors = np.linalg.eigh(R)
    root = (vectors * np.sqrt(np.maximum(values, 0))).T
    model = Lasso(alpha=penalty / p, fit_intercept=False, tol=1e-14, max_iter=1_000_000)
    for j in range(at_scale(min(p, 12), p)):
        others = np.delete(np.arange(p), j)
        expected = model.fit(root[:, others], root[:, j]).coef_
        np.testing.assert_allclose(found[others, j], expected, atol=1e-5)
        assert found[j, j] == 0


def test_and_or_rules_combine_coefficients() -> None:
    one = np.array([[0.0, 0.5, 0.0, -0.2], [-0.3, 0.0, 0.1, 0.2], [0.4, 0.1, 0.0, 0.0], [0.0] * 4])
    smaller = np.zeros((4, 4))
    smaller[0, 1] = smaller[1, 0] = -0.3
    smaller[1, 2] = smaller[2, 1] = 0.1
    larger = smaller.copy()
    larger[0, 1] = larger[1, 0] = 0.5
    larger[0, 2] = larger[2, 0] = 0.4
    larger[0, 3] = larger[3, 0] = -0.2
    larger[1, 3] = larger[3, 1] = 0.2
    for coefficients in (one, one.T):
        assert (symmetrised(coefficients, "and") == smaller).all()
        assert (symmetrised(coefficients, "or") == larger).all()
    tie = np.array([[0.0, 0.2], [-0.2, 0.0]])
    for rule in ("and", "or"):
        found = symmetrised(tie, rule)
        assert found[0, 1] == found[1, 0] != 0


def test_estimate_is_a_symmetric_graph() -> None:
    seen = hub_release(4, 15, 5000, 3e-3)
    both = NeighbourhoodSelection(penalty=0.05).fit(seen)
    either = NeighbourhoodSelection(penalty=0.05, rule="or").fit(seen)
    for found in (both, either):
        assert found.kind == "graph"
        assert found.edges is not None
        assert (found.matrix == found.matrix.T).all()
        assert (found.edges == found.matrix).all()
        assert (np.diagonal(found.matrix) == 0).all()
        assert found.tuning == {"penalty": 0.05}
    assert ((both.matrix != 0) <= (either.matrix != 0)).all()
    assert (both.matrix != 0).sum() < (either.matrix != 0).sum()
    assert not NeighbourhoodSelection(penalty=1.0).fit(seen).matrix.any()


def test_graph_is_invariant_to_units() -> None:
    """The graph depends on units only through the diagonal floor."""
    seen = hub_release(1, 8, 3000, 1e-3)
    d = np.exp2(np.arange(8) % 3)
    scale = np.outer(d, d)
    quiet = NoiseLaw.none()
    once, scaled = (
        Evidence(seen.raw * by, seen.repaired * by, quiet, seen.rows) for by in (1.0, scale)
    )
    chosen = NeighbourhoodSelection(penalty=0.1)
    np.testing.assert_allclose(chosen.fit(scaled).matrix, chosen.fit(once).matrix, atol=1e-5)
    np.testing.assert_allclose(auto_penalty(scaled), auto_penalty(once), rtol=0.2)
