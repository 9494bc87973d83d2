"""A parallel map that reports progress, for the folds and draws of penalty selection."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from multiprocessing import current_process
from typing import TypeVar

from gramercy.common.machine import cores, single_blas_thread

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
ProgressCallback = Callable[[int, int], None]  # arguments: items done, items in all

_SECONDS = 5.0  # remaining work for which starting processes is worthwhile
_callback: ContextVar[ProgressCallback | None] = ContextVar("callback", default=None)


@contextmanager
def reporting_progress(callback: ProgressCallback) -> Iterator[None]:
    """Call `callback` after every item of a `parallel_map` within this context."""
    token = _callback.set(callback)
    try:
        yield
    finally:
        _callback.reset(token)


def parallel_map(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """Results of `function` for all items, in order.

    Notes
    -----
    The first item is done in this process. If its time shows that the others would take long, they
    are shared among processes, one for each core. The results are equal to the last digit in both
    cases: each process uses one BLAS thread, and `function` draws no random numbers.
    """
    waiting = list(items)
    if not waiting:
        return []
    report = _callback.get() or (lambda done, of: None)
    began = time.monotonic()
    single_threaded = partial(_single_threaded, function)
    results = [single_threaded(waiting[0])]
    report(1, len(waiting))
    remaining = (time.monotonic() - began) * (len(waiting) - 1)
    others = _map(single_threaded, waiting[1:], in_processes=remaining > _SECONDS)
    for done, result in enumerate(others, start=2):
        results.append(result)
        report(done, len(waiting))
    return results


def _single_threaded(function: Callable[[_Item], _Result], item: _Item) -> _Result:
    with single_blas_thread():
        return function(item)


def _map(
    function: Callable[[_Item], _Result], items: list[_Item], *, in_processes: bool
) -> Iterable[_Result]:
    if not in_processes or cores() == 1 or current_process().daemon:  # daemons cannot have children
        return map(function, items)
    from joblib import Parallel, delayed  # slow to import

    results: Iterable[_Result] = Parallel(n_jobs=cores(), return_as="generator")(
        delayed(function)(item) for item in items
    )
    return results
