"""Plain functions as machine code, when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., object])


def compiled(function: _Function, *fast: str) -> _Function:
    """The same function, compiled by numba: seconds the first time on a machine, then from a file.

    Parameters
    ----------
    function
        Of numbers and arrays.
    fast
        Flags of LLVM's fast arithmetic that it may use, such as ``reassoc``.
    """
    return cast(_Function, _once(function, fast))


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
