"""The script for R of a release gives the numbers that Python gives."""

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
from tests.support.factories import home_at, run_command, run_json
from tests.support.survey import survey_release

pytestmark = pytest.mark.slow

GUIDE = ROOT / "docs" / "how-to" / "R.md"
R = shutil.which("Rscript")
needs_r = pytest.mark.skipif(R is None, reason="R is not installed")


@pytest.fixture(scope="module", params=["caveats", "groups"])
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release with histograms and caveats, and one with groups."""
    place = tmp_path_factory.mktemp("r")
    with home_at(place / "home"):
        if request.param == "groups":
            survey_release(place, by="ward")
        else:
            publish_caveats(place)
    return gramercy.open(place / "home/archive").latest("toy")


@pytest.fixture
def script(release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The script that the command writes."""
    path = tmp_path / "my numbers" / "release.R"
    path.parent.mkdir()
    place = ("--archive", release.path.parents[2])
    done = run_json("export", release.id, "--r", path, *place, capsys=capsys)
    assert done["r"] == [str(path), f"{path}.json"]
    return path


def in_r(script: Path, code: str) -> Any:
    """What an expression is in R after the script was read."""
    ask = script.with_name("ask.R")
    ask.write_text(
        f'options(warn = 2)\nsink("/dev/null")\nsource({json.dumps(str(script))})\nsink()\n'
        f'cat(jsonlite::toJSON({code}, digits = NA, na = "null", matrix = "rowmajor"))\n'
    )
    done = subprocess.run([str(R), str(ask)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_r
def test_r_gives_the_numbers_of_python(release: Release, script: Path) -> None:
    expected = {
        "means": release.means.listed().reset_index(names="column"),
        "standard_deviations": release.standard_deviations.listed().reset_index(names="column"),
        "correlations": release.correlation.listed(),
    }
    if release.groups:
        expected["groups"] = release.groups.rows.reset_index()
        for name, table in (("means", "group_means"), ("correlation", "group_correlations")):
            parts = []
            for group, each in release.groups.items():
                listed = getattr(each, name).listed()
                listed = listed.reset_index(names="column") if name == "means" else listed
                parts.append(listed.assign(group=group))
            expected[table] = pd.concat(parts)
    else:
        expected["histograms"] = pd.DataFrame(release.marginals)
        expected["quantiles"] = pd.DataFrame(release.quantiles())
        expected["caveats"] = release.warnings.table()
    names = [*expected, "correlation"]
    found = in_r(script, f"list({', '.join(f'{name} = {name}' for name in names)})")
    for name, table in expected.items():
        own = pd.DataFrame(found[name])
        assert set(own.columns) == set(table.columns)
        for column in table.columns:
            if table[column].dtype.kind in "fiu":
                wanted = table[column].replace([np.inf, -np.inf], np.nan)
                numbers = own[column].astype(float)
                np.testing.assert_allclose(numbers, wanted, rtol=1e-12, atol=1e-15)
            else:
                texts = (each[column].astype("str").fillna("") for each in (own, table))
                assert next(texts).tolist() == next(texts).tolist()
    matrix = np.array(found["correlation"], dtype=float)
    np.testing.assert_allclose(matrix, release.correlation, rtol=0, atol=1e-12)


@needs_r
def test_script_runs_by_itself_in_any_folder(release: Release, script: Path) -> None:
    done = subprocess.run(
        [str(R), str(script)], cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert release.names[1] in done.stdout


def test_script_names_what_the_release_has(release: Release, script: Path) -> None:
    numbers = json.loads(script.with_name("release.R.json").read_text())
    named = re.findall(r'^(\w+) <- table_of\("(\w+)"\)', script.read_text(), re.MULTILINE)
    assert [a for a, _ in named] == [b for _, b in named] == [*numbers][1:]
    assert ("group_means" in numbers) == bool(release.groups)
    assert ("histograms" in numbers) != bool(release.groups)


@needs_r
def test_guide_can_be_followed(release: Release, script: Path) -> None:
    """Its blocks of base R run after the script; those of other packages are left out."""
    own = [each.text for each in blocks(GUIDE) if each.language == "r" and "::" not in each.text]
    code = "\n".join(own).replace('source("release.R")', "")
    lacking = "histograms|quantiles|caveats" if release.groups else "group"
    lines = [line for line in code.splitlines() if not re.search(lacking, line)]
    assert len(lines) > 3
    code = "{" + "\n".join(lines) + "\n1}"
    assert in_r(script, code) == [1]


def test_a_script_is_of_one_release(
    release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--archive", release.path.parents[2], "--r", tmp_path / "x.R")
    code, _, error = run_command("export", "toy/v9-r1", *place, capsys=capsys)
    assert code != 0
    assert "toy/v9-r1" in error
    assert not (tmp_path / "x.R").exists()
