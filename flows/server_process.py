"""A Prefect server: ``python -m gramercy.flows.server_process HANDLE [USERS MINUTES]``.

The handle is that of a socket on which the parent listens already. With the other arguments it is
a shared server, without pages and schedules, which ends by itself: see `cli.prefect_server`.
"""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uvicorn

_STOP_SECONDS = 10
_LOOK_SECONDS = 2.0


def main(handle: int, users: str | None = None, minutes: str = "0") -> None:
    """Serve Prefect's API until SIGTERM, or until no command has used it for some minutes.

    Parameters
    ----------
    handle
        Handle of the server's socket.
    users
        File whose lock the users of a shared server hold.
    minutes
        How long a shared server waits for another user.
    """
    gc.disable()  # the imports make a million objects, which stay
    # So that idle connections of others cannot use up the handles of files.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    import uvicorn
    from prefect.server.api.server import create_app

    from gramercy.flows.server import has_configured_server

    if users is not None and has_configured_server():
        return  # in a file of Prefect's, which the command has not read yet
    app = create_app(ephemeral=users is not None, final=True)
    gc.freeze()
    gc.enable()
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=_STOP_SECONDS)
    )
    if users is not None:
        threading.Thread(
            target=_end_unused, args=(server, users, 60 * float(minutes)), daemon=True
        ).start()
    server.run(sockets=[socket.socket(fileno=handle)])


def _end_unused(server: uvicorn.Server, users: str, seconds: float) -> None:
    try:
        lock = os.open(users, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:  # with its folder: no command can find this server
        server.should_exit = True
        return
    unused_since = time.monotonic()
    while True:
        time.sleep(_LOOK_SECONDS)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            unused_since = time.monotonic()
            continue
        if time.monotonic() - unused_since >= seconds:
            server.should_exit = True
            return  # with the lock: another command waits until this server has ended
        fcntl.flock(lock, fcntl.LOCK_UN)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
