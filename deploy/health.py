"""Exit with 0 if a service is healthy: ``health.py server`` or ``health.py worker POOL``.

A worker is healthy if the Prefect server has heard of it lately. Uses the standard library only, so
that it answers within a second. The server is at PREFECT_API_URL.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request

_SECONDS = 5


def ask(path: str, body: object = None) -> object:
    """The answer of the Prefect server's API to a GET request, or to a POST request with a body."""
    request = urllib.request.Request(  # noqa: S310  the address is the operator's
        os.environ["PREFECT_API_URL"] + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=_SECONDS) as reply:  # noqa: S310  see above
        return json.loads(reply.read())


def is_healthy(service: str, pool: str = "gramercy") -> bool:
    """Whether the server answers; and, of a worker, whether one of the pool is online."""
    if service == "server":
        return ask("/health") is True
    workers = ask(f"/work_pools/{pool}/workers/filter", {})
    return any(worker["status"] == "ONLINE" for worker in workers)  # type: ignore[attr-defined]


if __name__ == "__main__":
    try:
        healthy = is_healthy(*sys.argv[1:])
    except OSError as failure:
        sys.exit(f"{type(failure).__name__}: the Prefect server does not answer")
    sys.exit(0 if healthy else f"{sys.argv[1]}: not healthy")
