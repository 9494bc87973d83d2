"""Tuning without private data: the criteria are unbiased, and choose what the truth would."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.input_matrix import with_diagonal_floor
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.estimators.ridge import Ridge, ridge_precision
from gramercy.estimators.solvers.glasso import graphical_lasso, graphical_lasso_path
from gramercy.estimators.tuning import penalty_rule as path_room
from gramercy.estimators.tuning.cross_validation import (
    cross_validation,
    first_drop,
    training_evidence,
)
from gramercy.estimators.tuning.information import ebic, effective_sample_size, refit, refit_or_none
from gramercy.estimators.tuning.penalty_rule import (
    best_choice,
    derived_evidence,
    edge_mask,
    grid_around,
    loss,
    penalty_grid,
)
from gramercy.estimators.tuning.stability import DRAWS, bootstrap, redraws, stars
from gramercy.estimators.user_evidence import evidence_from_matrix, evidence_from_rows
from gramercy.schemas import families
from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Evidence, Fold
from gramercy.schemas.noise import Family, NoiseLaw
from tests.support.factories import at_scale
from tests.support.noisy_matrices import ar, f1, gaussian_law, goe, sample
from tests.support.problems import raises

Array = np.ndarray


def ar1(p: int) -> Array:
    return ar(p) / p


def seen(rng: np.random.Generator, sigma: Array, n: int, sd: float) -> Evidence:
    raw = sample(rng, sigma, n) + goe(rng, len(sigma), sd)
    return Evidence(raw, denoise(raw, gaussian_law(sd), 1.0, n), gaussian_law(sd), float(n))


def folded(rng: np.random.Generator, sigma: Array, sizes: Sequence[int], sd: float) -> Evidence:
    """Evidence in folds with noise of one law on each Gram matrix; `sd` is that of their sum."""
    p, n, k = len(sigma), sum(sizes), len(sizes)
    of_gram = sd * n / math.sqrt(k)
    folds = tuple(Fold(sample(rng, sigma, m) + goe(rng, p, of_gram / m), m) for m in sizes)
    raw = sum(fold.moment * fold.rows for fold in folds) / n
    repaired = denoise(raw, gaussian_law(sd), 1.0, n)
    return Evidence(raw, repaired, gaussian_law(sd), float(n), folds=folds)


@pytest.fixture
def repair_by_projection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repair by projection, for tests that do not depend on the repair."""
    monkeypatch.setattr(
        path_room,
        "denoise_in_metric",
        lambda raw, law, terms, trace, rows, **_: project(raw, trace),
    )


def lasso(evidence: Evidence, grid: Array) -> list[Array | None]:
    matrix = evidence.repaired + 0.1 * evidence.law.sd_diagonal * np.eye(len(evidence.raw))
    return [each.precision for each in graphical_lasso_path(matrix, list(grid))]


def ridge(evidence: Evidence, grid: Array) -> list[Array | None]:
    return [ridge_precision(evidence.repaired, penalty) for penalty in grid]


def test_penalty_grid_starts_at_the_empty_graph() -> None:
    rng = np.random.default_rng(1)
    evidence = seen(rng, ar1(6), 1000, 1e-3)
    grid = penalty_grid(evidence.repaired, count=7, ratio=50.0)
    assert len(grid) == 7
    assert grid[0] / grid[-1] == pytest.approx(50.0)
    assert (np.diff(grid) < 0).all()
    first = lasso(evidence, grid)[0]
    assert first is not None
    assert not edge_mask(first).any()
    assert (penalty_grid(np.eye(3)) > 0).all()
    assert (penalty_grid(np.zeros((2, 2))) > 0).all()
    both = penalty_grid(evidence.repaired, 3 * evidence.repaired, count=7, ratio=50.0)
    assert both[0] == pytest.approx(3 * grid[0])
    assert both[-1] == pytest.approx(grid[-1])
    assert grid_around(2.0, 3, 10.0) == pytest.approx([20.0, 2.0, 0.2])


def test_loss_is_the_negative_log_likelihood() -> None:
    S, T = np.array([[0.5, 0.9], [0.9, -0.2]]), np.array([[2.0, -0.3], [-0.3, 1.0]])
    expected = -np.linalg.slogdet(T)[1] + np.trace(S @ T)
    assert loss(S, T) == pytest.approx(expected, rel=1e-14)
    assert loss(S, np.array([[1.0, 2.0], [2.0, 1.0]])) == math.inf


