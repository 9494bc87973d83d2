"""Groups of a release in the analysts' interface."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import gramercy
from gramercy.api.groups import GroupRelease, Groups
from gramercy.archive.bundles import bundle_kinds
from gramercy.estimators.table_comparison import CORRELATION, MEAN, differences
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence, Fold
from gramercy.schemas.facts import OTHER
from tests.support.factories import run_release
from tests.support.problems import raises
from tests.support.simulated_release import declared_columns, noisy_moment, released
from tests.unit.pipeline.test_groups import COLUMNS as LEVELS
from tests.unit.pipeline.test_groups import plan_of_groups


@pytest.mark.slow
def test_opened_release_has_its_groups(tmp_path: Path, home: Path) -> None:
    plan_of_groups(tmp_path)
    name = run_release(tmp_path / "request.yaml")
    release = gramercy.open(str(home / "archive"))[f"toy/{name}"]
    groups = release.groups
    assert list(groups) == groups._ipython_key_completions_() == ["A", "B", OTHER]
    assert groups["A"].names == release.names == ["(intercept)", "x", "y"]
    assert groups.rows["rows"].sum() == pytest.approx(release.manifest.rows.value)
    assert groups.rows["share"].between(0, 1).all()
    assert groups.rows["share"].sum() == pytest.approx(1.0)
    assert groups["A"].rows == groups.rows.loc["A", "rows"]
    assert groups["A"].second_moment.shape == (3, 3)
    assert list(groups.rows.index) == list(groups.means.index) == list(groups)
    assert pickle.loads(pickle.dumps(groups))["B"].rows == groups["B"].rows
    assert "A" in repr(groups["A"]) + groups._repr_html_() + groups["A"]._repr_html_()
    assert groups["A"].estimate("ridge").precision_.shape == (3, 3)
    with raises(families.UNKNOWN_NAME, group="C"):
        groups["C"]
    with raises(families.ESTIMATE, estimator="ridge", group="A"):
        release.estimate("ridge", group="A")
    again = gramercy.open(str(home / "archive"))[f"toy/{name}"]
    with patch.object(bundle_kinds, "Evidence", wraps=Evidence) as built:
        again.groups["B"].means.to_frame()
        assert again.groups["B"].rows == groups["B"].rows
        assert built.call_count == 1  # of the one group
        assert again.evidence.of_group("B").rows == again.evidence.of_group("B").rows
        assert built.call_count == 1 + 1 + len(groups)


@dataclass(frozen=True)
class Published:
    """What is published about the rows of a group."""

    evidence: Evidence


COLUMNS = declared_columns([(-6.0, 6.0)] * 3)
NAMES = ("(intercept)", "c0", "c1", "c2")


def group(
    seed: int, mean: float = 0.0, correlation: float = 0.4, rows: int = 1000, folds: int = 1
) -> Evidence:
    """A group of three columns with noise of about the size of the sampling error."""
    covariance = np.eye(3)
    covariance[0, 1] = covariance[1, 0] = correlation
    stream = np.random.default_rng(seed)
    cells = stream.multivariate_normal([mean, 0, 0], covariance, rows)
    evidence = released(cells, COLUMNS, radius=4.0, sd=1e-4, seed=seed + 10_000)
    if folds == 1:
        return replace(evidence, names=NAMES)
    sd = 1e-4 * folds**0.5  # the sum of all folds has the noise of the whole
    parts = [
        noisy_moment(part, COLUMNS, 4.0, sd, intercept=True, seed=seed + 10_000 * k)
        for k, part in enumerate(np.split(cells, folds), 1)
    ]
    moments = tuple(Fold(part, rows / folds) for part in parts)
    return replace(evidence, names=NAMES, raw=sum(parts) / folds, folds=moments)


@pytest.mark.slow
def test_equal_groups_differ_as_often_as_stated() -> None:
    """Of 9 statistics in 60 pairs; errors of one pair are correlated."""
    tables = [differences(group(2 * k), group(2 * k + 1)) for k in range(60)]
    p_values = np.array([table["p_value"] for table in tables])
    assert p_values.shape == (60, 9)
    assert 0.02 < (p_values < 0.05).mean() < 0.08  # three standard errors
    found = [bool((table["adjusted"] <= 0.05).any()) for table in tables]
    assert np.mean(found) < 0.13


@pytest.mark.slow
def test_few_folds_make_no_false_alarms() -> None:
    """The normal law would find too many of these 720 differences."""
    groups = [group(k, rows=996, folds=6) for k in range(160)]
    tables = [differences(*pair) for pair in zip(groups[::2], groups[1::2], strict=True)]
    p_values = np.array([table["p_value"] for table in tables])
    quotients = np.array([table["difference"] / table["standard_error"] for table in tables])
    assert 0.002 < (p_values < 0.01).mean() < 0.016 < (2 * norm.sf(np.abs(quotients)) < 0.01).mean()
    reaches_zero = np.array([(table["lower"] <= 0) & (table["upper"] >= 0) for table in tables])
    np.testing.assert_array_equal(reaches_zero, p_values >= 0.05)


def test_unit_rows_have_correlations_only() -> None:
    rows = np.random.default_rng(5).normal(size=(2, 2000, 3))
    first, second = (released(part, COLUMNS, radius=None) for part in rows)
    found = differences(first, second)
    assert found[["kind", "column", "other"]].to_numpy().tolist() == [
        [CORRELATION, "1", "2"],
        [CORRELATION, "1", "3"],
        [CORRELATION, "2", "3"],
    ]
    assert found["difference"].abs().max() < 0.15
    assert (found["standard_error"] > 0).all()


def test_differences_are_found_and_measured() -> None:
    table = differences(group(1, mean=0.5, rows=20_000), group(2, correlation=0.0))
    of = table.set_index(["kind", "column", "other"])
    assert of.loc[(MEAN, "c0", ""), "difference"] == pytest.approx(0.5, abs=0.2)
    assert of.loc[(CORRELATION, "c0", "c1"), "difference"] == pytest.approx(0.4, abs=0.2)
    surest = set(table.sort_values("p_value")["column"].head(2))
    assert surest == {"c0"}
    inside = (table["lower"] < table["difference"]) & (table["difference"] < table["upper"])
    assert inside.all()


def test_comparison_of_groups() -> None:
    published = {"A": Published(group(1, mean=0.7)), "B": Published(group(2))}
    named = {name: GroupRelease("toy/v1-r1", name, own) for name, own in published.items()}
    groups = Groups("toy/v1-r1", named)
    compared = groups.compare("A", "B")
    assert compared.p_value < 1e-6
    found = compared.discoveries()
    assert tuple(found.iloc[0][["kind", "column"]]) == (MEAN, "c0")
    assert len(compared.table()) == 9
    assert "c0" in compared._repr_html_()
    axes = compared.plot()
    assert len(axes.get_yticklabels()) == 9
    with raises(families.ANALYSIS):
        groups.compare("A", "B", level=1.0)
    with raises(families.UNKNOWN_NAME, group="b"):
        groups.compare("A", "b")
    with raises(families.ESTIMATE):
        Groups("toy/v1-r1", {}).classifier()


@pytest.mark.slow
def test_classifier_of_groups(tmp_path: Path, home: Path) -> None:
    """Ward A has x and y near -0.5, ward B near 0.5; the level of sex tells nothing."""
    rng = np.random.default_rng(6)
    ward = np.repeat(["A", "B"], 3000)
    centre = np.where(ward == "A", -0.5, 0.5)
    cells = {name: centre + rng.uniform(-0.3, 0.3, 6000) for name in "xy"}
    frame = pd.DataFrame(cells | {"ward": ward, "sex": rng.choice([0, 1], 6000)})
    keys = {
        "normalisation": {"kind": "clip", "radius": 2.0},
        "mechanism": {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6},
    }
    columns = LEVELS | {"sex": {"levels": [0, 1]}}
    budget = {"epsilon": 10.0, "delta": 1e-5}
    plan_of_groups(tmp_path, frame, columns=columns, budget=budget, request=keys)
    name = run_release(tmp_path / "request.yaml")
    groups = gramercy.open(str(home / "archive"))[f"toy/{name}"].groups
    classifier = pickle.loads(pickle.dumps(groups.classifier(prior="equal")))
    assert classifier.features == ["x", "y", "sex"]
    assert list(classifier.classes["status"]) == ["used", "used"]
    assert (classifier.predict(frame) == ward).mean() > 0.99
    as_texts = frame.assign(sex=frame["sex"].astype(str))
    pd.testing.assert_frame_equal(classifier.scores(as_texts), classifier.scores(frame))
    assert list(classifier.scores(frame).columns) == ["A", "B"]
    some = pd.DataFrame({"x": [np.nan, 0.5], "y": [0.5, 0.5], "sex": [1, 0]}, index=[7, 3])
    assert classifier.predict(some).to_dict() == {7: None, 3: "B"}
    assert classifier.scores(some).loc[7].isna().all()
    with raises(families.ANALYSIS, missing=("y",)):
        classifier.predict(frame.drop(columns="y"))
    shown = classifier.summary() + classifier._repr_html_() + repr(classifier)
    assert all(word in shown for word in ("sex=1", "share", "toy/"))


@pytest.mark.slow
def test_graphs_of_groups(tmp_path: Path, home: Path) -> None:
    """In both wards y follows x; in ward B alone z follows y."""
    rng = np.random.default_rng(8)
    ward = np.repeat(["A", "B"], 4000)
    x = rng.uniform(-1, 1, 8000)
    y = 0.6 * x + rng.uniform(-0.4, 0.4, 8000)
    z = np.where(ward == "B", 0.6 * y, 0.0) + rng.uniform(-0.4, 0.4, 8000)
    frame = pd.DataFrame({"x": x, "y": y, "z": z, "ward": ward})
    columns = {name: {"lower": -1.0, "upper": 1.0} for name in "xyz"}
    columns |= {"ward": {"levels": ["A", "B"]}}
    keys = {
        "normalisation": {"kind": "clip", "radius": 2.0},
        "mechanism": {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6},
    }
    budget = {"epsilon": 10.0, "delta": 1e-5}
    plan_of_groups(tmp_path, frame, columns=columns, budget=budget, request=keys)
    name = run_release(tmp_path / "request.yaml")
    release = gramercy.open(str(home / "archive"))[f"toy/{name}"]
    assert list(release.groups.graphs()) == ["A", "B"]
    # Far from the correlations 0.82 and 0.72 of edges, and from 0.6 of x with z.
    made = release.groups.graphs(penalty=0.66, shared=0.0)
    graphs = pickle.loads(pickle.dumps(made))
    assert list(graphs) == ["A", "B"]
    assert graphs.shared[["row", "column"]].to_numpy().tolist() == [["x", "y"]]
    assert graphs.differs[["row", "column"]].to_numpy().tolist() == [["y", "z"]]
    assert graphs.differs["A"].isna().all()
    assert graphs["B"].loc["y", "z"] == graphs.differs["B"].iloc[0]
    assert list(graphs.to_networkx("A").edges) == [("x", "y")]
    picture = graphs.picture()._repr_html_()
    assert picture.count("<svg") == 2
    assert picture.count("<path") == 3
    assert [each.get_title() for each in graphs.plot()] == ["A", "B"]
    shown = graphs.summary() + graphs._repr_html_() + repr(graphs)
    assert all(word in shown for word in ("used", "toy/", "edges in all"))
    with raises(families.UNKNOWN_NAME, table="C"):
        graphs["C"]
    empty = release.groups.graphs(penalty=1.0)
    assert empty.edges.empty
    assert empty.shared.empty
    assert "no edges" in empty.picture()._repr_html_()
    with raises(families.ESTIMATE):
        Groups("toy/v1-r1", {}).graphs()
    with raises(families.ESTIMATE):
        release.estimate("joint-graphical-lasso")
