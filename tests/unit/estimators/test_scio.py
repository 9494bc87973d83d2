"""SCIO: equal to a general minimiser, and not called a precision matrix where it is indefinite."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from gramercy.estimators.estimator import partial_correlations
from gramercy.estimators.scio import Scio, scio
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw
from tests.support.noisy_matrices import hub_release
from tests.unit.estimators.test_neighbourhood import correlation

INDEFINITE = np.array(  # rows whose SCIO, at a penalty of 0.1, has a negative eigenvalue
    [
        [1, 2, 1, -1, -2, 0, -1],
        [0, -2, 2, 2, -2, 2, 0],
        [-2, 2, 2, -2, 0, 2, 1],
        [0, 2, 2, -2, -2, -2, -1],
        [-2, -2, -1, 1, 0, -1, 2],
    ]
)


def by_scipy(S: np.ndarray, penalty: float) -> np.ndarray:
    """Minimise each column by SciPy as a difference of positive parts, and symmetrise."""
    p = len(S)
    columns = np.zeros((p, p))
    for i in range(p):

        def objective(parts: np.ndarray, i: int = i) -> tuple[float, np.ndarray]:
            b = parts[:p] - parts[p:]
            gradient = S @ b - np.eye(p)[i]
            value = b @ S @ b / 2 - b[i] + penalty * parts.sum()
            return value, np.concatenate([gradient + penalty, penalty - gradient])

        best = minimize(
            objective,
            np.zeros(2 * p),
            jac=True,
            bounds=[(0, None)] * (2 * p),
            method="L-BFGS-B",
            options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 100_000, "maxfun": 1_000_000},
        )
        columns[:, i] = best.x[:p] - best.x[p:]
    return np.where(np.abs(columns) <= np.abs(columns.T), columns, columns.T)


@pytest.mark.parametrize("penalty", [0.03, 0.2, 0.6])
@pytest.mark.parametrize(("p", "n"), [(4, 50), (9, 100)])
def test_scio_equals_a_general_minimiser(p: int, n: int, penalty: float) -> None:
    S = correlation(p, p, n) * np.outer(np.arange(1, p + 1), np.arange(1, p + 1)) ** 0.5
    found = scio(S, penalty)
    np.testing.assert_allclose(found, by_scipy(S, penalty), atol=2e-4)
    assert (found == found.T).all()
    assert (np.diagonal(found) > 0).all()


@pytest.mark.parametrize("r", [-0.9, -0.5, 0.0, 0.2, 0.9])
@pytest.mark.parametrize("penalty", [0.1, 0.4])
def test_two_columns_in_closed_form(r: float, penalty: float) -> None:
    """If both entries are nonzero, S b = e - penalty sign(b); otherwise b = (1 - penalty, 0)."""
    S, sign = np.array([[1.0, r], [r, 1.0]]), -math.copysign(1.0, r)
    both = np.linalg.solve(S, [1 - penalty, -penalty * sign])
    b = both if both[1] * sign > 0 else [1 - penalty, 0.0]
    np.testing.assert_allclose(scio(S, penalty), [[b[0], b[1]], [b[1], b[0]]], atol=1e-13)


def test_tiny_penalty_gives_the_inverse() -> None:
    S = correlation(3, 10, 500)
    np.testing.assert_allclose(scio(S, 1e-9), np.linalg.inv(S), atol=1e-6)


def test_estimate_is_in_the_units_of_the_release() -> None:
    seen = hub_release(1, 8, 3000, 1e-3)
    found = Scio(penalty=0.2).fit(seen)
    assert found.kind == "precision"
    assert found.edges is not None
    np.linalg.cholesky(found.matrix)
    np.testing.assert_array_equal(found.edges, partial_correlations(found.matrix))
    d = np.exp2(np.arange(8) % 3)
    scale, quiet = np.outer(d, d), NoiseLaw.none()
    once, scaled = (
        Scio(penalty=0.2).fit(Evidence(seen.raw * by, seen.repaired * by, quiet, seen.rows))
        for by in (1.0, scale)
    )
    np.testing.assert_allclose(scaled.matrix * scale, once.matrix, rtol=1e-4, atol=1e-4)
    unit = once.matrix / np.sqrt(np.outer(np.diagonal(once.matrix), np.diagonal(once.matrix)))
    assert once.tuning["smallest_eigenvalue"] == pytest.approx(np.linalg.eigvalsh(unit)[0])


def test_indefinite_result_is_stated_as_a_graph() -> None:
    gram = (INDEFINITE.T @ INDEFINITE).astype(float)
    S = 0.99 * gram / np.sqrt(np.outer(np.diagonal(gram), np.diagonal(gram))) + 0.01 * np.eye(7)
    found = Scio(penalty=0.1).fit(Evidence(S, S, NoiseLaw.none(), 100.0))
    assert found.kind == "graph"
    assert set(found.matrices) == {"coefficients"}
    assert found.tuning["smallest_eigenvalue"] < -0.01
    assert np.linalg.eigvalsh(found.matrix)[0] < 0
    assert found.edges is not None
    assert (np.diagonal(found.matrix) > 0).all()
    np.testing.assert_array_equal(found.edges, partial_correlations(found.matrix))
