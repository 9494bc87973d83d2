"""Parallel tasks: the same results in the same order, with progress."""

from __future__ import annotations

import os
import threading
from functools import partial
from multiprocessing import current_process

import numpy as np
import pytest

from gramercy.common.machine import cores
from gramercy.estimators.tuning import parallel as module
from gramercy.estimators.tuning.parallel import parallel_map, reporting_progress


def square(item: int) -> tuple[int, int]:
    return item * item, os.getpid()


@pytest.fixture(autouse=True)
def all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests never share their work."""
    monkeypatch.setattr(module, "cores", cores)


def test_short_tasks_run_in_this_process() -> None:
    found = parallel_map(square, range(5))
    assert found == [(k * k, os.getpid()) for k in range(5)]
    assert parallel_map(square, []) == []


@pytest.mark.slow
def test_long_tasks_run_in_worker_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS", -1.0)
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("one core")
    offset = np.arange(3)
    found = parallel_map(partial(lambda by, item: (item + by, os.getpid()), offset), range(6))
    assert [each.tolist() for each, _ in found] == [[k, k + 1, k + 2] for k in range(6)]
    processes = [process for _, process in found]
    assert processes[:2] == [os.getpid()] * 2
    assert os.getpid() not in processes[2:]


@pytest.mark.slow
def test_items_that_are_known_to_be_long_are_shared_from_the_first() -> None:
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("one core")
    seen: list[tuple[int, int]] = []
    with reporting_progress(lambda done, of: seen.append((done, of))):
        found = parallel_map(square, range(3), long=True)
        assert [each for each, _ in found] == [0, 1, 4]
        assert os.getpid() not in {process for _, process in found}
        assert seen == [(1, 3), (2, 3), (3, 3)]
        # A single item needs no other process.
        assert parallel_map(square, [2], long=True) == [(4, os.getpid())]
    assert parallel_map(square, [], long=True) == []


def test_daemon_process_runs_tasks_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon must not start processes: the library would raise AssertionError."""
    monkeypatch.setattr(module, "_SECONDS", -1.0)
    monkeypatch.setitem(current_process()._config, "daemon", True)  # type: ignore[attr-defined]
    assert parallel_map(square, range(3)) == [(k * k, os.getpid()) for k in range(3)]


def test_progress_is_reported_only_inside_the_context() -> None:
    seen: list[tuple[int, int]] = []
    with reporting_progress(lambda done, of: seen.append((done, of))):
        parallel_map(square, range(3))
        assert seen == [(1, 3), (2, 3), (3, 3)]
        elsewhere = threading.Thread(target=parallel_map, args=(square, range(2)))
        elsewhere.start()
        elsewhere.join()
    parallel_map(square, range(3))
    assert len(seen) == 3


@pytest.mark.slow
def test_task_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(item: int) -> float:
        return 1 / (item - 3)

    for seconds in (5.0, -1.0):
        monkeypatch.setattr(module, "_SECONDS", seconds)
        with pytest.raises(ZeroDivisionError):
            parallel_map(wrong, range(6))
