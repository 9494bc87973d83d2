"""A setting that is a list of names, also written as one text with commas."""

from __future__ import annotations

from typing import Any


def names_of(given: Any) -> Any:
    """Names from a text with commas, as on the command line; anything else unchanged."""
    if isinstance(given, str):
        return tuple(name.strip() for name in given.split(",") if name.strip())
    return given
