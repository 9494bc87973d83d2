"""How much more memory this process may use, as far as the system says."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_UNKNOWN = 1 << 30  # bytes, where the system says nothing
# Where control groups are, and the files with their limit and use: of the second version of control
# groups, which has no name, and of the first. "max" stands for no limit.
_VERSIONS = {
    "": ("sys/fs/cgroup", "memory.max", "memory.current"),
    "memory": ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
}


def spare_memory(root: Path = Path("/")) -> int:
    """Bytes that are available on this machine, in this container and to this service.

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
