"""Whether this process is between charge and publication: ending it would spend the charge."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

_open = threading.Event()


def is_publishing() -> bool:
    """Whether a charge was made, or is about to be, and its release is not complete yet."""
    return _open.is_set()


@contextlib.contextmanager
def publishing() -> Iterator[None]:
    """A publication is open during the block."""
    _open.set()
    try:
        yield
    finally:
        _open.clear()
