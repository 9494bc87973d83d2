"""Quadratic discriminant analysis: classical without noise, and better where covariances differ."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from gramercy.api.groups import GroupRelease, Groups
from gramercy.estimators.estimator import Estimate
from gramercy.estimators.quadratic_discriminant import QuadraticDiscriminant
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import OTHER, ColumnFacts
from tests.support.problems import raises
from tests.support.simulated_release import declared_columns, released

WEAK = 1e-20  # a penalty without visible effect
COLUMNS = declared_columns([(-12.0, 12.0), (-10.0, 14.0), (0.0, 9.0)])


def rows_of_classes(rows: int = 4000, seed: int = 1) -> dict[str, np.ndarray]:
    """Three classes with means and covariances of their own; the last one is smaller."""
    stream, classes = np.random.default_rng(seed), {}
    for k, name in enumerate(("A", "B", "C")):
        mixing = stream.normal(size=(3, 3))
        cells = stream.normal(size=(rows // (1 + k // 2), 3)) @ mixing / np.linalg.norm(mixing)
        classes[name] = cells + np.array([k, 0.5 * k, 4.0])
    return classes


def evidence_of(
    classes: dict[str, np.ndarray],
    columns: list[ColumnFacts] = COLUMNS,
    sd: float = 1e-12,
    rows_sd: float = 0.0,
    **facts: Any,
) -> Evidence:
    """A release with a group for every class; the noise `sd` is that of a group of 1000 rows."""
    names = ("(intercept)", *(column.name for column in columns))
    groups = []
    for seed, (name, cells) in enumerate(classes.items()):
        own = sd * 1000 / len(cells)
        group = released(cells, columns, radius=6.0, sd=own, seed=seed, **facts)
        noisy = {"rows_sd": rows_sd, "divisor": "noisy"}
        groups.append((name, replace(group, names=names[-len(group.raw) :], **noisy)))
    together = released(np.vstack(list(classes.values())), columns, radius=6.0, sd=sd, **facts)
    return replace(together, names=names[-len(together.raw) :], groups=tuple(groups))


def classical_scores(x: np.ndarray, classes: dict[str, np.ndarray]) -> np.ndarray:
    """The definition, with covariances divided by the number of rows."""
    total, scores = sum(map(len, classes.values())), []
    for cells in classes.values():
        from_mean, covariance = x - cells.mean(axis=0), np.cov(cells.T, bias=True)
        square = (from_mean * np.linalg.solve(covariance, from_mean.T).T).sum(axis=1)
        log_det = np.linalg.slogdet(covariance)[1]
        scores.append(-square / 2 - log_det / 2 + math.log(len(cells) / total))
    return np.array(scores).T


def scores_of(estimate: Estimate, x: np.ndarray) -> np.ndarray:
    """The scores as a reader of the tables computes them."""
    constants = estimate.tables["classes"].set_index("class")["constant"].dropna()
    means, precisions = (estimate.tables[name] for name in ("means", "precisions"))
    scores = []
    for name, constant in constants.items():
        from_mean = x - means.loc[means["class"] == name, "mean"].to_numpy()
        precision = precisions[precisions["class"] == name].iloc[:, 2:].to_numpy()
        scores.append(constant - ((from_mean @ precision) * from_mean).sum(axis=1) / 2)
    return np.array(scores).T


@pytest.mark.parametrize(("precision", "error"), [("ridge", 1e-6), ("graphical-lasso", 2e-3)])
def test_without_noise_it_is_the_classical_rule(precision: Any, error: float) -> None:
    """In the columns' own units, whose centres and scales differ; the lasso is iterative."""
    classes = rows_of_classes()
    estimator = QuadraticDiscriminant(precision=precision, penalty=WEAK)
    found = scores_of(estimator.fit(evidence_of(classes)), classes["B"][:50])
    np.testing.assert_allclose(found, classical_scores(classes["B"][:50], classes), rtol=error)


