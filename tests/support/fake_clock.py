"""A clock that several processes share and a test moves, by libfaketime."""

from __future__ import annotations

import datetime
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path


class FakeClock:
    """The date and time of all processes with its environment.

    Monotonic clocks, which measure timeouts, and the dates of files stay real.

    Parameters
    ----------
    path
        A new file, from which the processes read every second by how much their time is shifted.
    start
        Their date and time at the beginning.
    """

    def __init__(self, path: Path, start: datetime.datetime) -> None:
        self._path = path
        self.move_to(start)

    def move_to(self, moment: datetime.datetime) -> None:
        """Go on at a later date and time."""
        shift = moment - datetime.datetime.now(datetime.UTC)
        moved = self._path.with_suffix(".new")
        moved.write_text(f"{shift.total_seconds():+.0f}\n", encoding="ascii")
        moved.replace(self._path)

    def environment(self) -> dict[str, str]:
        """The environment variables of a process whose clock this is."""
        return {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # Otherwise threads wait for Python's lock seven times as long.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
            "NO_FAKE_STAT": "1",
        }


def can_move_clocks() -> bool:
    """Whether the library is installed and works on this machine."""
    library = _library()
    if library is None:
        return False
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import time; print(time.gmtime().tm_year)"],
        env={"LD_PRELOAD": str(library), "FAKETIME": "2031-07-01 00:00:00"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() == "2031"


def _library() -> Path | None:
    package = find_spec("libfaketime")
    if not sys.platform.startswith("linux") or package is None or package.origin is None:
        return None
    path = Path(package.origin).parent / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"
    return path if path.is_file() else None
