"""Hostile web servers: answers that never end, come slowly, or lead elsewhere."""

from __future__ import annotations

import contextlib
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gramercy.archive.store.http_store import HttpStore
from gramercy.schemas import families
from tests.support.problems import raises

pytestmark = pytest.mark.slow

Answer = Callable[[BaseHTTPRequestHandler], None]

MEBIBYTE = b"x" * (1 << 20)


@contextlib.contextmanager
def hostile_server(answer: Answer) -> Iterator[HttpStore]:
    """The files of a server that answers every request in this way."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(OSError):  # the reader has gone
                answer(self)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield HttpStore(f"http://127.0.0.1:{server.server_address[1]}", Path("no mirror"))
        finally:
            server.shutdown()


def send(
    handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], times: int = 0
) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    for _ in range(times):
        handler.wfile.write(MEBIBYTE)


def redirected_with_long_body(handler: BaseHTTPRequestHandler) -> None:
    if handler.path == "/listing.json":
        send(handler, 302, {"Location": "/other"}, times=64)
    else:
        send(handler, 200, {}, times=1)


def test_bodies_of_redirections_are_not_read() -> None:
    """The standard library reads them into memory, however long they are."""
    with hostile_server(redirected_with_long_body) as files:
        tracemalloc.start()
        try:
            assert files.read("listing.json", 1 << 20) == MEBIBYTE
            assert tracemalloc.get_traced_memory()[1] < 8 << 20
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("location", ["file:///etc/hosts", "ftp://127.0.0.1/x", "/again"])
def test_redirections_that_lead_nowhere(location: str) -> None:
    with hostile_server(lambda handler: send(handler, 302, {"Location": location})) as files:
        address = files.location("listing.json")
        with raises(families.STORE, url=address, reason="the server answers 302"):
            files.read("listing.json", 100)


def test_lengths_that_are_false() -> None:
    def short(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 200, {"Content-Length": "5"}, times=1)

    with hostile_server(short) as files:
        assert files.read("listing.json", 100) == b"xxxxx"
    with hostile_server(lambda each: send(each, 200, {}, times=64)) as files:
        with raises(families.FILE_TOO_LARGE):
            files.read("listing.json", 100)
        with raises(families.FILE_TOO_LARGE):
            list(files.chunks("rows.parquet", 100))
    with (
        hostile_server(lambda each: send(each, 200, {"Content-Length": "many"})) as files,
        raises(families.STORE),
    ):
        list(files.chunks("rows.parquet", 100))


def drip(handler: BaseHTTPRequestHandler, start: bytes, part: bytes) -> None:
    """Send the start of an answer, and then parts of it for five seconds."""
    handler.wfile.write(start)
    for _ in range(250):
        handler.wfile.write(part)
        time.sleep(0.02)


SLOW = {
    "status": (b"", b"H"),
    "headers": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "content": (b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
    "100": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 10),
    "length": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    "trailers": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: x\r\n"),
    "missing": (b"HTTP/1.1 404 Not Found\r\nX: ", b"x"),
}


@pytest.mark.parametrize("reader", ["read", "chunks"])
@pytest.mark.parametrize("part", list(SLOW))
def test_answers_that_come_slowly(part: str, reader: str) -> None:
    """A byte now and then would keep a reader for days: no timeout of the socket passes."""
    with (
        hostile_server(lambda handler: drip(handler, *SLOW[part])) as files,
        raises(families.STORE, reason="no complete answer in time"),
    ):
        patient = replace(files, seconds=0.3)
        started = time.monotonic()
        try:
            if reader == "read":
                patient.read("listing.json", 1000)
            else:
                list(patient.chunks("rows.parquet", 1000))
        finally:
            assert time.monotonic() - started < 3


def test_redirections_that_come_slowly() -> None:
    """The time of one answer is for all redirections together."""

    def redirect(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.2)
        send(handler, 302, {"Location": f"{handler.path}x"})

    with (
        hostile_server(redirect) as files,
        raises(families.STORE, reason="no complete answer in time"),
    ):
        replace(files, seconds=0.5).read("listing.json", 1000)


def test_headers_that_never_end() -> None:
    def headers(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 200, {f"h{number}": "x" * 60_000 for number in range(200)})

    with (
        hostile_server(headers) as files,
        raises(families.STORE, reason="the answer is not valid HTTP"),
    ):
        files.read("listing.json", 1000)
