"""Discriminant analysis from one noisy matrix: classical without noise, honest with it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.archive.store.opening import open_archive
from gramercy.estimators.discriminant import Discriminant
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.noise.draws import draw
from gramercy.estimators.scikit import DiscriminantClassifier
from gramercy.estimators.user_evidence import evidence_from_matrix
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_estimate
from gramercy.schemas import families
from gramercy.schemas.column import INTERCEPT, matrix_columns
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.noise import NoiseLaw
from tests.support.factories import at_scale, run_release, write_request
from tests.support.noisy_matrices import gaussian_law
from tests.support.problems import raises

WEAK = 1e-20  # a penalty without visible effect


class ClassSample:
    """Scaled rows with class indicators, and evidence of their release."""

    def __init__(
        self,
        x: np.ndarray,
        label: np.ndarray,
        *,
        centre: Any = 0.0,
        scale: Any = 1.0,
        radius: float | None = None,
        levels: tuple[str | float, ...] | None = None,
        intercept: bool = True,
    ) -> None:
        n, d = x.shape
        levels = levels or tuple(np.unique(label).tolist())
        at, by = np.broadcast_to(centre, d), np.broadcast_to(scale, d)
        of = LevelsFacts(name="kind", levels=levels)
        numbers = [
            ColumnFacts(
                name=f"x{i}", lower=-1e6, upper=1e6, centre=float(at[i]), scale=float(by[i])
            )
            for i in range(d)
        ]
        member = (label[:, None] == np.array(levels, dtype=label.dtype)).astype(float)
        ones = np.ones((n, int(intercept)))
        rows = np.hstack([ones, (x - at) / by, member])
        length = np.linalg.norm(rows, axis=1)
        self.weight = 1 / length if radius is None else np.full(n, 1 / radius)
        assert radius is None or length.max() <= radius
        rows *= self.weight[:, None]
        self.x, self.label, self.n = x, label, n
        self.moment = rows.T @ rows / n
        self.columns = [*[None] * int(intercept), *numbers, *[of] * len(levels)]
        called = [f.name for f in numbers] + matrix_columns("kind", levels)
        self.names = [INTERCEPT] * int(intercept) + called

    def seen(self, sd: float = 0.0, seed: int = 0) -> Evidence:
        law, p = (gaussian_law(sd) if sd else NoiseLaw.none()), len(self.moment)
        noise = draw(np.random.RandomState(seed), p, law) if sd else np.zeros((p, p))
        return evidence_from_matrix(
            self.moment + noise, self.n, law, names=self.names, columns=self.columns, trace=1.0
        )


def scores(tables: Any, x: np.ndarray) -> np.ndarray:
    table = tables["coefficients"]
    found: np.ndarray = table["constant"].to_numpy() + x @ table.iloc[:, 2:].to_numpy().T
    return found


def error_rate(tables: Any, x: np.ndarray, label: np.ndarray) -> float:
    predicted = tables["coefficients"]["class"].to_numpy()[scores(tables, x).argmax(axis=1)]
    return float((predicted != label).mean())


def classes(n: int, d: int, apart: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw three classes with proportions 0.5, 0.3 and 0.2 and one covariance matrix."""
    rng = np.random.default_rng(seed)
    root = np.eye(d) + 0.3 * np.tril(rng.normal(size=(d, d)), -1) / math.sqrt(d)
    means = apart * rng.normal(size=(3, d))
    label = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    return rng.normal(size=(n, d)) @ root.T + means[label], np.array(["a", "b", "c"])[label]


