"""Releases in a notebook: HTML, plots, key completion, pickling, suggestions for wrong names."""

from __future__ import annotations

import html
import pickle
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

import gramercy
from gramercy.api.catalogue import Catalogue
from gramercy.common import plotting
from gramercy.common.graphs import weighted_graph
from gramercy.common.home import Home
from gramercy.common.plotting import Picture, forest
from gramercy.common.similar_names import most_similar_first
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.intervals import Intervals
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import estimate, withdraw
from gramercy.schemas import families
from gramercy.schemas.column import INTERCEPT
from tests.support.factories import MECHANISM, home_at, run_release, write_request, write_table
from tests.support.problems import raises

pytestmark = pytest.mark.slow

TITLE = "Sodium <b>& potassium</b>"


@pytest.fixture(scope="module")
def listed_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one release of 2000 rows and two estimates, which tests copy."""
    folder = tmp_path_factory.mktemp("notebook")
    write_table(folder / "table.csv", rows=2000)
    mechanism = {"mechanism": MECHANISM | {"epsilon": 9.0}}
    request = mechanism | {"normalisation": {"kind": "clip", "radius": 4.0}}
    budget = {"budget": {"epsilon": 20.0, "delta": 1e-5}}
    facts = {"rows": 2000, "intercept": True, "title": TITLE}
    with home_at(folder / "home") as home:
        release = run_release(write_request(folder, request=request, **budget | facts))
        for estimator in (GraphicalLasso(penalty=0.05), Intervals()):
            estimate(Context.default(), "toy", release, estimator)
    return home


@pytest.fixture
def catalogue(listed_home: Path, home: Path) -> Iterator[Catalogue]:
    """A copy of its archive, and drawing without a screen."""
    shutil.copytree(listed_home, home)
    with matplotlib.rc_context({"backend": "Agg"}):
        yield gramercy.open(Home.default().archive)
        plt.close("all")


class Reader(HTMLParser):
    """Checks that tags are balanced, and collects text and tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name in {"src", "href"} for name, _ in attrs)  # self-contained
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_escaped_and_self_contained(catalogue: Catalogue) -> None:
    release = catalogue["toy/v1-r1"]
    shown = [catalogue, release, release.estimates, next(iter(release.estimates.values()))]
    for each in shown:
        read = Reader(each._repr_html_())
        assert read.tags <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    for each in (catalogue, release):
        page = each._repr_html_()
        assert html.escape(TITLE) in page
        assert TITLE in Reader(page).text
    assert "epsilon=9" in release._repr_html_()
    assert "graphical-lasso-" in release._repr_html_()
    Context.default().ledger.move("a copy for this test")
    withdraw(Context.default(), "toy", "v1-r1", "wrong bounds")
    with pytest.warns(gramercy.WithdrawnRelease):
        withdrawn = catalogue["toy/v1-r1"]
    assert "wrong bounds" in withdrawn._repr_html_()
    assert "wrong bounds" in catalogue._repr_html_()


def test_html_of_a_damaged_release_says_so(catalogue: Catalogue) -> None:
    release = catalogue["toy/v1-r1"]
    place = release.path.parent / "estimates"
    file = next(place.rglob("datapackage.json"))
    file.chmod(0o644)
    file.write_text(file.read_text().replace("toy", "tox"))
    assert "they differ" in release._repr_html_()
    described = release.path / "datapackage.json"
    described.chmod(0o644)
    described.write_text(described.read_text().replace("toy", "tox"))
    assert "toy/v1-r1" in Reader(catalogue._repr_html_()).text


def test_keys_are_completed(catalogue: Catalogue) -> None:
    estimates = catalogue["toy/v1-r1"].estimates
    assert catalogue._ipython_key_completions_() == ["toy/v1-r1"]
    assert estimates._ipython_key_completions_() == list(estimates)
    lasso = next(frames for name, frames in estimates.items() if name.startswith("graph"))
    assert {"precision", "edges"} <= set(lasso._ipython_key_completions_())


def test_release_with_computed_errors_can_be_pickled(catalogue: Catalogue) -> None:
    release = catalogue["toy/v1-r1"]
    _ = release.correlation.interval(), release.means.listed(), release.estimates
    again = pickle.loads(pickle.dumps(release))
    pd.testing.assert_frame_equal(again.correlation.listed(), release.correlation.listed())
    assert again.id == release.id
    assert list(again.estimates) == list(release.estimates)
    name = next(iter(again.estimates))
    with raises(families.UNKNOWN_NAME, estimate=name):
        again.estimates[name]["nothing"]
    fitted = pickle.loads(pickle.dumps(release.estimate("ridge")))
    assert fitted.to_frame("precision").shape == (4, 4)


