"""Stores at an HTTP address: files are read by name, bounded, with typed errors.

An HTTP server lists no folders. The files of a bundle are those that its SHA256SUMS names.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import os
import re
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gramercy.archive.seal.bundle import SEAL, SIGNATURE, SUMS
from gramercy.archive.store.layout import LISTING_FILE
from gramercy.archive.store.storage import MirroredStore, joined
from gramercy.schemas import families, wordings
from gramercy.schemas.problem import Wording

_read_only = Wording(
    families.STORE,
    "{url} can only be read: an archive at an HTTP address cannot be written to.",
    "Publish to a folder or an object store, and serve its files.",
)


SCHEMES = frozenset({"http", "https"})

_LEAST_RATE = 1 << 14  # bytes a second of a file
_CHUNK = 1 << 20
_MOST_SMALL = 1 << 24  # bytes of a small file, unless stated otherwise
_MOST_SUMS = 1 << 20  # bytes of SHA256SUMS
_MOST_FILE = 1 << 32  # bytes of any other file of a bundle
_MISSING = {404, 410}
_LINE = re.compile(rb"[0-9a-f]{64}  ([^/\n\0]+)\n")


@dataclass(frozen=True)
class HttpStore(MirroredStore):
    """Files by their names relative to an HTTP address without user, query and fragment.

    Parameters
    ----------
    url, root
        See `MirroredStore`.
    """

    # how long to wait for the headers of an answer, and then for each part of its content
    seconds: float = 30.0

    def check_address(self) -> None:
        parts = urllib.parse.urlsplit(self.url)
        if "@" in self.url:
            raise wordings.user_in_url(self.location(), parts.scheme)
        if "?" in self.url or "#" in self.url:
            raise wordings.query_in_url(self.location())

    def check_writable(self) -> None:
        raise _read_only(self.location())

    def write(self, name: str, data: bytes) -> None:
        raise _read_only(self.location())

    def remove(self, name: str) -> None:
        raise _read_only(self.location())

    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None) -> None:
        raise _read_only(self.location())

    def names(self, under: str = "") -> list[str]:
        return []  # a server tells only what the listing names

    def bundles(
        self, dataset: str | None = None, release: str | None = None, kind: str | None = None
    ) -> list[tuple[str, ...]]:
        return []

    def children(self, folder: str = "", most: int | None = None) -> set[str]:
        """The names at which an archive is looked for: a server lists no folders."""
        listed = replace(self, url=joined(self.url, folder), seconds=5.0)  # only a suggestion
        if not listed.url:
            return set()
        found = (listed.read(LISTING_FILE) or b"").startswith(b"{")
        return {"archive", LISTING_FILE} if found else {"archive"}

    def read(self, name: str, most: int | None = None) -> bytes | None:
        most = _MOST_SMALL if most is None else most
        with self._errors(name):
            response = self._open(name)
            if response is None:
                return None
            with response:
                content = b"".join(self._pieces(response, most + 1))
        if len(content) > most:
            raise wordings.served_file_too_large(self.location(name), most)
        return content

    def sizes_in(self, folder: str) -> dict[str, int]:
        sums = self.read(f"{folder}/{SUMS}", _MOST_SUMS)
        if sums is None:
            return {}
        # `bundle.sealed_digests` refuses a list that has any other line.
        names = {os.fsdecode(name) for name in _LINE.findall(sums)}
        return {SUMS: _MOST_SUMS, SIGNATURE: _MOST_SUMS} | dict.fromkeys(names - SEAL, _MOST_FILE)

    def chunks(self, name: str, size: int) -> Iterator[bytes]:
        left = size
        with self._errors(name):
            response = self._open(name)
            if response is None:
                raise wordings.store_failed(self.location(name), "read", "not found")
            with response:
                if int(response.headers.get("Content-Length") or 0) > size:
                    raise wordings.served_file_too_large(self.location(name), size)
                for piece in self._pieces(response, size + 1):
                    left -= len(piece)
                    yield piece
        if left < 0:
            raise wordings.served_file_too_large(self.location(name), size)

    def _open(self, name: str) -> _Response | None:
        """The server's answer, or None if there is no such file."""
        url = f"{self.url.rstrip('/')}/{urllib.parse.quote(name)}"
        request = urllib.request.Request(  # noqa: S310  `SCHEMES` only
            url, headers={"User-Agent": "gramercy"}
        )
        try:
            response: _Response = _opener().open(request, timeout=self.seconds)
        except urllib.error.HTTPError as error:
            with error:
                if error.code in _MISSING:
                    return None
                raise
        return response

    def _pieces(self, response: _Response, most: int) -> Iterator[bytes]:
        """At most so many bytes of an answer, as they arrive."""
        left, started = most, time.monotonic()
        while left:
            slowest = started + (most - left) / _LEAST_RATE
            response.stream.deadline = min(slowest, time.monotonic()) + self.seconds
            if not (piece := response.read1(min(_CHUNK, left))):
                return
            left -= len(piece)
            yield piece

    @contextlib.contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        """Turn an error of the network into an ArchiveError that does not quote it."""
        reason = ""
        try:
            yield
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = _reason(error)
        if reason:
            raise wordings.store_failed(self.location(name), "read", reason)


class _TimedStream(io.RawIOBase):
    """The bytes of an answer until a deadline.

    A timeout of the socket limits the wait for each byte, and not for the end of a line.
    """

    def __init__(self, stream: io.RawIOBase, sock: socket.socket) -> None:
        self._stream, self._sock = stream, sock
        self.deadline = time.monotonic() + (sock.gettimeout() or 0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self.deadline - time.monotonic()
        if left > 0:
            self._sock.settimeout(left)
            with contextlib.suppress(TimeoutError):
                return self._stream.readinto(buffer)
        raise TimeoutError

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """An answer whose headers must be complete within the timeout of its connection."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.stream = _TimedStream(self.fp.detach(), sock)
        self.fp = io.BufferedReader(self.stream)


class _Connection(http.client.HTTPConnection):
    response_class = _Response


class _SecureConnection(http.client.HTTPSConnection):
    response_class = _Response


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_SecureConnection, req)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections to HTTP addresses, and never from HTTPS to HTTP."""

    def http_error_302(
        self,
        req: urllib.request.Request,
        fp: Any,
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
    ) -> Any:
        # All redirections together have the time of one answer.
        req.timeout = max(fp.stream.deadline - time.monotonic(), 1e-3)
        fp.close()  # the standard library would read its content, of any length, into memory
        return super().http_error_302(req, io.BytesIO(), code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: Any,
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        scheme = newurl.partition(":")[0].lower()
        if scheme not in SCHEMES or (req.type == "https" and scheme != "https"):
            raise urllib.error.HTTPError(req.full_url, code, msg, headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@functools.cache
def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_Http, _Https, _Redirects)


def _reason(error: Exception) -> str:
    """Why a request failed, without the message of the error, which may quote the address."""
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code}"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, socket.gaierror):
        return "the host is not known"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return "the server's certificate is not valid"
    if isinstance(cause, TimeoutError):
        return "no complete answer in time"
    if isinstance(cause, OSError) and cause.errno:
        return os.strerror(cause.errno)
    not_http = isinstance(cause, http.client.HTTPException)
    return "the answer is not valid HTTP" if not_http else type(cause).__name__
