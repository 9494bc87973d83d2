"""The files of an archive at an HTTP address: read by name, bounded, with typed errors.

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
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gramercy.archive.bundle import SEAL, SIGNATURE, SUMS
from gramercy.schemas.problems.archive import query_in_url, store_failed, user_in_url
from gramercy.schemas.problems.listing import file_too_large
from gramercy.schemas.url import without_secrets

SCHEMES = frozenset({"http", "https"})

_LEAST_RATE = 1 << 14  # bytes a second of a file
_CHUNK = 1 << 20
_MOST_SUMS = 1 << 20  # bytes of SHA256SUMS
_MOST_FILE = 1 << 32  # bytes of any other file of a bundle
_MISSING = {404, 410}
_LINE = re.compile(rb"[0-9a-f]{64}  ([^/\n\0]+)\n")


@dataclass(frozen=True)
class HttpFiles:
    """Files by their names relative to an HTTP address.

    Parameters
    ----------
    url
        The address, without user, query and fragment.
    seconds
        How long to wait for the headers of an answer, and then for each part of its content.
    """

    url: str = field(repr=False)
    seconds: float = 30.0

    def check_address(self) -> None:
        """Refuse an address with a user or a query; raises `RequestError`."""
        parts = urllib.parse.urlsplit(self.url)
        if "@" in self.url:
            raise user_in_url(self.display_url(), parts.scheme)
        if "?" in self.url or "#" in self.url:
            raise query_in_url(self.display_url())

    def display_url(self, name: str = "") -> str:
        """The address of a file, without anything that may be secret."""
        base = without_secrets(self.url).rstrip("/")
        return f"{base}/{name}" if name else base

    def read(self, name: str, most: int) -> bytes | None:
        """The content of a small file; None if there is none.

        Raises
        ------
        ArchiveError
            If it is larger than `most` bytes, or the server cannot be reached or refuses.
        """
        with self._errors(name):
            response = self._open(name)
            if response is None:
                return None
            with response:
                content = b"".join(self._pieces(response, most + 1))
        if len(content) > most:
            raise file_too_large(self.display_url(name), most)
        return content

    def sizes_in(self, folder: str) -> dict[str, int]:
        """The largest possible sizes in bytes of a bundle's files, by name; empty if it is missing.

        Raises
        ------
        ArchiveError
            As `read`.
        """
        sums = self.read(f"{folder}/{SUMS}", _MOST_SUMS)
        if sums is None:
            return {}
        # `bundle.sealed_digests` refuses a list that has any other line.
        names = {os.fsdecode(name) for name in _LINE.findall(sums)}
        return {SUMS: _MOST_SUMS, SIGNATURE: _MOST_SUMS} | dict.fromkeys(names - SEAL, _MOST_FILE)

    def chunks(self, name: str, size: int) -> Iterator[bytes]:
        """The content of a file of at most this size, in chunks.

        Raises
        ------
        ArchiveError
            As `read`; also if there is no such file.
        """
        left = size
        with self._errors(name):
            response = self._open(name)
            if response is None:
                raise store_failed(self.display_url(name), "read", "not found")
            with response:
                if int(response.headers.get("Content-Length") or 0) > size:
                    raise file_too_large(self.display_url(name), size)
                for piece in self._pieces(response, size + 1):
                    left -= len(piece)
                    yield piece
        if left < 0:
            raise file_too_large(self.display_url(name), size)

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
            raise store_failed(self.display_url(name), "read", reason)


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
