"""The difference of two graphs: what is found, what is not, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gramercy.estimators import Estimate, registry
from gramercy.estimators.equal_terms import together
from gramercy.estimators.solvers.dtrace import dtrace
from gramercy.estimators.user_evidence import evidence_from_rows
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence, Fold
from tests.support.noisy_matrices import ar
from tests.support.problems import raises
from tests.support.simulated_release import declared_columns, noisy_moment, released

P, FOLDS = 6, 10
COLUMNS = declared_columns([(-10.0, 10.0)] * P)
NAMES = ("(intercept)", *(f"c{j}" for j in range(P)))
RADIUS = 0.9  # in half widths of the bounds: few rows are clipped


def precision(changed: float = 0.0) -> Any:
    """That of a chain, with the first pair changed."""
    matrix = np.linalg.inv(ar(P, 0.5))
    matrix[0, 1] = matrix[1, 0] = matrix[0, 1] + changed
    return matrix


def table(seed: int, changed: float = 0.0, rows: int = 4000, folds: int = 1) -> Evidence:
    rng = np.random.default_rng(seed)
    cells = rng.multivariate_normal(np.zeros(P), np.linalg.inv(precision(changed)), rows)
    evidence = released(cells, COLUMNS, radius=RADIUS, sd=2e-4, seed=seed + 10_000)
    evidence = replace(evidence, names=NAMES)
    if folds == 1:
        return evidence
    moments = [
        noisy_moment(part, COLUMNS, RADIUS, 2e-4 * folds**0.5, intercept=True, seed=seed + k)
        for k, part in enumerate(np.split(cells, folds), 1)
    ]
    parts = tuple(Fold(moment, rows / folds) for moment in moments)
    return replace(evidence, raw=sum(moments) / folds, folds=parts)


def difference(first: Evidence, second: Evidence, **settings: Any) -> Estimate:
    both = together({"A": first, "B": second})
    return registry["difference"](between=("A", "B"), **settings).fit(both)


@pytest.mark.parametrize("folds", [1, FOLDS])
def test_a_changed_edge_is_found(folds: int) -> None:
    estimate = difference(table(1, folds=folds), table(2, changed=0.6, folds=folds))
    found = estimate.tables["differences"]
    first = found.iloc[0]
    assert [first["row"], first["column"]] == ["c0", "c1"]
    assert first["adjusted"] < 0.05
    assert first["lower"] < first["difference"] < first["upper"]
    assert first["first"] - first["second"] == pytest.approx(first["difference"])
    assert first["first"] > 0.3 > first["second"]
    assert len(found) == P * (P - 1) / 2
    assert np.count_nonzero(np.triu(estimate.edges)) == estimate.tuning["differences"]
    sparse = estimate.matrices["precision_difference"]
    assert sparse[1, 2] < 0  # the first precision minus the second
    assert np.count_nonzero(sparse) < sparse.size / 2


def test_exchanged_tables_have_the_opposite_difference() -> None:
    one, other = table(3), table(4, changed=0.6, rows=1500)
    forth, back = difference(one, other), difference(other, one)
    for name in ("difference", "precision_difference"):
        np.testing.assert_allclose(forth.matrices[name], -back.matrices[name], atol=1e-7)
    np.testing.assert_allclose(forth.matrices["p_values"], back.matrices["p_values"], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("folds", [1, FOLDS])
def test_equal_graphs_seldom_differ(folds: int) -> None:
    pairs = [(table(2 * k, folds=folds), table(2 * k + 1, folds=folds)) for k in range(60)]
    estimates = [difference(*pair) for pair in pairs]
    found = [each.tuning["differences"] > 0 for each in estimates]
    assert np.mean(found) <= 0.1
    p_values = np.concatenate([each.tables["differences"]["p_value"] for each in estimates])
    assert (p_values < 0.05).mean() < 0.07


def test_a_column_that_one_table_hides_is_left_out_of_both() -> None:
    """Otherwise the partial correlations would be given different columns."""
    one, other = table(5), table(6)
    raw = other.raw.copy()
    raw[P], raw[:, P] = 0.0, 0.0
    estimate = difference(one, replace(other, raw=raw))
    assert estimate.tuning["untested"] == P - 1
    assert "c5" not in set(estimate.tables["differences"]["column"])
    assert (estimate.matrices["p_values"][P] == 1).all()


def test_errors_of_both_tables_are_described() -> None:
    found = difference(table(5), table(6, folds=FOLDS)).tables["differences"]
    assert set(found["law"]) == {"Gaussian rows and jackknife over 10 folds"}


def test_what_cannot_be_compared_is_refused() -> None:
    one, other = table(7), table(8)
    with raises(families.COMPARISON, columns=(NAMES[1], NAMES[2])):
        difference(one, replace(other, names=(NAMES[0], NAMES[2], NAMES[1], *NAMES[3:])))
    with raises(families.COMPARISON):
        difference(one, replace(other, radius=2.0))  # clipped otherwise, by an unknown amount
    with raises(families.ESTIMATE):
        registry["difference"](between=("A", "B")).fit(one)
    with raises(families.UNKNOWN_NAME, group="C"):
        both = together({"A": one, "B": other})
        registry["difference"](between=("A", "C")).fit(both)


@pytest.mark.parametrize(
    "settings", [{}, {"between": ["A", "A"]}, {"between": ["A", "B"], "other": "toy/v1-r1"}]
)
def test_settings_name_two_different_tables(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  families are within the error of pydantic
        registry["difference"](**settings)


def test_names_of_groups_may_be_a_text() -> None:
    assert registry["difference"](between="A, B").between == ("A", "B")  # type: ignore[attr-defined]


def test_the_minimiser_satisfies_its_conditions() -> None:
    A, B = ar(8, 0.6), ar(8, 0.2)
    whole, D, none = (dtrace(A, B, penalty) for penalty in (0.0, 0.05, 1.0))
    assert whole is not None
    assert D is not None
    assert none is not None
    np.testing.assert_allclose(whole, np.linalg.inv(A) - np.linalg.inv(B), atol=1e-9)
    gradient = (A @ D @ B + B @ D @ A) / 2 - (B - A)
    np.testing.assert_allclose(gradient[D != 0], -0.05 * np.sign(D[D != 0]), atol=1e-9)
    assert (np.abs(gradient[D == 0]) <= 0.05 + 1e-9).all()
    assert 0 < np.count_nonzero(D) < D.size
    assert not none.any()


@pytest.mark.slow
def test_differences_are_tested_where_the_sparse_difference_is_unknown() -> None:
    """Columns that are nearly collinear make its equations nearly singular."""
    rng = np.random.default_rng(9)
    factors = rng.normal(0, 1, (2, 80, 2))
    pair = []
    for own in (factors[0], factors.mean(axis=0)):
        cells = rng.normal(0, 1, (5000, 2)) @ own.T + rng.normal(0, 0.1, (5000, 80))
        made = evidence_from_rows(cells / cells.std(axis=0))
        pair.append(replace(made, names=tuple(f"c{j}" for j in range(80))))
    estimate = difference(*pair)
    assert list(estimate.matrices) == ["difference", "p_values", "adjusted"]
