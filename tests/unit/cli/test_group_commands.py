"""Commands for releases with groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramercy
from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.archive.bundles.number_files import GROUPS
from gramercy.estimators.table_comparison import Change, comparable
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.internal_record import page_path
from gramercy.reports.change_page import change_page
from gramercy.reports.release_comparison import ReleaseComparison, change_facts
from gramercy.schemas import families
from tests.support.factories import run_command, run_json, run_release
from tests.unit.cli.test_export import package_errors, rows
from tests.unit.pipeline.test_groups import CLIP, plan_of_groups, table


def publish(folder: Path, version: str, **keys: Any) -> str:
    """The id of a release by ward."""
    request = {"version": version, "normalisation": CLIP} | keys
    budget = {"epsilon": 9.0, "delta": 1e-5}
    plan_of_groups(folder, request=request, budget=budget)
    return run_release(folder / "request.yaml")


@pytest.mark.slow
def test_one_release_with_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = publish(tmp_path, "v1")
    name = f"toy/{release}"
    code, out, _ = run_command("show", name, capsys=capsys)
    assert code == 0
    assert "by the levels of 'ward'" in out
    facts = run_json("show", name, capsys=capsys)
    assert [group["level"] for group in facts["groups"]] == ["A", "B", "(other)"]
    code, _, error = run_command("estimate", name, "--set", "group=Z", capsys=capsys)
    assert code != 0  # before Prefect starts
    assert families.UNKNOWN_NAME.code in error
    # The internal page has the exact sizes of groups.
    page = page_path(Context.default().home, "toy", release).read_text()
    sizes = table()["ward"].value_counts()
    for group in ("A", "B"):
        assert f'<td>{group}</td><td class="n">{sizes[group]}</td>' in page
    assert f'<td>(other)</td><td class="n">{sizes["C"] + sizes[""]}</td>' in page


@pytest.mark.slow
def test_releases_are_compared_if_their_groups_are_the_same(tmp_path: Path) -> None:
    releases = [publish(tmp_path, "v1"), publish(tmp_path, "v2")]
    archive = Context.default().archive
    first, second = (read_release(archive.release("toy", each)).manifest for each in releases)
    assert comparable(first, second)
    for by in (None, first.by.model_copy(update={"levels": ("A", "B", "C")})):
        assert not comparable(first, second.model_copy(update={"by": by}))


@pytest.mark.slow
def test_change_page_of_releases_with_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"toy/{publish(tmp_path, version)}" for version in ("v1", "v2")]
    page = tmp_path / "change.html"
    facts = run_json("compare", *names, "--page", page, capsys=capsys)
    assert facts["entries"] == 6
    assert 0 < facts["p_value"] <= 1
    assert "(all rows)" in page.read_text()
    groups = facts["groups"]
    assert groups["count"] == len(groups["listed"]) == 3
    assert {each["group"] for each in groups["listed"]} == {"A", "B", "(other)"}
    assert all(len(each["strongest"]) == 3 for each in groups["listed"])
    assert page.read_text().count("<td>(other)</td>") == 1
    code, out, _ = run_command("compare", *names, capsys=capsys)
    assert code == 0
    assert f"of {groups['tested']} tested groups" in out
    archive = Context.default().archive.location
    monkeypatch.setenv("GRAMERCY_HOME", str(tmp_path / "elsewhere"))
    assert run_json("compare", *names, "--archive", archive, capsys=capsys) == facts
    assert run_json("show", names[0], "--archive", archive, capsys=capsys)["release"] == "v1-r1"


def test_many_groups_are_listed_by_their_changes() -> None:
    """Of 30 groups, one changed and one has no test."""
    noise = np.random.default_rng(1).normal(size=(30, 2, 2))
    none = np.zeros((0, 2, 2))
    changes = {
        f"w{k}": Change(np.tril(each) + np.tril(each, -1).T, np.ones((2, 2)), k != 7, none)
        for k, each in enumerate(noise)
    }
    changes["w3"].difference[1, 1] += 9
    facts = change_facts(ReleaseComparison("b", "a", ["x", "y"], changes["w0"], changes))
    groups = facts["groups"]
    assert (groups["count"], groups["tested"], groups["changed"]) == (30, 29, 1)
    assert len(groups["listed"]) == 12
    first, second = groups["listed"][:2]
    assert (first["group"], first["strongest"][0][:2]) == ("w3", ("y", "y"))
    assert first["adjusted"] < groups["rate"] < second["adjusted"]
    assert first["adjusted"] == pytest.approx(29 * first["p_value"])
    compared = ReleaseComparison("toy/b", "toy/a", ["x", "y"], changes["w0"], changes)
    page = change_page(compared, "toy")
    assert "1 of 30 groups are not tested" in page
    assert page.index("<td>w3</td>") < page.index(f"<td>{second['group']}</td>")


@pytest.mark.slow
def test_pool_is_of_all_rows(tmp_path: Path, home: Path) -> None:
    names = [publish(tmp_path, "v1"), publish(tmp_path, "v1", folds=2)]
    catalogue = gramercy.open(str(home / "archive"))
    pool = gramercy.pool([catalogue[f"toy/{name}"] for name in names], rows="same")
    assert pool.evidence.groups == ()
    assert pool.evidence.raw.shape == (3, 3)


@pytest.mark.slow
def test_exported_package_has_the_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, folder = publish(tmp_path, "v1", folds=2), tmp_path / "package"
    run_json("export", "--package", folder, capsys=capsys)
    assert package_errors(folder / "datapackage.json") == []
    (listed,) = rows(folder / "releases.csv")
    place = Context.default().archive.release("toy", name)
    assert package_errors(place / "datapackage.json") == []
    assert (folder / listed["groups"]).read_bytes() == (place / GROUPS).read_bytes()
    bundle = read_release(place)
    groups = rows(folder / "groups.csv")
    assert [each["group"] for each in groups] == ["A", "B", "(other)"]
    for index, each in enumerate(groups):
        own = bundle.of_group(index)
        assert (each["release"], each["by"]) == (f"toy/{name}", "ward")
        assert float(each["rows"]) == own.manifest.rows.value
        assert float(each["sd_diagonal"]) == own.manifest.noise.sd_diagonal
        assert float(each["sd_off_diagonal"]) == own.manifest.noise.sd_off_diagonal
