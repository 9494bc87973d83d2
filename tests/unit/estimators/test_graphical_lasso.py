"""The graphical lasso: optimal by its own conditions, or a proof that a minimiser is missing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gramercy.estimators import Evidence
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.input_matrix import correlation_matrix
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.solvers.admm import admm
from gramercy.estimators.solvers.glasso import graphical_lasso
from gramercy.schemas import families
from gramercy.schemas.errors import NoMinimiser
from tests.support.noisy_matrices import ar, gaussian_law, goe, hub, hub_release, off, sample
from tests.support.problems import raises


def noisy(seed: int, p: int = 15, sd: float = 0.25) -> np.ndarray:
    """An indefinite matrix with a positive diagonal."""
    rng = np.random.default_rng(seed)
    matrix = sample(rng, ar(p), 200) + goe(rng, p, sd)
    np.fill_diagonal(matrix, np.maximum(np.diagonal(matrix), 0.2))
    assert np.linalg.eigvalsh(matrix).min() < 0
    return matrix


def slope(S: np.ndarray, penalty: float, T: np.ndarray, diagonal: bool = False) -> float:
    """The asymptotic slope of the objective along T."""
    return float((S * T).sum() + penalty * np.abs(T if diagonal else off(T)).sum())


def assert_optimal(S: np.ndarray, penalty: float, T: np.ndarray, atol: float) -> None:
    """Check that the subgradient at T contains zero, without a solver or duality."""
    assert (T == T.T).all()
    np.linalg.cholesky(T)
    smooth = S - np.linalg.inv(T)
    there = (T != 0) & ~np.eye(len(T), dtype=bool)
    np.testing.assert_allclose(np.diagonal(smooth), 0, atol=atol)
    np.testing.assert_allclose(smooth[there], -penalty * np.sign(T[there]), atol=atol)
    assert np.abs(off(smooth)).max(initial=0) <= penalty + atol


def test_non_positive_diagonal_has_no_minimiser() -> None:
    S = np.array([[1.0, 0.9, 0.0], [0.9, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for penalty in (0.5, 2.0):
        with raises(families.NO_MINIMISER) as caught:
            graphical_lasso(S, penalty)
        assert caught.value.feasible == 0
        assert (caught.value.certificate == np.diag([0, 1, 0])).all()
    assert_optimal(
        S + np.eye(3), 1.0, graphical_lasso(S, 1, penalize_diagonal=True).precision, 1e-5
    )


@pytest.mark.parametrize("size", [1e-9, 1e-3, 7.0, 1e9])
def test_solution_is_equivariant_to_units(size: float) -> None:
    S = noisy(1)
    one, other = graphical_lasso(S, 0.5), graphical_lasso(size * S, size * 0.5)
    np.testing.assert_allclose(other.precision * size, one.precision, rtol=1e-8, atol=1e-8)
    with pytest.raises(NoMinimiser) as caught:
        graphical_lasso(size * S, size * 0.02)
    assert slope(size * S, size * 0.02, caught.value.certificate) <= 0
    assert graphical_lasso(size * S, caught.value.feasible).gap <= 1e-6


def test_columns_of_very_different_size() -> None:
    spread = np.geomspace(1, 1e-3, 12)
    S = sample(np.random.default_rng(2), ar(12), 500) * np.outer(spread, spread)
    found = graphical_lasso(S, 1e-5, tol=1e-13)
    assert found.iterations < 200
    assert_optimal(S, 1e-5, found.precision, 3e-7)


def test_blocks_are_solved_separately() -> None:
    rng = np.random.default_rng(5)
    S = 0.01 * goe(rng, 12, 1.0)
    parts = [np.arange(0, 12, 3), np.arange(1, 12, 3), np.array([2, 5]), np.array([8]), [11]]
    for part in parts:
        S[np.ix_(part, part)] += sample(rng, ar(len(part)), 50)
    found = graphical_lasso(S, 0.1, tol=1e-13)
    assert_optimal(S, 0.1, found.precision, 1e-5)
    for part in parts:
        alone = graphical_lasso(S[np.ix_(part, part)], 0.1, tol=1e-13).precision
        np.testing.assert_allclose(found.precision[np.ix_(part, part)], alone, atol=1e-6)
        assert (np.delete(found.precision[part], part, axis=1) == 0).all()
    whole = admm(S, 0.1 * (1 - np.eye(12)), 1e-13, 5000)  # without splitting into blocks
    np.testing.assert_allclose(whole.matrix, found.precision, atol=1e-5)


def test_one_column() -> None:
    assert graphical_lasso(np.array([[4.0]]), 1.0).precision == [[0.25]]
    assert graphical_lasso(np.array([[-1.0]]), 3.0, penalize_diagonal=True).precision == [[0.5]]


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_singular_matrices(rank: int) -> None:
    rows = np.random.default_rng(rank).normal(size=(rank, 10))
    S = rows.T @ rows / rank
    found = graphical_lasso(S, 0.2, tol=1e-13)
    assert_optimal(S, 0.2, found.precision, 1e-5)


def test_solution_is_deterministic_and_permutation_equivariant() -> None:
    S = noisy(3)
    assert (graphical_lasso(S, 0.5).precision == graphical_lasso(S, 0.5).precision).all()
    order = np.random.default_rng(0).permutation(15)
    moved = graphical_lasso(S[np.ix_(order, order)], 0.5, tol=1e-13).precision
    expected = graphical_lasso(S, 0.5, tol=1e-13).precision[np.ix_(order, order)]
    np.testing.assert_allclose(moved, expected, atol=1e-5)
    assert ((moved == 0) == (expected == 0)).all()


def test_unconverged_problem_is_a_request_error(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"admm": 2, "coordinate-descent": 1}
    monkeypatch.setattr("gramercy.estimators.solvers.glasso._LIMITS", few)
    with raises(families.NOT_CONVERGED, penalty=0.5) as caught:
        graphical_lasso(noisy(0), 0.5)
    assert not isinstance(caught.value, NoMinimiser)
    with raises(families.NOT_CONVERGED, penalty=0.5):
        graphical_lasso(np.diag([1e-310, 1.0]), 0.5)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_invalid_arguments_are_refused(bad: float) -> None:
    if bad != 0:  # a solver's penalty may be zero, that of a request may not
        refused = families.MATRIX
        with raises(refused, argument="penalty"):
            graphical_lasso(np.eye(2), bad)
    with raises(families.MATRIX, argument="tol"):
        graphical_lasso(np.eye(2), 1.0, tol=bad)
    with raises(families.MATRIX, argument="S"):
        graphical_lasso(np.array([[1.0, math.nan], [math.nan, 1.0]]), 1.0)
    with raises(families.MATRIX, argument="S"):
        graphical_lasso(np.array([[1.0, 0.2], [0.3, 1.0]]), 1.0)
    for shape in ((2, 3), (0, 0), (4,)):
        with raises(families.MATRIX, argument="S"):
            graphical_lasso(np.ones(shape), 1.0)


@pytest.mark.parametrize("sd", [1e-5, 1e-3, 0.03, 1.0])
def test_denoised_input_always_has_a_minimiser(sd: float) -> None:
    seen = hub_release(1, 10, 2000, sd)
    for penalty in ("auto", 1e-4):
        for diagonal in (False, True):
            fitted = GraphicalLasso(penalty=penalty, penalize_diagonal=diagonal).fit(seen)
            np.linalg.cholesky(fitted.matrix)


@pytest.mark.parametrize("source", ["denoised", "raw"])
def test_correlation_scale_solves_on_a_unit_diagonal_and_scales_back(source: Any) -> None:
    seen = hub_release(5, 8, 2000, 3e-3)
    correlations, root = correlation_matrix(seen)
    matrix = correlations if source == "denoised" else seen.raw / np.outer(root, root)
    fitted = GraphicalLasso(penalty=0.2, input=source, scale="correlation").fit(seen)
    assert_optimal(matrix, 0.2, fitted.matrix * np.outer(root, root), 1e-6)
    assert fitted.tuning["penalty"] == 0.2
    empty = GraphicalLasso(penalty=1.0, scale="correlation").fit(seen)
    np.testing.assert_allclose(empty.matrix, np.diag(1 / root**2))


def test_correlation_scale_finds_edges_between_columns_of_small_variance() -> None:
    """The columns of the hub have a fifth of the others' deviation."""
    rng = np.random.default_rng(7)
    deviations = np.where(np.arange(15) < 6, 0.2, 1.0)
    raw = sample(rng, np.linalg.inv(hub(15)), 5000) * np.outer(deviations, deviations) / 15 + goe(
        rng, 15, 1e-4
    )
    seen = Evidence(
        raw, denoise(raw, gaussian_law(1e-4), unit=False), gaussian_law(1e-4), 5000.0, unit=False
    )
    truth = np.abs(off(hub(15))) > 1e-9
    assert (off(GraphicalLasso().fit(seen).matrix) == 0).all()
    edges = off(GraphicalLasso(scale="correlation").fit(seen).matrix) != 0
    assert (edges & truth).sum() == truth.sum()
    assert (edges & ~truth).sum() < 0.1 * (~truth).sum()
