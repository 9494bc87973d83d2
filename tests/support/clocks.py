"""Clocks that a test moves: of several processes, by libfaketime, and of this one."""

from __future__ import annotations

import contextlib
import datetime
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


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


ZONES = ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Kathmandu", "XYZ-99:59", ""]


class Clock:
    """The clock and the time zone of this process, both adjustable."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ahead = datetime.timedelta()
        clock = self

        class Moved(datetime.datetime):
            @classmethod
            def now(cls, tz: datetime.tzinfo | None = None) -> Any:
                return datetime.datetime(2026, 7, 1, tzinfo=tz) + clock.ahead

        class Module:
            datetime = Moved

            def __getattr__(self, name: str) -> Any:
                return getattr(datetime, name)

        for name, module in list(sys.modules.items()):
            own = name.startswith("gramercy.")
            if own and getattr(module, "datetime", None) is datetime:
                patch.setattr(module, "datetime", Module())
        self._patch = patch

    def set(self, days: int) -> None:
        self.ahead = datetime.timedelta(days)
        moment = 1_782_864_000 + 86_400 * days
        self._patch.setattr(time, "time", lambda: float(moment))
        self._patch.setenv("SOURCE_DATE_EPOCH", str(max(0, moment)))

    def zone(self, name: str) -> None:
        self._patch.setenv("TZ", name)
        time.tzset()


@contextlib.contextmanager
def clocks() -> Iterator[Clock]:
    """A clock that runs in real time again after the block."""
    with pytest.MonkeyPatch.context() as patch:
        yield Clock(patch)
    time.tzset()
