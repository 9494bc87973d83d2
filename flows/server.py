"""The server that flows of this process use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    get_current_settings,
    temporary_settings,
)

_RETRIES = 2  # of a request: a server on this machine is not restarted


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
