"""Caveats of a release: on its objects, in its tables and plots, and in what commands print."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import gramercy
from gramercy.api.release import Release
from gramercy.common.home import Home
from gramercy.common.plotting import Picture, forest
from gramercy.schemas import families
from tests.support.caveat_release import (
    COLUMNS,
    ROWS,
    caveat_request,
    caveat_table,
    publish_caveats,
)
from tests.support.factories import home_at, run_command, run_json, run_release
from tests.support.histogram_tables import marginals_request
from tests.support.problems import raises

pytestmark = pytest.mark.slow
NUMERIC = [name for name, facts in COLUMNS.items() if "levels" not in facts]


@pytest.fixture(scope="module")
def caveat_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the release, its estimates and its report, which no test changes."""
    folder = tmp_path_factory.mktemp("caveats")
    with home_at(folder / "home") as home:
        publish_caveats(folder)
    return home


@pytest.fixture
def release(caveat_home: Path) -> Iterator[Release]:
    with matplotlib.rc_context({"backend": "Agg"}):
        yield gramercy.open(caveat_home / "archive").latest("toy")
        plt.close("all")


def test_release_names_the_columns_with_their_facts(release: Release) -> None:
    warnings = release.warnings
    kinds = {name: set(kind.split("; ")) for name, kind in warnings.kinds.items()}
    assert "fine" not in kinds
    assert kinds["rare"] == {"sign"}
    assert {"hidden cells"} <= kinds["tail"] <= {"clamped", "tail", "hidden cells"}
    assert "not at random" in kinds["first"]
    assert "not at random" in kinds["second"]
    (rare,) = warnings.of("rare")
    assert rare.notice.facts["most"] >= ROWS // 400
    assert [each.kind for each in warnings if each.column is None] == ["hidden rows"]
    table = warnings.table()
    assert list(table["kind"]) == [each.kind for each in warnings]
    assert set(table["code"]) <= {
        each.code for each in (families.NOISE, families.TAILS, families.READING)
    }
    for shown in (repr(warnings), warnings._repr_html_()):
        assert all(name in shown for name in kinds)
    assert warnings[0] == next(iter(warnings))
    assert len(warnings[1:]) == len(warnings) - 1
    again = pickle.loads(pickle.dumps(release))
    assert again.warnings.kinds == warnings.kinds


def test_numbers_carry_the_kinds(release: Release) -> None:
    kinds = release.warnings.kinds
    expected = [kinds.get(name, "") for name in release.means.index]
    for column in (release.means, release.standard_deviations):
        assert list(column.caveats) == list(column.listed()["caveat"]) == expected
        assert all(name in repr(column) for name in kinds)
    assert np.isnan(release.standard_deviations["rare"])
    described = release.describe()
    assert list(described.columns["caveat"]) == [kinds.get(name, "") for name in NUMERIC]
    for shown in (described.summary(), described._repr_html_()):
        assert all(kind in shown for kind in kinds.values())
    pairs = release.correlation.listed().set_index(["row", "column"])["caveat"]
    assert pairs["first", "second"] == kinds["first"]
    assert pairs["fine", "ward=A"] == ""
    assert pairs["fine", "tail"] == kinds["tail"]


def test_intervals_say_whose_value_they_contain(release: Release) -> None:
    exact = caveat_table()[["fine", "first"]]
    for column in (release.means, release.standard_deviations):
        (low, high), (wider_low, wider_high) = (
            column.interval(0.99, target) for target in ("table", "population")
        )
        assert (wider_low <= low).all()
        assert (high <= wider_high).all()
    means = release.means.interval(0.999, "table")
    for name, mean in exact.mean().items():
        assert means[0][name] <= mean <= means[1][name]
    narrow, wide = (release.correlation.interval(target=x) for x in ("table", "population"))
    fine = ("fine", "first")
    assert wide[0].loc[fine] < narrow[0].loc[fine] < narrow[1].loc[fine] < wide[1].loc[fine]
    for target in ("table", "population"):
        described = release.describe(target=target).columns
        assert set(described["target"]) == {target}
        np.testing.assert_allclose(
            described["mean_lower"].dropna(),
            release.means.interval(target=target)[0][NUMERIC][described["mean_lower"].notna()],
        )
    with raises(families.ANALYSIS, target="sample"):
        release.means.interval(target="sample")


