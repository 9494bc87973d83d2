"""Arithmetic in 60 digits, and its results rounded to doubles in a known direction."""

from __future__ import annotations

import math
from typing import Any

from mpmath import MPContext

mp = MPContext()
mp.dps = 60

UP = 1 + 2.0**-50  # more than what a few double-precision operations can lose


def up(value: Any) -> float:
    """The smallest double at or above `value`."""
    near = float(value)
    return near if mp.mpf(near) >= value else math.nextafter(near, math.inf)


def down(value: Any) -> float:
    """The largest double at or below `value`."""
    near = float(value)
    return near if mp.mpf(near) <= value else math.nextafter(near, -math.inf)


def less(delta: float, aside: float) -> float:
    """What is left of a delta once some of it is set aside, rounded down."""
    return down(mp.mpf(delta) - aside)
