"""Arithmetic in 60 digits, with results rounded to doubles in a given direction."""

from __future__ import annotations

import math
from typing import Any

from mpmath import MPContext

mp = MPContext()
mp.dps = 60

UP = 1 + 2.0**-50  # factor that exceeds the rounding error of a few double-precision operations


def up(value: Any) -> float:
    """The smallest double at or above `value`."""
    nearest = float(value)
    return nearest if mp.mpf(nearest) >= value else math.nextafter(nearest, math.inf)


def down(value: Any) -> float:
    """The largest double at or below `value`."""
    nearest = float(value)
    return nearest if mp.mpf(nearest) <= value else math.nextafter(nearest, -math.inf)


def subtract_down(delta: float, share: float) -> float:
    """Delta - share, rounded down."""
    return down(mp.mpf(delta) - share)
