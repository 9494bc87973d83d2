"""Many turns of one thing: in several processes where that pays, in order, and watched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from multiprocessing import current_process
from typing import TypeVar

from gramercy.common.machine import cores, one_blas_thread

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
Watcher = Callable[[int, int], None]  # is told how many turns are done, and of how many

_SECONDS = 5.0  # of work left, from which on processes are worth their start
_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(by: Watcher) -> Iterator[None]:
    """Let `by` know of every turn that is done within."""
    token = _watcher.set(by)
    try:
        yield
    finally:
        _watcher.reset(token)


def side_by_side(turn: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """What `turn` gives for every item, in their order.

    Notes
    -----
    The first is done here. Where its time says that the others would take long, they are shared
    among processes, a core each. The results are the same to the last digit, here or there: one
    BLAS thread in all of them, and nothing is drawn in `turn`.
    """
    waiting = list(items)
    if not waiting:
        return []
    tell = _watcher.get() or (lambda done, of: None)
    began = time.monotonic()
    alone = partial(_alone, turn)
    results = [alone(waiting[0])]
    tell(1, len(waiting))
    left = (time.monotonic() - began) * (len(waiting) - 1)
    for done, result in enumerate(_others(alone, waiting[1:], left > _SECONDS), start=2):
        results.append(result)
        tell(done, len(waiting))
    return results


def _alone(turn: Callable[[_Item], _Result], item: _Item) -> _Result:
    with one_blas_thread():
        return turn(item)


def _others(turn: Callable[[_Item], _Result], items: list[_Item], long: bool) -> Iterable[_Result]:
    if not long or cores() == 1 or current_process().daemon:  # daemons may have no children
        return map(turn, items)
    from joblib import Parallel, delayed  # where it is worth its import

    found: Iterable[_Result] = Parallel(n_jobs=cores(), return_as="generator")(
        delayed(turn)(item) for item in items
    )
    return found
