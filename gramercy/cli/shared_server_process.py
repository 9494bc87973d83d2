"""The process of the shared server: ``python -m gramercy.cli.shared_server_process``."""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gramercy.cli.login import new_login, server_settings
from gramercy.cli.shared_server import fcntl, is_running, server_record

if TYPE_CHECKING:
    import uvicorn

_SETTINGS = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1"}
_LOOK_SECONDS = 2.0


def main(ready: int, minutes: float) -> None:
    """Serve Prefect's API until no command has used it for some minutes.

    Returns at once if Prefect is configured to use another server, or if one runs.

    Parameters
    ----------
    ready
        Handle of a pipe that is closed when commands can find the server. Requests that arrive
        before it is ready wait in the queue of its socket.
    minutes
        How long the server waits for another command.
    """
    gc.disable()  # before the imports, which make a million objects
    from gramercy.flows.server import has_configured_server, stated_settings

    if has_configured_server():
        return
    home, stated = stated_settings()
    record = server_record(home, stated)
    starting = os.open(record.with_suffix(".start"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(starting, fcntl.LOCK_EX)
    if is_running(record):
        return
    listener = _announce(record, stated)
    os.close(starting)
    os.close(ready)
    from gramercy.flows.new_database import make_tables

    make_tables()
    import uvicorn

    app = "prefect.server.api.server:create_app"
    server = uvicorn.Server(uvicorn.Config(app, factory=True, log_level="error", lifespan="on"))
    threading.Thread(target=_end_unused, args=(server, record, minutes), daemon=True).start()
    threading.Thread(target=_collect_garbage, args=(server,), daemon=True).start()
    server.run(sockets=[listener])


def _announce(record: Path, stated: Mapping[str, str]) -> socket.socket:
    """Open the server's socket, and write the record, whose lock lasts as long as this process."""
    from gramercy.flows.server import reload_settings

    record.unlink(missing_ok=True)
    secret = new_login()
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    facts = {"url": f"{origin}/api", "secret": secret}
    handle = os.open(record, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(handle, json.dumps(facts | {"process": os.getpid()}).encode())
    fcntl.flock(handle, fcntl.LOCK_EX)
    log = os.open(record.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.chdir(record.parent)  # the settings of the command's folder are stated
    os.environ |= {**stated, **_SETTINGS, **server_settings(secret, origin)}
    reload_settings()
    return listener


def _collect_garbage(server: uvicorn.Server) -> None:
    """Collect garbage from when the server has started; what was made until then stays."""
    while not server.started:
        time.sleep(_LOOK_SECONDS / 20)
    gc.freeze()
    gc.enable()


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
    main(int(sys.argv[1]), float(sys.argv[2]))
