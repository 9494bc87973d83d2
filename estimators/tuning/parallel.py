"""A parallel map that reports progress, for the folds and draws of penalty selection."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from multiprocessing import current_process
from typing import TypeVar

from gramercy.common.machine import cores, keep_freed_memory, single_blas_thread

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
ProgressCallback = Callable[[int, int], None]  # arguments: items done, items in all

_SECONDS = 5.0  # remaining work for which starting processes is worthwhile
_shares = True  # whether this process may share items with others
_callback: ContextVar[ProgressCallback | None] = ContextVar("callback", default=None)


@contextmanager
def reporting_progress(callback: ProgressCallback) -> Iterator[None]:
    """Call `callback` after every item of a `parallel_map` within this context."""
    token = _callback.set(callback)
    try:
        yield
    finally:
        _callback.reset(token)


def parallel_map(
    function: Callable[[_Item], _Result], items: Iterable[_Item], *, long: bool = False
) -> list[_Result]:
    """Results of `function` for all items, in order; see `parallel_results`."""
    return list(parallel_results(function, items, long=long))


def parallel_results(
    function: Callable[[_Item], _Result], items: Iterable[_Item], *, long: bool = False
) -> Iterator[_Result]:
    """Yield the results of `function` for all items, in order, each as soon as it is there.

    `long`: whether an item is known to take seconds.

    The first two items are done in this process: the first may load compiled code. If the time of
    the second shows that the others would take long, they are shared among processes, one for each
    core. Long items are shared from the first. The results are equal to the last digit in all
    cases: each process uses one BLAS thread, and `function` draws no random numbers.
    """
    waiting = list(items)
    report = _callback.get() or (lambda done, of: None)
    single_threaded = partial(_single_threaded, function)
    first, others = (waiting[:0], waiting) if long else (waiting[:2], waiting[2:])
    seconds = 0.0
    for done, item in enumerate(first, 1):
        began = time.monotonic()
        result = single_threaded(item)
        seconds = time.monotonic() - began
        report(done, len(waiting))
        yield result
    several = len(others) > 1 and (long or seconds * len(others) > _SECONDS)
    results = _map(single_threaded, others, in_processes=several)
    for done, result in enumerate(results, len(first) + 1):
        report(done, len(waiting))
        yield result


def _single_threaded(function: Callable[[_Item], _Result], item: _Item) -> _Result:
    with single_blas_thread():
        return function(item)


def _in_process(function: Callable[[_Item], _Result], item: _Item) -> _Result:
    global _shares  # noqa: PLW0603  of this process, whose items are shared already
    _shares = False
    keep_freed_memory()  # of this process alone: another program's process is not ours to set
    return function(item)


def _map(
    function: Callable[[_Item], _Result], items: list[_Item], *, in_processes: bool
) -> Iterable[_Result]:
    may_share = _shares and cores() > 1 and not current_process().daemon  # which has no children
    if not (in_processes and may_share):
        return map(function, items)
    from joblib import Parallel, delayed  # slow to import

    results: Iterable[_Result] = Parallel(n_jobs=cores(), return_as="generator", max_nbytes=None)(
        delayed(_in_process)(function, item) for item in items
    )
    return results