def test_best_penalty_needs_a_finite_score() -> None:
    grid = np.array([3.0, 2.0, 1.0])
    choice = best_choice(grid, np.array([np.inf, 1.0, 1.0]), [None, np.eye(2), np.ones((2, 2))])
    assert choice.penalty == 2.0
    assert choice.edges.tolist() == [-1, 0, 1]
    assert list(choice.table) == ["penalty", "score", "edges"]
    assert choice.table["penalty"].tolist() == [2.0, 1.0]
    with raises(families.ESTIMATE):
        best_choice(grid, np.full(3, np.inf), [None, None, None])


# Extended BIC


def test_effective_sample_size_accounts_for_noise() -> None:
    """Simulated entries have the variance of n_eff rows without noise."""
    rng, p, n, sd = np.random.default_rng(2), 5, 400, 0.012
    sigma = np.eye(p) / p
    many = [sample(rng, sigma, n) + goe(rng, p, sd) for _ in range(at_scale(1500, 6000))]
    variance = np.var(many, axis=0)[~np.eye(p, dtype=bool)].mean()
    evidence = Evidence(sigma, sigma, gaussian_law(sd), float(n))
    assert effective_sample_size(evidence) == pytest.approx(1 / p**2 / variance, rel=0.04)
    assert effective_sample_size(evidence) < 0.6 * n
    quiet = replace(evidence, law=NoiseLaw.none())
    assert effective_sample_size(quiet) == pytest.approx(n)
    assert effective_sample_size(replace(quiet, repaired=np.zeros((p, p)))) == n
    assert effective_sample_size(replace(evidence, repaired=np.zeros((p, p)))) == 0.0


def test_refit_of_graphs_without_closed_form() -> None:
    """For a cycle and an isolated column, the inverse equals S on edges; T is zero elsewhere."""
    rng, p = np.random.default_rng(5), 6
    rows = rng.normal(size=(60, p)) + rng.normal(size=(60, 1))
    S = rows.T @ rows / 60
    edges = np.zeros((p, p), dtype=bool)
    for j in range(5):
        edges[j, (j + 1) % 5] = edges[(j + 1) % 5, j] = True
    T = refit(S, edges)
    free = edges | np.eye(p, dtype=bool)
    np.testing.assert_allclose(np.linalg.inv(T)[free], S[free], rtol=1e-7)
    assert (T[~free] == 0).all()
    assert (T == T.T).all()
    full = ~np.eye(p, dtype=bool)
    np.testing.assert_allclose(refit(S, full), np.linalg.inv(S), rtol=1e-9)
    np.testing.assert_allclose(refit(S, ~full & False), np.diag(1 / np.diag(S)))


@pytest.mark.slow
def test_ebic_finds_the_graph_despite_noise() -> None:
    rng, p = np.random.default_rng(6), 15
    truth = np.abs(np.subtract.outer(range(p), range(p))) == 1
    for sd in (1e-4, 1e-3, 3e-3):
        evidence = seen(rng, ar1(p), 5000, sd)
        choice = ebic(evidence, lasso, penalty_grid(evidence.repaired))
        found = lasso(evidence, np.array([choice.penalty]))[0]
        assert found is not None
        assert f1(edge_mask(found), truth) >= 0.9
        assert choice.penalty in choice.penalties
        assert np.isinf(choice.scores[choice.edges > p * (p - 1) / 4]).all()


@pytest.mark.slow
def test_ebic_finds_no_edges_among_independent_columns() -> None:
    rng, p, found = np.random.default_rng(7), 12, []
    for _ in range(5):
        evidence = seen(rng, np.eye(p) / p, 1000, 3e-3)
        grid = penalty_grid(evidence.repaired)
        choice = ebic(evidence, lasso, grid)
        found.append(choice.edges[list(grid).index(choice.penalty)])
    assert np.mean(found) < 3  # of 66 pairs


# Cross-validation


