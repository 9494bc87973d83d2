"""Pools of processes, forked from a process that has imported Gramercy once for all of them."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.support.factories"])


def processes(number: int) -> ProcessPoolExecutor:
    """Return a pool whose processes have this process's environment, and nothing else of it."""
    return ProcessPoolExecutor(
        number,
        mp_context=_CONTEXT,
        initializer=_set_environment,
        initargs=(dict(os.environ), tempfile.tempdir),
    )


def _set_environment(variables: dict[str, str], temporary: str | None) -> None:
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = temporary
