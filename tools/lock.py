"""Resolve the pinned dependencies for all platforms, with the hashes of all their files.

Run by ``make lock``. Pins stay as they are unless an option says otherwise: ``--upgrade``, or
``--upgrade-package NAME``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
_DEVELOPMENT = {"dev", "docs"}  # extras that only developers install
_WITH_EXTRAS = re.compile(r"([\w.-]+)\[[^]]*\](==.*)", re.DOTALL)


def resolve(output: Path, *options: str) -> None:
    """Write a lock file: versions, markers and SHA-256 hashes, without the address of an index."""
    command = [
        str(Path(sys.executable).with_name("uv")),
        *("pip", "compile", "--quiet", "--universal", "--python-version", "3.11"),
        *("--generate-hashes", "--no-annotate", "--no-strip-extras"),
        *("--custom-compile-command", "make lock", "--output-file", str(output)),
        *options,
    ]
    # The words come from this file and from who runs it.
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    output.write_text(with_plain_pins(output.read_text("utf-8")), "utf-8", newline="\n")


def with_plain_pins(lock: str) -> str:
    """Pin a package that is locked with extras without them, too.

    pip before version 24 refuses hashes of ``name[extra]`` where another package requires ``name``.
    """
    pins = re.split(r"(?m)^(?=[a-zA-Z])", lock)
    plain = (_WITH_EXTRAS.sub(r"\1\2", pin) for pin in pins)
    return "".join(p if p == pin else p + pin for p, pin in zip(plain, pins, strict=True))


def without_extras(lock: str) -> str:
    """A lock with each package once: those with extras are pinned without them, too."""
    pins = re.split(r"(?m)^(?=[a-zA-Z])", lock)
    return "".join(pin for pin in pins if not _WITH_EXTRAS.match(pin))


def runtime_extras() -> list[str]:
    """Names of the extras that a user of the wheel may install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [name for name in project["optional-dependencies"] if name not in _DEVELOPMENT]


def runtime_lock(output: Path) -> None:
    """Write the part of requirements.lock that a user of the wheel may install."""
    extras = [word for name in runtime_extras() for word in ("--extra", name)]
    resolve(output, *extras, "--constraint", "requirements.lock", "pyproject.toml")


def main(upgrades: Sequence[str]) -> None:
    """Write both lock files."""
    resolve(ROOT / "requirements.lock", *upgrades, "--extra", "dev", "pyproject.toml")
    tools = ROOT / "requirements-tools.lock"
    resolve(tools, *upgrades, "--group", "pyproject.toml:release")


if __name__ == "__main__":
    main(sys.argv[1:])
