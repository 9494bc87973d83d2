"""Build what a release publishes, into dist/: wheel, sdist, lock, SBOM and checksums.

Run by ``make dist``. The commit is built twice, at other times and with other permissions of
files; both builds must be the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from lock import ROOT, runtime_lock, without_extras

DIST = ROOT / "dist"
# Without it, hatchling uses a fixed date, which anyone who builds the sdist again gets, too.
_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}


def run_git(*words: str) -> bytes:
    """The output of a git command about this repository."""
    command = [shutil.which("git") or "git", *words]
    # The words come from this file.
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S603


def build(folder: Path, umask: int) -> dict[str, bytes]:
    """Build the commit: the sdist, and the wheel from the sdist."""
    source, built = folder / "source", folder / "built"
    with tarfile.open(fileobj=io.BytesIO(run_git("archive", "--format=tar", "HEAD"))) as commit:
        commit.extractall(source, filter="data")
    for path in source.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~umask)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(built), str(source)]
    subprocess.run(  # noqa: S603  the words above
        command, check=True, env=_ENVIRONMENT, umask=umask, stdout=subprocess.DEVNULL
    )
    return {path.name: path.read_bytes() for path in sorted(built.iterdir())}


def bill_of_materials(lock: Path, output: Path) -> None:
    """Write the CycloneDX SBOM of the packages of a lock file, with their hashes."""
    pins = output.with_suffix(".pins")
    pins.write_text(without_extras(lock.read_text("utf-8")), "utf-8")
    command = [
        *(sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible"),
        *("--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library"),
        *("--output-format", "JSON", "--output-file", str(output), str(pins)),
    ]
    subprocess.run(command, check=True)  # noqa: S603  the words above


def main() -> None:
    """Write dist/."""
    if run_git("status", "--porcelain"):
        sys.exit("dist: the working tree differs from its commit; commit or remove the changes.")
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        files = build(Path(first), 0o022)
        if build(Path(second), 0o077) != files:
            sys.exit("dist: two builds of the same commit differ.")
        stem = next(name for name in files if name.endswith(".whl")).split("-py3")[0]
        lock, bill = Path(first) / f"{stem}.lock", Path(first) / f"{stem}.cdx.json"
        runtime_lock(lock)  # what the wheel and its extras need
        bill_of_materials(lock, bill)
        files |= {path.name: path.read_bytes() for path in (lock, bill)}
    sums = "".join(
        f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items())
    )
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for name, data in (*files.items(), ("SHA256SUMS", sums.encode())):
        (DIST / name).write_bytes(data)
    print(sums, end="")


if __name__ == "__main__":
    main()
