"""Without the packages of `gramercy[publish]`, releases can be read, verified and analysed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.common.extras import CONVERT, INSTALL_PUBLISH, PUBLISH
from gramercy.common.home import Home
from gramercy.estimators.solvers.glasso import graphical_lasso
from gramercy.schemas import families
from tests.support.factories import run_pipeline, write_request

ROOT = Path(__file__).parents[2]
# Import names of packages whose name on the index differs.
IMPORTED_AS = {"great-expectations": "great_expectations", "pillow": "PIL", "ruamel.yaml": "ruamel"}
# FastAPI comes with Prefect, and numba has a substitute: errors do not name them.
NOT_REPORTED = {"fastapi", "numba"}
HIDE = f"import sys; sys.modules |= dict.fromkeys({sorted(PUBLISH | NOT_REPORTED)!r})\n"
# Several commands in one process: their exit codes, outputs and errors.
COMMANDS = """
import contextlib, io, json
from gramercy.cli.main import main
done = []
for words in json.loads(sys.argv[1]):
    sys.argv, out, err = ["gramercy", *words], io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            done.append((end.code or 0, out.getvalue(), " ".join(err.getvalue().split())))
print(json.dumps(done))
"""


def names_the_extra(message: str) -> bool:
    """Whether it is the error that packages for publishing are missing, with the command."""
    return message.startswith(families.MISSING_PACKAGES.code) and INSTALL_PUBLISH in message


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases of a data set, with estimates and reports."""
    folder = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GRAMERCY_HOME", str(folder / "home"))
        for version in ("v1", "v2"):
            run_pipeline(write_request(folder, request={"version": version}))
        return Home.default().archive


def run_light(code: str, *words: object, home: Path) -> Any:
    """Run Python without the packages; return the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", HIDE + code, *map(str, words)],
        env=os.environ | {"GRAMERCY_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run_commands(*commands: Sequence[str], home: Path) -> list[tuple[int, str, str]]:
    return [tuple(each) for each in run_light(COMMANDS, json.dumps(commands), home=home)]


@pytest.mark.slow
def test_python_reads_and_estimates(archive: Path, tmp_path: Path) -> None:
    code = """
import json, gramercy
from gramercy.estimators.scikit import SparsePrecision, by_name
catalogue = gramercy.open(sys.argv[1])
release = catalogue["toy/v1-r1"]
lasso = next(name for name in release.estimates if name.startswith("graphical-lasso"))
print(json.dumps({
    "epsilon": release.guarantee.epsilon,
    "listed": len(catalogue.history("toy")) + len(catalogue.search("toy")),
    "nodes": len(release.graph(lasso)),
    "report": release.report is not None,
    "shapes": [each.shape for each in (release.denoised, *release.correlation.interval(0.95))],
    "fitted": [name for name in by_name if name != "discriminant" and release.estimate(name)],
    "scikit": SparsePrecision(penalty=0.1).fit(release).precision_.tolist(),
}))
"""
    results = run_light(code, archive, home=tmp_path)
    assert results["epsilon"] == 1.0
    assert len({tuple(shape) for shape in results["shapes"]}) == 1
    assert (results["listed"], results["nodes"], results["report"]) == (4, 3, True)
    assert len(results["fitted"]) > 5
    assert np.isfinite(results["scikit"]).all()


@pytest.mark.slow
def test_graphical_lasso_gives_the_same_numbers_without_numba(tmp_path: Path) -> None:
    rows = np.random.default_rng(5).normal(size=(200, 40))
    S = np.corrcoef((rows + rows[:, :1]).T)
    np.save(tmp_path / "S.npy", S)
    code = """
import json, numpy as np
from gramercy.estimators.solvers.glasso import graphical_lasso
print(json.dumps(graphical_lasso(np.load(sys.argv[1]), 0.1, tol=1e-13).precision.tolist()))
"""
    uncompiled = np.array(run_light(code, tmp_path / "S.npy", home=tmp_path))
    compiled = graphical_lasso(S, 0.1, tol=1e-13)
    assert compiled.solver == "newton"
    assert ((uncompiled == 0) == (compiled.precision == 0)).all()
    np.testing.assert_allclose(uncompiled, compiled.precision, atol=1e-9)


@pytest.mark.slow
def test_commands_that_read_need_no_extra(archive: Path, tmp_path: Path) -> None:
    """The archive belongs to another home; this one has no ledger."""
    (tmp_path / "archive").symlink_to(archive)
    done = run_commands(
        ["list", "--json"],
        ["verify", "--json"],
        ["show", "toy/v1-r1"],
        ["mechanisms"],
        ["compare", "toy/v1-r1", "toy/v2-r1", "--json"],
        home=tmp_path,
    )
    assert [code for code, _, _ in done] == [0] * 5, done
    listed, verified = (json.loads(out) for _, out, _ in done[:2])
    assert [each["release"] for each in listed] == ["toy/v1-r1", "toy/v2-r1"]
    for release in verified:
        assert len(release["checks"]) > 10
        assert any("graphical-lasso" in check for check in release["checks"])
        charge, listing = release["unchecked"]
        assert listing.startswith(f"{families.NOT_CHECKED.code}: ")
        assert charge.startswith(f"{families.NOT_CHECKED.code}: ")


@pytest.mark.slow
def test_commands_that_publish_name_the_extra(archive: Path, tmp_path: Path) -> None:
    """Those that only read leave a ledger unchecked that cannot be read."""
    request = str(write_request(tmp_path))
    commands = (
        ["demo"],
        ["new", str(tmp_path / "table.csv")],
        ["plan", request],
        ["release", request],
        ["budget"],
        ["serve", request],
        ["estimate", "toy/v1-r1"],
        ["compare", "toy/v1-r1", "toy/v2-r1", "--page", str(tmp_path / "change.html")],
        ["site"],
        ["audit"],
    )
    verified, listed, *refused = run_commands(
        ["verify", "--json"], ["list"], *commands, home=archive.parent
    )
    for words, (code, _, err) in zip(commands, refused, strict=True):
        assert (words, code) == (words, 1)
        assert names_the_extra(err.rpartition("Error ")[2]), words
    assert verified[0] == listed[0] == 0
    unchecked = json.loads(verified[1])[0]["unchecked"]
    assert any(families.NOT_CHECKED.code in each and INSTALL_PUBLISH in each for each in unchecked)
    assert INSTALL_PUBLISH in listed[2]


def test_imports_that_publish_name_the_extra(tmp_path: Path) -> None:
    modules = ["flows", "flows.release", "tasks.policy", "ledger", "pipeline.publish.charging"]
    code = """
import importlib, json, gramercy
errors = []
for module in sys.argv[1:]:
    try:
        importlib.import_module(f"gramercy.{module}")
    except gramercy.MissingPackages as error:
        errors.append(str(error) * isinstance(error, ImportError))
print(json.dumps(errors))
"""
    assert all(map(names_the_extra, run_light(code, *modules, home=tmp_path)))


def test_extra_lists_all_optional_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = {each.split(">")[0] for each in project["optional-dependencies"]["publish"]}
    assert {IMPORTED_AS.get(each, each) for each in extra - NOT_REPORTED} == PUBLISH
    assert not extra & {each.split(">")[0] for each in project["dependencies"]}
    convert = {each.split(">")[0] for each in project["optional-dependencies"]["convert"]}
    assert {each.replace("-", "_") for each in convert} == CONVERT
