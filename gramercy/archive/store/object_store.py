"""Stores at a URL that fsspec supports: fresh listings, exclusive creation, typed errors.

URLs and the errors of drivers may contain credentials. Messages show a URL only by its `location`,
and never quote a driver's error.

A bundle is uploaded in a fixed order. SHA256SUMS is created first, exclusively: it reserves the
place for one content. The other files follow and are read back. SHA256SUMS.sig is created last, and
a bundle counts as committed if and only if it exists. Readers therefore never see an incomplete
bundle, and an interrupted upload can be finished with the same bytes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import posixpath
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from gramercy.archive.seal.bundle import SIGNATURE, SUMS, content, file_digest, same_content
from gramercy.archive.store.layout import DEPTH, NAME, STAGING
from gramercy.archive.store.storage import MirroredStore
from gramercy.common.disk import disk_errors, link_or_copy, rename_folder
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import ArchiveError, RequestError
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
_MEMORY_LOCK = threading.Lock()
_Action = Literal["read", "write", "remove"]


def is_url(text: str) -> bool:
    """Whether a text is a URL rather than a path."""
    return _URL.match(text) is not None


class UrlStore(MirroredStore):
    """Objects below a URL. Credentials come from the environment."""

    def check_address(self) -> None:
        _ = self._system

    def check_writable(self) -> None:
        """Make a trial write. It is never removed, because some stores forbid deletion."""
        self.write(f"{STAGING}/writable", b"")

    def sizes(self, under: str = "") -> dict[str, int]:
        """Size in bytes of every object below a folder, by name."""
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
        sizes = self.sizes(folder)
        return {name.removeprefix(f"{folder}/"): size for name, size in sizes.items()}

    def children(self, folder: str = "", most: int | None = None) -> set[str]:
        with self._store_errors(folder, "read"):
            system, root = self._system
            path = posixpath.normpath(f"{root}/{folder}")
            if not path.strip("./"):  # above all buckets
                return set()
            try:
                return {_last(each) for each in system.ls(path, detail=False)}
            except FileNotFoundError:
                self._check_bucket(system, root)
                return set()

    def names(self, under: str = "") -> list[str]:
        return list(self.sizes(under))

    def read(self, name: str, most: int | None = None) -> bytes | None:
        with self._store_errors(name, "read"):
            system, root = self._system
            try:
                end = None if most is None else most + 1
                data = bytes(system.cat_file(f"{root}/{name}", end=end))
            except FileNotFoundError:
                return None
        if most is not None and len(data) > most:
            raise wordings.served_file_too_large(self.location(name), most)
        return data

    def chunks(self, name: str, size: int) -> Iterator[bytes]:
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
        if name.endswith(".html"):  # drivers derive the content type from the name of a local file
            with disk_errors(self.root), self.temporary() as folder:
                (folder / _last(name)).write_bytes(data)
                self.upload(name, folder / _last(name))
            return
        with self._store_errors(name, "write"):
            system, path = self._writable(name)
            system.pipe_file(path, data)

    def upload(self, name: str, source: Path) -> None:
        """Upload a file as an object, replacing an older one."""
        with self._store_errors(name, "write"):
            system, path = self._writable(name)
            system.put_file(str(source), path)

    def remove(self, name: str) -> None:
        with self._store_errors(name, "remove"):
            system, root = self._system
            system.rm_file(f"{root}/{name}")

    def bundles(
        self, dataset: str | None = None, release: str | None = None, kind: str | None = None
    ) -> list[tuple[str, ...]]:
        wanted = (dataset, release, kind)
        under = "/".join(filter(None, itertools.takewhile(bool, wanted)))
        names = [name.split("/") for name in self.names(under)]
        return [
            tuple(parts[:-1])
            for parts in names
            if len(parts) > 3
            and DEPTH.get(parts[2]) == len(parts) - 1
            and parts[-1] == SIGNATURE
            and all(map(NAME.fullmatch, parts))
            and all(each in {None, part} for each, part in zip(wanted, parts, strict=False))
        ]

    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None) -> None:
        name = self.name(place)
        with disk_errors(self.root):
            sums, signature = ((staged / file).read_bytes() for file in (SUMS, SIGNATURE))
        if not self.ensure(f"{name}/{SUMS}", sums):
            raise self._conflict(place)
        if not self._is_committed(name):
            for file in content(staged):
                self.upload(f"{name}/{file}", staged / file)
        self._read_back(staged, name)
        with disk_errors(self.root), self.temporary() as copy:
            shutil.copytree(staged, copy, copy_function=link_or_copy, dirs_exist_ok=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            if confirm is not None and not self._is_committed(name):
                confirm()
            if not self.ensure(f"{name}/{SIGNATURE}", signature):
                # Perhaps the same content was committed with the signature of another key.
                self.fetch(place)
                if not same_content(staged, place):
                    raise self._conflict(place)
            rename_folder(copy, place)
        shutil.rmtree(staged, ignore_errors=True)

    def _read_back(self, staged: Path, name: str) -> None:
        """Refuse a store that altered the upload, or contains additional files."""
        sizes = self.sizes_in(name)
        for file in sorted((sizes.keys() | {*content(staged), SUMS}) - {SIGNATURE}):
            url = self.location(f"{name}/{file}")
            if not (staged / file).is_file():
                raise families.STORE(
                    "{url} is not part of the bundle that is being published.",
                    "Remove it, and try again.",
                    url=url,
                )
            digest = hashlib.sha256()
            for chunk in self.chunks(f"{name}/{file}", sizes.get(file, 0)):
                digest.update(chunk)
            if digest.hexdigest() != file_digest(staged / file):
                raise families.STORE(
                    "{url} does not contain what was written to it.",
                    "Try again.",
                    url=url,
                )

    def _is_committed(self, name: str) -> bool:
        return SIGNATURE in self.sizes_in(name)

    def _conflict(self, place: Path) -> ArchiveError:
        if self._is_committed(self.name(place)):
            return super()._conflict(place)
        return families.EXISTS(
            "{claim}: another bundle is being published here.",
            "Wait for it to appear. If its publisher has crashed, run that publisher "
            "again, or remove this file.",
            claim=self.location(f"{self.name(place)}/{SUMS}"),
        )

    def _check_bucket(self, system: Any, root: str) -> None:
        """Refuse a URL whose bucket does not exist; a missing folder is not an error."""
        if self.url.partition("://")[0].lower() in _S3:
            system.ls(root.strip("/").partition("/")[0], detail=False)

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
        url = self.location(name)
        try:
            yield
        except FileNotFoundError:
            raise families.STORE(
                "Cannot {action} {url}: the bucket does not exist.",
                "Create the bucket, or correct the URL.",
                url=url,
                action=action,
            ) from None
        except (ArchiveError, RequestError):
            raise
        except Exception as error:  # drivers raise the exceptions of their libraries
            raise wordings.store_failed(url, action, _reason(error)) from None


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

    address = without_secrets(url).rstrip("/")
    if "::" in url:
        raise families.NOT_AN_ARCHIVE(
            "{url} chains several URLs; an archive has one.",
            "Write a single URL such as s3://bucket/path.",
            url=address,
        )
    protocol = url.partition("://")[0].lower()
    options = {"config_kwargs": _S3_TIMEOUTS} if protocol in _S3 else {}
    failure: RequestError | None = None
    try:
        system, path = url_to_fs(url, use_listings_cache=False, skip_instance_cache=True, **options)
    except ImportError:
        failure = families.DRIVER(
            "{url}: the driver of {protocol}:// is not installed.",
            "Install the package that the documentation of fsspec names for it.",
            url=address,
            protocol=protocol,
        )
        if protocol in _S3:
            failure = families.DRIVER(
                "{url}: the S3 driver is not installed.",
                "Run pip install 'gramercy[s3]'.",
                url=address,
            )
    except ValueError:
        failure = families.DRIVER(
            "{url}: fsspec does not know this protocol.",
            "Give a folder, or an s3:// URL.",
            url=address,
        )
    except Exception as error:
        failure = families.DRIVER(
            "{url} cannot be opened ({reason}).",
            "Check the URL and the configuration of its driver.",
            url=address,
            reason=type(error).__name__,
        )
    if failure is None and user_in_name(url, path):
        failure = wordings.user_in_url(address, protocol)
    elif failure is None and "?" in url:  # the query would become part of every object's name
        failure = wordings.query_in_url(address)
    if failure is not None:
        raise failure
    return system, path.rstrip("/")
