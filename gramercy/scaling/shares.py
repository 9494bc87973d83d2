"""How much of the budget is spent on constants, from public facts only."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

LEAST_STRENGTH, LEAST_WHITENED = 50.0, 200.0
_LEAST, _LARGEST, _FACTOR = 0.05, 0.5, 6.0
_STAGES, _LENGTHS = (0.3, 0.3, 0.4), 0.15
_LOST = 0.06  # of what the constants leave
_PILOT, _TURNED = 0.05, 0.02  # of what is then left


@dataclass(frozen=True)
class Shares:
    """Shares of mu squared; the matrix has the rest."""

    stages: tuple[float, ...]  # of the histograms of each stage
    lengths: float  # of the histogram of row lengths
    lost: float  # of the matrix of lost moments
    # of the pilot matrix, and of the histogram of row lengths in its metric; 0 without a pilot
    pilot: float = 0.0
    turned: float = 0.0

    @property
    def all(self) -> tuple[float, ...]:
        """The shares of everything but the matrix."""
        return (*self.stages, self.lengths, self.lost, self.pilot, self.turned)

    @property
    def left(self) -> float:
        """The share of the matrix."""
        return 1 - math.fsum(self.all)

    @property
    def with_pilot(self) -> Shares:
        """The same with a pilot matrix and the lengths in its metric."""
        return replace(self.with_metric, pilot=_PILOT * self.left)

    @property
    def with_metric(self) -> Shares:
        """The same with the lengths in the metric of another release."""
        return replace(self, turned=_TURNED * self.left)


def shares(n: int, p: int, mu: float, share: float | None = None) -> Shares | None:
    """Choose the shares of mu squared that are spent on constants.

    `share`: total share, if the steward declares it; up to 1 where only histograms are published.

    None if constants would cost more accuracy than they bring: if X = n mu / sqrt(p) is
    below 50. The middle of the bounds, their half width and unit rows are then more accurate.

    The total share is 6 / sqrt(X), between .05 and .5: with little noise, a small share of the
    budget gives the constants with the same accuracy.
    """
    if share is None:
        if _strength(n, p, mu) < LEAST_STRENGTH:
            return None
        share = _total(n, p, mu)
    histograms = share * (1 - _LENGTHS)
    stages = tuple(histograms * each for each in _STAGES)
    return Shares(stages, share * _LENGTHS, _LOST * (1 - share))


def whitening_pays(n: int, p: int, mu: float) -> bool:
    """Whether there is a pilot matrix: if X = n mu / sqrt(p) is at least 200.

    With more noise it shows no direction.
    """
    return _strength(n, p, mu) >= LEAST_WHITENED


def shares_of_known_constants(n: int, p: int, mu: float) -> Shares:
    """The shares of a release that takes its constants from another one.

    Of histograms, only the lengths of its rows are published, with as much noise as where constants
    are estimated.
    """
    lengths = _LENGTHS * _total(n, p, mu)
    return Shares((), lengths, _LOST * (1 - lengths))


def _strength(n: int, p: int, mu: float) -> float:
    return n * mu / math.sqrt(p)


def _total(n: int, p: int, mu: float) -> float:
    """The share of all histograms, if the steward does not declare it."""
    root = math.sqrt(_strength(n, p, mu))
    return min(max(_FACTOR / root, _LEAST), _LARGEST)


def follow_a_share(stated: Shares) -> bool:
    """Whether shares are those that one total share of the first histograms gives."""
    histograms = math.fsum([*stated.stages, stated.lengths])
    stages = tuple(histograms * (1 - _LENGTHS) * each for each in _STAGES)
    rule = Shares(stages, histograms * _LENGTHS, _LOST * (1 - histograms))
    return follow(stated, rule.with_pilot if stated.pilot else rule)


def follow(stated: Shares, *rules: Shares) -> bool:
    """Whether shares are about those of one of the rules."""
    return any(
        len(stated.stages) == len(rule.stages)
        and all(
            math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
            for a, b in zip(stated.all, rule.all, strict=True)
        )
        for rule in rules
    )
