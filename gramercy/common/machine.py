"""Compiled functions, processor cores, the threads of BLAS, and the memory of the C library."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import TypeVar, cast

from threadpoolctl import ThreadpoolController

from gramercy.common.extras import is_installed

_MOST_KEPT, _LARGEST_KEPT = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)
_loaded: dict[Callable[..., object], Callable[..., object]] = {}
_Function = TypeVar("_Function", bound=Callable[..., object])


def compiled(function: _Function, *fast: str) -> _Function:
    """A function compiled by numba; compiling takes seconds once, then a cache file is used.

    Without numba it is the function itself: the same results, a hundred times slower.
    """
    return cast(_Function, _compile(function, fast)) if can_compile() else function


def is_loaded(function: Callable[..., object]) -> bool:
    """Whether `compiled` code of a function has run in this process: then a call need not wait."""
    return bool(getattr(_loaded.get(function), "signatures", ()))


@cache
def can_compile() -> bool:
    """Whether numba is installed."""
    return is_installed("numba")


@cache
def _compile(function: Callable[..., object], fast: tuple[str, ...]) -> Callable[..., object]:
    import numba  # takes half a second, which small tables do not need

    jit = partial(numba.njit, nogil=True, error_model="numpy", fastmath=set(fast))
    result: Callable[..., object]
    try:
        result = jit(cache=True)(function)
    except RuntimeError:  # no writable folder for the cache
        result = jit()(function)
    _loaded[function] = result
    return result


def cores() -> int:
    """Number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def keep_freed_memory() -> None:
    """Let the C library keep some freed memory for the next arrays, where it is glibc.

    Workers of Dask start with a setting that returns it to the system after every batch. To get it
    again, page by page, takes longer than everything else that is done with a batch.
    """
    options = getattr(ctypes.CDLL(None), "mallopt", None)
    if options is not None:
        options(_LARGEST_KEPT, 16 << 20)
        options(_MOST_KEPT, 64 << 20)


def single_blas_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread: results are reproducible, and other threads keep their cores."""
    limit: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limit


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finds the loaded BLAS of numpy and scipy


_UNKNOWN = 1 << 30  # bytes, where the system says nothing
# Where control groups are, and the files with their limit and use: of the second version of control
# groups, which has no name, and of the first. "max" stands for no limit.
_VERSIONS = {
    "": ("sys/fs/cgroup", "memory.max", "memory.current"),
    "memory": ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
}


def spare_memory(root: Path = Path("/")) -> int:
    """Bytes that are available on this machine, in this container and to this service."""
    spare = [_machine(root)]
    for limit, used in _limits(root):
        with contextlib.suppress(OSError, ValueError):  # no such limit
            spare.append(int(limit.read_text()) - int(used.read_text()))
    return max(min(spare), 0)


def _limits(root: Path) -> Iterator[tuple[Path, Path]]:
    """Files with limit and use of this process's control groups, and of those around them."""
    groups = dict.fromkeys(_VERSIONS, PurePosixPath())
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            groups |= dict.fromkeys(controllers.split(","), PurePosixPath(path.strip("/")))
    for version, (folder, limit, used) in _VERSIONS.items():
        for group in (groups[version], *groups[version].parents):
            yield root / folder / group / limit, root / folder / group / used


def _machine(root: Path) -> int:
    with contextlib.suppress(OSError):
        facts = (root / "proc/meminfo").read_text()
        if found := re.search(r"^MemAvailable:\s+(\d+) kB$", facts, re.MULTILINE):
            return int(found[1]) << 10
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    return _UNKNOWN
