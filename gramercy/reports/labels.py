"""Names of columns as labels of figures."""

from __future__ import annotations

_LONGEST = 24


def shortened(name: str) -> str:
    """A name that fits next to a figure; the middle is left out, as names often share a start.

    Examples
    --------
    >>> shortened("age"), shortened("systolic blood pressure at visit 2")
    ('age', 'systolic blo… at visit 2')
    """
    if len(name) <= _LONGEST:
        return name
    half = _LONGEST // 2
    return f"{name[:half]}…{name[1 - _LONGEST + half :]}"
