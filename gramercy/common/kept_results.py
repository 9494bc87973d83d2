"""Results that are computed once for each object, and kept with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

_Object = TypeVar("_Object")
_Result = TypeVar("_Result")


def kept(function: Callable[[_Object], _Result]) -> Callable[[_Object], _Result]:
    """Compute a function of an immutable object once; the object keeps the result.

    A page asks for the same moments of a release dozens of times. An object that `replace` makes of
    another one has no results yet; callers leave what they are given as it is.
    """
    name = f"_{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def of(given: _Object) -> _Result:
        results = vars(given)
        if name not in results:
            results[name] = function(given)
        result: _Result = results[name]
        return result

    return of
