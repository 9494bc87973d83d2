"""Exit with 0 if a service is healthy: ``health.py server`` or ``health.py worker POOL``.

A worker is healthy if the Prefect server has heard of it lately. Uses the standard library only, so
that it answers within a second. The server is at PREFECT_API_URL, and its login in
PREFECT_API_AUTH_STRING.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import urllib.request

_SECONDS = 5


def ask(path: str) -> object:
    """The answer of the Prefect server's API, with the login in PREFECT_API_AUTH_STRING."""
    request = urllib.request.Request(  # noqa: S310  the address is the operator's
        os.environ["PREFECT_API_URL"] + path
    )
    if login := os.environ.get("PREFECT_API_AUTH_STRING"):
        encoded = base64.b64encode(login.encode()).decode()
        request.add_header("Authorization", f"Basic {encoded}")
    with urllib.request.urlopen(request, timeout=_SECONDS) as reply:  # noqa: S310  see above
        return json.loads(reply.read())


def is_healthy(service: str, pool: str = "gramercy") -> bool:
    """Whether the server answers; and, of a worker, whether its pool has one."""
    if service == "server":
        return ask("/health") is True
    return ask(f"/work_pools/{pool}")["status"] == "READY"  # type: ignore[index]


if __name__ == "__main__":
    try:
        healthy = is_healthy(*sys.argv[1:])
    except (OSError, KeyError, ValueError) as failure:
        sys.exit(f"{type(failure).__name__}: the Prefect server does not answer")
    sys.exit(0 if healthy else f"{sys.argv[1]}: not healthy")
