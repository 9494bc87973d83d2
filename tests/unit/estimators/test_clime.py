"""CLIME: solves the linear programme of every column to a proven accuracy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from gramercy.estimators.clime import Clime, clime, smallest_column
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw
from tests.support.noisy_matrices import ar, hub_release
from tests.support.problems import raises
from tests.unit.estimators.test_neighbourhood import correlation

Array = np.ndarray


def smallest_norm(S: Array, c: Array, bound: float) -> float:
    """The minimum by a general solver, as a difference of positive parts."""
    both = np.block([[S, -S], [-S, S]])
    limits = np.concatenate([bound + c, bound - c])
    return float(linprog(np.ones(2 * len(S)), A_ub=both, b_ub=limits, method="highs").fun)


@pytest.mark.parametrize("bound", [0.002, 0.05, 0.3, 0.7])
@pytest.mark.parametrize(
    "S",
    [
        *(correlation(p, p, n) for p, n in ((3, 9), (9, 100), (15, 20))),
        # Ties: equal entries, entries of zero, and a chain.
        np.eye(4),
        np.full((6, 6), 0.5) + 0.5 * np.eye(6),
        np.kron(np.eye(2), np.full((3, 3), 0.9) + 0.1 * np.eye(3)),
        ar(12, 0.7),
        0.99 * correlation(2, 12, 6) + 0.01 * np.eye(12),
    ],
    ids=str,
)
def test_columns_have_the_smallest_norm(S: Array, bound: float) -> None:
    for c in (*np.eye(len(S)), np.linspace(-1, 2, len(S))):
        found = smallest_column(S, c, bound)
        size = np.abs(found).sum()
        assert np.abs(S @ found - c).max() <= bound + 1e-9
        assert size == pytest.approx(smallest_norm(S, c, bound), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("r", [-0.6, 0.0, 0.5])
def test_two_columns_in_closed_form(r: float) -> None:
    """If r (1 - penalty) is within the penalty, b = (1 - penalty, 0); else both bounds are met."""
    S, sign = np.array([[1.0, r], [r, 1.0]]), -np.sign(r)
    b = np.linalg.solve(S, [1 - 0.1, -0.1 * sign]) if abs(r) * 0.9 > 0.1 else [0.9, 0.0]
    np.testing.assert_allclose(clime(S, 0.1), [[b[0], b[1]], [b[1], b[0]]], atol=1e-12)


def test_tiny_penalty_gives_the_inverse() -> None:
    S = correlation(3, 10, 500)
    found = clime(S, 1e-9)
    np.testing.assert_allclose(found, np.linalg.inv(S), atol=1e-6)
    assert (found == found.T).all()


def test_estimate_is_in_the_units_of_the_release() -> None:
    seen, d = hub_release(1, 8, 3000, 1e-3), np.exp2(np.arange(8) % 3)
    scale, quiet = np.outer(d, d), NoiseLaw.none()
    once, scaled = (
        Clime(bound=0.2).fit(Evidence(seen.raw * by, seen.repaired * by, quiet, seen.rows))
        for by in (1.0, scale)
    )
    assert once.kind == "precision"
    np.testing.assert_allclose(scaled.matrix * scale, once.matrix, rtol=1e-4, atol=1e-4)


def test_other_columns_may_replace_a_diagonal_entry() -> None:
    """Three rows of five columns: nearly collinear, so that b_i is zero in a column i."""
    rows = np.array([[-1, -2, 2, 2, 0], [-2, 0, -2, -2, 2], [-1, -1, 0, 2, 1]])
    gram = (rows.T @ rows).astype(float)
    root = np.sqrt(np.diagonal(gram))
    S = 0.999 * gram / np.outer(root, root) + 0.001 * np.eye(5)
    assert smallest_column(S, np.eye(5)[0], 0.4)[0] == 0
    with raises(families.ESTIMATE):
        clime(S, 0.4)
    assert (np.diagonal(clime(S, 0.05)) > 0).all()
