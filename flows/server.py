"""What Prefect's settings say about the server that flows of this process use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from prefect.context import refresh_global_settings_context
from prefect.settings import (
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    get_current_settings,
    temporary_settings,
)


def has_configured_server() -> bool:
    """Whether flows use a server at an address, instead of one that is started for them."""
    return get_current_settings().api.url is not None


def stated_settings() -> tuple[Path, dict[str, str]]:
    """Prefect's home, and the variables with its settings that differ from their defaults."""
    settings = get_current_settings()
    return settings.home, settings.to_environment_variables(exclude_unset=True)


def reload_settings() -> None:
    """Make Prefect read the variables of this process again."""
    refresh_global_settings_context()


@contextlib.contextmanager
def without_heartbeats() -> Iterator[None]:
    """Flows send no heartbeats, which nothing watches on a server of this machine's commands.

    Each flow would wait up to a second for the thread that sends them.
    """
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        yield