@pytest.mark.slow
@pytest.mark.usefixtures("repair_by_projection")
@pytest.mark.parametrize("sizes", [(100, 100, 100), (50, 100, 250)])
def test_training_folds_have_the_stated_noise_law(sizes: tuple[int, ...]) -> None:
    rng, p, sd = np.random.default_rng(8), 3, 0.05
    nothing = np.eye(p) * 1e-12
    drawn = []
    for _ in range(at_scale(400, 4000)):
        others = training_evidence(folded(rng, nothing, sizes, sd), 1)
        drawn.append(others.raw)
    assert others.rows == sum(sizes) - sizes[1]
    assert not others.folds
    np.testing.assert_allclose(np.std(drawn, axis=0), others.law.deviations(p), rtol=0.15)


def test_training_law_of_other_noise_families() -> None:
    rng, sizes = np.random.default_rng(9), (40, 40, 40, 40)
    evidence = folded(rng, ar1(3), sizes, 0.01)
    for family, dof in (("wishart", 40.0), ("laplace", None)):
        law = evidence.law.model_copy(update={"family": family, "dof": dof})
        others = training_evidence(replace(evidence, law=law), 0).law
        assert others.family == family
        assert others.dof == (dof and 30.0)
        assert others.sd_off_diagonal == pytest.approx(law.sd_off_diagonal * math.sqrt(4 / 3))
    rows = evidence.law.model_copy(update={"family": "noisy-rows", "cell_variance": 0.1})
    others = training_evidence(replace(evidence, law=rows), 0).law
    assert others.cell_variance == 0.1
    assert others.sd_off_diagonal == pytest.approx(rows.sd_off_diagonal * math.sqrt(4 / 3))


@pytest.mark.slow
@pytest.mark.usefixtures("repair_by_projection")
def test_held_out_loss_is_unbiased_and_apparent_loss_is_not() -> None:
    """The mean over releases of the held-out loss minus the population loss is zero."""
    rng, p, penalty = np.random.default_rng(10), 6, 1e-4
    sigma, honest, apparent = ar1(p), [], []
    for _ in range(at_scale(250, 2000)):
        evidence = folded(rng, sigma, (200, 200, 200), 4e-3)
        choice = cross_validation(evidence, ridge, np.array([penalty]))
        fitted = [training_evidence(evidence, k).repaired for k in range(3)]
        true = np.mean([loss(sigma, ridge_precision(each, penalty)) for each in fitted])
        honest.append(choice.scores[0] - true)
        whole = ridge_precision(evidence.repaired, penalty)
        apparent.append(loss(evidence.raw, whole) - loss(sigma, whole))
    error = [float(np.std(each)) / math.sqrt(len(each)) for each in (honest, apparent)]
    assert abs(np.mean(honest)) < 4 * error[0]
    assert np.mean(apparent) < -6 * error[1]


def test_cross_validated_ridge_is_near_the_best() -> None:
    rng, p = np.random.default_rng(11), 10
    sigma = ar1(p)
    evidence = folded(rng, sigma, (2000,) * 5, 1e-3)
    grid = np.geomspace(1.0, 1e-8, 25)
    choice = cross_validation(evidence, ridge, grid)
    true = [loss(sigma, T) for T in ridge(evidence, grid) if T is not None]
    least = loss(sigma, np.linalg.inv(sigma))
    assert loss(sigma, ridge_precision(evidence.repaired, choice.penalty)) - least <= 1.3 * (
        min(true) - least
    )


@pytest.mark.slow
def test_cross_validation_of_graphs() -> None:
    rng, p = np.random.default_rng(12), 10
    truth = np.abs(np.subtract.outer(range(p), range(p))) == 1
    evidence = folded(rng, ar1(p), (3000,) * 5, 3e-4)
    grid = penalty_grid(evidence.repaired)
    sparse = cross_validation(evidence, lasso, grid, scored="graph")
    dense = cross_validation(evidence, lasso, grid)
    found = [lasso(evidence, np.array([each.penalty]))[0] for each in (sparse, dense)]
    graphs = [edge_mask(each) for each in found if each is not None]
    assert f1(graphs[0], truth) >= 0.9
    assert graphs[1].sum() > graphs[0].sum()  # prediction keeps weak edges


