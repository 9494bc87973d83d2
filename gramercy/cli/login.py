"""The login of the Prefect servers that Gramercy starts: a random one for each start."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence


def new_login() -> str:
    """A random login: the text that Prefect's pages ask for, and its clients send."""
    return f"gramercy:{uuid.uuid4().hex}{uuid.uuid4().hex}"


def server_settings(login: str, origins: Sequence[str] = ()) -> Mapping[str, str]:
    """Variables for a server that answers only with a login, and no page of another origin.

    Parameters
    ----------
    login
        What clients must send.
    origins
        Origins of the server's own pages.
    """
    return {
        "PREFECT_SERVER_API_AUTH_STRING": login,
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": ",".join(origins),
    }
