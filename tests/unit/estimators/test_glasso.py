"""The graphical lasso's solvers, penalties and paths, against independent solvers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gramercy.estimators.solvers.admm import admm
from gramercy.estimators.solvers.block import WarmStart, duality_gap, soft_threshold
from gramercy.estimators.solvers.coordinate_descent import coordinate_descent
from gramercy.estimators.solvers.glasso import (
    _LIMITS,
    Solution,
    Solver,
    graphical_lasso,
    graphical_lasso_path,
)
from gramercy.estimators.solvers.newton import newton
from gramercy.schemas import families
from gramercy.schemas.errors import NoMinimiser
from tests.support.factories import at_scale
from tests.support.noisy_matrices import goe, off
from tests.support.problems import raises

EVERY: list[Solver] = ["newton", "admm", "coordinate-descent"]


def covariance(rng: np.random.Generator, kind: str, p: int) -> np.ndarray:
    if kind == "ar":
        return 0.6 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    precision = np.eye(p)
    if kind == "hub":
        precision[0, 1:6] = precision[1:6, 0] = 0.3
        return np.linalg.inv(precision)
    edges = np.triu(rng.uniform(-0.5, 0.5, (p, p)) * (rng.random((p, p)) < 2 / p), 1)
    precision = edges + edges.T
    return np.linalg.inv(precision + (0.2 - np.linalg.eigvalsh(precision).min()) * np.eye(p))


def noisy(seed: int, p: int, sd: float, kind: str = "ar", n: int = 200) -> np.ndarray:
    rng = np.random.default_rng(seed)
    truth = covariance(rng, kind, p)
    rows = rng.normal(size=(n, p)) @ np.linalg.cholesky(truth).T
    return rows.T @ rows / n + goe(rng, p, sd * np.diagonal(truth).mean())


def random_penalties(seed: int, p: int) -> np.ndarray:
    """Draw a symmetric matrix of different penalties from 0.3 to 3."""
    half = np.random.default_rng(seed).uniform(0.3, 3, (p, p))
    return (half + half.T) / 2


def charged(penalty: float | np.ndarray, p: int, diagonal: bool) -> np.ndarray:
    every = penalty * np.ones((p, p))
    return every if diagonal else off(every)


def residual(S: np.ndarray, P: np.ndarray, T: np.ndarray) -> float:
    """Return the distance of zero from the subgradient at T; P has the penalty of every entry."""
    np.linalg.cholesky(T)
    assert (T == T.T).all()
    smooth = S - np.linalg.inv(T)
    return float(
        np.where(T != 0, np.abs(smooth + P * np.sign(T)), np.maximum(np.abs(smooth) - P, 0)).max()
    )


def assert_proof(S: np.ndarray, P: np.ndarray, error: NoMinimiser) -> None:
    T = error.certificate
    assert (T == T.T).all()
    assert np.trace(T) == pytest.approx(1)
    assert np.linalg.eigvalsh(T).min() >= -1e-15
    assert (S * T).sum() + (P * np.abs(T)).sum() <= 0


def solve_by_cone_program(S: np.ndarray, P: np.ndarray) -> np.ndarray:
    import cvxpy as cp  # takes long, in every worker

    T = cp.Variable(S.shape, symmetric=True)
    cost = -cp.log_det(T) + cp.sum(cp.multiply(S, T)) + cp.sum(cp.multiply(P, cp.abs(T)))
    cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11)
    return np.asarray(T.value)


def smallest_feasible_multiple(S: np.ndarray, P: np.ndarray) -> float:
    """The smallest multiple of P whose box contains a positive semidefinite matrix."""
    import cvxpy as cp

    W, multiple = cp.Variable(S.shape, PSD=True), cp.Variable(nonneg=True)
    cp.Problem(cp.Minimize(multiple), [cp.abs(W - S) <= multiple * P]).solve(solver=cp.CLARABEL)
    return float(multiple.value)


@pytest.mark.slow
@pytest.mark.parametrize("solver", EVERY)
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("kind", ["number", "matrix", "some free"])
def test_agrees_with_a_conic_solver(solver: Solver, diagonal: bool, kind: str) -> None:
    p = 6
    for seed in range(at_scale(2, 12)):
        S = noisy(seed, p, 0.2) + 0.2 * np.eye(p)
        penalty: float | np.ndarray = 0.3 if kind == "number" else 0.3 * random_penalties(seed, p)
        if kind == "some free":
            penalty[0, 1] = penalty[1, 0] = penalty[2, 4] = penalty[4, 2] = 0.0  # type: ignore[index]
        found = graphical_lasso(S, penalty, penalize_diagonal=diagonal, solver=solver, tol=1e-13)
        theirs = solve_by_cone_program(S, charged(penalty, p, diagonal))
        np.testing.assert_allclose(found.precision, theirs, atol=1e-5 * np.abs(theirs).max())
        assert (found.precision == 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(at_scale(3, 12)))
@pytest.mark.parametrize("solver", ["auto", *EVERY])
def test_feasibility_edge_agrees_with_a_conic_solver(solver: Solver, seed: int) -> None:
    p = 6
    S = noisy(seed, p, 0.5)
    np.fill_diagonal(S, np.maximum(np.diagonal(S), 0.3))
    weights = [1.0, random_penalties(seed, p)][seed % 2]
    P = charged(weights, p, seed == 2)
    edge = smallest_feasible_multiple(S, P)
    assert edge > 0.05
    given = {"penalize_diagonal": seed == 2, "solver": solver}
    assert residual(S, 1.01 * edge * P, _precision(S, 1.01 * edge * weights, given)) < 1e-5
    with pytest.raises(NoMinimiser) as caught:
        graphical_lasso(S, 0.99 * edge * weights, **given)  # type: ignore[arg-type]
    assert_proof(S, 0.99 * edge * P, caught.value)
    times = 1.0 if seed % 2 == 0 else 0.99 * edge
    assert edge <= caught.value.feasible * times < 4 * edge


def _precision(S: np.ndarray, penalty: Any, given: Any) -> np.ndarray:
    return graphical_lasso(S, penalty, **given).precision


def random_problem(seed: int) -> tuple[np.ndarray, float | np.ndarray, bool]:
    """Draw a problem of 2 to 40 columns, from infeasible to easy."""
    rng = np.random.default_rng(seed)
    p, diagonal = int(rng.integers(2, 41)), bool(seed % 2)
    kind = "ar" if p < 6 else ("ar", "hub", "random")[seed % 3]
    few = int(rng.choice([p // 2 + 1, 5 * p, 50 * p]))
    S = noisy(seed, p, float(rng.choice([0.05, 0.2, 0.6])), kind, few)
    if not diagonal and seed % 8:
        np.fill_diagonal(S, np.maximum(np.diagonal(S), 0.1 * np.diagonal(S).mean()))
    penalty: Any = float(np.exp(rng.uniform(math.log(0.02), math.log(1.2)))) * np.abs(off(S)).max()
    if seed % 5 == 0:
        penalty = penalty * random_penalties(seed, p)
    if seed % 10 == 0:
        free = np.triu(rng.random((p, p)) < 0.05, 1)
        penalty[free | free.T] = 0.0
    return S, penalty, diagonal


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["auto", *EVERY])
def test_every_problem_gives_a_minimiser_or_a_proof(solver: Solver) -> None:
    """Every one of 120 mostly indefinite matrices gets a correct minimiser or proof."""
    none, indefinite = 0, 0
    for seed in range(at_scale(120, 2000)):
        S, penalty, diagonal = random_problem(seed)
        P = charged(penalty, len(S), diagonal)
        given: Any = {"penalize_diagonal": diagonal, "solver": solver}
        indefinite += np.linalg.eigvalsh(S).min() < 0
        try:
            T = _precision(S, penalty, given)
        except NoMinimiser as error:
            none += 1
            assert_proof(S, P, error)
            if error.feasible:
                raised = error.feasible * (1.0 if isinstance(penalty, float) else penalty)
                assert (charged(raised, len(S), diagonal) >= P).all()
                found = graphical_lasso(S, raised, **given)
                assert residual(S, charged(raised, len(S), diagonal), found.precision) <= 1e-5
        else:
            assert residual(S, P, T) <= 1e-5
    assert indefinite > seed / 2
    assert seed / 5 < none < 4 * seed / 5


@pytest.mark.slow
def test_solvers_agree_and_name_themselves() -> None:
    S = noisy(1, 15, 0.1)
    found = {solver: graphical_lasso(S, 0.2, solver=solver, tol=1e-13) for solver in EVERY}
    first, *others = (found[solver].precision for solver in EVERY)
    for other in others:
        np.testing.assert_allclose(first, other, atol=1e-5)
        assert ((first == 0) == (other == 0)).all()
    assert all(found[solver].solver == solver for solver in EVERY)
    assert all(0 <= abs(each.gap) <= 1e-13 for each in found.values())
    quickest = graphical_lasso(S, 0.2, tol=1e-13)
    assert (quickest.precision == found["admm"].precision).all()
    assert quickest.solver == "admm"
    assert graphical_lasso(noisy(1, 40, 0.1), 0.2).solver == "newton"
    assert graphical_lasso(S, 5.0).solver == "closed-form"


@pytest.mark.slow
def test_coordinate_descent_falls_back_to_admm() -> None:
    """It falls back at feasible penalties where soft-thresholding is not positive definite."""
    S = noisy(0, 20, 0.5)
    np.fill_diagonal(S, 1.0)
    penalty = 1.05 * smallest_feasible_multiple(S, charged(1.0, 20, False))
    assert np.linalg.eigvalsh(soft_threshold(off(S), penalty) + np.eye(20)).min() < 0
    P = charged(penalty, 20, False)
    assert coordinate_descent(S, P, 1e-6, 100).kind == "unconverged"
    found = graphical_lasso(S, penalty, solver="coordinate-descent", tol=1e-13)
    assert found.solver == "admm"
    assert residual(S, P, found.precision) < 1e-5
    easy = noisy(2, 6, 0.0)
    both = np.block([[S, np.zeros((20, 6))], [np.zeros((6, 20)), easy]])
    P = np.block([[P, np.ones((20, 6))], [np.ones((6, 20)), 0.1 * np.ones((6, 6))]])
    mixed = graphical_lasso(both, P, solver="coordinate-descent", tol=1e-13)
    assert mixed.solver == "coordinate-descent, admm"
    assert residual(both, off(P), mixed.precision) < 1e-5


@pytest.mark.slow
def test_coordinate_descent_reports_failure_as_unconverged() -> None:
    for seed in range(20):
        S = noisy(seed, 10, 0.6)
        np.fill_diagonal(S, 1.0)
        P = charged(0.9 * smallest_feasible_multiple(S, charged(1.0, 10, False)), 10, False)
        assert coordinate_descent(S, P, 1.0, 100).kind == "unconverged"
    S, P = noisy(1, 10, 0.0), charged(0.01, 10, False)
    unit = S / np.sqrt(np.outer(np.diagonal(S), np.diagonal(S)))
    np.fill_diagonal(unit, 1.0)
    assert coordinate_descent(unit, P, 1e-13, 1).kind == "unconverged"
    done = coordinate_descent(unit, P, 1e-13, 100)
    assert done.kind == "minimiser"
    assert residual(unit, P, done.matrix) < 1e-6


@pytest.mark.parametrize("solver", [newton, admm, coordinate_descent])
def test_warm_start_at_the_solution_stops_at_once(solver: Any) -> None:
    S, P = noisy(4, 12, 0.1), charged(0.2, 12, False)
    S /= np.sqrt(np.outer(np.diagonal(S), np.diagonal(S)))
    np.fill_diagonal(S, 1.0)
    cold = solver(S, P, 1e-12, 1000)
    again = solver(S, P, 1e-10, 1000, WarmStart(cold.matrix, cold.dual))
    assert again.iterations <= 1 < cold.iterations
    np.testing.assert_allclose(again.matrix, cold.matrix, atol=1e-5)
    assert np.abs(off(cold.dual - S)).max() <= 0.2 + 1e-12
    assert duality_gap(cold.matrix, cold.dual) == pytest.approx(cold.gap, abs=1e-14)


def test_duality_gap_is_accurate_near_singularity() -> None:
    """With W = R^-T (I + E) R^-1 the exact gap is tr E - log det(I + E)."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    T = (turn * np.geomspace(1e-4, 1e4, 8)) @ turn.T
    T = (T + T.T) / 2
    back = np.linalg.inv(np.linalg.cholesky(T))
    for size in (0.5, 1e-2, 1e-4):
        more = size * rng.uniform(-1, 1, 8)
        expected = float((more - np.log1p(more)).sum())
        assert duality_gap(T, (back.T * (1 + more)) @ back) == pytest.approx(expected, rel=1e-3)
    assert duality_gap(T, -np.eye(8)) == duality_gap(-T, np.eye(8)) == math.inf


