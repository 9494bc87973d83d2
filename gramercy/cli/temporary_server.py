"""The server that Prefect starts for one command, if no other is configured."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import Any


def server_process() -> subprocess.Popen[Any] | None:
    """The process of the temporary server; None before it is started, or without one."""
    # Not imported: the module takes seconds, and Prefect imports it when it starts the server.
    module = sys.modules.get("prefect.server.api.server")
    servers = getattr(module, "SubprocessASGIServer", None)
    for instance in list(getattr(servers, "_instances", {}).values()):
        process: subprocess.Popen[Any] | None = instance.server_process
        if process is not None:
            return process
    return None


def end_server() -> None:
    """End the temporary server, without waiting."""
    process = server_process()
    if process is not None:
        with contextlib.suppress(OSError):
            process.kill()
