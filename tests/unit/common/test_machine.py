"""The memory of the C library, of a machine, and of a container with a smaller limit."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace

import pytest

from gramercy.common import machine
from gramercy.common.machine import spare_memory


@pytest.mark.parametrize("has_options", [True, False])
def test_freed_memory_is_kept_where_the_library_can(
    has_options: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[int, int] = {}
    library = SimpleNamespace(**({"mallopt": asked.__setitem__} if has_options else {}))
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    machine.keep_freed_memory.__wrapped__()
    # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3); the library refuses more than 32 MiB.
    assert asked == ({-1: 64 << 20, -3: 16 << 20} if has_options else {})


GIB = 1 << 30


def system(root: Path, **files: object) -> Path:
    """A root folder with files, whose names have two underscores for each slash."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


MACHINE = {"proc__meminfo": f"MemTotal: 9 kB\nMemAvailable:   {4 * GIB // 1024} kB\nBuffers: 1 kB"}


@pytest.mark.parametrize(
    ("limit", "used", "spare"), [(3 * GIB, GIB, 2 * GIB), (9 * GIB, 0, 4 * GIB), (GIB, 2 * GIB, 0)]
)
def test_the_smaller_of_machine_and_container(
    tmp_path: Path, limit: int, used: int, spare: int
) -> None:
    second = {"memory.max": limit, "memory.current": used}
    first = {"memory__memory.limit_in_bytes": limit, "memory__memory.usage_in_bytes": used}
    for number, files in enumerate((first, second)):
        container = {f"sys__fs__cgroup__{name}": value for name, value in files.items()}
        assert spare_memory(system(tmp_path / str(number), **MACHINE, **container)) == spare


def test_a_service_with_a_limit_of_its_own(tmp_path: Path) -> None:
    """As `MemoryMax` of a systemd unit, or of the slice around it, with both versions of groups."""
    groups = {"proc__self__cgroup": "4:cpu,memory:/app/one\n0::/system.slice/gramercy.service"}
    files = {
        "sys__fs__cgroup__system.slice__gramercy.service__memory.max": "max",
        "sys__fs__cgroup__system.slice__gramercy.service__memory.current": 0,
        "sys__fs__cgroup__system.slice__memory.max": 3 * GIB,
        "sys__fs__cgroup__system.slice__memory.current": GIB,
    }
    assert spare_memory(system(tmp_path, **MACHINE, **groups, **files)) == 2 * GIB
    first = {
        "sys__fs__cgroup__memory__app__one__memory.limit_in_bytes": GIB,
        "sys__fs__cgroup__memory__app__one__memory.usage_in_bytes": 5,
    }
    assert spare_memory(system(tmp_path, **first)) == GIB - 5


def test_a_container_without_a_limit(tmp_path: Path) -> None:
    container = {"sys__fs__cgroup__memory.max": "max", "sys__fs__cgroup__memory.current": GIB}
    assert spare_memory(system(tmp_path, **MACHINE, **container)) == 4 * GIB


def test_a_system_that_says_nothing(tmp_path: Path) -> None:
    assert spare_memory(tmp_path) > 0
    assert spare_memory() > 0
