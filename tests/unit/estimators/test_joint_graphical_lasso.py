"""The joint graphical lasso: its solver against definitions, and graphs of simulated groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from gramercy.estimators import Estimate, Evidence, registry
from gramercy.estimators.equal_terms import together
from gramercy.estimators.joint_graphical_lasso import JointGraphicalLasso
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.solvers.glasso import graphical_lasso
from gramercy.estimators.solvers.joint import (
    Structure,
    joint_graphical_lasso,
    shrink_fused,
    shrink_group,
    total_variation,
)
from gramercy.schemas import families
from gramercy.schemas.facts import OTHER
from gramercy.schemas.noise import NoiseLaw
from tests.support.problems import raises
from tests.unit.estimators.test_pooled_releases import release

Array = NDArray[np.float64]


def correlations(tables: int, p: int, rows: int, seed: int = 0) -> Array:
    """Of Gaussian rows of a chain; shape (tables, p, p)."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p))))
    return np.stack([np.corrcoef(root @ rng.standard_normal((p, rows))) for _ in range(tables)])


def objective(T: Array, S: Array, penalty: float) -> float:
    of_loss = (S * T).sum(axis=(1, 2)) - np.linalg.slogdet(T)[1]
    return float(of_loss.sum()) + penalty


def penalty_of(T: Array, structure: Structure, separate: float, shared: float) -> float:
    pairs = T * ~np.eye(T.shape[-1], dtype=bool)
    across = np.abs(np.diff(pairs, axis=0)).sum()
    if structure == "group":
        across = np.linalg.norm(pairs, axis=0).sum()
    return float(separate * np.abs(pairs).sum() + shared * across)


def by_proximal_gradient(S: Array, structure: Structure, separate: float, shared: float) -> Array:
    """Plain proximal gradient with a step that is halved until the loss decreases enough."""
    shrink = shrink_group if structure == "group" else shrink_fused
    T, row, column = np.stack([np.eye(S.shape[-1])] * len(S)), *np.triu_indices(S.shape[-1], 1)
    for _ in range(3000):
        step = 0.5
        gradient = S - np.linalg.inv(T)
        loss = objective(T, S, 0.0)
        while True:
            new = T - step * gradient
            new[:, row, column] = shrink(new[:, row, column], step * separate, step * shared)
            new[:, column, row] = new[:, row, column]
            move = new - T
            bound = loss + (gradient * move).sum() + (move**2).sum() / 2 / step
            definite = np.linalg.eigvalsh(new)[:, 0].min() > 0
            if definite and objective(new, S, 0.0) <= bound + 1e-14:
                break
            step /= 2
        T = new
        if np.abs(move).max() < 1e-12:
            break
    return T


def test_one_matrix_without_sharing_is_the_graphical_lasso() -> None:
    S = correlations(1, 12, 60)
    found = joint_graphical_lasso(S, 0.15, 0.0, tol=1e-13)
    single = graphical_lasso(S[0], 0.15, tol=1e-13).precision
    np.testing.assert_allclose(found.precisions[0], single, atol=1e-8)


@pytest.mark.parametrize("structure", ["group", "fused"])
def test_solution_is_that_of_plain_proximal_gradient(structure: Structure) -> None:
    S = correlations(3, 6, 40)
    found = joint_graphical_lasso(S, 0.1, 0.15, structure=structure, tol=1e-12)
    plain = by_proximal_gradient(S, structure, 0.1, 0.15)
    np.testing.assert_allclose(found.precisions, plain, atol=1e-5)
    lowest, highest = (
        objective(T, S, penalty_of(T, structure, 0.1, 0.15)) for T in (found.precisions, plain)
    )
    assert lowest <= highest + 1e-10
    assert 0 <= found.gap <= 1e-12


