"""Architecture rules: imports go downwards, heavy imports are lazy, randomness has one source."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "gramercy"
BASE = {"schemas", "common"}
LOWER = BASE | {"tables", "mechanisms", "estimators", "ledger", "archive", "reports", "scaling"}
MAY_IMPORT = {
    "schemas": set(),
    "common": {"schemas"},
    "tables": BASE,
    "mechanisms": BASE,
    "estimators": BASE | {"scaling"},  # what published counts say
    "scaling": BASE,
    "ledger": BASE | {"mechanisms"},
    "archive": BASE,
    "reports": BASE | {"estimators", "archive"},
    "api": BASE | {"archive", "estimators"},
    "pipeline": LOWER,
    "tasks": LOWER | {"pipeline"},
    "flows": BASE | {"pipeline", "tasks"},
    "cli": LOWER | {"api", "pipeline", "tasks", "flows"},
}
# Inside a package, by folder. Modules that stand next to these folders are below all of them.
INSIDE: dict[str, dict[str, set[str]]] = {
    "gramercy.pipeline": {
        "catalogue": {"publish", "plan"},
        "verify": {"publish", "plan"},
        "status": set(),
        "publish": {"plan", "validation"},
        "validation": {"plan"},
        "plan": set(),
        "demo": set(),
    },
    "gramercy.tables": {
        "counts": {"sums", "persons", "formats"},
        "sums": {"persons", "formats"},
        "persons": {"formats"},
        "formats": set(),
    },
}
TOP_LEVEL = {"__init__.py": {"schemas", "api"}, "__main__.py": {"cli"}}
# The program that runs expectations, in a process of its own.
USES_GREAT_EXPECTATIONS = {"gramercy/pipeline/validation/worker.py"}
# At the top of the repository, and linked into the package.
LINKED = {"flows", "tasks", "estimators", "schemas"}


def sources() -> Iterator[Path]:
    for place in sorted(PACKAGE.iterdir()):
        files = [place] if place.suffix == ".py" else place.rglob("*.py")
        yield from sorted(file for file in files if "__pycache__" not in file.parts)


def relative_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def imported_modules(path: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
    return modules


def layers_of(modules: set[str]) -> set[str]:
    """The subpackages that contain these modules."""
    inside = {module.split(".")[1] for module in modules if module.startswith("gramercy.")}
    return inside & MAY_IMPORT.keys()


@pytest.mark.parametrize("layer", [*TOP_LEVEL, *MAY_IMPORT])
def test_imports_go_downwards(layer: str) -> None:
    paths = [path for path in sources() if relative_name(path).split("/")[1] == layer]
    assert paths
    allowed = TOP_LEVEL[layer] if layer in TOP_LEVEL else MAY_IMPORT[layer] | {layer}
    for path in paths:
        name, modules = relative_name(path), imported_modules(path)
        assert layers_of(modules) <= allowed, name
        tops = {module.split(".")[0] for module in modules}
        assert "prefect" not in tops or layer in {"flows", "tasks"}, name
        assert "great_expectations" not in tops or name in USES_GREAT_EXPECTATIONS
        inside = {m.split(".")[1] for m in modules if m.startswith("gramercy.") and m.count(".")}
        assert inside <= MAY_IMPORT.keys() | {"__version__"}, name


def module_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix().removesuffix(".py").replace("/", ".")


@functools.cache
def module_imports() -> dict[str, set[str]]:
    """The modules that each module of the package imports, also in functions and for types."""
    paths = {module_name(path).removesuffix(".__init__"): path for path in sources()}
    found = {}
    for module, path in paths.items():
        names = imported_modules(path)
        modules = {name if name in paths else name.rpartition(".")[0] for name in names}
        found[module] = modules & paths.keys() - {module}
    return found


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Modules that import each other, directly or by others."""
    reach: dict[str, set[str]] = {}
    for module, direct in imports.items():
        seen: set[str] = set()
        to_visit = [*direct]
        while to_visit:
            if (current := to_visit.pop()) not in seen:
                seen.add(current)
                to_visit += imports[current]
        reach[module] = seen
    in_circle = [module for module in imports if module in reach[module]]
    found: list[set[str]] = []
    for module in in_circle:
        group = {other for other in in_circle if other in reach[module] and module in reach[other]}
        if group not in found:
            found.append(group)
    return found


def test_no_modules_import_each_other() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]
    assert circles(module_imports()) == []


@pytest.mark.parametrize("package", INSIDE)
def test_imports_inside_a_package_go_downwards(package: str) -> None:
    allowed, found = INSIDE[package], set[tuple[str, str]]()
    folders = {path.parent.name for path in (ROOT / package.replace(".", "/")).glob("*/*.py")}
    assert folders == allowed.keys()
    for module, imports in module_imports().items():
        for imported in imports:
            if not (module.startswith(f"{package}.") and imported.startswith(f"{package}.")):
                continue
            above, below = (
                each.removeprefix(f"{package}.").split(".")[0] for each in (module, imported)
            )
            if below in allowed and below not in allowed.get(above, set()) | {above}:
                found.add((module, imported))
    assert found == set()


def test_every_module_has_import_rules() -> None:
    layers = {relative_name(path).split("/")[1] for path in sources()}
    assert layers == MAY_IMPORT.keys() | TOP_LEVEL.keys()


def test_every_subpackage_has_import_rules() -> None:
    layers = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert layers == MAY_IMPORT.keys()
    for name in LINKED:
        assert (PACKAGE / name).is_symlink()
        assert (PACKAGE / name).resolve() == ROOT / name


@pytest.mark.slow
def test_subpackages_are_imported_only_through_the_package() -> None:
    """A bare `import flows` would find the user's own folder of that name."""
    for folder in ("gramercy", "tests", "benchmarks", "docs"):
        for path in (ROOT / folder).rglob("*.py"):
            tops = {module.split(".")[0] for module in imported_modules(path)}
            assert not tops & MAY_IMPORT.keys(), path


def test_randomness_has_one_source() -> None:
    """os.urandom only in the sampler; a seeded stream only for public draws."""
    for path in sources():
        name, text = relative_name(path), path.read_text()
        tops = {module.split(".")[0] for module in imported_modules(path)}
        assert not tops & {"random", "secrets"}, name
        assert "urandom" not in text or name == "gramercy/mechanisms/sampling/sampler.py"
        assert "np.random" not in text or name == "gramercy/estimators/noise/draws.py"


@pytest.mark.slow
def test_import_for_analysts_is_light() -> None:
    """Opening a catalogue needs neither Prefect nor Great Expectations."""
    code = (
        "import sys, gramercy, gramercy.api.catalogue; "
        "print({'prefect', 'great_expectations', 'sqlalchemy', 'sqlglot'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.slow
def test_a_release_does_not_import_great_expectations() -> None:
    """It logs and keeps cells: a process of its own imports it, during the passes."""
    code = (
        "import sys, gramercy.cli.check, gramercy.cli.request_runner, gramercy.cli.plan; "
        "import gramercy.flows.release, gramercy.pipeline.validation.worker; "
        "print({'great_expectations'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_worker_of_expectations_starts_without_heavy_imports() -> None:
    """The first command that may need it starts it before it imports anything that takes long."""
    code = (
        "import sys, gramercy.pipeline.validation.worker_process; "
        "print({'numpy', 'pandas', 'pyarrow', 'pydantic'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
