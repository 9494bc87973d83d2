"""Lasso problems of all columns: optimal by their own conditions, exact zeros, clear failures."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gramercy.estimators.input_matrix import correlation_matrix
from gramercy.estimators.solvers.columnwise import ColumnSolutions, columnwise
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw
from tests.support.problems import raises


def sample(seed: int, p: int, n: int, spread: float = 0.0) -> np.ndarray:
    """Second moment of a sample; with `spread`, columns have different units."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(0.6 ** np.abs(np.subtract.outer(range(p), range(p))))
    rows = rng.normal(size=(n, p)) @ root.T * np.exp(spread * rng.normal(size=p))
    return np.asarray(rows.T @ rows / n)


def assert_optimal(
    S: np.ndarray, C: np.ndarray, penalties: np.ndarray, found: ColumnSolutions
) -> None:
    """Check that zero is a subgradient, entry by entry, in the units of the problem."""
    b = found.coefficients
    gradient = S @ b - C
    terms = (np.abs(S) @ np.abs(b) + np.abs(C)).max(axis=0)
    slack = 1e-10 * np.outer(np.sqrt(np.diag(S)), terms / np.sqrt(np.diag(S)).min())
    there = b != 0
    with np.errstate(invalid="ignore"):
        assert (np.abs(gradient + penalties * np.sign(b)) <= slack)[there].all()
    assert (np.abs(gradient) <= penalties + slack)[~there].all()
    assert (b[np.isinf(penalties)] == 0).all()


@pytest.mark.parametrize("share", [0.3, 0.05, 0.005])
@pytest.mark.parametrize("spread", [0.0, 2.0])
@pytest.mark.parametrize(("p", "n"), [(1, 5), (2, 30), (12, 200), (40, 60)])
def test_solutions_satisfy_optimality_conditions(
    p: int, n: int, spread: float, share: float
) -> None:
    """Each entry has its own penalty, and some coefficients are fixed at zero."""
    S = sample(p, p, n, spread)
    rng = np.random.default_rng(1)
    C = S @ rng.normal(size=(p, 7))
    penalties = share * np.abs(C).max(axis=0) * rng.uniform(0.5, 2.0, size=(p, 7))
    penalties[rng.random((p, 7)) < 0.1] = math.inf
    found = columnwise(S, C, penalties)
    assert_optimal(S, C, penalties, found)
    assert found.residual <= 1e-11


def test_zero_penalty_gives_the_inverse() -> None:
    S = sample(3, 8, 100)
    found = columnwise(S, np.eye(8), np.zeros((8, 8))).coefficients
    np.testing.assert_allclose(found, np.linalg.inv(S), rtol=1e-9, atol=1e-9)


def test_one_column_in_closed_form() -> None:
    found = columnwise(np.array([[4.0]]), np.array([[3.0, -3.0, 0.5]]), np.full((1, 3), 1.0))
    np.testing.assert_allclose(found.coefficients, [[0.5, -0.5, 0.0]], rtol=1e-15)


@pytest.mark.slow
def test_nearly_singular_matrices_converge() -> None:
    """Fewer rows than columns and a tiny floor: descent alone would take thousands of sweeps."""
    S = sample(5, 60, 40) + 1e-3 * np.eye(60)
    penalties = np.full((60, 60), 0.03)
    found = columnwise(S, np.eye(60), penalties)
    assert_optimal(S, np.eye(60), penalties, found)
    assert found.sweeps < 200
    same = columnwise(S, np.eye(60), penalties)
    assert (found.coefficients == same.coefficients).all()


@pytest.mark.slow
def test_batched_problems_equal_single_problems() -> None:
    """Supports are large, signs change on the way, and there is more than one batch."""
    S = sample(6, 60, 90) + 1e-2 * np.eye(60)
    C = S @ np.random.default_rng(2).normal(size=(60, 300))
    penalties = np.full((60, 300), 0.02)
    found = columnwise(S, C, penalties)
    assert_optimal(S, C, penalties, found)
    for j in (0, 255, 256, 299):
        alone = columnwise(S, C[:, [j]], penalties[:, [j]]).coefficients
        np.testing.assert_allclose(alone[:, 0], found.coefficients[:, j], rtol=1e-6, atol=1e-8)


def test_singular_matrix_is_solved_where_a_minimum_exists() -> None:
    S = np.ones((2, 2))
    found = columnwise(S, S, np.array([[math.inf, 0.25], [0.25, math.inf]]))
    np.testing.assert_allclose(found.coefficients, [[0.0, 0.75], [0.75, 0.0]], rtol=1e-12)
    with raises(families.NOT_CONVERGED):
        columnwise(S, np.eye(2), np.full((2, 2), 0.1))  # unbounded below along (1, -1)


def test_invalid_problems_are_refused() -> None:
    good, eye = np.eye(2), np.zeros((2, 2))
    for bad, problem in [
        (np.array([[1.0, 2.0], [2.0, 1.0]]), families.MATRIX),
        (np.array([[1.0, 0.2], [0.3, 1.0]]), families.MATRIX),
        (np.diag([1.0, 0.0]), families.MATRIX),
        (np.array([[1.0, math.nan], [math.nan, 1.0]]), families.MATRIX),
        (np.ones((2, 3)), families.MATRIX),
        (np.ones((0, 0)), families.MATRIX),
    ]:
        with raises(problem, argument="S"):
            columnwise(bad, eye, eye)
    for C, penalties, problem, argument in [
        (eye, np.zeros((2, 3)), families.MATRIX, "penalties"),
        (np.zeros((3, 2)), np.zeros((3, 2)), families.MATRIX, "C"),
        (eye, np.full((2, 2), -1.0), families.MATRIX, "penalties"),
        (eye, np.full((2, 2), math.nan), families.MATRIX, "penalties"),
        (np.full((2, 2), math.inf), eye, families.MATRIX, "C"),
    ]:
        with raises(problem, argument=argument):
            columnwise(good, C, penalties)


def test_correlation_matrix_of_a_denoised_matrix() -> None:
    law = NoiseLaw(family="gaussian-isotropic", sd_diagonal=0.1, sd_off_diagonal=0.1 / math.sqrt(2))
    repaired = np.array([[0.49, 0.2, 0.0], [0.2, 0.24, 0.0], [0.0, 0.0, 0.0]])
    found, root = correlation_matrix(Evidence(repaired, repaired, law, 100.0))
    np.testing.assert_allclose(root, np.sqrt([0.5, 0.25, 0.01]), rtol=1e-14)
    assert (np.diagonal(found) == 1).all()
    assert found[0, 1] == pytest.approx(0.2 / math.sqrt(0.125))
    none = Evidence(np.zeros((2, 2)), np.zeros((2, 2)), NoiseLaw.none(), 100.0)
    with raises(families.ESTIMATE):
        correlation_matrix(none)
