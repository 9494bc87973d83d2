"""Batches of rows: cut to the size of a cache, kept for a next pass, shared over threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import cores, single_blas_thread, spare_memory

_MAX_THREADS, _MOST_AHEAD = 8, 4


class Worker(Protocol):
    """Processes the batches of one thread, and accumulates their results."""

    def add(self, *batch: Any) -> None: ...


WorkerT = TypeVar("WorkerT", bound=Worker)
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def thread_count() -> int:
    """Number of useful worker threads on this machine."""
    return min(_MAX_THREADS, cores())


def in_order(
    function: Callable[[ItemT], ResultT], items: Iterable[ItemT]
) -> Generator[ResultT, None, None]:
    """The results of a function for all items, in their order; several threads compute ahead.

    Threads have ended when the generator is closed. They are few, since the results of each wait in
    memory for those before.
    """
    threads = min(_MOST_AHEAD, thread_count())
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[ResultT]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def worker_pool(workers: list[WorkerT]) -> Iterator[Callable[..., None]]:
    """A function that passes a batch to the next free worker; on exit, all batches are finished.

    Each worker has its own thread; a single worker runs in the calling thread.
    """
    if len(workers) == 1:
        yield workers[0].add
        return
    free: SimpleQueue[WorkerT] = SimpleQueue()
    for each in workers:
        free.put(each)
    waiting: deque[Future[None]] = deque()  # at most one batch for each worker

    def run(batch: tuple[Any, ...]) -> None:
        worker = free.get()
        try:
            worker.add(*batch)
        finally:
            free.put(worker)

    with single_blas_thread(), ThreadPoolExecutor(len(workers)) as pool:

        def add(*batch: Any) -> None:
            waiting.append(pool.submit(run, batch))
            if len(waiting) > len(workers):
                waiting.popleft().result()

        yield add
        while waiting:
            waiting.popleft().result()


@dataclass
class MalformedLines:
    """Numbers of CSV lines that are not records of the header's width. For the steward only."""

    dropped: int = 0  # lines that were left out
    kept: int = 0  # lines that were kept as rows of missing cells

    def __add__(self, other: MalformedLines) -> MalformedLines:
        return MalformedLines(self.dropped + other.dropped, self.kept + other.kept)


BATCH_CELLS = 1 << 21  # cells of a batch that is read
EXCESS_ROWS = 1_000_000  # rows beyond the declared number, after which reading stops


# Cells of a block: few steps of numpy, and still in cache. Up to twice as many give a block more
# rows, because a step over one column of it should take longer than to start it.
_CELLS, _ROWS = 1 << 18, 1 << 12
_MIN_ROWS = 256


def cache_slices(width: int, rows: int, max_rows: int | None = None) -> Iterator[slice]:
    """Slices of rows with `width` cells, small enough for the cache and at most `max_rows` long."""
    step = max(_CELLS // width, min(2 * _CELLS // width, _ROWS), _MIN_ROWS)
    step = max(1, step if max_rows is None else min(step, max_rows))
    for start in range(0, rows, step):
        yield slice(start, start + step)


def blocks(batches: Iterable[NDArray[np.float64]], size: int) -> Iterator[NDArray[np.float64]]:
    """The same rows in blocks of `size`, the last one shorter; shape (columns, rows).

    The size of a CSV batch depends on the lengths of its lines, which are private: blocks of a
    public size hide it.
    """
    pending: list[NDArray[np.float64]] = []
    rows = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.shape[1]
        if rows < size:
            continue
        joined = np.concatenate(pending, axis=1)
        complete = rows - rows % size
        for start in range(0, complete, size):
            yield joined[:, start : start + size]
        pending, rows = [joined[:, complete:]], rows - complete
    if rows:
        yield np.concatenate(pending, axis=1)


Array = NDArray[np.float64]

_MOST_KEPT = 512 << 20  # bytes
_SHARE_KEPT = 4  # of the memory that is free, one part in so many is used


class KeptCells:
    """Keeps the batches of the first complete pass for the next ones. Private: never pickled.

    To read and decode a file takes longer than to count or to sum its cells, and a remote store
    sends it again for every pass. A table with more bytes than the limit is read again for every
    pass, as public facts predict it; by default 512 MiB, and a quarter of the memory that this
    process may use.
    """

    def __init__(self, expected: int, limit: int | None = None) -> None:
        limit = min(_MOST_KEPT, spare_memory() // _SHARE_KEPT) if limit is None else limit
        self._limit = limit if expected <= limit else 0
        self._form: object = None
        self._batches: list[Array] = []
        self._malformed = MalformedLines()

    def batches(
        self, form: object, malformed: MalformedLines, read: Iterator[Array]
    ) -> Generator[Array]:
        """All batches of a table, from memory where an earlier pass has kept them.

        They are kept for the same form: columns, their coding, and so on. `read` counts malformed
        lines, and is not started where they are in memory.
        """
        if self._form is not None and self._form == form:
            malformed.dropped += self._malformed.dropped
            malformed.kept += self._malformed.kept
            yield from self._batches
            return
        self.close()  # never the cells of two forms at a time
        kept, size = list[Array](), 0
        for batch in read:
            size += batch.nbytes
            if size <= self._limit:
                kept.append(batch)
            else:
                kept.clear()
                self._limit = 0  # no further pass needs to try
            yield batch
        if size <= self._limit:
            self._form, self._batches, self._malformed = form, kept, malformed

    def close(self) -> None:
        """Forget everything, after the last pass."""
        self._form, self._batches = None, []

    def __reduce__(self) -> str:
        raise TypeError("private cells are not pickled")
