"""One BLAS thread: the same digits in every process, and a core each for those side by side."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[object]:
    """As long as it is entered."""
    found: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return found


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # of the libraries that are loaded: numpy's and scipy's
