"""The interface for analysts: find releases, read entries with their errors, estimate."""

from __future__ import annotations

import pickle
import shutil
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.api.matrices import Measured
from gramercy.api.release import Release
from gramercy.common.home import Home
from gramercy.estimators.intervals import Intervals
from gramercy.estimators.noise.draws import draw, stream
from gramercy.estimators.uncertainty.entries import second_moment
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import withdraw
from gramercy.schemas import families
from gramercy.schemas.evidence import Divisor, Evidence
from gramercy.schemas.noise import NoiseLaw
from tests.support.factories import (
    MECHANISM,
    home_at,
    run_pipeline,
    run_release,
    write_request,
    write_table,
)
from tests.support.problems import raises

pytestmark = pytest.mark.filterwarnings("ignore::gramercy.schemas.errors.UnitRows")

PUBLISHED = {"estimates": [{"name": "graphical-lasso"}]}
CLASSES = {"c0": {"lower": -5.0, "upper": 5.0}, "c1": {"lower": -5.0, "upper": 5.0}}


def released(folder: Path, **changes: Any) -> Release:
    """A release of 40 rows, with little noise."""
    request = changes.pop("request", {}) | {"mechanism": MECHANISM | {"epsilon": 900.0}}
    budget = {"budget": {"epsilon": 1000.0, "delta": 1e-5}}
    run_pipeline(write_request(folder, request=PUBLISHED | request, **(budget | changes)))
    return gramercy.open(Home.default().archive)["toy/v1-r1"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one release, which tests copy."""
    folder = tmp_path_factory.mktemp("published")
    with home_at(folder / "home") as home:
        released(folder)
    return home


@pytest.fixture
def release(published: Path, home: Path) -> Release:
    shutil.copytree(published, home)
    return gramercy.open(Home.default().archive)["toy/v1-r1"]


@pytest.mark.slow
def test_catalogue_lists_orders_and_searches_releases(tmp_path: Path) -> None:
    little = {"mechanism": MECHANISM | {"epsilon": 0.1}}
    for version in ("v1", "v2", "v9", "v10"):
        run_release(write_request(tmp_path, request=little | {"version": version}))
    other = tmp_path / "other"
    other.mkdir()
    run_release(write_request(other, id="hospital", title="Hôpital: Sodium"))
    catalogue = gramercy.open(Home.default().archive)
    assert catalogue.datasets == ["hospital", "toy"]
    assert catalogue.latest("toy").id == "toy/v10-r1"
    history = catalogue.history("toy")
    assert list(history.index) == ["toy/v1-r1", "toy/v2-r1", "toy/v9-r1", "toy/v10-r1"]
    assert (history["epsilon"] <= 0.1).all()
    assert (history["mechanism"] == "gaussian").all()
    assert list(catalogue.search("SODIUM hôpital").index) == ["hospital/v1-r1"]
    assert len(catalogue.search()) == 5
    assert catalogue.search("c1 v2").index.tolist() == ["toy/v2-r1"]
    assert catalogue.search("nowhere").empty
    assert catalogue.search("nowhere").columns.tolist() == history.columns.tolist()
    withdraw(Context.default(), "toy", "v10-r1", "wrong bounds")
    assert catalogue.latest("toy").id == "toy/v9-r1"
    assert catalogue.history("toy")["withdrawn"].iloc[-1] == "wrong bounds"
    for query in (catalogue.history, catalogue.latest):
        with raises(families.UNKNOWN_RELEASE, dataset="nothing", known=("hospital", "toy")):
            query("nothing")
    withdraw(Context.default(), "hospital", "v1-r1", "wrong units")
    with raises(families.UNKNOWN_RELEASE, dataset="hospital"):
        catalogue.latest("hospital")


@pytest.mark.slow
def test_changed_description_is_refused_in_listings(release: Release) -> None:
    path = release.path / "datapackage.json"
    path.chmod(0o644)
    path.write_text(path.read_text().replace("gaussian", "laplace"))
    catalogue = gramercy.open(Home.default().archive)
    for query in (lambda: catalogue.history("toy"), catalogue.search):
        with raises(families.SEAL, path=str(path)):
            query()


def test_entries_are_labelled_with_errors_and_intervals(release: Release) -> None:
    names = ["c0", "c1", "c2"]
    for kind, matrix in (
        ("covariance", release.covariance),
        ("correlation", release.correlation),
        ("partial-correlation", release.partial_correlation),
    ):
        assert isinstance(matrix, pd.DataFrame)
        assert matrix.index.tolist() == matrix.columns.tolist() == names
        expected = Intervals(of=kind, level=0.9).fit(release.evidence).matrices
        lower, upper = matrix.interval(0.9)
        for name, frame in {
            "estimate": matrix,
            "standard_error": matrix.standard_error,
            "lower": lower,
            "upper": upper,
        }.items():
            np.testing.assert_allclose(frame, expected[name], rtol=0, atol=1e-15)
            assert frame.columns.tolist() == names
        np.testing.assert_allclose(
            matrix.standard_error**2, matrix.noise_error**2 + matrix.sampling_error**2
        )
    np.testing.assert_array_equal(release.second_moment, release.evidence.raw)
    assert release.second_moment.noise_error.loc["c0", "c1"] == pytest.approx(
        release.noise.sd_off_diagonal
    )
    with raises(families.ANALYSIS):
        release.correlation.interval(95)


def test_derived_frames_are_plain_data_frames(release: Release) -> None:
    matrix = release.second_moment
    unpickled = pickle.loads(pickle.dumps(matrix))
    for derived in (matrix.loc["c0":"c1"], matrix @ matrix, matrix.copy(), unpickled):
        assert type(derived) is pd.DataFrame
    pd.testing.assert_frame_equal(unpickled, pd.DataFrame(matrix))
    listed = matrix.listed()
    assert len(listed) == 6
    assert (listed["lower"] <= listed["upper"]).all()
    assert listed.iloc[1, :2].tolist() == ["c0", "c1"]
    assert listed["estimate"].iloc[1] == matrix.loc["c0", "c1"]


def test_modified_frame_has_no_intervals(release: Release) -> None:
    def rename(frame: pd.DataFrame) -> None:
        frame.index = list("abc")

    def overwrite(frame: pd.DataFrame) -> None:
        frame.iloc[0, 0] = 9.0

    for change in (rename, overwrite, lambda frame: frame.__imul__(100)):
        matrix = release.covariance
        change(matrix)
        with raises(families.ESTIMATE):
            matrix.interval()
        assert (release.covariance.listed()["estimate"].abs() < 1).all()


@pytest.mark.slow
def test_noise_mean_is_subtracted_from_estimates(tmp_path: Path) -> None:
    kept = {"name": "wishart", "epsilon": 4.0, "delta": 1e-6, "mean": "kept"}
    kept["arithmetic"] = "floating-point"
    run_release(
        write_request(
            tmp_path, request={"mechanism": kept}, budget={"epsilon": 50.0, "delta": 1e-5}
        )
    )
    matrix = gramercy.open(Home.default().archive)["toy/v1-r1"].second_moment
    listed = matrix.listed()
    assert (listed["lower"] <= listed["estimate"]).all()
    assert (listed["estimate"] <= listed["upper"]).all()
    assert listed["estimate"].iloc[0] < matrix.iloc[0, 0]


@pytest.mark.parametrize("divisor", ["noisy", "itself"])
def test_noisy_divisor_is_included_in_the_errors(divisor: Divisor) -> None:
    """The stated errors match repeated draws of the noise."""
    truth = np.array([[0.5, 0.2, 0.1], [0.2, 0.3, 0.0], [0.1, 0.0, 0.2]])
    law = NoiseLaw(family="gaussian-isotropic", sd_diagonal=0.01 * 2**0.5, sd_off_diagonal=0.01)
    evidence = Evidence(truth, truth, law, 100.0, divisor=divisor, rows_sd=5.0)
    source, draws = stream(), []
    for _ in range(20_000):
        noisy = truth + draw(source, 3, law)
        count = 1 + 0.05 * source.standard_normal() if divisor == "noisy" else np.trace(noisy)
        draws.append(noisy / count)
    np.testing.assert_allclose(
        np.std(draws, axis=0), second_moment(evidence).noise_error, rtol=0.03
    )


def test_covariance_about_means_drops_the_intercept(tmp_path: Path) -> None:
    release = released(tmp_path, intercept=True)
    assert release.second_moment.shape == (4, 4)
    for matrix in (release.covariance, release.correlation):
        assert matrix.columns.tolist() == ["c0", "c1", "c2"]
        assert matrix.standard_error.shape == (3, 3)
    S = release.second_moment.to_numpy()
    covariance = S[1:, 1:] - np.outer(S[0, 1:], S[0, 1:]) / S[0, 0]
    np.testing.assert_allclose(release.covariance, covariance, atol=1e-15)


def clipped(folder: Path, **changes: Any) -> Release:
    how = {"normalisation": {"kind": "clip", "radius": 9.0}}
    return released(folder, request=how, intercept=True, **changes)


@pytest.mark.slow
def test_moments_are_in_the_columns_own_units(tmp_path: Path) -> None:
    """Rows are not longer than the radius, so the moments are those of the table."""
    path = write_table(tmp_path / "table.csv", rows=4000)
    frame = pd.read_csv(path) * [1.0, 100.0, 0.01] + [0, 50, 3]
    frame.to_csv(path, index=False)
    bounds = {"c0": (-5.0, 5.0), "c1": (-450.0, 550.0), "c2": (2.9, 3.1)}
    columns = {
        name: {"lower": low, "upper": high, "scale": (high - low) / 10}
        for name, (low, high) in bounds.items()
    }
    release = clipped(tmp_path, columns=columns, rows=4000)
    deviations, exact = frame.std(ddof=0), frame.cov(ddof=0)
    assert ((release.means - frame.mean()).abs() < 0.01 * deviations).all()
    assert (release.standard_deviations / deviations - 1).abs().max() < 0.01
    scales = np.outer(deviations, deviations)
    assert np.abs((release.covariance - exact) / scales).max(axis=None) < 0.02
    assert np.abs(release.correlation - frame.corr()).max(axis=None) < 0.02
    assert isinstance(release.means, pd.Series)
    for column in (release.means, release.standard_deviations):
        assert column.law == release.correlation.law == "Gaussian rows"
        listed = column.listed(0.9)
        assert listed.index.tolist() == list(bounds)
        assert (listed["lower"] < listed["estimate"]).all()
        assert (listed["estimate"] < listed["upper"]).all()
        np.testing.assert_allclose(
            column.standard_error**2, column.noise_error**2 + column.sampling_error**2
        )
        for derived in (column * 2, column.copy(), column.iloc[:2]):
            assert type(derived) is pd.Series
        pd.testing.assert_series_equal(pickle.loads(pickle.dumps(column)), pd.Series(column))
    changed = release.means
    changed.iloc[0] = 9.0
    with raises(families.ESTIMATE):
        changed.interval()


def test_release_without_own_units_has_no_means(release: Release, tmp_path: Path) -> None:
    for name in ("means", "standard_deviations"):
        with raises(families.ANALYSIS, release=release.id):
            getattr(release, name)


@pytest.mark.filterwarnings("always::gramercy.schemas.errors.UnitRows")
def test_unit_rows_are_announced_once(release: Release, tmp_path: Path) -> None:
    with pytest.warns(gramercy.UnitRows) as warned:
        _ = release.correlation, release.covariance, release.partial_correlation
    assert [str(each.message).startswith(families.READING.code) for each in warned] == [True]
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _ = release.correlation, release.second_moment


@pytest.mark.slow
def test_entries_hidden_by_noise_are_missing(tmp_path: Path) -> None:
    run_release(write_request(tmp_path, request={"mechanism": MECHANISM | {"epsilon": 0.01}}))
    matrix = gramercy.open(Home.default().archive)["toy/v1-r1"].partial_correlation
    lower, upper = matrix.interval()
    off = ~np.eye(3, dtype=bool)
    assert np.isnan(matrix.to_numpy()[off]).all()
    assert np.isnan(matrix.standard_error.to_numpy()[off]).all()
    assert (lower.to_numpy()[off] == -1).all()
    assert (upper.to_numpy()[off] == 1).all()


def test_intervals_have_nominal_coverage(release: Release) -> None:
    """Rows and noise are redrawn from the release's own law."""
    from dataclasses import replace

    from gramercy.estimators.tuning.stability import redraws

    truth = np.diag([0.5, 0.3, 0.2]) + 0.1
    evidence = release.evidence
    coverage = []
    for raw in islice(redraws(evidence, truth), 300):
        entries = second_moment(replace(evidence, raw=raw, repaired=truth, unit=False))
        lower, upper = entries.interval(0.9)
        coverage.append(((lower <= truth) & (truth <= upper)).mean())
    assert np.mean(coverage) == pytest.approx(0.9, abs=0.04)


def test_estimates_have_the_scikit_learn_interface(release: Release, tmp_path: Path) -> None:
    fitted = release.estimate("graphical-lasso", penalty=0.01)
    assert fitted.get_params()["penalty"] == 0.01
    np.testing.assert_allclose(fitted.precision_ @ fitted.covariance_, np.eye(3), atol=1e-8)
    sealed = next(iter(release.estimates))
    np.testing.assert_allclose(
        release.estimate("graphical-lasso", penalty="auto").to_pandas(),
        release.estimates[sealed]["precision"],
        atol=1e-12,
    )
    fitted.to_graphml(tmp_path / "graph.graphml")
    graph = nx.read_graphml(tmp_path / "graph.graphml")
    assert set(graph) == {"c0", "c1", "c2"}
    assert graph.number_of_edges() == np.count_nonzero(np.triu(fitted.edges_, 1)) > 0
    fitted.to_csv(tmp_path / "precision.csv")
    precision = pd.read_csv(tmp_path / "precision.csv", index_col=0)
    pd.testing.assert_frame_equal(precision, fitted.to_pandas())
    assert set(release.graph("graphical-lasso")) == set(graph)
    assert release.estimates["graphical-lasso"] is release.estimates[sealed]
    with raises(families.ESTIMATE, published=(sealed,)):
        _ = release.precision
    published = release.graph(sealed)
    np.testing.assert_allclose(
        nx.to_numpy_array(published, ["c0", "c1", "c2"]), release.estimates[sealed]["edges"]
    )


def test_invalid_estimate_is_refused_with_a_hint(release: Release) -> None:
    with raises(families.ESTIMATE, name="lasso") as raised:
        release.estimate("lasso")
    assert {"ridge", "graphical-lasso"} <= set(raised.value.facts["known"])
    for name, call in (("intervals", ".interval()"), ("pca", ".pca()"), ("pool", "pool(")):
        with raises(families.ESTIMATE, estimator=name) as raised:
            release.estimate(name)
        assert call in raised.value.facts["call"]
    with raises(families.ESTIMATE, name="graphical") as raised:
        release.estimate("graphical")
    assert raised.value.facts["known"][0] == "graphical-lasso"
    with raises(families.VALUE, key="penalty", bound=0):
        release.estimate("ridge", penalty=-1.0)
    with raises(families.KEY) as raised:
        release.estimate("ridge", alpha=1.0)
    assert raised.value.details[0].facts["key"] == "alpha"
    with raises(families.ESTIMATE):
        release.estimate("discriminant")
    with raises(families.ESTIMATE, estimate="x") as raised:
        release.graph("x")
    assert raised.value.facts["known"][0].startswith("graphical-lasso-")


@pytest.mark.slow
def test_discriminant_separates_classes(tmp_path: Path) -> None:
    kinds = pd.read_csv(write_table(tmp_path / "table.csv", rows=400))
    kinds["kind"] = np.where(kinds["c0"] > 0, "high", "low")
    kinds.to_csv(tmp_path / "table.csv", index=False)
    columns = CLASSES | {"kind": {"levels": ["high", "low"]}}
    release = released(
        tmp_path, rows=400, intercept=True, columns=columns, request={"estimates": []}
    )
    fitted = release.estimate("discriminant")
    assert (fitted.predict(kinds[["c0", "c1"]]) == kinds["kind"]).mean() > 0.9


def test_precision_release_has_no_second_moment(release: Release) -> None:
    assert isinstance(release.second_moment, Measured)
    facts = release.manifest.model_copy(update={"kind": "precision"})
    release._bundle = release._bundle.__class__(**{**vars(release._bundle), "manifest": facts})
    for name in ("second_moment", "covariance", "correlation", "partial_correlation"):
        with raises(families.ESTIMATE, release=release.id):
            getattr(release, name)


def test_wrong_columns_and_types_are_refused_with_what_exists(release: Release) -> None:
    for numbers in (release.second_moment, release.correlation):
        for key in ("c4", ["c0", "c4"]):
            with raises(families.UNKNOWN_NAME, column="c4") as raised:
                _ = numbers[key]
            assert isinstance(raised.value, KeyError)
            assert set(raised.value.facts["known"]) == {"c0", "c1", "c2"}
        assert numbers.get("c4") is None
        with pytest.raises(KeyError):
            _ = numbers[7]
        assert list(numbers[["c0", "c1"]].columns) == ["c0", "c1"]
    with raises(families.ESTIMATE, given="int"):
        gramercy.open(Home.default().archive).search(5)  # type: ignore[arg-type]
