"""How much more memory this process may use, as far as the system says."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

_UNKNOWN = 1 << 30  # bytes, where the system says nothing
# Limit and use of a container, of both versions of control groups. "max" stands for none.
_CONTAINERS = [
    ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
    (
        "sys/fs/cgroup/memory/memory.limit_in_bytes",
        "sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
]


def spare_memory(root: Path = Path("/")) -> int:
    """Bytes that are available on this machine and in this container.

    Parameters
    ----------
    root
        Where the file systems ``proc`` and ``sys`` are.

    Returns
    -------
    int
        Not negative. Where the system has no ``proc``, a quarter of its memory.
    """
    spare = [_machine(root)]
    for limit, used in _CONTAINERS:
        with contextlib.suppress(OSError, ValueError):  # no such limit
            spare.append(int((root / limit).read_text()) - int((root / used).read_text()))
    return max(min(spare), 0)


def _machine(root: Path) -> int:
    with contextlib.suppress(OSError):
        facts = (root / "proc/meminfo").read_text()
        if found := re.search(r"^MemAvailable:\s+(\d+) kB$", facts, re.MULTILINE):
            return int(found[1]) << 10
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    return _UNKNOWN
