"""Distribute the batches that one thread reads over several worker threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from gramercy.common.machine import cores, single_blas_thread

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
    with single_blas_thread(), ThreadPoolExecutor(len(workers)) as pool:
        queue = _WorkerQueue(workers, pool)
        yield queue.add
        queue.finish()


class _WorkerQueue:
    """A queue of batches, with a bounded number waiting."""

    def __init__(self, workers: list[Any], pool: Executor) -> None:
        self._free: SimpleQueue[Any] = SimpleQueue()
        for worker in workers:
            self._free.put(worker)
        self._pool, self._max_waiting = pool, len(workers)
        self._waiting: deque[Future[None]] = deque()

    def add(self, *batch: Any) -> None:
        self._waiting.append(self._pool.submit(self._run, batch))
        if len(self._waiting) > self._max_waiting:
            self._waiting.popleft().result()

    def finish(self) -> None:
        while self._waiting:
            self._waiting.popleft().result()

    def _run(self, batch: tuple[Any, ...]) -> None:
        worker = self._free.get()
        try:
            worker.add(*batch)
        finally:
            self._free.put(worker)
