"""Requests to the API of a Prefect server."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Login:
    """The API of a server that asks for a login and protects against forged requests.

    Parameters
    ----------
    api
        Its URL.
    login
        What clients send; None for a stranger.
    """

    api: str
    login: str | None

    def headers(self) -> dict[str, str]:
        """Headers of a request that changes something."""
        if self.login is None:
            return {}
        encoded = base64.b64encode(self.login.encode()).decode()
        authorised = {"Authorization": f"Basic {encoded}"}
        request = urllib.request.Request(f"{self.api}/csrf-token?client=tests", headers=authorised)
        with urllib.request.urlopen(request, timeout=30) as reply:
            token = json.loads(reply.read())["token"]
        return {**authorised, "Prefect-Csrf-Token": token, "Prefect-Csrf-Client": "tests"}


def post(api: str | Login, path: str, body: Any, patience: int = 10, method: str = "POST") -> Any:
    """POST to the server's API, retrying while its database is locked, like Prefect's clients.

    A server that is held up for a while is asked again too, so that a run may be created twice.
    """
    server = api if isinstance(api, Login) else Login(api, None)
    request = urllib.request.Request(
        f"{server.api}{path}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **server.headers()},
        method=method,
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.loads(reply.read() or b"null")
    except urllib.error.HTTPError as refused:
        if refused.code != 503 or not patience:
            raise
        refused.close()
        time.sleep(0.5)
    except TimeoutError:
        if not patience:
            raise
    return post(api, path, body, patience - 1, method)


def is_healthy(api: str) -> bool:
    try:
        with urllib.request.urlopen(f"{api}/health", timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def flow_runs(api: str, flow: str, state: str | None = None) -> list[dict[str, Any]]:
    """The runs of a flow, in a type of state or in any, in the order in which they are due."""
    filters: dict[str, Any] = {"flows": {"name": {"any_": [flow]}}}
    if state is not None:
        filters["flow_runs"] = {"state": {"type": {"any_": [state]}}}
    runs: list[dict[str, Any]] = post(
        api, "/flow_runs/filter", filters | {"sort": "EXPECTED_START_TIME_ASC"}
    )
    return runs
