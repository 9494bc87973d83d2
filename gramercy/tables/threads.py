"""Work on the batches that one thread reads, in several others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from gramercy.common.machine import cores, one_blas_thread

_MOST = 8


class Worker(Protocol):
    """What keeps the results of one thread, whatever batches come to it."""

    def add(self, *batch: Any) -> None: ...


WorkerT = TypeVar("WorkerT", bound=Worker)


def available() -> int:
    """Threads that can run at once, as far as they are any use here."""
    return min(_MOST, cores())


@contextmanager
def side_by_side(workers: list[WorkerT]) -> Iterator[Callable[..., None]]:
    """Gives what hands a batch to the next free worker, each a thread; in the end all are added.

    One alone works in the thread that brings the batches.
    """
    if len(workers) == 1:
        yield workers[0].add
        return
    with one_blas_thread(), ThreadPoolExecutor(len(workers)) as pool:
        turns = _Turns(workers, pool)
        yield turns.add
        turns.finish()


class _Turns:
    """Batches on their way to workers, of which a few may wait."""

    def __init__(self, workers: list[Any], pool: Executor) -> None:
        self._free: SimpleQueue[Any] = SimpleQueue()
        for each in workers:
            self._free.put(each)
        self._pool, self._most = pool, len(workers)
        self._waiting: deque[Future[None]] = deque()

    def add(self, *batch: Any) -> None:
        self._waiting.append(self._pool.submit(self._next, batch))
        if len(self._waiting) > self._most:
            self._waiting.popleft().result()

    def finish(self) -> None:
        while self._waiting:
            self._waiting.popleft().result()

    def _next(self, batch: tuple[Any, ...]) -> None:
        mine = self._free.get()
        try:
            mine.add(*batch)
        finally:
            self._free.put(mine)
