"""Files that outlive a power cut, and that are whole or not there."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gramercy.schemas.errors import ArchiveError


@contextlib.contextmanager
def disk_errors(root: Path, doing: str = "write to") -> Iterator[None]:
    """Raise an ArchiveError for what the disk refuses; it names the file, or else the root."""
    reason, path = "", str(root)
    try:
        yield
    except OSError as caught:
        path = str(caught.filename or path)
        reason = os.strerror(caught.errno) if caught.errno else type(caught).__name__
    if reason:
        raise ArchiveError(
            f"{path}: cannot {doing} the archive ({reason}).",
            "Make room, or make it writable." if doing == "write to" else "Make it readable.",
        )


def make_durable(path: Path) -> None:
    """Have a file or folder written to the disk itself."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def written_aside(path: Path, data: bytes, mode: int = 0o644) -> Iterator[Path]:
    """A durable file of its own beside `path`, to be renamed or linked there; else removed.

    It has `mode` from the moment it exists.
    """
    aside = path.with_name(f".{uuid.uuid4().hex}")
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        yield aside
    finally:
        aside.unlink(missing_ok=True)


def linked(source: str | Path, to: str | Path) -> None:
    """Copy a file that is never changed again, by a link where the disk is the same."""
    try:
        os.link(source, to)
    except OSError:
        shutil.copy2(source, to)


def renamed(folder: Path, place: Path) -> bool:
    """Rename a folder to `place`; False where another folder is there, perhaps since a moment."""
    try:
        folder.rename(place)
    except OSError as caught:
        if caught.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        return False
    return True


def replace(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file, durably; whoever reads it sees the old one or all of the new one."""
    with written_aside(path, data, mode) as aside:
        aside.replace(path)
    make_durable(path.parent)


@dataclass(frozen=True)
class Files:
    """The small files below a folder of this machine, by their names relative to it."""

    root: Path

    def names(self, under: str) -> list[str]:
        """Files below a folder; none where there is no such folder."""
        found: list[str] = []
        for place, _, names in os.walk(self.root / under, onerror=_raise):
            found += [(Path(place) / name).relative_to(self.root).as_posix() for name in names]
        return sorted(found)

    def read(self, name: str) -> bytes | None:
        """A file's content; None where there is none."""
        with contextlib.suppress(FileNotFoundError):
            return (self.root / name).read_bytes()
        return None

    def write(self, name: str, data: bytes) -> None:
        """Write or replace a file, durably, with its folders."""
        path = self.root / name
        self.root.mkdir(parents=True, exist_ok=True)
        for folder in reversed([path.parent, *path.parent.parents]):
            if folder.is_relative_to(self.root) and folder != self.root:
                folder.mkdir(exist_ok=True, mode=0o700)  # for stewards and auditors
        replace(path, data)
        for folder in path.parent.relative_to(self.root).parents:
            make_durable(self.root / folder)

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self.root / name).unlink(missing_ok=True)


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
