"""The locks pin every dependency by its hashes, and the audit of them says what it found."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-tools.lock")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def tool(name: str) -> ModuleType:
    """A script of tools/, imported."""
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pins(lock: str) -> list[tuple[Requirement, list[str]]]:
    """The pinned requirements, each with its hashes."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line[:1] not in {"", "#"}]
    return [
        (Requirement(line.split("--hash")[0]), re.findall(r"--hash=(\S+)", line)) for line in lines
    ]


def requirements(words: list[str]) -> Iterator[Requirement]:
    """Requirements of this project; its own extras are resolved."""
    for word in words:
        requirement = Requirement(word)
        if requirement.name == "gramercy":
            for extra in requirement.extras:
                yield from requirements(PROJECT["project"]["optional-dependencies"][extra])
        else:
            yield requirement


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_hashes_and_no_address(lock: str) -> None:
    assert "://" not in (ROOT / lock).read_text(encoding="utf-8")
    for requirement, hashes in pins(lock):
        (pin,) = requirement.specifier
        assert pin.operator == "=="
        assert hashes, requirement
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", each) for each in hashes), requirement


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_satisfy_the_project(lock: str) -> None:
    """Run `make lock` after a change of pyproject.toml."""
    project = PROJECT["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    if lock == "requirements-tools.lock":
        declared = PROJECT["dependency-groups"]["release"]
    here = default_environment()
    pinned = {
        canonicalize_name(each.name): next(iter(each.specifier)).version
        for each, _ in pins(lock)
        if each.marker is None or each.marker.evaluate({**here})
    }
    for requirement in requirements(declared):
        assert requirement.specifier.contains(
            pinned[canonicalize_name(requirement.name)], prereleases=True
        ), f"{requirement}: run `make lock`"


def test_a_pin_with_extras_is_also_pinned_without_them() -> None:
    """pip 23 finds no hash for `b` otherwise, if another package requires it without extras."""
    lock = "# made\na==1 \\\n    --hash=sha256:0\nb[c, d]==2 ; x \\\n    --hash=sha256:1\n"
    plain = "b==2 ; x \\\n    --hash=sha256:1\n"
    written = tool("lock").with_plain_pins(lock)
    assert written == lock[: lock.index("b[")] + plain + lock[lock.index("b[") :]
    assert tool("lock").without_extras(written) == lock[: lock.index("b[")] + plain
    for name in LOCKS:
        names = {str(each) for each, _ in pins(name)}
        extras = [each for each, _ in pins(name) if each.extras]
        assert extras
        assert {f"{each.name}{each.specifier}" for each in extras if not each.marker} <= names


def test_runtime_extras_are_all_that_a_user_may_install() -> None:
    extras = tool("lock").runtime_extras()
    assert {"publish", "s3"} <= set(extras)
    assert set(PROJECT["project"]["optional-dependencies"]) - set(extras) == {"dev", "docs"}


CLEAN = {"name": "a", "version": "1", "vulns": []}
UNKNOWN = {"name": "b", "skip_reason": "not found"}
AFFECTED = {
    "name": "c",
    "version": "2",
    "vulns": [{"id": "PYSEC-2026-1", "fix_versions": ["2.1"]}, {"id": "X-2", "fix_versions": []}],
}


@pytest.mark.parametrize(
    ("facts", "codes", "expected"),
    [
        ([CLEAN], (0, 0), "1 of 1 pinned versions audited, 0 advisories"),
        ([CLEAN, UNKNOWN], (0, 1), "1 of 2 pinned versions audited, 0 advisories"),
        ([UNKNOWN], (0, 1), "NOT AUDITED"),
        ([], (0, 1), "NOT AUDITED"),
        ([CLEAN, AFFECTED], (1, 1), "c 2: PYSEC-2026-1, fixed in 2.1"),
        ([AFFECTED], (1, 1), "c 2: X-2, fixed in no version yet"),
    ],
)
def test_audit_fails_on_advisories_and_a_release_on_missing_ones(
    facts: list[dict[str, Any]],
    codes: tuple[int, int],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = tool("audit_dependencies")
    monkeypatch.setattr(module, "audit", lambda lock: facts if lock.name == LOCKS[0] else [])
    assert tuple(module.main(required=each) for each in (False, True)) == codes
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize("failure", ["no answer", "no JSON", "too late"])
def test_audit_without_network_finds_nothing(
    failure: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """pip-audit is not installed here: its answers are made up."""

    def answer(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert command[:3] == [sys.executable, "-m", "pip_audit"]
        if failure == "too late":
            raise subprocess.TimeoutExpired(command, 1)
        return subprocess.CompletedProcess(
            command, 1, "{}" if failure == "no JSON" else "", failure
        )

    monkeypatch.setattr(subprocess, "run", answer)
    assert tool("audit_dependencies").audit(tmp_path / "x.lock") == []
    reason = "no answer within" if failure == "too late" else failure
    assert f"x.lock: {reason}" in capsys.readouterr().out
