"""The server of ``gramercy serve``: ``python -m gramercy.flows.server_process HANDLE``.

The handle is that of a socket on which the parent listens already, so that no other process of the
machine can take the port and pass for the server.
"""

from __future__ import annotations

import resource
import socket
import sys

import uvicorn
from prefect.server.api.server import create_app

_STOP_SECONDS = 10


def main(handle: int) -> None:
    """Serve Prefect's API, pages and services until SIGTERM."""
    # So that idle connections of others cannot use up the handles of files.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    config = uvicorn.Config(
        create_app(final=True), log_level="warning", timeout_graceful_shutdown=_STOP_SECONDS
    )
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=handle)])


if __name__ == "__main__":
    main(int(sys.argv[1]))
