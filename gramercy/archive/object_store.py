"""The objects below a URL, through fsspec: fresh listings, exclusive creation, typed errors.

URLs and the errors of drivers may contain credentials. Messages show a URL only through
`display_url`, and never quote a driver's error.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gramercy.schemas.errors import ArchiveError, RequestError
from gramercy.schemas.problems import archive as problems
from gramercy.schemas.url import user_in_name, without_secrets

_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*::)*[A-Za-z][A-Za-z0-9+.-]*://")
_CHUNK = 1 << 24  # bytes to hold in memory at a time
_S3 = {"s3", "s3a"}
# An unreachable store is reported within a minute.
_S3_TIMEOUTS = {
    "connect_timeout": 10,
    "read_timeout": 60,
    "retries": {"max_attempts": 2, "mode": "standard"},
}
_MOST_NEARBY = 100  # folders that are looked at for a suggestion
_MEMORY_LOCK = threading.Lock()
_Action = Literal["read", "write", "remove"]


def is_url(text: str) -> bool:
    """Whether a text is a URL rather than a path."""
    return _URL.match(text) is not None


def display_url(url: str) -> str:
    """The URL of an archive without credentials, for messages."""
    return without_secrets(url).rstrip("/")


@dataclass(frozen=True)
class ObjectStore:
    """Objects by their names relative to a URL.

    Parameters
    ----------
    url
        URL of a protocol that fsspec supports. Credentials come from the environment.
    """

    url: str = field(repr=False)

    def check_driver(self) -> None:
        """Check that the URL has an installed driver, without network access.

        Raises
        ------
        RequestError
            If the URL is not supported, or its driver is not installed.
        """
        _ = self._system

    def display_url(self, name: str = "") -> str:
        """The URL of an object without credentials, for messages."""
        return f"{display_url(self.url)}/{name}" if name else display_url(self.url)

    def sizes(self, under: str = "") -> dict[str, int]:
        """Size in bytes of every object below a folder, by name.

        Raises
        ------
        ArchiveError
            If the store cannot be reached or refuses, as for all methods of this class.
        """
        with self._store_errors(under, "read"):
            system, root = self._system
            entries = system.find(f"{root}/{under}".rstrip("/"), detail=True)
            names = {path[len(root) + 1 :]: entry for path, entry in entries.items()}
            # Some tools represent an empty folder by an object whose name ends in '/'.
            return {
                name: int(entry.get("size") or 0)
                for name, entry in sorted(names.items())
                if name and not name.endswith("/")
            }

    def sizes_in(self, folder: str) -> dict[str, int]:
        """Size in bytes of every object below a folder, by its name relative to that folder."""
        sizes = self.sizes(folder)
        return {name.removeprefix(f"{folder}/"): size for name, size in sizes.items()}

    def children(self) -> set[str]:
        """Names of the objects and folders directly below the URL."""
        with self._store_errors("", "read"):
            system, root = self._system
            try:
                return {_last(path) for path in system.ls(root, detail=False)}
            except FileNotFoundError:
                self._check_bucket(system, root)
                return set()

    def nearby(self, files: Collection[str]) -> list[str]:
        """URLs without credentials of the folders next to this one that have one of these files.

        Those directly above, below and next to it; empty if they may not be listed.
        """
        found: list[str] = []
        with contextlib.suppress(Exception):  # only a suggestion: an error means none
            system, root = self._system
            parent, above = root.rpartition("/")[0], display_url(self.url).rpartition("/")[0]
            folders = {f"{root}/{name}": f"{self.display_url()}/{name}" for name in self.children()}
            if parent:
                folders[parent] = above
                others = map(_last, system.ls(parent, detail=False))
                folders |= {f"{parent}/{name}": f"{above}/{name}" for name in others}
            for path, url in [*folders.items()][:_MOST_NEARBY]:
                names: set[str] = set()
                with contextlib.suppress(OSError):
                    names = {_last(each) for each in system.ls(path, detail=False)}
                found += [url] if path != root and names & set(files) else []
        return found

    def names(self, under: str) -> list[str]:
        """Names of the objects below a folder."""
        return list(self.sizes(under))

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """The content of a small object, or its first bytes; None if it does not exist."""
        with self._store_errors(name, "read"):
            system, root = self._system
            try:
                return bytes(system.cat_file(f"{root}/{name}", end=most))
            except FileNotFoundError:
                return None

    def chunks(self, name: str, size: int) -> Iterator[bytes]:
        """The content of an object of this size, in chunks."""
        with self._store_errors(name, "read"):
            system, root = self._system
            if size <= _CHUNK:
                yield bytes(system.cat_file(f"{root}/{name}"))
                return
            for start in range(0, size, _CHUNK):
                yield bytes(system.cat_file(f"{root}/{name}", start, min(start + _CHUNK, size)))

    def create(self, name: str, data: bytes) -> bool:
        """Create an object unless one of this name exists; returns whether it was created."""
        # Creation on S3 is atomic. With memory://, fsspec checks first and then creates.
        lock = _MEMORY_LOCK if self.url.startswith("memory:") else contextlib.nullcontext()
        with self._store_errors(name, "write"), lock:
            system, path = self._writable(name)
            try:
                system.pipe_file(path, data, mode="create")
            except FileExistsError:
                return False
        return True

    def ensure(self, name: str, data: bytes) -> bool:
        """Create an object unless it exists; returns whether it has this content afterwards."""
        failure: ArchiveError | None = None
        try:
            if self.create(name, data):
                # A store without exclusive creation may have accepted two objects.
                return self.read(name) == data
        except ArchiveError as error:
            failure = error
        stored = self.read(name)
        if failure is not None and stored != data:
            raise failure  # if the data are there, only the response was lost
        return stored == data

    def write(self, name: str, data: bytes) -> None:
        """Create or replace a small object."""
        with self._store_errors(name, "write"):
            system, path = self._writable(name)
            system.pipe_file(path, data)

    def upload(self, name: str, source: Path) -> None:
        """Upload a file as an object, replacing an older one."""
        with self._store_errors(name, "write"):
            system, path = self._writable(name)
            system.put_file(str(source), path)

    def remove(self, name: str) -> None:
        """Remove an object."""
        with self._store_errors(name, "remove"):
            system, root = self._system
            system.rm_file(f"{root}/{name}")

    def _check_bucket(self, system: Any, root: str) -> None:
        """Refuse a URL whose bucket does not exist; a missing folder is not an error."""
        if "/" in root.strip("/") and self.url.partition("://")[0].lower() in _S3:
            system.ls(root.partition("/")[0], detail=False)
        elif self.url.partition("://")[0].lower() in _S3:
            raise FileNotFoundError

    @property
    def _system(self) -> tuple[Any, str]:
        # A driver and its connections belong to one process; a fork needs its own.
        return _driver(self.url, os.getpid())

    def _writable(self, name: str) -> tuple[Any, str]:
        """The file system, and the path of an object whose parent folder exists."""
        system, root = self._system
        path = f"{root}/{name}"
        if path.startswith("/"):  # a file system; buckets have no folders to create
            system.makedirs(path.rpartition("/")[0], exist_ok=True)
        return system, path

    @contextlib.contextmanager
    def _store_errors(self, name: str, action: _Action) -> Iterator[None]:
        """Turn a driver's error into an ArchiveError that does not quote it."""
        url = self.display_url(name)
        try:
            yield
        except FileNotFoundError:
            raise problems.bucket_missing(url, action) from None
        except (ArchiveError, RequestError):
            raise
        except Exception as error:  # drivers raise the exceptions of their libraries
            raise problems.store_failed(url, action, _reason(error)) from None


