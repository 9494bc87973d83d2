"""The objects below a URL, through fsspec: fresh listings, exclusive creation, typed errors.

Nothing here shows more of a URL than `shown` leaves of it, nor the words of a driver's error: both
may hold credentials.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramercy.schemas.errors import ArchiveError, RequestError
from gramercy.schemas.url import USE_ENVIRONMENT, user_in_name, without_secrets

_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*::)*[A-Za-z][A-Za-z0-9+.-]*://")
_PART = 1 << 24  # bytes that are in memory at a time
_S3 = {"s3", "s3a"}
# So that what is unreachable is told within a minute.
_PATIENCE = {
    "connect_timeout": 10,
    "read_timeout": 60,
    "retries": {"max_attempts": 2, "mode": "standard"},
}
_MEMORY = threading.Lock()


def is_url(text: str) -> bool:
    """Whether this is a URL, and not a path."""
    return _URL.match(text) is not None


def shown(url: str) -> str:
    """The URL of an archive, for people."""
    return without_secrets(url).rstrip("/")


@dataclass(frozen=True)
class Objects:
    """Objects by their names relative to a URL.

    Parameters
    ----------
    url
        Of any protocol that fsspec has a driver for. Credentials come from the environment.
    """

    url: str = field(repr=False)

    def open(self) -> None:
        """Find the driver of the URL, without reaching out.

        Raises
        ------
        RequestError
            If there is none.
        """
        _ = self._system

    def at(self, name: str = "") -> str:
        """The URL of an object, for people."""
        return f"{shown(self.url)}/{name}" if name else shown(self.url)

    def sizes(self, under: str = "") -> dict[str, int]:
        """Bytes of every object below a folder, by name.

        Raises
        ------
        ArchiveError
            As everything here does, if the store cannot be reached, or says no.
        """
        with self._trouble(under, "cannot be read"):
            system, root = self._system
            found = system.find(f"{root}/{under}".rstrip("/"), detail=True)
            names = {path[len(root) + 1 :]: facts for path, facts in found.items()}
            # A name that ends in '/' is how some tools write down an empty folder.
            return {
                name: int(facts.get("size") or 0)
                for name, facts in sorted(names.items())
                if name and not name.endswith("/")
            }

    def sizes_in(self, folder: str) -> dict[str, int]:
        """Bytes of every object below a folder, by its name relative to that folder."""
        found = self.sizes(folder)
        return {name.removeprefix(f"{folder}/"): size for name, size in found.items()}

    def names(self, under: str) -> list[str]:
        """The objects below a folder."""
        return list(self.sizes(under))

    def read(self, name: str) -> bytes | None:
        """A small object's content; None where there is none."""
        with self._trouble(name, "cannot be read"):
            system, root = self._system
            try:
                return bytes(system.cat_file(f"{root}/{name}"))
            except FileNotFoundError:
                return None

    def parts(self, name: str, size: int) -> Iterator[bytes]:
        """The content of an object of this size, in parts."""
        with self._trouble(name, "cannot be read"):
            system, root = self._system
            if size <= _PART:
                yield bytes(system.cat_file(f"{root}/{name}"))
                return
            for start in range(0, size, _PART):
                yield bytes(system.cat_file(f"{root}/{name}", start, min(start + _PART, size)))

    def create(self, name: str, data: bytes) -> bool:
        """Create an object, unless there is one of this name: whether this did."""
        # The memory:// of fsspec looks and then creates; S3 is exclusive by itself.
        alone = _MEMORY if self.url.startswith("memory:") else contextlib.nullcontext()
        with self._trouble(name, "cannot be written"), alone:
            system, path = self._to(name)
            try:
                system.pipe_file(path, data, mode="create")
            except FileExistsError:
                return False
        return True

    def same(self, name: str, data: bytes) -> bool:
        """Create an object, or find one of this very content: whether it is there now."""
        failed: ArchiveError | None = None
        try:
            if self.create(name, data):
                # A store that knows no exclusive creation may have taken two of them.
                return self.read(name) == data
        except ArchiveError as caught:
            failed = caught
        held = self.read(name)
        if failed is not None and held != data:
            raise failed  # else only the answer was lost
        return held == data

    def write(self, name: str, data: bytes) -> None:
        """Create or replace a small object."""
        with self._trouble(name, "cannot be written"):
            system, path = self._to(name)
            system.pipe_file(path, data)

    def upload(self, name: str, source: Path) -> None:
        """Create or replace an object by a file."""
        with self._trouble(name, "cannot be written"):
            system, path = self._to(name)
            system.put_file(str(source), path)

    def remove(self, name: str) -> None:
        """Remove an object."""
        with self._trouble(name, "cannot be removed"):
            system, root = self._system
            system.rm_file(f"{root}/{name}")

    @property
    def _system(self) -> tuple[Any, str]:
        # A driver and its connections belong to one process: a fork needs its own.
        return _driver(self.url, os.getpid())

    def _to(self, name: str) -> tuple[Any, str]:
        system, root = self._system
        path = f"{root}/{name}"
        if path.startswith("/"):  # folders have to be made; in a bucket there are none
            system.makedirs(path.rpartition("/")[0], exist_ok=True)
        return system, path

    @contextlib.contextmanager
    def _trouble(self, name: str, what: str) -> Iterator[None]:
        reason, mend = "", "Check the network, and the credentials in the environment."
        try:
            yield
        except FileNotFoundError:
            reason, mend = "there is no such bucket", "Make the bucket, or correct the URL."
        except PermissionError:
            reason = "access is denied"
        except OSError as caught:
            reason = os.strerror(caught.errno) if caught.errno else type(caught).__name__
        except (ArchiveError, RequestError):
            raise
        except Exception as caught:  # drivers raise whatever their libraries do
            reason = type(caught).__name__
        if reason:
            # A driver's error quotes the URL, and would be shown as the context of this one.
            raise ArchiveError(f"{self.at(name)}: {what} ({reason}).", mend) from None


@functools.lru_cache(maxsize=32)
def _driver(url: str, pid: int) -> tuple[Any, str]:
    """The file system of a URL, for one process, and the path on it."""
    from fsspec.core import url_to_fs

    if "::" in url:
        raise RequestError(f"{shown(url)}: is a chain of URLs.", "Give one, as s3://bucket/path.")
    protocol = url.partition("://")[0].lower()
    options = {"config_kwargs": _PATIENCE} if protocol in _S3 else {}
    failure, mend = "", ""
    try:
        system, path = url_to_fs(url, use_listings_cache=False, skip_instance_cache=True, **options)
    except ImportError:
        failure = "needs a driver that is not installed"
        mend = f"Install the one that fsspec names for {protocol}://."
        mend = "Run pip install 'gramercy[s3]'." if protocol in _S3 else mend
    except ValueError:
        failure, mend = "is of no protocol that fsspec knows", "Give a folder, or an s3:// URL."
    except Exception as caught:
        failure = f"cannot be opened ({type(caught).__name__})"
    if not failure and user_in_name(url, path):
        failure, mend = f"{protocol}:// URLs have no user and no password", USE_ENVIRONMENT
    elif not failure and "?" in url:  # it would become part of every object's name
        failure, mend = "the URL of an archive has no query", USE_ENVIRONMENT
    if failure:
        raise RequestError(f"{shown(url)}: {failure}.", mend)
    return system, path.rstrip("/")