def test_noiseless_fit_equals_classical_lda() -> None:
    table, label = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[label]
    made = ClassSample(
        table, names, centre=[5.0, 3.0, 4.0, 1.0], scale=[2.0, 1.0, 3.0, 0.5], radius=9.0
    )
    found = Discriminant(penalty=WEAK).fit(made.seen())
    known = LinearDiscriminantAnalysis(solver="lsqr").fit(table, names)
    ours = scores(found.tables, table)
    ours -= ours.max(axis=1, keepdims=True)
    ours -= np.log(np.exp(ours).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(ours, known.predict_log_proba(table), atol=1e-4)
    assert error_rate(found.tables, table, names) == pytest.approx(1 - known.score(table, names))
    means = found.tables["means"].pivot(index="class", columns="feature", values="mean")
    np.testing.assert_allclose(means.to_numpy(), known.means_, rtol=1e-12)
    np.testing.assert_allclose(found.tables["classes"]["share"], 1 / 3, rtol=1e-12)
    inverse = np.linalg.inv(known.covariance_)
    np.testing.assert_allclose(found.tables["precision"].iloc[:, 1:], inverse, rtol=1e-5)
    assert not found.matrices
    assert found.kind == "discriminant"
    assert found.tuning == {"penalty": WEAK}
    with raises(families.ESTIMATE, kind="discriminant", tables=tuple(found.tables)):
        _ = found.matrix


def test_precision_solves_the_penalised_equation() -> None:
    """In scaled units -T^-1 + S + 2 penalty T = 0; S is the weighted moment within classes."""
    x, label = classes(400, 3, 1.0, 1)
    made, penalty, radius = ClassSample(x, label, radius=9.0), 1e-3, 9.0
    tables = Discriminant(penalty=penalty).fit(made.seen()).tables
    within = sum(np.cov(x[label == k].T, bias=True) * np.mean(label == k) for k in "abc")
    precision = tables["precision"].iloc[:, 1:].to_numpy()
    raw = precision * radius**2  # units of the released matrix, whose weights are 1 / radius^2
    gradient = -np.linalg.inv(raw) + within / radius**2 + 2 * penalty * raw
    assert np.abs(gradient).max() < 1e-12
    means = np.array([x[label == k].mean(axis=0) for k in "abc"])
    np.testing.assert_allclose(
        tables["coefficients"].iloc[:, 2:].to_numpy(), means @ precision, rtol=1e-9
    )
    constants = -np.einsum("ki,ij,kj->k", means, precision, means) / 2
    constants += np.log([np.mean(label == k) for k in "abc"])
    np.testing.assert_allclose(tables["coefficients"]["constant"], constants, rtol=1e-9)


def test_unit_rows_are_weighted_by_length() -> None:
    x, label = classes(500, 3, 1.0, 3)
    made = ClassSample(x, label)
    tables = Discriminant(penalty=WEAK).fit(made.seen()).tables
    weight = made.weight**2
    within = sum(
        np.cov(x[label == k].T, aweights=weight[label == k], bias=True) * weight[label == k].sum()
        for k in "abc"
    )
    precision = np.linalg.inv(within / weight.sum())
    np.testing.assert_allclose(tables["precision"].iloc[:, 1:], precision, rtol=1e-6)
    shares = [weight[label == k].sum() / weight.sum() for k in "abc"]
    np.testing.assert_allclose(tables["classes"]["share"], shares, rtol=1e-9)


def test_rows_without_a_class_form_their_own_group() -> None:
    """Their weight and sum are known only with an intercept."""
    x, label = classes(600, 3, 2.0, 4)
    made = ClassSample(x, label, levels=("a", "b"), radius=12.0)
    tables = Discriminant(penalty=WEAK).fit(made.seen()).tables
    within = sum(np.cov(x[label == k].T, bias=True) * np.mean(label == k) for k in "abc")
    np.testing.assert_allclose(
        tables["precision"].iloc[:, 1:], np.linalg.inv(np.asarray(within)), rtol=1e-5
    )
    assert tables["coefficients"]["class"].tolist() == ["a", "b"]
    bare = ClassSample(x, label, radius=12.0, intercept=False)
    with_all = ClassSample(x, label, radius=12.0)
    one, other = (scores(Discriminant().fit(m.seen()).tables, x) for m in (bare, with_all))
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_other_level_columns_become_features() -> None:
    rng = np.random.default_rng(5)
    colour = rng.choice(["red", "blue"], size=2000)
    kind = np.where(rng.uniform(size=2000) < 0.9, np.where(colour == "red", "a", "b"), "a")
    of = [LevelsFacts(name="kind", levels=("a", "b")), LevelsFacts(name="colour", levels=("red",))]
    rows = np.column_stack([np.ones(2000), kind == "a", kind == "b", colour == "red"]).astype(float)
    rows /= 2.0
    names = [INTERCEPT, "kind=a", "kind=b", "colour=red"]
    columns = [None, of[0], of[0], of[1]]
    seen = evidence_from_matrix(rows.T @ rows / 2000, 2000, names=names, columns=columns)
    tables = Discriminant(classes="kind").fit(seen).tables
    assert list(tables["coefficients"].columns) == ["class", "constant", "colour=red"]
    assert error_rate(tables, 2 * rows[:, 3:], kind) < 0.08
    with raises(families.ESTIMATE, columns=("kind", "colour")):
        Discriminant().fit(seen)
    with raises(families.ESTIMATE, column="shape", columns=("kind", "colour")):
        Discriminant(classes="shape").fit(seen)


def test_reserved_column_names_are_disambiguated() -> None:
    x, label = classes(200, 3, 1.0, 6)
    seen = ClassSample(x, label, radius=9.0).seen()
    names = (INTERCEPT, "class", "constant", "feature", *seen.names[4:])
    seen = Evidence(seen.raw, seen.repaired, seen.law, seen.rows, names, seen.columns)
    tables = Discriminant().fit(seen).tables
    assert all(table.columns.is_unique for table in tables.values())
    assert list(tables["coefficients"])[2:] == ["class (column)", "constant (column)", "feature"]
    nameless = Evidence(seen.raw, seen.repaired, seen.law, seen.rows, (), seen.columns)
    assert list(Discriminant().fit(nameless).tables["coefficients"])[2:] == ["x1", "x2", "x3"]


@pytest.mark.parametrize("precision", ["ridge", "graphical-lasso"])
@pytest.mark.parametrize("radius", [None, 9.0])
def test_weak_noise_hardly_raises_the_error(precision: Any, radius: float | None) -> None:
    x, label = classes(4000, 5, 1.0, 7)
    fresh, truth = x[2000:], label[2000:]
    made = ClassSample(x[:2000], label[:2000], radius=radius)
    spec = Discriminant(precision=precision)
    best = error_rate(spec.fit(made.seen()).tables, fresh, truth)
    known = LinearDiscriminantAnalysis().fit(x[:2000], label[:2000])
    assert best <= 1 - known.score(fresh, truth) + 0.03
    cost = [
        error_rate(spec.fit(made.seen(3e-4, k)).tables, fresh, truth) - best
        for k in range(at_scale(4, 20))
    ]
    assert np.mean(cost) < 0.02
    assert max(cost) < 0.05


@pytest.mark.parametrize("precision", ["ridge", "graphical-lasso"])
def test_overwhelming_noise_is_not_worse_than_chance(precision: Any) -> None:
    """The class sizes are visible, but not the class means."""
    x, label = classes(2000, 5, 1.0, 8)
    made = ClassSample(x, label, scale=300.0, radius=1.5)
    spec = Discriminant(precision=precision)
    lost = [
        error_rate(spec.fit(made.seen(0.015, k)).tables, x, label) for k in range(at_scale(20, 100))
    ]
    chance = 1 - np.unique(label, return_counts=True)[1].max() / len(label)
    assert np.mean(lost) < chance + 0.05


def test_class_lost_in_noise_is_named() -> None:
    rng = np.random.default_rng(9)
    label = np.repeat(["a", "b", "rare"], [500, 480, 20])
    x = rng.normal(size=(1000, 2)) + np.where(label == "a", 2.0, 0.0)[:, None]
    made = ClassSample(x, label, radius=8.0)
    tables = Discriminant().fit(made.seen(2e-3)).tables
    classes_table = tables["classes"].set_index("class")
    assert classes_table["status"].to_dict() == {"a": "used", "b": "used", "rare": "lost in noise"}
    assert classes_table["share"].isna().to_dict() == {"a": False, "b": False, "rare": True}
    assert classes_table["share"].sum() == pytest.approx(1)
    assert set(tables["coefficients"]["class"]) == {"a", "b"} == set(tables["means"]["class"])
    with raises(families.ESTIMATE, classes="kind"):
        Discriminant().fit(made.seen(0.5))
    empty = ClassSample(x, label, radius=8.0, levels=("a", "b", "none")).seen()
    assert Discriminant().fit(empty).tables["classes"]["status"].iloc[2] == "lost in noise"


def test_data_without_classes_is_refused() -> None:
    with raises(families.ESTIMATE):
        Discriminant().fit(evidence_from_matrix(np.eye(3), 10))
    levels = LevelsFacts(name="kind", levels=(0.0, 1.0))
    with raises(families.ESTIMATE, classes="kind"):
        Discriminant().fit(evidence_from_matrix(np.eye(2), 10, columns=[levels, levels]))


def test_equal_priors_shift_the_constants() -> None:
    x, label = classes(500, 3, 1.0, 10)
    seen = ClassSample(x, label, radius=9.0).seen()
    shares, equal = (Discriminant(prior=prior).fit(seen).tables for prior in ("shares", "equal"))
    apart = shares["coefficients"]["constant"] - equal["coefficients"]["constant"]
    expected = np.log(3 * shares["classes"]["share"])
    np.testing.assert_allclose(apart, expected, rtol=1e-9)


def projected(made: ClassSample, noisy: np.ndarray, law: NoiseLaw) -> Evidence:
    """Evidence that is projected instead of denoised, to be fast; denoising is not tested here."""
    names, columns = tuple(made.names), tuple(made.columns)
    return Evidence(noisy, project(noisy), law, made.n, names, columns)


def shares_and_means(seen: Evidence) -> tuple[np.ndarray, np.ndarray]:
    tables = Discriminant().fit(seen).tables
    shares, means = tables["classes"], tables["means"]
    value = np.concatenate([shares["share"], means["mean"]])
    return value, np.concatenate([shares["share_sd"], means["sd"]])


@pytest.mark.slow
def test_stated_deviations_match_simulation() -> None:
    x, label = classes(800, 2, 1.0, 11)
    made = ClassSample(x, label, centre=1.0, scale=3.0, radius=6.0)
    sd = 1e-4  # noise on weights of 0.005 and more
    law = NoiseLaw(family="gaussian-iid", sd_diagonal=sd, sd_off_diagonal=sd)
    source, p = np.random.RandomState(0), len(made.moment)
    noisy = [made.moment + draw(source, p, law) for _ in range(400)]
    found = np.array([shares_and_means(projected(made, each, law))[0] for each in noisy])
    truth, _ = shares_and_means(made.seen())
    stated_sd = shares_and_means(projected(made, noisy[0], law))[1]
    np.testing.assert_allclose(found.std(axis=0), stated_sd, rtol=0.2)
    assert (np.abs(found.mean(axis=0) - truth) < 0.3 * stated_sd).all()


@pytest.mark.slow
def test_deviations_of_noisy_rows_are_not_understated() -> None:
    x, label = classes(800, 2, 1.0, 12)
    made, v = ClassSample(x, label, radius=6.0), 1e-3
    law = NoiseLaw(family="noisy-rows", sd_diagonal=1e-3, sd_off_diagonal=1e-3, cell_variance=v)
    rng, p = np.random.default_rng(0), len(made.moment)
    rows = np.hstack([np.ones((800, 1)), x, label[:, None] == np.array(["a", "b", "c"])]) / 6.0
    found = []
    for _ in range(400):
        noisy = rows + math.sqrt(v) * rng.normal(size=rows.shape)
        moment = noisy.T @ noisy / 800 - v * np.eye(p)
        found.append(shares_and_means(projected(made, moment, law)))
    seen_sd = np.std([value for value, _ in found], axis=0)
    claimed = np.mean([sd for _, sd in found], axis=0)
    assert (claimed > 0.85 * seen_sd).all()
    assert (claimed < 2.5 * seen_sd).all()


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "most"), [(2.0, 0.10), (8.0, 0.06)])
def test_breast_cancer(epsilon: float, most: float) -> None:
    """The table has 569 rows and 30 columns; replace-one, delta 1e-6; chance level is 0.373."""
    data = load_breast_cancer()
    x, label = data.data, data.target.astype(float)
    made = ClassSample(x, label, centre=x.mean(axis=0), scale=2 * x.std(axis=0))
    p, n = len(made.moment), len(x)
    law = Gaussian.calibrated(p=p, n=n, neighbours="replace-one", epsilon=epsilon, delta=1e-6)
    sd = law.scale / math.sqrt(2) / n
    found = [
        error_rate(Discriminant().fit(made.seen(sd, k)).tables, x, label)
        for k in range(at_scale(3, 12))
    ]
    assert np.mean(found) < most