def test_prior_is_the_shares_of_rows_or_equal() -> None:
    evidence = evidence_of(rows_of_classes(), rows_sd=20.0)
    shares, equal = (
        QuadraticDiscriminant(prior=prior).fit(evidence).tables["classes"]
        for prior in ("shares", "equal")
    )
    assert shares["share"].tolist() == pytest.approx([0.4, 0.4, 0.2])
    # The error of n_3 / (n_1 + n_2 + n_3), to first order.
    expected = 20.0 / 10_000 * math.sqrt(0.8**2 + 2 * 0.2**2)
    assert shares["share_sd"].iloc[2] == pytest.approx(expected)
    difference = (shares["constant"] - equal["constant"]).to_numpy()
    assert difference == pytest.approx(np.log([1.2, 1.2, 0.6]))


def test_group_within_the_noise_has_no_score() -> None:
    """Neither has the group of all other rows."""
    classes = rows_of_classes()
    classes |= {"few": classes["A"][:40], OTHER: classes["B"]}
    estimate = QuadraticDiscriminant().fit(evidence_of(classes, rows_sd=20.0))
    table = estimate.tables["classes"].set_index("class")
    assert table["status"].to_dict() == dict.fromkeys("ABC", "used") | {"few": "lost in noise"}
    assert table.loc["few", ["share", "share_sd", "constant"]].isna().all()
    assert table["share"].sum() == pytest.approx(1.0)
    assert set(estimate.tables["means"]["class"]) == set("ABC")
    assert set(estimate.tuning) == {f"penalty of {name}" for name in "ABC"}


def test_groups_must_be_above_the_noise() -> None:
    for noise in ({"rows_sd": 5000.0}, {"sd": 1.0}):
        with raises(families.ESTIMATE, groups=3):
            QuadraticDiscriminant().fit(evidence_of(rows_of_classes(), **noise))


def test_releases_without_groups_or_means_are_refused() -> None:
    evidence = evidence_of(rows_of_classes())
    for without in (evidence.groups[0][1], replace(evidence, groups=evidence.groups[:0])):
        with raises(families.ESTIMATE):
            QuadraticDiscriminant().fit(without)
    with raises(families.ANALYSIS):
        QuadraticDiscriminant().fit(evidence_of(rows_of_classes(), intercept=False))
    with raises(families.ANALYSIS):
        QuadraticDiscriminant().fit(replace(evidence, unit=True))


def test_noisy_rule_beats_the_best_linear_one_where_covariances_differ() -> None:
    """Correlations of opposite sign; the noise is a tenth of a variance.

    The linear rule is fitted to the rows, without noise.
    """
    stream, correlation = np.random.default_rng(4), np.full((3, 3), 0.8) + 0.2 * np.eye(3)
    signs = np.array([1.0, -1.0, 1.0])
    laws = {"A": correlation, "B": correlation * np.outer(signs, signs)}
    drawn = {
        name: stream.multivariate_normal([0.0, 2.0, 4.0], law, 6000) for name, law in laws.items()
    }
    learnt, new = (
        {k: x[part] for k, x in drawn.items()} for part in (slice(4000), slice(4000, None))
    )
    released_groups = evidence_of(learnt, sd=6e-5).groups
    groups = Groups(
        "toy/v1-r1",
        {
            name: GroupRelease("toy/v1-r1", name, SimpleNamespace(evidence=evidence))
            for name, evidence in released_groups
        },
    )
    classifier = groups.classifier()
    features = [column.name for column in COLUMNS]
    rows, labels = np.vstack(list(new.values())), np.repeat(list(new), 2000)
    linear = LinearDiscriminantAnalysis().fit(
        np.vstack(list(learnt.values())), np.repeat(list(learnt), 4000)
    )
    found = classifier.predict(pd.DataFrame(rows, columns=features))
    assert (linear.predict(rows) != labels).mean() > 0.45
    assert (found != labels).mean() < 0.2
