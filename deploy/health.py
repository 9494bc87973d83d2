"""Exit with 0 if a service is healthy: ``health.py server``, ``health.py worker POOL [NAME]``.

A worker is healthy if the Prefect server has heard of it lately: the one of this name, which is
that of the machine unless stated. Uses the standard library only, so that it answers within a
second. The server is at PREFECT_API_URL, and its login in PREFECT_API_AUTH_STRING.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
import urllib.error
import urllib.request
from typing import Any

_SECONDS = 5
_CLIENT = "health"  # the server keeps one token for each client


def ask(path: str, body: object = None, **headers: str) -> Any:
    """The answer of the Prefect server's API to a GET request, or to a POST request with a body."""
    if login := os.environ.get("PREFECT_API_AUTH_STRING"):
        headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
    request = urllib.request.Request(  # noqa: S310  the address is the operator's
        os.environ["PREFECT_API_URL"] + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **headers},
    )
    with urllib.request.urlopen(request, timeout=_SECONDS) as reply:  # noqa: S310  see above
        return json.loads(reply.read())


def forgery_headers() -> dict[str, str]:
    """What a server that protects against forged requests wants with a POST request."""
    try:
        token = ask(f"/csrf-token?client={_CLIENT}")["token"]
    except urllib.error.HTTPError as refused:
        if refused.code != 422:  # without that protection
            raise
        return {}
    return {"Prefect-Csrf-Client": _CLIENT, "Prefect-Csrf-Token": token}


def is_healthy(service: str, pool: str = "gramercy", name: str = "") -> bool:
    """Whether the server answers; and, of a worker, whether it has sent a sign of life lately."""
    if service == "server":
        return ask("/health") is True
    name = name or socket.gethostname()
    workers = ask(f"/work_pools/{pool}/workers/filter", {}, **forgery_headers())
    return any(each["name"] == name and each["status"] == "ONLINE" for each in workers)


if __name__ == "__main__":
    try:
        healthy = is_healthy(*sys.argv[1:])
    except (OSError, KeyError, ValueError) as failure:
        sys.exit(f"{type(failure).__name__}: the Prefect server does not answer")
    sys.exit(0 if healthy else f"{sys.argv[1]}: not healthy")