@pytest.mark.parametrize("structure", ["group", "fused"])
def test_gap_bounds_the_distance_from_the_minimum(structure: Structure) -> None:
    S = correlations(4, 10, 30)
    values = []
    for tol in (1e-3, 1e-12):
        found = joint_graphical_lasso(S, 0.1, 0.1, structure=structure, tol=tol, conditions=False)
        penalty = penalty_of(found.precisions, structure, 0.1, 0.1)
        values.append(objective(found.precisions, S, penalty))
        assert found.gap <= tol
    assert -1e-9 <= values[0] - values[1] <= 1e-3 * 40


@pytest.mark.parametrize("structure", ["group", "fused"])
def test_components_are_exact(structure: Structure) -> None:
    """Two blocks whose entries the penalty outweighs are solved apart, as they are together."""
    S = correlations(3, 8, 50)
    S[:, :4, 4:] *= 0.1
    S[:, 4:, :4] *= 0.1
    settings: dict[str, Any] = {"structure": structure, "tol": 1e-13}
    whole = joint_graphical_lasso(S, 0.1, 0.1, **settings)
    assert not whole.precisions[:, :4, 4:].any()
    part = joint_graphical_lasso(S[:, :4, :4], 0.1, 0.1, **settings)
    np.testing.assert_allclose(whole.precisions[:, :4, :4], part.precisions, atol=1e-8)
    assert (np.abs(np.linalg.inv(whole.precisions) - whole.duals) < 1e-5).all()


def test_total_variation_is_that_of_its_dual() -> None:
    rng = np.random.default_rng(1)
    for tables in (1, 2, 5, 12):
        values = rng.standard_normal((tables, 8))
        values[:, 0] = 1.0
        differences = np.diff(np.eye(tables), axis=0)
        for penalty in (0.0, 1e-300, 1e-16, 0.1, 0.6, 5.0):
            found = total_variation(values, penalty)
            for y, x in zip(values.T, found.T, strict=True):
                expected = y
                if tables > 1 and penalty > 1e-12:
                    dual = lsq_linear(differences.T, y, (-penalty, penalty), method="bvls").x
                    expected = y - differences.T @ dual
                np.testing.assert_allclose(x, expected, atol=1e-12)


P, ROWS = 12, 3000


def simulated(tables: int, *, same: bool, seed: int = 3, sd: float = 0.0025) -> dict[str, Evidence]:
    """Unit rows of chains through the columns: in one order, or in an order for each table."""
    rng, law = (
        np.random.default_rng(seed),
        NoiseLaw(family="gaussian-isotropic", sd_diagonal=sd * 2**0.5, sd_off_diagonal=sd),
    )
    made = {}
    for k in range(tables):
        order = np.arange(P) if same else rng.permutation(P)
        root = np.linalg.cholesky(0.6 ** np.abs(np.subtract.outer(order, order)))
        rows = rng.standard_normal((ROWS, P)) @ root.T
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        noise = np.triu(rng.standard_normal((P, P)) * sd, 1)
        noise += noise.T + np.diag(rng.standard_normal(P) * sd * 2**0.5)
        raw = rows.T @ rows / ROWS + noise
        names = tuple(f"c{j}" for j in range(P))
        made[f"t{k}"] = Evidence(raw, denoise(raw, law, 1.0, ROWS), law, ROWS, names)
    return made


def fitted(groups: dict[str, Evidence], **settings: object) -> Estimate:
    return JointGraphicalLasso.model_validate(settings).fit(together(groups))


@pytest.mark.slow
def test_amount_of_sharing_follows_from_the_tables() -> None:
    shared = fitted(simulated(4, same=True, sd=0.008)).tuning["shared"]
    apart = fitted(simulated(4, same=False, sd=0.008)).tuning["shared"]
    assert shared > 0
    assert apart == 0


@pytest.mark.slow
def test_shared_edges_are_found_in_every_table() -> None:
    edges = fitted(simulated(4, same=True)).tables["edges"]
    chain = {(f"c{k}", f"c{k + 1}") for k in range(P - 1)}
    found = [set(zip(own["row"], own["column"], strict=True)) for _, own in edges.groupby("table")]
    assert np.mean([2 * len(own & chain) / (len(own) + P - 1) for own in found]) > 0.85
    assert (edges["weight"].abs() < 1).all()


