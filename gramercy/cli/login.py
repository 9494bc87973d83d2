"""The login of the Prefect servers that Gramercy starts: a random one for each start."""

from __future__ import annotations

import uuid
from collections.abc import Mapping


def new_login() -> str:
    """A random login: the text that Prefect's pages ask for, and its clients send."""
    return f"gramercy:{uuid.uuid4().hex}{uuid.uuid4().hex}"


def server_settings(login: str, origin: str = "") -> Mapping[str, str]:
    """Variables for a server that answers only with a login, and no page of another origin.

    Parameters
    ----------
    login
        What clients must send.
    origin
        Origin of the server's own pages.
    """
    return {
        "PREFECT_SERVER_API_AUTH_STRING": login,
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": origin,
        # In memory, the place of a run would be taken for good if the server is killed meanwhile.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": (
            "prefect.server.concurrency.lease_storage.filesystem"
        ),
    }