def test_wrong_names_suggest_right_ones(catalogue: Catalogue) -> None:
    release = catalogue["toy/v1-r1"]
    for name in ("toy/v1", "toy", "toy/v1-r2"):
        with raises(families.UNKNOWN_RELEASE, release=name, known=("toy/v1-r1",)) as raised:
            _ = catalogue[name]
        assert isinstance(raised.value, KeyError)
    with raises(families.UNKNOWN_RELEASE, dataset="toys", known=("toy",)):
        catalogue.latest("toys")
    with raises(families.UNKNOWN_NAME, estimate="interval") as raised:
        release.estimates["interval"]
    assert raised.value.facts["known"][0].startswith("intervals-")
    assert isinstance(raised.value, KeyError)
    assert release.estimates.get("interval") is None
    with raises(families.ESTIMATE) as raised:
        release.estimate("graphical-laso")
    assert raised.value.facts["known"][0] == "graphical-lasso"
    assert most_similar_first("x", []) == ("none",)
    assert most_similar_first("TOY/v1-R1", ["b", "a", "toy/v1-r1"]) == ("toy/v1-r1", "b", "a")


def test_matrices_are_drawn_with_unknown_entries_marked(catalogue: Catalogue) -> None:
    shown = catalogue["toy/v1-r1"].correlation.picture()._repr_html_()
    for name in ("c0", "c1", "c2"):
        assert shown.count(f"</title>{name}</text>") == 2
    picture = Picture.of_matrix(np.array([[1.0, np.nan], [np.nan, -0.5]]), ["a", "b<"])
    assert re.findall("<title>([^<]*: [^<]*)</title>", picture.html) == [
        *("a: 1", "a with b&lt;: unknown", "b&lt; with a: unknown", "b&lt;: −0.5")
    ]
    other = Picture.of_matrix(np.eye(2), ["a", "b"]).html
    ids = [re.findall(' id="([^"]*)"', each) for each in (picture.html, other)]
    assert not set(ids[0]) & set(ids[1])  # both may be in one notebook


def test_intervals_are_drawn(catalogue: Catalogue) -> None:
    release = catalogue["toy/v1-r1"]
    drawn = release.means.plot()
    assert [each.get_text() for each in drawn.get_yticklabels()] == ["c0", "c1", "c2"]
    low, high = ranges = np.array([(c.lower, c.upper) for c in release.manifest.columns]).T
    expected = [100 * (each - low) / (high - low) for each in release.means.interval()]
    np.testing.assert_allclose(segments(drawn), np.transpose(expected))
    one = plt.subplots()[1]
    assert release.standard_deviations.plot(one) is one
    lower, upper = release.standard_deviations.interval()
    expected = [100 * each / np.diff(ranges, axis=0)[0] for each in (lower, upper)]
    np.testing.assert_allclose(segments(one), np.transpose(expected))
    assert all(each.get_xlabel() and each.get_title() for each in (drawn, one))
    pairs = release.correlation.plot_intervals(pairs=2)
    assert len(segments(pairs)) == 2
    assert all(", " in each.get_text() for each in pairs.get_yticklabels())
    unknown = forest(np.array([[1.0, np.nan], [0.5, -np.inf], [2.0, np.inf]]), ["a", "b"])
    assert [each.get_text() for each in unknown.get_yticklabels()] == ["a", "b (unknown)"]
    assert len(segments(unknown)) == 1


def segments(ax: Axes) -> list[tuple[float, float]]:
    """Ends of the intervals."""
    return [(line[0, 0], line[1, 0]) for each in ax.collections for line in each.get_segments()]


def test_graphs_are_drawn(catalogue: Catalogue, tmp_path: Path) -> None:
    release = catalogue["toy/v1-r1"]
    name = next(each for each in release.estimates if each.startswith("graph"))
    graph = release.graph(name)
    assert isinstance(graph, nx.Graph)
    assert "no edges" in graph.picture().html
    assert "(intercept)" in graph  # about the means it has no edges
    names = [INTERCEPT, "alone", "a", "b", "c"]
    chain = weighted_graph(names, np.diag([0, 0, 0.5, -0.25], 1) + np.diag([0, 0, 0.5, -0.25], -1))
    page = chain.picture().html
    assert re.findall("<title>(. with .: [^<]*)</title>", page) == [
        *("b with c: −0.25", "a with b: 0.5")  # the strongest on top
    ]
    assert "1 column without a drawn edge is left out" in page
    fitted = release.estimate("graphical-lasso", penalty=0.001)
    fitted.picture().save(tmp_path / "graph.html")
    assert fitted.picture().html in (tmp_path / "graph.html").read_text(encoding="utf-8")
    assert "<script" not in page


def test_estimates_are_labelled(catalogue: Catalogue) -> None:
    fitted = catalogue["toy/v1-r1"].estimate("graphical-lasso", penalty=0.001)
    for name in ("precision", "covariance", "edges"):
        frame = fitted.to_frame(name)
        assert frame.columns.tolist() == frame.index.tolist() == list(fitted.feature_names_in_)
        np.testing.assert_array_equal(frame, getattr(fitted, f"{name}_"))
    graph = catalogue["toy/v1-r1"].estimate("neighbourhood")
    with raises(families.MATRIX, name="precision"):
        graph.to_frame("precision")


def test_missing_matplotlib_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plotting, "is_installed", lambda package: False)
    with raises(families.MISSING_PACKAGES, command="pip install 'gramercy[plot]'"):
        Picture.of_matrix(np.eye(2), ["a", "b"])
    with raises(families.MISSING_PACKAGES):
        plotting.axes()
