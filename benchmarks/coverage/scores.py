"""Coverage and discovery rates over the releases of one setting, with standard errors.

The entries of one release are dependent, so standard errors are taken over releases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks.arrays import Array
from benchmarks.coverage.populations import Quantity
from gramercy.estimators.discoveries import Discoveries
from gramercy.estimators.intervals import Intervals
from gramercy.schemas.evidence import Evidence

Flags = NDArray[np.bool_]
LEVEL = 0.95
RATES = (0.05, 0.1)
_SOME = 5  # releases with bounded intervals that a standard error requires


@dataclass(frozen=True)
class Coverage:
    """Coverage of the intervals of one quantity.

    Parameters
    ----------
    known
        Share of the entries with a bounded interval.
    held
        Share of these that contain the truth; None if no entry is known.
    error
        Standard error of `held`, over releases; None if fewer than five have known entries.
    width
        Root mean square width over that of an oracle: the normal interval by the deviation of the
        estimate over the releases. Of the entries that all releases know; else None.
    """

    known: float
    held: float | None
    error: float | None
    width: float | None


@dataclass(frozen=True)
class DiscoveryRates:
    """False discoveries and power at one rate.

    Parameters
    ----------
    false
        Mean share of false discoveries; 0 in a release without discoveries.
    error
        Standard error of `false`, over releases.
    power
        Mean share of the true edges that are discovered.
    """

    false: float
    error: float
    power: float


@dataclass
class Entries:
    """Collects the intervals of one quantity, release by release."""

    of: Quantity
    target: Array
    known: list[Flags] = field(default_factory=list)
    held: list[Flags] = field(default_factory=list)
    widths: list[Array] = field(default_factory=list)
    estimates: list[Array] = field(default_factory=list)

    def add(self, evidence: Evidence) -> None:
        result = Intervals(of=self.of, level=LEVEL).fit(evidence).matrices
        pairs = np.triu_indices(len(self.target), 0 if self.of == "covariance" else 1)
        lower, upper, truth = result["lower"][pairs], result["upper"][pairs], self.target[pairs]
        known = (lower > -1) | (upper < 1)
        self.known.append(known)
        self.held.append(known & (lower <= truth) & (truth <= upper))
        self.widths.append(upper - lower)
        self.estimates.append(result["estimate"][pairs])

    def error(self) -> float:
        """Standard error of the share of known entries that are covered; 0 without releases.

        Infinite if too few releases have known entries.
        """
        held, counts = (np.sum(each, axis=1) for each in (self.held, self.known))
        if np.count_nonzero(counts) < _SOME:
            return math.inf if counts.any() else 0.0
        left = held - held.sum() / counts.sum() * counts
        return math.sqrt(len(left) * float(left @ left) / (len(left) - 1)) / float(counts.sum())

    def summary(self) -> Coverage:
        known = np.array(self.known)
        always, share = known.all(axis=0), _rounded(known.mean())
        if not known.any():
            return Coverage(share, None, None, None)
        ratio, width = np.sum(self.held) / known.sum(), None
        if always.any():
            spread = np.var(np.array(self.estimates)[:, always], axis=0, ddof=1).mean()
            mean = (np.array(self.widths)[:, always] ** 2).mean()
            if spread > 0:
                width = _rounded(math.sqrt(mean / spread) / (2 * -ndtri((1 - LEVEL) / 2)))
        error = self.error()
        return Coverage(
            share, _rounded(ratio), _rounded(error) if error < math.inf else None, width
        )


@dataclass
class Edges:
    """Collects the discoveries of one kind of correlation, release by release."""

    of: Quantity
    related: Flags
    shares: dict[float, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, evidence: Evidence) -> None:
        """Add the discoveries of one release at every rate, from one fit."""
        adjusted = Discoveries.model_validate({"of": self.of}).fit(evidence).matrices["adjusted"]
        upper = np.triu(np.ones_like(self.related), 1)
        true = self.related & upper
        for rate in RATES:
            chosen = (adjusted <= rate) & upper
            false = (chosen & ~true).sum() / max(chosen.sum(), 1)
            power = (chosen & true).sum() / true.sum()
            self.shares.setdefault(rate, []).append((false, power))

    def summary(self) -> dict[str, DiscoveryRates]:
        result = {}
        for rate, pairs in self.shares.items():
            false, power = np.array(pairs).T
            error = false.std(ddof=1) / math.sqrt(len(false))
            result[f"{rate:g}"] = DiscoveryRates(
                _rounded(false.mean()), _rounded(error), _rounded(power.mean())
            )
        return result


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
