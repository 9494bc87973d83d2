"""The scikit-learn classes: scikit-learn's own checks, and results equal to the estimators'."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramercy.estimators import registry
from gramercy.estimators.about_means import DependenceEstimator
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.noise.draws import draw, stream
from gramercy.estimators.scikit import (
    DiscriminantClassifier,
    MatrixEstimator,
    NeighbourhoodGraph,
    RidgePrecision,
    SparseCovariance,
    SparsePrecision,
    by_name,
)
from gramercy.estimators.user_evidence import evidence_from_matrix, evidence_from_rows
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.noise import NoiseLaw
from tests.support.noisy_matrices import gaussian_law
from tests.support.problems import raises, refuses

FACES: list[Any] = [*MatrixEstimator.__subclasses__(), DiscriminantClassifier]
MATRICES: list[Any] = FACES[:-1]
BY_SPEC = {wrapper.spec: wrapper for wrapper in FACES}
LAW = gaussian_law(0.02)


def rows(n: int = 400, p: int = 4) -> np.ndarray:
    stream = np.random.default_rng(1)
    found: np.ndarray = stream.normal(size=(n, p)) @ (np.eye(p) + 0.4 * np.eye(p, k=1))
    return found


def seen() -> Evidence:
    """A noisy release of unit rows, with names."""
    table = rows()
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    noisy = table.T @ table / len(table) + draw(stream(), 4, LAW)
    return evidence_from_matrix(noisy, len(table), LAW, names="abcd", unit=True, trace=1.0)


@dataclass
class Opened:
    """A minimal stand-in for an opened release: it only has evidence."""

    evidence: Evidence


# No scikit-learn check may fail, not even as an expected failure.
@pytest.mark.slow
@parametrize_with_checks([*(wrapper() for wrapper in FACES), DiscriminantClassifier(prior="equal")])  # type: ignore[untyped-decorator]
def test_scikit_learn_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_every_matrix_estimator_has_a_scikit_learn_class() -> None:
    """To fix a failure, add a class to estimators/scikit/matrix_estimators.py."""
    for name, spec in registry.items():
        if issubclass(spec, DependenceEstimator):
            assert spec in BY_SPEC, f"estimators/scikit has no class for '{name}'"
    assert {name: each.spec for name, each in by_name.items()} == {
        name: spec for name, spec in registry.items() if spec in BY_SPEC
    }


@pytest.mark.parametrize("wrapper", FACES)
def test_scikit_learn_parameters_equal_estimator_settings(wrapper: Any) -> None:
    """Those of `init_of`: scikit-learn reads them from the signature."""
    given = {
        name: each.default
        for name, each in inspect.signature(wrapper.__init__).parameters.items()
        if name != "self"
    }
    fields = wrapper.spec.model_fields
    names = fields.keys() - {"name", "group"}  # classes are fitted to a group itself
    assert given == {name: fields[name].default for name in names}


@pytest.mark.parametrize("wrapper", MATRICES)
def test_scikit_learn_results_equal_estimator_results(wrapper: Any) -> None:
    expected = wrapper.spec().fit(seen())
    for given in (seen(), Opened(seen())):
        fitted = wrapper().fit(given)
        for name, matrix in expected.matrices.items():
            np.testing.assert_array_equal(fitted.estimate_.matrices[name], matrix)
        assert fitted.tuning_ == expected.tuning
        assert fitted.n_samples_ == 400
        assert fitted.n_features_in_ == 4
        assert list(fitted.feature_names_in_) == list("abcd")
        assert clone(fitted).get_params() == fitted.get_params()
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(again.edges_, fitted.edges_)
    by_matrix = wrapper().fit_matrix(seen().raw, 400, LAW, names="abcd")
    assert list(by_matrix.feature_names_in_) == list("abcd")
    assert not hasattr(by_matrix.fit_matrix(np.eye(3), 10), "feature_names_in_")
    assert by_matrix.n_features_in_ == 3


def test_covariance_and_precision_are_inverse() -> None:
    for wrapper in (RidgePrecision, SparsePrecision):
        fitted = wrapper().fit(seen())
        np.testing.assert_array_equal(fitted.precision_, fitted.estimate_.matrix)
        np.testing.assert_allclose(fitted.precision_ @ fitted.covariance_, np.eye(4), atol=1e-9)
        assert (fitted.covariance_ == fitted.covariance_.T).all()
    sparse = SparseCovariance(threshold=0.01).fit(rows())
    np.testing.assert_array_equal(sparse.covariance_, sparse.estimate_.matrix)
    np.testing.assert_allclose(sparse.precision_ @ sparse.covariance_, np.eye(4), atol=1e-9)
    singular = sparse.fit(rows()[:3])  # no inverse; that of the earlier fit is removed
    assert singular.covariance_.shape == (4, 4)
    assert not hasattr(singular, "precision_")
    with raises(families.MATRIX, estimator="SparseCovariance"):
        singular.score(rows())
    assert not hasattr(NeighbourhoodGraph(), "score")


def test_rows_are_fitted_about_zero_without_noise() -> None:
    table = rows() + 3.0
    fitted = RidgePrecision(penalty=1e-12).fit(table)
    np.testing.assert_allclose(fitted.covariance_, table.T @ table / len(table), rtol=1e-4)
    frame = pd.DataFrame(table, columns=list("wxyz")).rename(columns={"z": "evidence"})
    assert list(RidgePrecision().fit(frame).feature_names_in_) == ["w", "x", "y", "evidence"]


def test_score_is_the_mean_log_likelihood() -> None:
    table = rows()
    fitted = RidgePrecision(penalty=0.05).fit(table[:200])
    law = multivariate_normal(np.zeros(4), fitted.covariance_)
    assert fitted.score(table[200:]) == pytest.approx(law.logpdf(table[200:]).mean())
    assert fitted.score(evidence_from_rows(table[200:])) == pytest.approx(fitted.score(table[200:]))
    search = GridSearchCV(RidgePrecision(), {"penalty": np.geomspace(1e-6, 10, 8)}, cv=3)
    assert 1e-6 <= search.fit(table).best_params_["penalty"] < 0.1


def test_invalid_settings_are_refused() -> None:
    with refuses("penalty"):
        RidgePrecision(penalty=-1.0).fit(rows())
    with refuses("input"):
        SparsePrecision(input="best").fit(rows())  # type: ignore[arg-type]


def test_fitted_graph_as_networkx() -> None:
    fitted = SparsePrecision().fit(seen())
    graph = fitted.to_networkx()
    assert list(graph) == list("abcd")
    expected = {("abcd"[i], "abcd"[j]) for i, j in np.argwhere(np.triu(fitted.precision_, 1))}
    assert set(graph.edges) == expected
    assert fitted.edges_ is not None
    assert graph["b"]["c"]["weight"] == fitted.edges_[1, 2] != 0
    assert set(RidgePrecision().fit(rows()).to_networkx()) == {"x0", "x1", "x2", "x3"}


# -- Evidence --


def test_evidence_is_denoised_like_a_release() -> None:
    found = seen()
    np.testing.assert_array_equal(found.repaired, denoise(found.raw, LAW, 1.0))
    family = {"family": "noisy-rows", "cell_variance": 0.01}
    law = LAW.model_copy(update=family)
    np.testing.assert_array_equal(
        evidence_from_matrix(found.raw, 400, law).repaired, denoise(found.raw, law, np.inf, 400.0)
    )
    projected = evidence_from_matrix(np.diag([2.0, 1.0, -0.5]), 9)
    np.testing.assert_allclose(projected.repaired, np.diag([2.0, 1.0, 0.0]), atol=1e-12)
    assert projected.law == NoiseLaw.none()
    assert not projected.deviations.any()


def test_noise_mean_is_subtracted_from_evidence() -> None:
    law = NoiseLaw(
        family="wishart", sd_diagonal=0.01 * 2**0.5, sd_off_diagonal=0.01, mean=0.3, dof=9.0
    )
    given = np.diag([0.8, 0.5]) + 0.1
    np.testing.assert_allclose(evidence_from_matrix(given, 9, law).raw, given - 0.3 * np.eye(2))
    silent = LAW.model_copy(update={"sd_diagonal": 0.0, "sd_off_diagonal": 0.0})
    np.testing.assert_allclose(evidence_from_matrix(given, 9, silent).repaired, given, atol=1e-12)


@pytest.mark.parametrize(
    ("matrix", "more", "problem", "argument"),
    [
        (np.ones((2, 3)), {}, families.MATRIX, "S"),
        (np.ones((0, 0)), {}, families.MATRIX, "S"),
        ([[1.0, 0.5], [0.4, 1.0]], {}, families.MATRIX, "S"),
        ([[np.nan]], {}, families.MATRIX, "S"),
        (np.eye(2), {"names": ["a"]}, families.MATRIX, "names"),
        (np.eye(2), {"columns": [None]}, families.MATRIX, "columns"),
        (np.eye(2), {"trace": 0.0}, families.MATRIX, "trace"),
        (np.eye(2), {"n_samples": 0.0}, families.MATRIX, "n_samples"),
        (np.eye(2), {"n_samples": np.inf}, families.MATRIX, "n_samples"),
    ],
)
def test_invalid_matrices_are_refused(matrix: Any, more: Any, problem: Any, argument: str) -> None:
    with raises(problem, argument=argument):
        evidence_from_matrix(matrix, **{"n_samples": 5.0, **more})


def test_empty_rows_are_refused() -> None:
    with raises(families.MATRIX, argument="X"):
        evidence_from_rows(np.ones((0, 2)))


# -- The classifier --


def test_classifier_on_rows_equals_lda() -> None:
    table, label = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[label]
    fitted = DiscriminantClassifier(penalty=1e-20).fit(table, names)
    known = LinearDiscriminantAnalysis(solver="lsqr").fit(table, names)
    assert list(fitted.classes_) == list(known.classes_)
    np.testing.assert_array_equal(fitted.predict(table), known.predict(table))
    np.testing.assert_allclose(fitted.predict_proba(table), known.predict_proba(table), atol=1e-8)
    two = DiscriminantClassifier(penalty=1e-20).fit(table[:100], names[:100])
    known.fit(table[:100], names[:100])
    np.testing.assert_allclose(
        two.decision_function(table), known.decision_function(table), rtol=1e-6
    )
    assert DiscriminantClassifier().fit(table, names).score(table, names) > 0.95


def test_classifier_on_a_release() -> None:
    stream = np.random.default_rng(2)
    kind = stream.choice(["a", "b"], size=3000)
    colour = np.where(stream.uniform(size=3000) < 0.8, np.where(kind == "a", "red", "blue"), "red")
    frame = pd.DataFrame(
        {"size": 40 + 10 * stream.normal(size=3000), "colour": colour, "kind": kind}
    )
    frame["size"] += 10 * (kind == "b")
    number = ColumnFacts(name="size", lower=0.0, upper=100.0, centre=45.0, scale=30.0)
    levels = [
        LevelsFacts(name="colour", levels=("red",)),
        LevelsFacts(name="kind", levels=("a", "b")),
    ]
    scaled = (frame["size"] - 45.0) / 30.0
    full = np.column_stack([np.ones(3000), scaled, colour == "red", kind == "a", kind == "b"])
    full = full.astype(float) / 3.0
    noisy = full.T @ full / 3000 + draw(np.random.RandomState(0), 5, LAW) / 40
    law = LAW.divided_by(40.0)
    columns = [None, number, levels[0], levels[1], levels[1]]
    names = ["(intercept)", "size", "colour=red", "kind=a", "kind=b"]
    release = Opened(
        evidence_from_matrix(noisy, 3000, law, names=names, columns=columns, trace=1.0)
    )
    fitted = DiscriminantClassifier(classes="kind").fit(release)
    assert list(fitted.feature_names_in_) == ["size", "colour=red"]
    assert list(fitted.classes_) == ["a", "b"]
    numbers = frame[["size"]].assign(**{"colour=red": (colour == "red").astype(float)})
    best = LinearDiscriminantAnalysis().fit(numbers, kind).score(numbers, kind)
    assert fitted.score(frame, kind) >= best - 0.02
    np.testing.assert_array_equal(fitted.predict(frame), fitted.predict(numbers))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 -- scikit-learn's own
        fitted.predict(frame[["size", "kind"]])
    assert "colour=red" in str(caught.value)
    again = clone(fitted).fit(frame[["size"]], kind)  # refit on rows
    assert list(again.feature_names_in_) == ["size"]