def test_settings_of_numbers_are_used_and_need_no_criterion() -> None:
    estimate = fitted(simulated(2, same=True), penalty=0.2, shared=0.3, structure="fused")
    assert estimate.tuning == {"penalty": 0.2, "shared": 0.3}
    assert "tuning" not in estimate.tables
    empty = fitted(simulated(2, same=True), penalty=1.0, shared=0.3)
    assert empty.tables["edges"].empty
    assert list(empty.tables["tables"]["edges"]) == [0, 0]


@pytest.mark.parametrize(
    "changes",
    [
        {"names": tuple(f"d{k}" for k in range(P))},
        {"names": tuple(f"c{k}" for k in reversed(range(P)))},
        {"unit": False, "radius": 1.0},
    ],
)
def test_tables_on_other_terms_are_refused(changes: dict[str, Any]) -> None:
    groups = simulated(3, same=True)
    with raises(families.COMPARISON):
        fitted(groups | {"t1": replace(groups["t1"], **changes)})


def test_tables_lost_in_noise_have_no_graph() -> None:
    groups = simulated(3, same=True)
    lost = replace(groups["t2"], rows=10.0, rows_sd=5.0, divisor="noisy")
    given = fitted(groups | {"t2": lost, OTHER: groups["t0"]}, penalty=0.2, shared=0.3)
    assert list(given.tables["tables"]["status"]) == ["used", "used", "lost in noise"]
    assert set(given.tables["edges"]["table"]) == {"t0", "t1"}
    with raises(families.ESTIMATE, groups=2):
        fitted({"t0": groups["t0"], "t2": lost})


def test_tables_of_few_rows_have_no_graph() -> None:
    groups = simulated(4, same=True)
    few = {f"t{k}": of_rows(rows) for k, rows in enumerate((3, 20), 2)}
    given = fitted(groups | few, penalty=0.2, shared=0.3).tables
    status = given["tables"].set_index("table")["status"]
    assert status.to_dict() == dict.fromkeys(("t0", "t1"), "used") | dict.fromkeys(
        few, "too few rows"
    )
    assert set(given["edges"]["table"]) == {"t0", "t1"}
    enough = fitted(groups | {"t2": of_rows(100)}, penalty=0.2, shared=0.3).tables
    assert enough["tables"]["status"].eq("used").all()


def of_rows(rows: int) -> Evidence:
    """A table of unit rows of independent columns, with hardly any noise."""
    law = NoiseLaw(family="gaussian-isotropic", sd_diagonal=1e-9, sd_off_diagonal=1e-9)
    cells = np.random.default_rng(rows).standard_normal((rows, P))
    cells /= np.linalg.norm(cells, axis=1, keepdims=True)
    raw = cells.T @ cells / rows
    return Evidence(raw, raw, law, rows, tuple(f"c{j}" for j in range(P)))


def test_releases_of_the_same_rows_are_refused() -> None:
    made = JointGraphicalLasso(releases=("a/v1-r2",))
    evidence = simulated(1, same=True)["t0"]
    one, other = (release(name, evidence).facts for name in ("a/v1-r1", "b/v1-r1"))
    with raises(families.COMPARISON, name="a/v1-r1"):
        made.check_together([("a/v1-r1", one), ("a/v1-r1", one)])
    with raises(families.COMPARISON, first="a/v1-r1", second="a/v1-r2"):
        made.check_together([("a/v1-r1", one), ("a/v1-r2", one)])
    made.check_together([("a/v1-r1", one), ("b/v1-r1", other)])


def test_tables_are_needed() -> None:
    with raises(families.ESTIMATE):
        registry["joint-graphical-lasso"]().fit(simulated(1, same=True)["t0"])  # type: ignore[call-arg]
