"""A static web server on this machine, as a curator would serve an archive with."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Silent(SimpleHTTPRequestHandler):
    """Serves files, and lists no folder."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""

    def list_directory(self, path: object) -> None:  # type: ignore[override]
        """Refuse, as most servers are configured."""
        self.send_error(403)


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder during the block; yields its address."""
    handler = functools.partial(_Silent, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