@pytest.mark.parametrize("solver", EVERY)
def test_stated_gap_bounds_the_remaining_improvement(solver: Solver) -> None:
    """Near singularity, a much tighter solve improves the objective by no more than the gap."""
    S, penalty = np.ones((4, 4)) + np.diag([0, 0.01, 0.02, 0.03]), 1e-3

    def objective(T: np.ndarray) -> float:
        return float((S * T).sum() - np.linalg.slogdet(T)[1] + penalty * np.abs(off(T)).sum())

    best = objective(graphical_lasso(S, penalty, solver=solver, tol=1e-13).precision)
    for tol in (1e-1, 1e-3, 1e-5):
        found = graphical_lasso(S, penalty, solver=solver, tol=tol)
        assert 0 <= found.gap <= tol
        assert -1e-9 <= (objective(found.precision) - best) / 4 <= found.gap + 1e-9


def test_constant_penalty_matrix_equals_scalar_penalty() -> None:
    S = noisy(3, 12, 0.1)
    for diagonal in (False, True):
        one = graphical_lasso(S, 0.25, penalize_diagonal=diagonal)
        many = graphical_lasso(S, np.full((12, 12), 0.25), penalize_diagonal=diagonal)
        assert (one.precision == many.precision).all()
        assert one.penalty == 0.25
        assert isinstance(many.penalty, np.ndarray)
    free = np.full((12, 12), 0.25)
    np.fill_diagonal(free, np.nan)  # not used, so not validated
    assert (graphical_lasso(S, free).precision == graphical_lasso(S, 0.25).precision).all()
    np.fill_diagonal(free, np.arange(12))
    shifted = graphical_lasso(S + np.diag(np.arange(12.0)), 0.25)
    both = graphical_lasso(S, free, penalize_diagonal=True)
    np.testing.assert_allclose(both.precision, shifted.precision, atol=1e-12)


