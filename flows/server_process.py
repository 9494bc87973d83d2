"""A Prefect server: ``python -m gramercy.flows.server_process HANDLE [USERS MINUTES]``; its use.

The handle is that of a socket on which the parent listens already. With the other arguments it is
a shared server, without pages and schedules, which ends by itself: see `cli.prefect_server`.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    get_current_settings,
    temporary_settings,
)

if TYPE_CHECKING:
    import uvicorn

_STOP_SECONDS = 10
_LOOK_SECONDS = 2.0
_RETRIES = 2  # of a request: a server on this machine is not restarted


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
    lock = None
    if users is not None:
        try:
            lock = os.open(users, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:  # with its folder: no command can find this server
            return
    gc.disable()  # the imports make a million objects, which stay
    # So that idle connections of others cannot use up the handles of files.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    import uvicorn
    from prefect.server.api.server import create_app

    if users is not None and has_configured_server():
        return  # in a file of Prefect's, which the command has not read yet
    app = create_app(ephemeral=users is not None, final=True)
    gc.freeze()
    gc.enable()
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=_STOP_SECONDS)
    )
    if lock is not None:
        threading.Thread(
            target=_end_unused, args=(server, lock, 60 * float(minutes)), daemon=True
        ).start()
    server.run(sockets=[socket.socket(fileno=handle)])


def _end_unused(server: uvicorn.Server, lock: int, seconds: float) -> None:
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


def has_configured_server() -> bool:
    """Whether Prefect's settings name a server."""
    return get_current_settings().api.url is not None


@contextlib.contextmanager
def using_server(url: str, login: str) -> Iterator[None]:
    """Flows in the block use a server of this machine's commands.

    They send no heartbeats, which nothing watches there: each flow would wait up to a second for
    the thread that sends them.
    """
    settings = {
        PREFECT_API_URL: url,
        PREFECT_API_AUTH_STRING: login,
        PREFECT_CLIENT_MAX_RETRIES: _RETRIES,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
    }
    with temporary_settings(settings):
        yield


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