def _last(path: str) -> str:
    """The last component of a path."""
    return str(path).rstrip("/").rpartition("/")[2]


def _reason(error: Exception) -> str:
    """Why an operation failed, without the message of the driver."""
    if isinstance(error, PermissionError):
        return "access is denied"
    errno = error.errno if isinstance(error, OSError) else None
    return os.strerror(errno) if errno else type(error).__name__


@functools.lru_cache(maxsize=32)
def _driver(url: str, pid: int) -> tuple[Any, str]:
    """The file system of a URL, for one process, and the path on it."""
    from fsspec.core import url_to_fs

    address = display_url(url)
    if "::" in url:
        raise problems.chained_url(address)
    protocol = url.partition("://")[0].lower()
    options = {"config_kwargs": _S3_TIMEOUTS} if protocol in _S3 else {}
    failure: RequestError | None = None
    try:
        system, path = url_to_fs(url, use_listings_cache=False, skip_instance_cache=True, **options)
    except ImportError:
        failure = problems.driver_missing(address, protocol)
        if protocol in _S3:
            failure = problems.s3_driver_missing(address)
    except ValueError:
        failure = problems.unknown_protocol(address)
    except Exception as error:
        failure = problems.driver_failed(address, type(error).__name__)
    if failure is None and user_in_name(url, path):
        failure = problems.user_in_url(address, protocol)
    elif failure is None and "?" in url:  # the query would become part of every object's name
        failure = problems.query_in_url(address)
    if failure is not None:
        raise failure
    return system, path.rstrip("/")
