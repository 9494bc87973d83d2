"""The clock and the time zone of this process, which a test moves."""

from __future__ import annotations

import contextlib
import datetime
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

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