def test_rescaled_columns_with_rescaled_penalties() -> None:
    S, units = noisy(5, 10, 0.1), np.geomspace(1e-3, 1e3, 10)
    scale = np.outer(units, units)
    one = graphical_lasso(S, 0.2, tol=1e-13).precision
    other = graphical_lasso(S * scale, 0.2 * scale, tol=1e-13).precision
    np.testing.assert_allclose(other * scale, one, atol=1e-7)
    assert ((other == 0) == (one == 0)).all()


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "p", "share"), [(3, 60, 0.03), (2, 40, 0.01), (1, 12, 1e-3)])
def test_rank_one_matrix_with_a_tiny_penalty(
    seed: int, p: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The minimiser is nearly singular, and only coordinate descent converges to it."""
    monkeypatch.setitem(_LIMITS, "admm", 1000)  # it needs more iterations, by the thousand
    v = np.random.default_rng(seed).standard_normal(p)
    S, penalty = np.outer(v, v), share * float(np.mean(v**2))
    found = graphical_lasso(S, penalty, penalize_diagonal=True)
    assert found.solver == "coordinate-descent"
    assert residual(S, charged(penalty, p, True), found.precision) < 1e-5


def test_huge_penalties_forbid_edges() -> None:
    """Practically infinite penalties give missing edges in every solver."""
    S = noisy(3, 40, 0.0)
    sane = np.full((40, 40), 0.1)
    sane[0, 1] = sane[1, 0] = 1e3
    best = graphical_lasso(S, sane, tol=1e-13).precision
    assert best[0, 1] == 0
    for huge in (1e39, 1e200, 1.5e308):
        sane[0, 1] = sane[1, 0] = huge
        for solver in EVERY:
            found = graphical_lasso(S, sane, solver=solver, tol=1e-13).precision
            np.testing.assert_allclose(found, best, atol=1e-5)
    assert graphical_lasso(S, 1e308).solver == "closed-form"
    with pytest.raises(NoMinimiser):
        graphical_lasso(S - 5 * np.eye(40), np.where(np.eye(40) == 1, 0.1, 1e308))


def test_screening_uses_every_penalty() -> None:
    S = noisy(6, 12, 0.0)
    parts = np.arange(12) % 3
    penalties = np.where(np.equal.outer(parts, parts), 0.05, 1 + np.abs(S).max())
    found = graphical_lasso(S, penalties, tol=1e-13).precision
    assert (found[~np.equal.outer(parts, parts)] == 0).all()
    whole = solve_by_cone_program(S, off(penalties))
    np.testing.assert_allclose(found, whole, atol=1e-5)


@pytest.mark.parametrize("solver", EVERY)
def test_unpenalised_entries_are_matched_exactly(solver: Solver) -> None:
    """The inverse of the minimiser equals S at unpenalised entries (Dempster 1972)."""
    S = noisy(7, 8, 0.0)
    all_free = graphical_lasso(S, np.zeros((8, 8)), solver=solver, tol=1e-13)
    np.testing.assert_allclose(all_free.precision, np.linalg.inv(S), rtol=1e-11)
    banded = np.abs(np.subtract.outer(range(8), range(8))) == 1
    graph = graphical_lasso(S, np.where(banded, 0.0, 1e3), solver=solver, tol=1e-13).precision
    assert ((graph != 0) == (banded | np.eye(8, dtype=bool))).all()
    fitted = np.linalg.inv(graph)
    np.testing.assert_allclose(fitted[banded], S[banded], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("tol", [pytest.param(1e-2, marks=pytest.mark.slow), 1e-13])
@pytest.mark.parametrize("solver", ["auto", *EVERY])
def test_without_penalties_the_minimiser_is_the_inverse(solver: Solver, tol: float) -> None:
    """Also for a matrix of condition 1e8 in two components, one of them with a penalty of zero."""
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.normal(size=(9, 9)))[0]
    S = np.zeros((12, 12))
    S[:9, :9] = (Q * np.geomspace(1e4, 1e-4, 9)) @ Q.T
    S[9:, 9:] = np.eye(3) + 0.5
    S = (S + S.T) / 2
    for penalty in (0.0, np.zeros((12, 12)), np.diag(np.full(12, 7.0))):
        found = graphical_lasso(S, penalty, solver=solver, tol=tol)
        np.testing.assert_allclose(found.precision @ S, np.eye(12), atol=1e-7)
        assert (found.solver, found.iterations) == ("closed-form", 0)
        assert 0 <= found.gap <= 1e-13
    path = graphical_lasso_path(S, [0.0, 0.1], solver=solver)
    np.testing.assert_array_equal(path[0].precision, found.precision)
    shifted = graphical_lasso(S, np.diag(np.full(12, 7.0)), penalize_diagonal=True).precision
    np.testing.assert_allclose(shifted, np.linalg.inv(S + 7 * np.eye(12)), rtol=1e-9, atol=1e-12)


def test_a_singular_matrix_without_penalties_is_refused() -> None:
    S = noisy(5, 8, 0.0)
    double = S[np.ix_([0, *range(8)], [0, *range(8)])]  # its first column twice
    with raises(families.NOT_CONVERGED, penalty=0.0) as caught:
        graphical_lasso(double, 0.0)
    assert not isinstance(caught.value, NoMinimiser)
    with raises(families.NOT_CONVERGED):
        graphical_lasso(double, np.zeros((9, 9)))
    assert graphical_lasso(double, 0.01).gap <= 1e-6
    indefinite = S - 2 * np.linalg.eigvalsh(S)[0] * np.eye(8)
    with raises(families.NO_MINIMISER) as proven:
        graphical_lasso(indefinite, 0.0)
    assert_proof(indefinite, np.zeros((8, 8)), proven.value)


def test_unpenalised_entries_may_leave_no_minimiser() -> None:
    S = np.array([[1.0, 1.5, 0.1], [1.5, 1.0, 0.1], [0.1, 0.1, 1.0]])
    penalties = np.array([[0, 0, 1.0], [0, 0, 1.0], [1.0, 1.0, 0]])
    with raises(families.NO_MINIMISER) as caught:
        graphical_lasso(S, penalties)
    assert caught.value.feasible == 0
    assert_proof(S, penalties, caught.value)
    with raises(families.NO_MINIMISER):
        graphical_lasso(S - 2 * np.eye(3), penalties)


def test_infeasible_penalties_state_the_feasible_multiple() -> None:
    S, weights = noisy(8, 10, 0.5), 0.02 * random_penalties(8, 10)
    for diagonal in (False, True):
        with raises(families.NO_MINIMISER) as caught:
            graphical_lasso(S, weights, penalize_diagonal=diagonal)
        feasible = caught.value.feasible
        assert feasible > 1
        facts = caught.value.facts
        assert facts["factor"] == feasible
        assert 0 < facts["smallest"] < facts["largest"] < 0.1
        graphical_lasso(S, feasible * weights, penalize_diagonal=diagonal)
        P = charged(weights, 10, diagonal)
        assert_proof(S, P, caught.value)
        kept = np.diag(np.diagonal(S + 0.99 * feasible * P))
        thresholded = soft_threshold(off(S), 0.98 * feasible * P) + kept
        assert np.linalg.eigvalsh(thresholded).min() < 0.05


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_two_columns_in_closed_form(sign: float) -> None:
    S = np.array([[2.0, sign * 1.5], [sign * 1.5, 1.0]])  # indefinite
    for penalty in (0.086, 0.5, 1.4):  # the edge is at 1.5 - sqrt(2), about 0.0858
        found = graphical_lasso(S, penalty, tol=1e-15)
        assert (found.solver, found.iterations) == ("closed-form", 0)
        assert residual(S, charged(penalty, 2, False), found.precision) < 1e-10
    with pytest.raises(NoMinimiser) as caught:
        graphical_lasso(S, 0.085)
    assert_proof(S, charged(0.085, 2, False), caught.value)
    with raises(families.NOT_CONVERGED) as edge:
        graphical_lasso(np.array([[1.0, sign], [sign, 1.0]]), np.array([[0.0, 0.0], [0.0, 0.0]]))
    assert not isinstance(edge.value, NoMinimiser)


def test_invalid_arguments_are_refused() -> None:
    S = np.eye(3)
    lop = np.ones((3, 3))
    lop[0, 1] = 2.0
    for bad, problem in (
        (lop, families.MATRIX),
        (-np.ones((3, 3)), families.MATRIX),
        (np.full((3, 3), np.inf), families.MATRIX),
        (np.ones((2, 2)), families.MATRIX),
        (np.ones((3, 3)) + 0j, families.MATRIX),
        (np.ones(3), families.MATRIX),
    ):
        with raises(problem, argument="penalty"):
            graphical_lasso(S, bad)
        with raises(problem, argument="penalty"):
            graphical_lasso_path(S, [bad])
    with raises(families.ESTIMATOR_SETTING, known=("auto", "newton", "admm", "coordinate-descent")):
        graphical_lasso(S, 1.0, solver="quic")  # type: ignore[arg-type]
    with raises(families.MATRIX, argument="tol"):
        graphical_lasso_path(S, [1.0], tol=0.0)


# The graphical lasso along a path of penalties: solutions, warm starts, and the end.


@pytest.mark.slow
@pytest.mark.parametrize("solver", EVERY)
@pytest.mark.parametrize("diagonal", [False, True])
def test_path_equals_single_solutions(solver: Solver, diagonal: bool) -> None:
    S = noisy(9, 20, 0.05)
    penalties = [0.3, 0.9, 0.15, 0.3, 2.0, 0.2]
    path = graphical_lasso_path(S, penalties, penalize_diagonal=diagonal, solver=solver, tol=1e-13)
    assert path.end is None
    assert [each.penalty for each in path] == penalties
    for each in path:
        alone = graphical_lasso(
            S, each.penalty, penalize_diagonal=diagonal, solver=solver, tol=1e-13
        )
        np.testing.assert_allclose(each.precision, alone.precision, atol=1e-5)
        assert residual(S, charged(each.penalty, 20, diagonal), each.precision) < 1e-5


@pytest.mark.parametrize("solver", EVERY)
def test_warm_starts_save_iterations(solver: Solver) -> None:
    S = noisy(10, 30, 0.0)
    penalties = list(np.geomspace(0.6, 0.05, 20))
    warm = graphical_lasso_path(S, penalties, solver=solver)
    cold = [graphical_lasso(S, penalty, solver=solver) for penalty in penalties]
    assert sum(each.iterations for each in warm) < 0.9 * sum(each.iterations for each in cold)


@pytest.mark.parametrize("solver", EVERY)
def test_path_stops_on_gap_or_optimality_conditions(solver: Solver) -> None:
    """Iterations stop at the gap, or later at the optimality conditions if requested."""
    S = noisy(10, 40, 0.05)
    penalties = list(np.geomspace(0.6, 0.1, 8))
    quick = graphical_lasso_path(S, penalties, solver=solver, conditions=False)
    exact = graphical_lasso_path(S, penalties, solver=solver)
    for penalty, one, other in zip(penalties, quick, exact, strict=True):
        assert max(one.gap, other.gap) <= 1e-6
        assert residual(S, charged(penalty, 40, False), other.precision) < 1e-5
    assert sum(each.iterations for each in quick) < sum(each.iterations for each in exact)


def test_every_solution_of_a_path_meets_the_conditions_by_default() -> None:
    """Without, a small gap leaves the inverse farther from them."""
    S = noisy(10, 40, 0.05)
    root = np.sqrt(np.diagonal(S))
    S = S / np.outer(root, root)
    penalties = list(np.geomspace(0.6, 0.1, 8))

    def largest(path: list[Solution]) -> float:
        return max(
            residual(S, charged(penalty, 40, False), each.precision)
            for penalty, each in zip(penalties, path, strict=True)
        )

    assert largest(graphical_lasso_path(S, penalties)) <= 1e-6 + 1e-9
    assert largest(graphical_lasso_path(S, penalties, conditions=False)) > 1e-5


def test_path_ends_at_the_first_penalty_without_a_minimiser() -> None:
    S = noisy(11, 12, 0.4)
    np.fill_diagonal(S, np.maximum(np.diagonal(S), 0.3))
    edge = smallest_feasible_multiple(S, charged(1.0, 12, False))
    penalties = [0.5 * edge, 2 * edge, 0.9 * edge, 1.2 * edge]
    path = graphical_lasso_path(S, penalties)
    assert [each.penalty for each in path] == [2 * edge, 1.2 * edge]
    assert isinstance(path.end, NoMinimiser)
    assert path.end.code == families.NO_MINIMISER.code
    assert path.end.facts["penalty"] == 0.9 * edge
    assert_proof(S, charged(0.9 * edge, 12, False), path.end)
    assert graphical_lasso_path(S, [path.end.feasible]).end is None
    with raises(families.NO_MINIMISER, penalty=0.9 * edge):
        graphical_lasso_path(S, penalties[::2])


def test_path_of_penalty_matrices() -> None:
    S, weights = noisy(12, 10, 0.05), random_penalties(12, 10)
    sizes = [0.1, 0.4, 0.2]
    path = graphical_lasso_path(S, [size * weights for size in sizes], tol=1e-13)
    for size, each in zip(sizes, path, strict=True):
        assert residual(S, size * off(weights), each.precision) < 1e-5
    assert len(graphical_lasso_path(S, [weights, float(weights.max())])) == 2
    with raises(families.ESTIMATOR_SETTING):
        graphical_lasso_path(S, [weights.mean(), weights])
    forbidding = [np.where(np.eye(10)[::-1] == 1, 1e18, size) for size in sizes]
    # The penalties can be ordered although their sums are equal after rounding.
    assert len(graphical_lasso_path(S, forbidding)) == 3
    with raises(families.ESTIMATOR_SETTING):
        graphical_lasso_path(S, [])
