"""Receivers of alerts: a web server and a mail server on this machine that keep what they get."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Sinks:
    """What was received, and where.

    Parameters
    ----------
    address
        Of both, for Apprise.
    posted, mailed
        Bodies of requests, as JSON, and messages with their headers.
    """

    address: str = ""
    posted: list[dict[str, Any]] = field(default_factory=list)
    mailed: list[str] = field(default_factory=list)

    def clear(self) -> None:
        self.posted.clear()
        self.mailed.clear()


@contextlib.contextmanager
def sinks() -> Iterator[Sinks]:
    """Receive webhooks and mail during the block."""
    received = Sinks()

    class Web(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.posted.append(json.loads(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is logged."""

    class Mail(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 sink")
            while line := self.rfile.readline():
                verb = line[:4].upper()
                if verb == b"DATA":
                    self._say("354 go on")
                    received.mailed.append("".join(self._lines()))
                self._say("221 bye" if verb == b"QUIT" else "250 ok")

        def _lines(self) -> Iterator[str]:
            while (line := self.rfile.readline()) not in {b".\r\n", b""}:
                yield line.decode()

        def _say(self, words: str) -> None:
            self.wfile.write(f"{words}\r\n".encode())

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Web) as web,
        socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mail) as mail,
    ):
        for server in (web, mail):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        received.address = (
            f"mailto://127.0.0.1:{mail.server_address[1]}?from=a@office.example&to=b@office.example"
            f" json://127.0.0.1:{web.server_address[1]}/hook"
        )
        try:
            yield received
        finally:
            web.shutdown()
            mail.shutdown()