@pytest.mark.slow
@pytest.mark.parametrize(("n", "p", "penalty"), [(2, 6, 0.1), (2, 6, 0.3), (6, 12, 0.03)])
def test_refit_is_accurate_or_refused(n: int, p: int, penalty: float) -> None:
    """The rows are exact and fewer than the columns, so that S is singular."""
    evidence = evidence_from_rows(np.random.default_rng(1).standard_normal((n, p)))
    matrix = with_diagonal_floor(evidence)
    edges = edge_mask(graphical_lasso(matrix, penalty).precision)
    found = refit_or_none(matrix, edges)
    if found is None:
        with pytest.raises(RequestError):
            GraphicalLasso(penalty=penalty, refit=True).fit(evidence)
        return
    np.linalg.cholesky(found)
    missed = np.abs(np.linalg.inv(found) - matrix)[edges | np.eye(p, dtype=bool)]
    assert missed.max() <= 1e-6 * np.abs(matrix).max()
    assert (found[~(edges | np.eye(p, dtype=bool))] == 0).all()


@pytest.mark.slow
def test_refit_of_a_nearly_singular_matrix() -> None:
    """The edges are unrelated to the nearly singular matrix."""
    rng, p = np.random.default_rng(3), 30
    S = 0.999 + 0.001 * np.eye(p)
    edges = np.triu(rng.uniform(size=(p, p)) < 0.1, 1)
    edges |= edges.T
    found = refit(S, edges)
    np.linalg.cholesky(found)
    missed = np.abs(np.linalg.inv(found) - S)[edges | np.eye(p, dtype=bool)]
    assert missed.max() <= 1e-6


def test_first_drop_of_the_error_on_folds() -> None:
    """A path from the top with errors that drop a little, sharply, sharply, and rise again."""
    rng, grid = np.random.default_rng(22), np.geomspace(1.0, 0.1, 6)
    truth = ar1(4)
    evidence = folded(rng, truth, (5000,) * 4, 1e-6)
    distances = [1.0, 0.98, 0.6, 0.3, 0.1, 0.2]

    def path(_: Evidence, some: Array) -> list[Array | None]:
        assert len(some) == len(distances)
        made = [np.linalg.inv(truth * (1 + math.sqrt(each))) for each in distances]
        return [*made[:-1], None]

    choice = first_drop(evidence, path, grid)
    assert choice.penalty == grid[2]
    assert choice.scores[:-1] == pytest.approx(
        np.array(distances[:-1]) * (truth**2).mean(), rel=0.1, abs=1e-3
    )
    assert math.isinf(choice.scores[-1])
    with raises(families.ESTIMATE, rule="first-drop"):
        first_drop(replace(evidence, folds=()), path, grid)


@pytest.mark.slow
def test_first_drop_finds_the_graph_where_the_smallest_loss_does_not() -> None:
    rng, p = np.random.default_rng(12), 10
    truth = np.abs(np.subtract.outer(range(p), range(p))) == 1
    evidence = folded(rng, ar1(p), (3000,) * 5, 3e-4)
    found = {
        rule: GraphicalLasso.model_validate({"penalty": rule}).fit(evidence).edges
        for rule in ("first-drop", "cross-validation")
    }
    scores = {rule: f1(each != 0, truth) for rule, each in found.items() if each is not None}
    assert scores["first-drop"] >= 0.9 > scores["cross-validation"] + 0.2


def test_cross_validation_requires_folds() -> None:
    evidence = seen(np.random.default_rng(13), ar1(3), 100, 0.01)
    with raises(families.ESTIMATE):
        cross_validation(evidence, ridge, np.array([1.0]))
    one = replace(evidence, folds=(Fold(evidence.raw, 100.0),))
    with raises(families.ESTIMATE):
        cross_validation(one, ridge, np.array([1.0]))


# Stability


@pytest.mark.slow
@pytest.mark.parametrize("rows", [3, 50])
@pytest.mark.parametrize("family", ["gaussian-isotropic", "laplace", "noisy-rows", "none"])
def test_redrawn_releases_have_the_stated_moments(family: Family, rows: int) -> None:
    """The mean is the truth; the variance is (S_ii S_jj + S_ij^2) / n plus that of the noise."""
    truth = ar1(4)
    v = 0.3 if family == "noisy-rows" else None
    law = NoiseLaw.none()
    if family != "none":
        law = gaussian_law(0.02).model_copy(update={"family": family, "cell_variance": v})
    evidence = Evidence(truth, truth, law, float(rows))
    draws = list(islice(redraws(evidence, truth), at_scale(1500, 6000)))
    power = np.diag(truth)
    sampling = (np.outer(power, power) + truth**2) / rows
    noise = law.row_deviations(power, rows) ** 2
    np.testing.assert_allclose(np.var(draws, axis=0), sampling + noise, rtol=0.25)
    error = np.sqrt((sampling + noise) / len(draws))
    assert (np.abs(np.mean(draws, axis=0) - truth) < 5 * error).all()


