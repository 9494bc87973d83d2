"""Runs of neighbouring bins whose mass exceeds the noise of their counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SEEN = 3.0  # standard deviations that tell a count, or a run of counts, from noise
# What every empty bin before a run costs: a strong bin would otherwise carry weak ones far behind
# it, and among many runs some reach three standard deviations by chance.
_GAP = 0.2


def centred(counts: NDArray[np.int64], rows: float) -> Array:
    """Counts, all shifted by the same amount so that their sum is the number of rows."""
    values = counts.astype(np.float64)
    values += (rows - float(counts.sum())) / len(values)
    return values


def seen_bins(evidence: Sequence[float] | Array, least: float = SEEN) -> int:
    """How many bins, from the first, reach up to the last run that exceeds the noise.

    Parameters
    ----------
    evidence
        Counts divided by the standard deviations of their noise, from inside to outside.
    least
        Evidence that a run needs.

    Notes
    -----
    From inside to outside: among all runs from bin i to bin j beyond the bins seen so far, that
    with the largest ``sum / sqrt(length) - .2 max(i - 1, 0)`` is taken while it reaches `least`.
    """
    sums = np.concatenate([[0.0], np.cumsum(np.asarray(evidence, np.float64))])
    seen = 0
    while seen < len(sums) - 1:
        first, last = np.triu_indices(len(sums) - seen, 1)
        found = (sums[seen + last] - sums[seen + first]) / np.sqrt(last - first)
        found -= _GAP * np.maximum(first - 1, 0)
        best = int(np.argmax(found))
        if found[best] < least:
            break
        seen += int(last[best])
    return seen