def test_plots_mark_caveats(release: Release) -> None:
    drawn = release.means.plot()
    labels = [label.get_text() for label in drawn.get_yticklabels()]
    kinds = release.warnings.kinds
    for name, label in zip(release.means.index, labels, strict=True):
        assert name in label
        assert kinds.get(name, "") in label
    ax = forest(np.array([[1.0, 2.0], [0.5, 1.5], [1.5, 2.5]]), ["a", "b"], marked=[True, False])
    faces = {line.get_markerfacecolor() for line in ax.lines if len(line.get_xdata())}
    assert len(faces) == 2
    assert len(ax.get_legend().get_texts()) == 1  # only hollow marks need words
    few, many = (
        Picture.of_matrix(np.full((p, p), 0.5), list(map(str, range(p))), np.eye(p) == 1).html
        for p in (3, 100)
    )
    assert few.count(", uncertain</title>") == 3
    assert 'class="hatching"' not in many
    assert "unknown" in many
    release.correlation.plot_intervals()
    estimate = release.correlation.interval(target="table")
    reach = (estimate[1] - estimate[0]).to_numpy() / 2
    known = release.correlation.notna().to_numpy()
    page = release.correlation.picture().html
    assert ('class="hatching"' in page) == bool((known & (reach > 0.12)).any())
    assert page.count(", uncertain</title>") == int((known & (reach > 0.12)).sum())


def test_commands_print_caveats(
    caveat_home: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(caveat_home, home)
    name = "toy/v1-r1"
    kinds = gramercy.open(Home.default().archive)[name].warnings.kinds
    facts = run_json("estimate", name, "--estimator", "moments", capsys=capsys)
    stated = {(each["column"], each["kind"]) for each in facts["caveats"]}
    assert stated == {(None, "hidden rows")} | {
        (column, kind) for column, each in kinds.items() for kind in each.split("; ")
    }
    assert all(each["code"].startswith("GRM-") and each["facts"] for each in facts["caveats"])
    lines = {line["column"]: line["caveat"] for line in facts["tables"]["columns"]}
    assert lines == {column: kinds.get(column, "") for column in NUMERIC}
    for words in (("show", name), ("estimate", name, "--estimator", "intervals")):
        code, out, _ = run_command(*words, capsys=capsys)
        assert code == 0
        assert all(column in out for column in kinds)
        assert "not at random" in " ".join(out.split())


def test_json_of_commands_has_verdict_and_caveats(
    tmp_path: Path, caveat_home: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same facts in every command, and the verdict of the report."""
    shutil.copytree(caveat_home, home)
    name = "toy/v1-r1"
    shown = run_json("show", name, capsys=capsys)
    estimated = run_json("estimate", name, "--estimator", "moments", capsys=capsys)
    assert shown["caveats"] == estimated["caveats"]
    assert shown["verdict"] == estimated["verdict"]
    assert shown["release"] == "v1-r1"  # with all facts of the manifest
    verdict, limits = shown["verdict"], {each["column"] for each in shown["caveats"]}
    assert verdict["level"] in ("green", "orange", "red")
    assert {"rare", "tail", "first", "second"} <= limits
    assert verdict["facts"]["apart"] == ["rare"]
    assert 0 < verdict["facts"]["typical"] < verdict["facts"]["largest"]
    assert bool(verdict["code"]) == (verdict["level"] != "green")
    (page,) = (home / "archive/toy/v1-r1/reports").rglob("*.html")
    assert verdict["text"].partition(". ")[0] in page.read_text()
    code, out, _ = run_command("show", name, capsys=capsys)
    assert code == 0
    assert verdict["level"] in out


def test_json_of_a_published_release_has_its_limits(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = caveat_request(tmp_path)
    for _ in range(2):  # published, and found in the archive
        found = run_json("release", request, "--yes", "--despite", capsys=capsys)
        shown = run_json("show", found["release"], capsys=capsys)
        assert found["caveats"] == shown["caveats"] != []
        assert found["verdict"] == shown["verdict"]


def test_declared_persons_that_counts_contradict(
    tmp_path: Path,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """There are 1,000 persons, and 1,300 are declared: known before estimates are made."""
    unit = {"privacy_unit": "person", "persons": 1300}
    request = {"scaling": "private", "estimates": [{"name": "moments"}]}
    mechanism = {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6}
    facts = {"rows": 2000, "intercept": True, "budget": {"epsilon": 80.0, "delta": 1e-5}}
    path = marginals_request(tmp_path, request | {"mechanism": mechanism}, **facts | unit)
    code, _, err = run_command("release", path, "--yes", capsys=capsys)
    assert code == 0, err
    release = gramercy.open(home / "archive").latest("toy")
    (found,) = (each for each in release.warnings if each.kind == "count")
    stated = found.notice.facts
    assert (stated["declared"], stated["unit"]) == (1300, "persons")
    assert abs(stated["counted"] - 1000) < 5 * stated["sd"] < 200
    assert found.notice.sentence in " ".join(err.split())
    logged = " ".join(caplog.messages)
    assert logged.index(str(found.notice)) < logged.index("Estimating")


def test_release_of_marginals_has_no_other_caveats(tmp_path: Path, home: Path) -> None:
    for persons in (1000, 700):
        unit = {"privacy_unit": "person", "persons": persons}
        folder = tmp_path / str(persons)
        folder.mkdir()
        changes = {"id": f"toy{persons}", "budget": {"epsilon": 80.0, "delta": 1e-5}}
        run_release(marginals_request(folder, **unit, **changes))
        found = gramercy.open(home / "archive").latest(f"toy{persons}").warnings
        assert [each.kind for each in found] == ["count"] * (persons == 700)