@pytest.mark.slow
def test_stability_selection_finds_the_true_edges() -> None:
    rng, p = np.random.default_rng(14), 12
    truth = np.abs(np.subtract.outer(range(p), range(p))) == 1
    evidence = seen(rng, ar1(p), 5000, 1e-3)
    grid = penalty_grid(evidence.repaired)
    choice = stars(evidence, evidence.repaired, lasso, grid)
    assert choice.frequencies is not None
    assert choice.frequencies[truth].min() >= 0.9
    assert choice.frequencies[~truth].mean() < 0.2
    assert choice.scores[list(grid).index(choice.penalty)] <= 0.05
    looser = stars(evidence, evidence.repaired, lasso, grid, threshold=0.2, draws=8)
    assert looser.penalty <= choice.penalty
    none = stars(evidence, evidence.repaired, lasso, grid[4:], threshold=0.0, draws=3)
    assert none.penalty == grid[4]


@pytest.mark.slow
def test_accuracy_of_draws_hardly_changes_frequencies() -> None:
    """The rule computes graphs of draws less accurately than those of the other rules."""
    evidence = seen(np.random.default_rng(19), ar1(40), 2000, 1e-3)
    lasso_of = GraphicalLasso(penalty="stability")
    grid = penalty_grid(lasso_of.matrix(evidence))
    accurate = stars(evidence, evidence.repaired, lasso_of.sparse_path, grid)
    estimate = lasso_of.fit(evidence)
    assert accurate.frequencies is not None
    assert estimate.tuning["penalty"] == accurate.penalty
    change = np.abs(estimate.matrices["stability"] - accurate.frequencies)
    assert change.mean() < 0.01 * math.sqrt(0.25 / DRAWS)  # of the largest standard error


def test_stability_is_deterministic_and_counts_draws() -> None:
    evidence = seen(np.random.default_rng(15), ar1(5), 300, 0.01)
    grid = penalty_grid(evidence.repaired, count=4)
    first, again = (bootstrap(evidence, evidence.repaired, lasso, grid, 5) for _ in range(2))
    assert (first.frequencies == again.frequencies).all()
    assert set(np.unique(first.frequencies)) <= {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}
    seen_in = np.rint(5 * first.frequencies[:, *np.triu_indices(5, 1)])
    disagree = seen_in * (5 - seen_in) / math.comb(5, 2)  # share of the pairs of draws
    np.testing.assert_allclose(first.instability, disagree.mean(axis=1) * 19 / 20)


