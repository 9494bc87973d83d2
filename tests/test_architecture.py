"""The layout: imports go downwards, heavy imports are lazy, randomness has one source."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "gramercy"
GROUND = {"schemas", "common"}
LOWER = GROUND | {"tables", "mechanisms", "estimators", "ledger", "archive", "reports"}
MAY_IMPORT = {
    "schemas": set(),
    "common": {"schemas"},
    "tables": GROUND,
    "mechanisms": GROUND,
    "estimators": GROUND,
    "ledger": GROUND | {"mechanisms"},
    "archive": GROUND,
    "reports": GROUND | {"estimators", "archive"},
    "api": GROUND | {"archive", "estimators"},
    "application": LOWER,
    "tasks": LOWER | {"application"},
    "flows": GROUND | {"application", "tasks"},
    "cli": LOWER | {"api", "application", "tasks", "flows"},
}
FRONT = {"__init__.py": {"schemas", "api"}, "__main__.py": {"cli"}}
# The suite of a contract, and what runs it.
USES_GREAT_EXPECTATIONS = {
    "gramercy/application/expectations.py",
    "gramercy/application/validation.py",
}
# At the top of the repository, and linked into the package.
LINKED = {"flows", "tasks", "estimators", "schemas"}


def sources() -> Iterator[Path]:
    for place in sorted(PACKAGE.iterdir()):
        files = [place] if place.suffix == ".py" else place.rglob("*.py")
        yield from sorted(file for file in files if "__pycache__" not in file.parts)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rooms_of(modules: set[str]) -> set[str]:
    """The rooms of the package that contain these modules."""
    inside = {module.split(".")[1] for module in modules if module.startswith("gramercy.")}
    return inside & MAY_IMPORT.keys()


@pytest.mark.parametrize("path", list(sources()), ids=name_of)
def test_imports_go_downwards(path: Path) -> None:
    name, modules = name_of(path), imported(path)
    room = name.split("/")[1]
    allowed = FRONT[room] if room in FRONT else MAY_IMPORT[room] | {room}
    assert rooms_of(modules) <= allowed
    tops = {module.split(".")[0] for module in modules}
    assert "prefect" not in tops or room in {"flows", "tasks"}
    assert "great_expectations" not in tops or name in USES_GREAT_EXPECTATIONS
    own = {m.split(".")[1] for m in modules if m.startswith("gramercy.") and m.count(".")}
    assert own <= MAY_IMPORT.keys() | {"__version__"}


def test_every_room_has_import_rules() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms == MAY_IMPORT.keys()
    for name in LINKED:
        assert (PACKAGE / name).is_symlink()
        assert (PACKAGE / name).resolve() == ROOT / name


@pytest.mark.slow
def test_rooms_are_imported_only_through_the_package() -> None:
    """A bare `import flows` would find the user's own folder of that name."""
    for folder in ("gramercy", "tests", "benchmarks", "docs"):
        for path in (ROOT / folder).rglob("*.py"):
            tops = {module.split(".")[0] for module in imported(path)}
            assert not tops & MAY_IMPORT.keys(), path


def test_randomness_has_one_source() -> None:
    """os.urandom only in the sampler; a seeded stream only for public draws."""
    for path in sources():
        name, text = name_of(path), path.read_text()
        tops = {module.split(".")[0] for module in imported(path)}
        assert not tops & {"random", "secrets"}, name
        assert "urandom" not in text or name == "gramercy/mechanisms/sampling/sampler.py"
        assert "np.random" not in text or name == "gramercy/estimators/noise/draws.py"


def test_import_for_analysts_is_light() -> None:
    """Opening a catalogue needs neither Prefect nor Great Expectations."""
    code = (
        "import sys, gramercy, gramercy.api.catalogue; "
        "print({'prefect', 'great_expectations', 'sqlalchemy'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
