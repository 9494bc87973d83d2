"""The guide for R gives the numbers that Python gives, from the files that a release has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.api.release import Release
from tests.support.caveat_release import publish_caveats
from tests.support.documents import ROOT, blocks
from tests.support.factories import home_at

pytestmark = pytest.mark.slow

GUIDE = ROOT / "docs" / "how-to" / "R.md"
CODE = [each.text for each in blocks(GUIDE) if each.language == "r"]
OTHER_PACKAGES = re.compile(r"\b(arrow|igraph|glasso)::")
PRINTED = (
    "columns",
    "levels",
    "quantiles",
    "caveats",
    "r",
    "lower",
    "upper",
    "rough",
    "rough_means",
    "noise",
)
R = shutil.which("Rscript")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the release that the guide reads, under the path that it names."""
    place = tmp_path_factory.mktemp("r")
    with home_at(place / "home") as home:
        publish_caveats(place)
    shutil.copytree(home / "archive/toy/v1-r1", place / "archive/clinic/2026-11-r1")
    return place


@pytest.fixture(scope="module")
def release(folder: Path) -> Release:
    return gramercy.open(folder / "home/archive").latest("toy")


def test_files_and_columns_of_the_guide_exist(folder: Path) -> None:
    text, place = "\n".join(CODE), folder / "archive/clinic/2026-11-r1"
    read = re.findall(
        r'(?:(\w+) <- )?(?:read_table|read_matrix|file_of)\("([\w-]+)", "(\w+)"\)', text
    )
    assert {each[1:] for each in read} >= {("moments", "columns"), ("intervals", "estimate")}
    tables = {}
    for variable, estimate, name in read:
        (path,) = (place / "estimates").glob(f"{estimate}-*/{name}.csv")
        tables[variable] = pd.read_csv(path)
    shown = re.findall(r'^(\w+)\[.*?, c\(("[^)]*")\)\]', text, re.MULTILINE)
    assert {variable for variable, _ in shown} >= {"columns", "levels", "quantiles", "clearest"}
    for variable, names in shown:
        assert set(re.findall(r'"(\w+)"', names)) <= set(tables[variable].columns)
    for variable, name in re.findall(r"\b(columns|levels|caveats)\$(\w+)", text):
        if variable in tables and f"column${name}" not in text:
            assert name in tables[variable].columns
    files = re.findall(r'file\.path\(release, "release", "([\w.]+)"\)', text)
    missing = {name for name in files if not (place / "release" / name).exists()}
    assert missing <= {"groups.parquet"}  # a release without groups


def results(folder: Path) -> dict[str, Any]:
    """What the blocks of the guide that need base R and jsonlite compute."""
    own = [each for each in CODE if not OTHER_PACKAGES.search(each)]
    values = ", ".join(f"{name} = {name}" for name in PRINTED)
    ask = 'options(warn = 2)\nsink("/dev/null")\n'
    tell = f'sink()\ncat(jsonlite::toJSON(list({values}), digits = NA, na = "null"))\n'
    script = folder / "guide.R"
    script.write_text(ask + "\n".join(own) + tell)
    done = subprocess.run(
        [str(R), str(script)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(R is None, reason="R is not installed")
def test_r_gives_the_numbers_of_python(folder: Path, release: Release) -> None:
    found = results(folder)
    described = release.describe()
    columns = pd.DataFrame(found["columns"]).set_index("column")
    names = list(described.columns.index)
    assert list(columns.index) == names
    for key in ("mean", "mean_lower", "mean_upper", "deviation", "deviation_upper", "missing"):
        expected = described.columns[key].to_numpy()
        np.testing.assert_allclose(columns[key].astype(float), expected, rtol=1e-12)
    np.testing.assert_allclose(columns["mean"].astype(float), release.means[names], rtol=1e-12)
    assert columns["caveat"].fillna("").to_dict() == release.means.caveats[names].to_dict()
    levels = pd.DataFrame(found["levels"]).set_index(["column", "level"])
    for key in ("count", "share", "lower", "upper"):
        np.testing.assert_allclose(levels[key], described.levels[key], rtol=1e-12)
    quantiles = pd.DataFrame(found["quantiles"]).set_index(["column", "probability"])
    np.testing.assert_allclose(quantiles["value"], described.quantiles["value"], rtol=1e-12)
    listed = pd.DataFrame(found["caveats"])
    assert list(listed["sentence"]) == [each.notice.sentence for each in release.warnings]
    correlation = np.array(found["r"], dtype=float)
    np.testing.assert_allclose(correlation, release.correlation, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["noise"], release.evidence.deviations, rtol=1e-9)
    for name, bound in zip(("lower", "upper"), release.correlation.interval(0.95), strict=True):
        np.testing.assert_allclose(found[name], bound, rtol=0, atol=1e-12)


@pytest.mark.skipif(R is None, reason="R is not installed")
def test_rough_means_keep_every_column_in_its_own_unit(folder: Path, release: Release) -> None:
    """Means of levels are shares, and those of other columns are near those of the estimates."""
    found = results(folder)
    rough, means = np.array(found["rough_means"]), release.means
    assert rough.shape == means.shape
    known = means.notna() & ~means.index.isin(["rare", "tail"])
    away = np.abs(rough - means)[known] / release.standard_deviations[known]
    assert away.max() < 1.0  # missing cells count as the centre
    assert away[[name for name in away.index if "ward" in name]].max() < 0.1
