"""What the machine offers: its code, its cores, and one thread of BLAS."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import TypeVar, cast

from threadpoolctl import ThreadpoolController

from gramercy.common.extras import is_installed

_Function = TypeVar("_Function", bound=Callable[..., object])


def compiled(function: _Function, *fast: str) -> _Function:
    """The same function, compiled by numba: seconds the first time on a machine, then from a file.

    Without numba it is the function itself: the same numbers, a hundred times slower.

    Parameters
    ----------
    function
        Of numbers and arrays.
    fast
        Flags of LLVM's fast arithmetic that it may use, such as ``reassoc``.
    """
    return cast(_Function, _once(function, fast)) if can_compile() else function


@cache
def can_compile() -> bool:
    """Whether numba is installed."""
    return is_installed("numba")


@cache
def _once(function: Callable[..., object], fast: tuple[str, ...]) -> Callable[..., object]:
    import numba  # half a second that those who have little to do do not need

    how = partial(numba.njit, nogil=True, error_model="numpy", fastmath=set(fast))
    made: Callable[..., object]
    try:
        made = how(cache=True)(function)
    except RuntimeError:  # there is nowhere to keep it
        made = how()(function)
    return made


def cores() -> int:
    """How many of them this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[object]:
    """As long as it is entered: the same digits in every process, and cores for those beside."""
    found: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return found


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # of the libraries that are loaded: numpy's and scipy's