@pytest.mark.slow
def test_discriminant_estimate_of_a_release_is_archived(tmp_path: Path, home: Path) -> None:
    rng = np.random.default_rng(13)
    kind = rng.choice(["a", "b"], size=3000, p=[0.6, 0.4])
    age = np.where(kind == "a", 30, 60) + rng.uniform(-20, 20, size=3000)
    pd.DataFrame({"age": age, "kind": kind}).to_csv(tmp_path / "table.csv", index=False)
    request = write_request(
        tmp_path,
        rows=3000,
        columns={"age": {"lower": 0.0, "upper": 100.0}, "kind": {"levels": ["a", "b", "never"]}},
        intercept=True,
        budget={"epsilon": 900.0, "delta": 1e-5},
        request={
            "normalisation": {"kind": "clip", "radius": 2.0},
            "mechanism": {"name": "gaussian", "epsilon": 50.0, "delta": 1e-6},
        },
    )
    done, archive = run_release(request), open_archive(home / "archive")
    tables = make_estimate(Context.default(), "toy", done, Discriminant()).tables
    assert tables["classes"]["status"].tolist() == ["used", "used", "lost in noise"]
    mean = tables["means"].set_index("class")["mean"]
    assert mean["a"] == pytest.approx(30, abs=1)
    assert mean["b"] == pytest.approx(60, abs=1)
    known = LinearDiscriminantAnalysis().fit(age[:, None], kind)
    fitted = DiscriminantClassifier().fit(read_release(archive.release("toy", done)))
    assert fitted.score(pd.DataFrame({"age": age}), kind) == 1 - error_rate(
        tables, age[:, None], kind
    )
    assert error_rate(tables, age[:, None], kind) <= 1 - known.score(age[:, None], kind) + 0.02
