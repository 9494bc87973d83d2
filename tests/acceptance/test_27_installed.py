"""The wheel, built from the sdist, does not conflict with other packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Folders that a user's own project may have.
USER_FOLDERS = ("flows", "tasks", "schemas", "estimators", "tables", "ledger")


def build_distribution(source: Path, kind: str, folder: Path, umask: int = 0o022) -> Path:
    """Build a distribution of a source tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, umask=umask)
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, as an index would."""
    folder = tmp_path_factory.mktemp("dist")
    sdist = build_distribution(ROOT, "sdist", folder / "sdist")
    with tarfile.open(sdist) as packed:
        packed.extractall(folder / "source", filter="data")
    return build_distribution(next((folder / "source").iterdir()), "wheel", folder / "wheel")


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, which uses this environment's dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    variables = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", vars=variables))
    with zipfile.ZipFile(wheel) as wheel_file:
        wheel_file.extractall(packages)
    # `site` does not process nested .pth files: the editable install of this checkout is ignored.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Path(sysconfig.get_path("scripts", "venv", vars=variables)) / "python"


def run(python: Path, project: Path, *words: str) -> str:
    home = {"GRAMERCY_HOME": str(project / "home"), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [str(python), *words], cwd=project, env=home, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_wheel_contains_one_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"gramercy"}
    assert len(names) == len(set(names))
    assert {
        "gramercy/py.typed",
        "gramercy/flows/release.py",
        "gramercy/tasks/policy.py",
        "gramercy/flows/prefect.yaml",
        "gramercy/estimators/ridge.py",
        "gramercy/schemas/contract.py",
        "gramercy/reports/templates/plan.html",
    } <= set(names)


@pytest.mark.slow
def test_two_builds_are_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    """Building the sdist again gives the published files, at any time and with any umask."""
    published = wheel.parents[1]
    source = shutil.copytree(next((published / "source").iterdir()), tmp_path / "source")
    for path in source.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (1_000_000_000, 1_000_000_000))
    for kind in ("sdist", "wheel"):
        again = build_distribution(source, kind, tmp_path / kind, umask=0o077)
        (first,) = (published / kind).iterdir()
        assert again.name == first.name
        assert again.read_bytes() == first.read_bytes(), kind


def test_installed_in_a_project_with_the_same_folders(python: Path, tmp_path: Path) -> None:
    """Imports, the command line, flows and the ledger find Gramercy's own modules."""
    for name in USER_FOLDERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(
            "raise RuntimeError('imported from the project')\n"
        )
    (tmp_path / "archive.py").write_text("raise RuntimeError('imported from the project')\n")
    where = run(python, tmp_path, "-c", "import gramercy; print(gramercy.__file__)")
    assert Path(where.strip()).is_relative_to(python.parents[1])
    code = (
        "from pathlib import Path; from gramercy.ledger import Ledger;"
        "print(Ledger(Path('ledger.sqlite')).datasets());"
        "from gramercy.flows.deployments import prefect_yaml; print(prefect_yaml().is_file());"
        "import gramercy.flows.release, gramercy.flows.audit"
    )
    assert run(python, tmp_path, "-c", code).split() == ["[]", "True"]
    assert "gaussian" in run(python, tmp_path, "-m", "gramercy", "mechanisms")


def test_installed_together_with_pytables(python: Path, tmp_path: Path) -> None:
    """PyTables' package is called `tables`."""
    code = (
        "import gramercy, pandas as pd;"
        "pd.DataFrame({'a': [1.0, 2.0]}).to_hdf('t.h5', key='a');"
        "print(pd.read_hdf('t.h5', 'a')['a'].sum())"
    )
    assert run(python, tmp_path, "-c", code).strip() == "3.0"
