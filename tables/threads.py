"""Work on the batches that one thread reads, in several others."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from threadpoolctl import threadpool_limits

_MOST = 8


class Worker(Protocol):
    """What keeps the results of one thread, whatever batches come to it."""

    def add(self, *batch: Any) -> None: ...


WorkerT = TypeVar("WorkerT", bound=Worker)


def available() -> int:
    """Threads that can run at once, as far as they are any use here."""
    return min(_MOST, len(os.sched_getaffinity(0)))


class SideBySide(Generic[WorkerT]):
    """Hands batches to workers; to be used as a context, after which all of them are added.

    Parameters
    ----------
    make
        Makes a worker.
    threads
        How many; with one, batches are added by the thread that brings them.
    """

    def __init__(self, make: Callable[[], WorkerT], threads: int) -> None:
        self.workers = [make() for _ in range(threads)]
        self._free: SimpleQueue[WorkerT] = SimpleQueue()
        for each in self.workers:
            self._free.put(each)
        self._waiting: deque[Future[None]] = deque()
        self._open = ExitStack()
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        if len(self.workers) > 1:
            self._open.enter_context(threadpool_limits(1))  # one thread of BLAS in each of ours
            self._pool = self._open.enter_context(ThreadPoolExecutor(len(self.workers)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        with self._open:
            while self._waiting and error is None:
                self._waiting.popleft().result()

    def add(self, *batch: Any) -> None:
        """Returns while a few batches are still to be added."""
        if self._pool is None:
            self.workers[0].add(*batch)
            return
        self._waiting.append(self._pool.submit(self._add, batch))
        if len(self._waiting) > 2 * len(self.workers):
            self._waiting.popleft().result()

    def _add(self, batch: tuple[Any, ...]) -> None:
        mine = self._free.get()
        try:
            mine.add(*batch)
        finally:
            self._free.put(mine)
