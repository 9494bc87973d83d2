"""How much of the budget is spent on constants, from public facts only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEAST_STRENGTH = 50.0
_LEAST, _LARGEST, _FACTOR = 0.05, 0.5, 6.0
_STAGES, _LENGTHS = (0.3, 0.3, 0.4), 0.15
_LOST = 0.06  # of what the constants leave


@dataclass(frozen=True)
class Shares:
    """Shares of mu squared; the matrix has the rest."""

    stages: tuple[float, ...]  # of the histograms of each stage
    lengths: float  # of the histogram of row lengths
    lost: float  # of the matrix of lost moments

    @property
    def left(self) -> float:
        """The share of the matrix."""
        return 1 - math.fsum(self.stages) - self.lengths - self.lost


def shares(n: int, p: int, mu: float, share: float | None = None) -> Shares | None:
    """Choose the shares of mu squared that are spent on constants.

    `share`: total share, if the steward declares it; up to 1 where only histograms are published.

    None if constants would cost more accuracy than they bring: if X = n mu / sqrt(p) is
    below 50. The middle of the bounds, their half width and unit rows are then more accurate.

    The total share is 6 / sqrt(X), between .05 and .5: with little noise, a small share of the
    budget gives the constants with the same accuracy.
    """
    strength = n * mu / math.sqrt(p)
    if share is None:
        if strength < LEAST_STRENGTH:
            return None
        share = min(max(_FACTOR / math.sqrt(strength), _LEAST), _LARGEST)
    histograms = share * (1 - _LENGTHS)
    stages = tuple(histograms * each for each in _STAGES)
    return Shares(stages, share * _LENGTHS, _LOST * (1 - share))


def follow_a_share(stages: Sequence[float], lengths: float, lost: float) -> bool:
    """Whether shares are those that one total share of all histograms gives."""
    histograms = math.fsum([*stages, lengths])
    rule = [
        *(histograms * (1 - _LENGTHS) * each for each in _STAGES),
        histograms * _LENGTHS,
        _LOST * (1 - histograms),
    ]
    stated = [*stages, lengths, lost]
    return len(stated) == len(rule) and all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in zip(stated, rule, strict=True)
    )
