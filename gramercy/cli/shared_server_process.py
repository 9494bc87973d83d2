"""The process of the shared server: ``python -m gramercy.cli.shared_server_process``."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from pathlib import Path

import uvicorn

from gramercy.cli.shared_server import MINUTES_VARIABLE, fcntl

_LOOK_SECONDS = 2.0


def main(listener: int, record: Path, minutes: float) -> None:
    """Serve Prefect's API until no command has used it for some minutes.

    Parameters
    ----------
    listener
        Handle of the socket.
    record
        What commands read to find the server; removed when it ends.
    minutes
        How long the server waits for another command.
    """
    app = "prefect.server.api.server:create_app"
    server = uvicorn.Server(uvicorn.Config(app, factory=True, log_level="error", lifespan="on"))
    threading.Thread(target=_end_unused, args=(server, record, minutes), daemon=True).start()
    server.run(sockets=[socket.socket(fileno=listener)])


def _end_unused(server: uvicorn.Server, record: Path, minutes: float) -> None:
    users = os.open(record.with_suffix(".users"), os.O_RDWR | os.O_CREAT, 0o600)
    unused_since = time.monotonic()
    while True:
        time.sleep(min(_LOOK_SECONDS, minutes * 60))
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            unused_since = time.monotonic()
            continue
        if time.monotonic() - unused_since >= minutes * 60:
            record.unlink(missing_ok=True)  # before another command can look for it
            server.should_exit = True
            return
        fcntl.flock(users, fcntl.LOCK_UN)


if __name__ == "__main__":
    os.umask(0o077)
    main(int(sys.argv[1]), Path(sys.argv[2]), float(os.environ[MINUTES_VARIABLE]))