@pytest.mark.slow
def test_paths_end_at_dense_graphs() -> None:
    """Omitted penalties count as complete graphs, and the choice equals that of full paths."""
    rng, p = np.random.default_rng(22), 12
    evidence = seen(rng, ar1(p), 5000, 2e-3)
    lasso_of = GraphicalLasso()
    grid = penalty_grid(lasso_of.matrix(evidence))
    whole, ended = lasso_of.path(evidence, grid), lasso_of.sparse_path(evidence, grid)
    counts = [None if T is None else edge_mask(T).sum() // 2 for T in ended]
    last = counts.index(None) - 1
    assert [each for each in counts if each is not None][-1] > p * (p - 1) / 4
    assert all(T is None for T in ended[last + 1 :])
    for T, same in zip(ended[: last + 1], whole[: last + 1], strict=True):
        assert T is not None
        assert same is not None
        assert np.array_equal(T, same)
    truth = evidence.repaired
    choice = stars(evidence, truth, lasso_of.sparse_path, grid, draws=8)
    every = bootstrap(evidence, truth, lasso_of.path, grid, 8)
    assert choice.penalty == grid[every.stable(0.05)[-1]]
    assert np.isinf(choice.scores[last + 1 :]).all()
    never = bootstrap(evidence, truth, lambda _, some: [None] * len(some), grid, 2)
    assert not never.stable(1.0).size


@pytest.mark.slow
def test_penalty_without_a_minimiser_is_not_chosen() -> None:
    """Small penalties of the raw matrix have no minimiser."""
    rng = np.random.default_rng(16)
    evidence = seen(rng, ar1(8), 300, 0.02)
    assert np.diag(evidence.raw).min() > 0
    assert np.linalg.eigvalsh(evidence.raw).min() < 0

    def raw(shown: Evidence, grid: Array) -> list[Array | None]:
        found = graphical_lasso_path(shown.raw, list(grid))
        return [each.precision for each in found] + [None] * (len(grid) - len(found))

    grid = penalty_grid(evidence.raw)
    assert raw(evidence, grid)[-1] is None
    choice = ebic(evidence, raw, grid)
    assert math.isinf(choice.scores[-1])
    assert raw(evidence, np.array([choice.penalty]))[0] is not None


@pytest.mark.parametrize("family", ["gaussian-isotropic", "laplace", "none"])
@pytest.mark.parametrize("trace", [1.0, math.inf])
def test_derived_evidence_is_denoised_like_a_release(family: Family, trace: float) -> None:
    raw = ar1(5) + goe(np.random.default_rng(17), 5, 0.05)
    law = gaussian_law(0.05).model_copy(update={"family": family})
    law = NoiseLaw.none() if family == "none" else law
    expected = evidence_from_matrix(raw, 100.0, law, trace=trace, unit=True)
    like = Evidence(raw, raw, law, 100.0, ("a",) * 5, folds=(Fold(raw, 1.0),), trace=trace)
    again = derived_evidence(like, raw, law, (), 100.0)
    np.testing.assert_allclose(again.repaired, expected.repaired, atol=1e-12)
    assert again.names == like.names
    assert not again.folds


# The names of the rules in requests


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["ebic", "cross-validation", "first-drop", "stability"])
def test_selection_rules_by_name(rule: str) -> None:
    rng, p = np.random.default_rng(18), 8
    truth = np.abs(np.subtract.outer(range(p), range(p))) == 1
    evidence = folded(rng, ar1(p), (2000,) * 3, 5e-4)
    found = GraphicalLasso.model_validate({"penalty": rule, "refit": True}).fit(evidence)
    again = GraphicalLasso(penalty=found.tuning["penalty"]).fit(evidence)
    assert found.edges is not None
    assert again.edges is not None
    assert ((found.edges != 0) == (again.edges != 0)).all()
    assert f1(found.edges != 0, truth) >= 0.7
    table = found.tables["tuning"]
    assert found.tuning["penalty"] in table["penalty"].to_numpy()
    of_folds = rule in {"cross-validation", "first-drop"}
    assert len(table) == 20 if of_folds else 5 < len(table) <= 20
    free = (found.edges != 0) | np.eye(p, dtype=bool)
    matrix = GraphicalLasso().matrix(evidence)
    np.testing.assert_allclose(np.linalg.inv(found.matrix)[free], matrix[free], rtol=1e-6)
    assert list(found.matrices) == ["precision", "stability"][: 1 + (rule == "stability")]


@pytest.mark.slow
def test_cross_validation_of_very_noisy_folds() -> None:
    """A penalty is chosen even if a training fold has larger entries than the full matrix."""
    evidence = folded(np.random.default_rng(21), ar1(30), (100,) * 5, 0.05)
    tops = [penalty_grid(each.repaired)[0] for each in (evidence, training_evidence(evidence, 0))]
    assert tops[1] > tops[0]
    found = GraphicalLasso(penalty="cross-validation", refit=True).fit(evidence)
    assert np.isfinite(found.matrix).all()


def test_ridge_by_cross_validation() -> None:
    rng = np.random.default_rng(19)
    evidence = folded(rng, ar1(6), (800,) * 3, 1e-3)
    found = Ridge(penalty="cross-validation").fit(evidence)
    assert found.tuning["penalty"] in found.tables["tuning"]["penalty"].to_numpy()
    chosen = ridge_precision(evidence.repaired, found.tuning["penalty"])
    np.testing.assert_allclose(found.matrix, chosen)
    with raises(families.ESTIMATE):
        Ridge(penalty="cross-validation").fit(replace(evidence, folds=()))


def test_unsupported_selection_rules_are_refused() -> None:
    with raises(families.ESTIMATOR_SETTING):
        GraphicalLasso(refit=True, input="raw")


def test_far_from_definite_raw_matrix_is_refused() -> None:
    evidence = seen(np.random.default_rng(20), ar1(6), 50, 5.0)
    with raises(families.ESTIMATE):
        GraphicalLasso(penalty="ebic", input="raw").fit(evidence)
