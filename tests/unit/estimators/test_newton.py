"""Proximal Newton: its kernels are correct, compiled or not."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg.lapack import dpotrf

from gramercy.common.machine import compiled
from gramercy.estimators.solvers import newton as kernels
from gramercy.estimators.solvers.block import WarmStart, duality_gap
from gramercy.estimators.solvers.glasso import graphical_lasso, graphical_lasso_path
from gramercy.estimators.solvers.newton import inverse, newton
from gramercy.schemas import families
from tests.support.problems import raises
from tests.unit.estimators.test_glasso import assert_proof, charged, noisy, off, residual

P = 18
EITHER = pytest.mark.parametrize("interpreted", [False, True], ids=["compiled", "plain"])


def unit(S: np.ndarray) -> np.ndarray:
    S = S / np.sqrt(np.outer(np.diagonal(S), np.diagonal(S)))
    np.fill_diagonal(S, 1.0)
    return S


def problem_and_iterate(seed: int = 0) -> tuple[np.ndarray, ...]:
    """Draw a problem and an unfinished iterate with wrong zeros and wrong nonzero entries."""
    S, penalties = unit(noisy(seed, P, 0.05)), charged(0.15, P, False)
    T = newton(S, charged(0.3, P, False), 1e-8, 50).matrix
    return S, penalties, T, np.linalg.inv(T)


def model_of(
    S: np.ndarray, penalties: np.ndarray, T: np.ndarray, W: np.ndarray
) -> tuple[np.ndarray, tuple[Any, Any]]:
    """The matrices of the quadratic model at T, in single precision, and its active pairs."""
    single = np.full((6, len(S), len(S)), np.nan, np.float32)
    single[:3] = W, T, penalties
    return single, kernels.active_set(S, penalties, T, W, single[3], 0)[2:]


def as_kernel(function: Any, interpreted: bool) -> Any:
    return function if interpreted else compiled(function)


@EITHER
def test_active_set_reports_optimality_violations(interpreted: bool) -> None:
    S, penalties, T, W = problem_and_iterate()
    left = np.empty((P, P), np.float32)
    violation, squares, starts, places = as_kernel(kernels.active_set, interpreted)(
        S, penalties, T, W, left, 3
    )
    smooth = S - W
    missed = np.where(
        T != 0, np.abs(smooth + penalties * np.sign(T)), np.maximum(np.abs(smooth) - penalties, 0)
    )
    assert violation == pytest.approx(missed.max(), rel=1e-12)
    assert squares == pytest.approx((missed**2).sum(), rel=1e-12)
    np.testing.assert_allclose(left, smooth + penalties * np.sign(T), rtol=1e-6)
    pairs = [(int(i), j) for j in range(P) for i in places[starts[j] : starts[j + 1]]]
    listed = {(min(pair), max(pair)) for pair in pairs}
    assert len(listed) == len(pairs)  # each once
    assert listed == {(i, j) for i, j in np.argwhere((T != 0) | (missed > 0)).tolist() if i <= j}


@pytest.mark.slow
@EITHER
def test_descent_minimises_the_quadratic_model(interpreted: bool) -> None:
    S, penalties, T, W = problem_and_iterate()
    single, where = model_of(S, penalties, T, W)
    descend = as_kernel(kernels.descend, interpreted)
    sweeps, D = descend(single, *where, 400, 0.0, 0.0), single[4].copy()
    assert sweeps <= 400
    assert (D == D.T).all()
    new = np.where(single[1] + D == 0, 0.0, T + D)
    slope = S - W + W @ D.astype(float) @ W
    wrong = np.where(new != 0, slope + penalties * np.sign(new), 0.0)
    assert np.abs(wrong).max() < 1e-5
    active = (T != 0) | (np.abs(S - W) > penalties)
    assert (np.abs(slope) - penalties)[active & (new == 0)].max(initial=0) < 1e-5
    assert (D[~active] == 0).all()
    assert ((T != 0) & (new == 0)).any() or ((T == 0) & (new != 0)).any()
    for ends in ((0.01, 0.0), (0.0, 1e-4)):
        assert descend(single, *where, 400, *ends) < sweeps
        assert np.abs(single[4] - D).max() < 0.1 * np.abs(D).max()


@pytest.mark.parametrize("p", [5, 18, 60])
def test_numpy_descent_takes_the_same_steps(p: int) -> None:
    S, penalties = unit(noisy(1, p, 0.05)), charged(0.1, p, False)
    T = newton(S, charged(0.3, p, False), 1e-8, 50).matrix
    W = np.linalg.inv(T)
    single, where = model_of(S, penalties, T, W)
    sweeps, D = compiled(kernels.descend)(single, *where, 20, 0.01, 0.0), single[4].copy()
    assert kernels.numpy_descend(single, *where, 20, 0.01, 0.0) == sweeps
    assert np.abs(D).max() > 0.01
    np.testing.assert_allclose(single[4], D, atol=1e-5 * np.abs(D).max())
    assert ((single[4] + single[1] == 0) == (D + single[1] == 0)).all()


@EITHER
def test_step_and_objective_kernels(interpreted: bool) -> None:
    S, penalties, T, W = problem_and_iterate()
    D = np.asarray(np.where(T == 0, 0.25, -T / 2), np.float32)
    D[0, 1] = D[1, 0] = -np.float32(T[0, 1])
    stepped = as_kernel(kernels.step_from, interpreted)
    moved = stepped(T, T.astype(np.float32), D, 1.0)
    assert (moved == moved.T).all()
    assert moved[0, 1] == 0
    np.testing.assert_allclose(moved, T + D, atol=1e-7)
    np.testing.assert_allclose(stepped(T, T.astype(np.float32), D, 0.5), T + 0.5 * D)
    total, size = as_kernel(kernels.linear, interpreted)(S, penalties, T)
    assert total == pytest.approx((S * T).sum() + (penalties * np.abs(T)).sum(), rel=1e-12)
    assert size == pytest.approx(np.abs(S * T).sum() + (penalties * np.abs(T)).sum(), rel=1e-12)
    V = as_kernel(kernels.dual_point, interpreted)(S, penalties, T, W)
    border, inside = S + penalties * np.sign(T), np.clip(W, S - penalties, S + penalties)
    np.testing.assert_allclose(V, np.where(T != 0, border, inside), atol=1e-15)
    assert (np.diagonal(V) == 1).all()
    upper = np.triu(W)
    as_kernel(kernels.mirror_upper, interpreted)(upper)
    assert (upper == np.triu(W) + np.triu(W, 1).T).all()


@pytest.mark.parametrize("p", [1, 2, 63, 64, 65, 129, 300])
def test_blockwise_inverse_is_accurate(p: int) -> None:
    S = unit(noisy(3, p, 0.02))
    T = S + (0.1 - min(0.0, float(np.linalg.eigvalsh(S)[0]))) * np.eye(p)
    factor, _ = dpotrf(T, lower=1, clean=0)
    expected = np.linalg.inv(T)
    for single_precision, far in ((True, 1e-4), (False, 1e-13)):
        W = inverse(factor.copy(order="F"), single_precision=single_precision)
        assert W.dtype == np.float64
        assert (W == W.T).all()
        assert np.abs(W - expected).max() <= far * np.abs(expected).max()


def test_single_precision_inverses_keep_path_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    S = unit(noisy(0, 150, 0.02))
    grid = [0.3, 0.2, 0.15, 0.1]
    kinds: list[bool] = []

    def recorded(factor: np.ndarray, *, single_precision: bool = False) -> np.ndarray:
        kinds.append(single_precision)
        return inverse(factor, single_precision=single_precision)

    monkeypatch.setattr("gramercy.estimators.solvers.newton.inverse", recorded)
    for found in graphical_lasso_path(S, grid, solver="newton", conditions=False):
        T, penalty = found.precision, found.penalty
        W = np.clip(np.linalg.inv(T), S - penalty, S + penalty)
        W = np.where(T != 0, S + penalty * np.sign(T), W)
        np.fill_diagonal(W, 1.0)
        assert duality_gap(T, W) <= 1e-6 * 150  # computed with an inverse in double precision
    assert any(kinds)
    kinds.clear()
    graphical_lasso_path(S, grid, solver="newton")
    assert kinds
    assert not any(kinds)


def test_wrong_inverse_in_a_start_is_harmless() -> None:
    """The inverse in a warm start is not trusted."""
    S, penalties, T, W = problem_and_iterate()
    log_pivots = 2 * np.log(np.diagonal(np.linalg.cholesky(T)))
    right = newton(S, penalties, 1e-10, 50, WarmStart(T, W, log_pivots))
    rng = np.random.default_rng(0)
    for wrong in (np.eye(P), W * rng.uniform(0.5, 1.5, W.shape), -W, np.zeros_like(W)):
        found = newton(S, penalties, 1e-10, 50, WarmStart(T, (wrong + wrong.T) / 2, log_pivots))
        if found.kind == "minimiser":
            np.testing.assert_allclose(found.matrix, right.matrix, atol=1e-5)
            assert duality_gap(found.matrix, found.dual) <= 1e-10 * P
        else:
            assert found.kind == "unconverged"


def test_invalid_start_is_unconverged() -> None:
    S, penalties, _, _ = problem_and_iterate()
    assert newton(S, penalties, 1e-6, 50, WarmStart(-np.eye(P), np.eye(P))).kind == "unconverged"
    assert newton(S, penalties, 1e-6, 1).kind == "unconverged"


def test_unbounded_problem_is_detected() -> None:
    S = unit(noisy(3, 40, 0.6) + 2 * np.eye(40))
    S = S + 5 * off(S)
    penalties = charged(0.2, 40, False)
    found = newton(S, penalties, 1e-6, 50)
    assert found.kind in {"unbounded", "unconverged"}
    if found.kind == "unbounded":
        T = found.matrix
        assert (S * T).sum() + (penalties * np.abs(T)).sum() <= 0
        np.linalg.cholesky(T)
    with raises(families.NO_MINIMISER, penalty=0.2) as caught:
        graphical_lasso(S, 0.2, solver="newton")
    assert_proof(S, penalties, caught.value)


@pytest.mark.parametrize("tol", [1e-2, 1e-6, 1e-10, 1e-14])
def test_gap_of_newton_is_the_duality_gap(tol: float) -> None:
    """The stated gap belongs to a dual point in the box."""
    S, penalties = unit(noisy(5, 50, 0.05)), charged(0.1, 50, False)
    found = newton(S, penalties, tol, 50)
    assert found.kind == "minimiser"
    assert found.dual is not None
    assert np.abs(found.dual - S).max() <= 0.1 * (1 + 1e-12)
    assert (np.diagonal(found.dual) == 1).all()
    assert found.gap <= tol * 50
    assert duality_gap(found.matrix, found.dual) == pytest.approx(found.gap, rel=1e-3, abs=1e-12)
    assert residual(S, penalties, found.matrix) < max(1e-5, tol)


@pytest.mark.slow
def test_paths_of_many_components() -> None:
    """Components merge along the path, and warm starts are combined."""
    rng = np.random.default_rng(1)
    sizes = [1, 1, 2, 3, 7, 20, 30]
    S = np.zeros((64, 64))
    at = 0
    for k, size in enumerate(sizes):
        S[at : at + size, at : at + size] = noisy(k, size, 0.0) * 10.0 ** rng.integers(-3, 4)
        at += size
    S += 1e-3 * np.sqrt(np.outer(np.diagonal(S), np.diagonal(S))) * noisy(9, 64, 0.0) / 3
    scale = np.sqrt(np.outer(np.diagonal(S), np.diagonal(S)))
    steps = np.geomspace(0.9, 1e-4, 12)
    for diagonal in (False, True):
        path = graphical_lasso_path(
            S, [step * scale for step in steps], tol=1e-12, penalize_diagonal=diagonal
        )
        assert len(path) == 12
        for step, each in zip(steps, path, strict=True):
            alone = graphical_lasso(S, step * scale, tol=1e-12, penalize_diagonal=diagonal)
            np.testing.assert_allclose(each.precision * scale, alone.precision * scale, atol=1e-4)
            assert math.isfinite(each.gap)
    assert path[0].solver == "closed-form"
    assert path[-1].solver == "newton"


@pytest.mark.slow
def test_scikit_learn_classes_load_little_and_numba_only_for_large_problems() -> None:
    """Code for whose cache there is no place is compiled nevertheless."""
    code = (
        "import sys, numpy as np, gramercy.estimators.scikit;"
        "from gramercy.estimators.solvers.glasso import graphical_lasso;"
        "graphical_lasso(np.eye(9) + 0.5, 0.1);"
        "unused = {'prefect', 'networkx', 'sqlalchemy', 'pyarrow.parquet', 'numba'};"
        "assert not unused & sys.modules.keys();"
        "assert graphical_lasso(np.eye(40) + 0.5, 0.1).solver == 'newton';"
        "from gramercy.common.machine import compiled, is_loaded; f = lambda x: x + 1;"
        "assert compiled(f)(1) == 2 and is_loaded(f)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])
