"""The graphical lasso along a path of penalties: solutions, warm starts, and the end."""

from __future__ import annotations

import numpy as np
import pytest

from gramercy.estimators.solvers.glasso import (
    Solution,
    Solver,
    graphical_lasso,
    graphical_lasso_path,
)
from gramercy.schemas import families
from gramercy.schemas.errors import NoMinimiser
from tests.support.problems import raises
from tests.unit.estimators.test_glasso import (
    EVERY,
    assert_proof,
    charged,
    noisy,
    off,
    random_penalties,
    residual,
    smallest_feasible_multiple,
)


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
