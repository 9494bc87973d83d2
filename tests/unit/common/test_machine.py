"""What the process is asked of its C library."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from gramercy.common import machine


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
