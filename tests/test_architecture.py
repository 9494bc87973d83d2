"""The layout holds: imports go downwards, heavy imports are late, noise has one source."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAY_IMPORT = {
    "schemas": set(),
    "tables": {"schemas"},
    "mechanisms": {"schemas"},
    "estimators": {"schemas"},
    "ledger": {"schemas", "mechanisms"},
    "archive": {"schemas"},
    "reports": {"schemas", "estimators", "archive"},
    "tasks": {"schemas", "tables", "mechanisms", "estimators", "ledger", "archive", "reports"},
    "flows": {"schemas", "tasks"},
    "gramercy": set(),
}
MAY_IMPORT["gramercy"] = MAY_IMPORT.keys() - {"gramercy"}
ANALYSTS = {f"gramercy/{name}.py" for name in ("__init__", "catalogue", "release", "measured")}


def sources() -> Iterator[Path]:
    for room in MAY_IMPORT:
        yield from sorted((ROOT / room).rglob("*.py"))


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", list(sources()), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_downwards(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    room = name.split("/", maxsplit=1)[0]
    tops = {module.split(".")[0] for module in imported(path)}
    allowed = {"schemas", "archive", "estimators"} if name in ANALYSTS else MAY_IMPORT[room]
    assert tops & MAY_IMPORT.keys() <= allowed | {room}
    assert "prefect" not in tops or room in {"flows", "tasks"}
    assert "great_expectations" not in tops or name == "tasks/validate.py"


def test_every_package_is_held_to_the_rules() -> None:
    packages = {p.parent.name for p in ROOT.glob("*/__init__.py")} - {"tests", "benchmarks"}
    assert packages == MAY_IMPORT.keys()
    shipped = (ROOT / "pyproject.toml").read_text()
    assert all(f'"{package}"' in shipped for package in packages)


def test_flows_do_not_shadow_packages() -> None:
    assert not {p.stem for p in (ROOT / "flows").glob("*.py")} & MAY_IMPORT.keys()


def test_noise_has_one_source() -> None:
    """os.urandom in the sampler alone; a seeded stream for public draws alone."""
    for path in sources():
        name, text = str(path.relative_to(ROOT)), path.read_text()
        tops = {module.split(".")[0] for module in imported(path)}
        assert not tops & {"random", "secrets"}, name
        assert "urandom" not in text or name == "mechanisms/sampler.py"
        assert "np.random" not in text or name == "estimators/noise/draws.py"


def test_analysts_import_is_light() -> None:
    """Opening a catalogue needs neither Prefect nor Great Expectations."""
    code = (
        "import sys, gramercy, gramercy.catalogue; "
        "print({'prefect', 'great_expectations', 'sqlalchemy'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
