"""Commands for releases with groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gramercy
from gramercy.application.context import Context
from gramercy.application.internal_record import page_path
from gramercy.archive.release_bundle import read_release
from gramercy.estimators.uncertainty.difference import comparable
from gramercy.schemas.problems.analyses import unknown_group
from tests.support.factories import run_command, run_json, run_release
from tests.unit.application.test_groups import CLIP, plan_of_groups, table
from tests.unit.cli.test_export import package_errors


def publish(folder: Path, version: str, **keys: Any) -> str:
    """The id of a release by ward."""
    request = {"version": version, "normalisation": CLIP} | keys
    budget = {"epsilon": 9.0, "delta": 1e-5}
    plan_of_groups(folder, request=request, budget=budget)
    return run_release(folder / "request.yaml")


def test_show_states_the_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"toy/{publish(tmp_path, 'v1')}"
    code, out, _ = run_command("show", name, capsys=capsys)
    assert code == 0
    assert "by the levels of 'ward'" in out
    facts = run_json("show", name, capsys=capsys)
    assert [group["level"] for group in facts["groups"]] == ["A", "B", "(other)"]


def test_releases_are_compared_if_their_groups_are_the_same(tmp_path: Path) -> None:
    releases = [publish(tmp_path, "v1"), publish(tmp_path, "v2")]
    archive = Context.default().archive
    first, second = (read_release(archive.release("toy", each)).manifest for each in releases)
    assert comparable(first, second)
    assert first.by is not None
    for by in (None, first.by.model_copy(update={"levels": ("A", "B", "C")})):
        assert not comparable(first, second.model_copy(update={"by": by}))


def test_change_page_of_releases_with_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"toy/{publish(tmp_path, version)}" for version in ("v1", "v2")]
    page = tmp_path / "change.html"
    facts = run_json("compare", *names, "--page", page, capsys=capsys)
    assert facts["entries"] == 6
    assert 0 < facts["p_value"] <= 1
    assert "<svg" in page.read_text()


def test_pool_is_of_all_rows(tmp_path: Path, home: Path) -> None:
    names = [publish(tmp_path, "v1"), publish(tmp_path, "v1", folds=2)]
    catalogue = gramercy.open(str(home / "archive"))
    pool = gramercy.pool([catalogue[f"toy/{name}"] for name in names], rows="same")
    assert pool.evidence.groups == ()
    assert pool.evidence.raw.shape == (3, 3)


def test_unknown_group_is_refused_before_prefect_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"toy/{publish(tmp_path, 'v1')}"
    code, _, error = run_command("estimate", name, "--set", "group=Z", capsys=capsys)
    assert code != 0
    assert unknown_group.code in error


def test_internal_page_has_the_exact_sizes_of_groups(tmp_path: Path) -> None:
    release, context = publish(tmp_path, "v1"), Context.default()
    page = page_path(context.home, "toy", release).read_text()
    sizes = table()["ward"].value_counts()
    for name in ("A", "B"):
        assert f'<td>{name}</td><td class="n">{sizes[name]}</td>' in page
    assert f'<td>(other)</td><td class="n">{sizes["C"] + sizes[""]}</td>' in page


@pytest.mark.slow
def test_release_with_groups_is_a_valid_data_package(tmp_path: Path) -> None:
    release = publish(tmp_path, "v1", folds=2)
    folder = Context.default().archive.release("toy", release)
    assert package_errors(folder / "datapackage.json") == []
