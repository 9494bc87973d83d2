"""The exact guarantee of a noise level for typical and for worst rows and cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.spatial.distance import cdist

from benchmarks.arrays import Array, Rng
from benchmarks.pages import table
from benchmarks.papers.experiment import Figures, Measured, Scalar, Verdict, short
from benchmarks.papers.gpp.protocol import spread
from benchmarks.papers.gpp.scoring import decibels
from gramercy.mechanisms.accounting.gdp import gdp_mu, zcdp_delta
from gramercy.mechanisms.accounting.guarantee import Guarantee

DELTA = 1e-5
NONE = 10.0  # a larger epsilon counts as no privacy
SPEAK = 10.0  # decibels, the noisiest level in the paper's tables
ABOUT, NEAR = -28.0, 7.0  # decibels at which epsilon is 1 (earlier measurement), and tolerance
_AT_ONCE = 512  # rows
_PAIRS = 4000  # rows for the median distance
KINDS = {
    "row typical": "typical rows",
    "row worst": "farthest rows",
    "row range": "any rows in the ranges",
    "cell typical": "typical cells",
    "cell range": "any cells in the ranges",
}


def distances(rows: Array) -> Figures:
    """Distances that a row or a cell may move when it is replaced.

    Typical: the median over pairs of rows of the table (of its first rows, if it is long). Ranges:
    the observed column ranges, the smallest that a contract could declare.
    """
    some = rows[:_PAIRS]
    upper = np.triu_indices(len(some), 1)
    ranges = np.ptp(rows, axis=0)
    return {
        "row typical": float(np.median(cdist(some, some)[upper])),
        "row worst": max(
            float(cdist(rows[i : i + _AT_ONCE], rows).max()) for i in range(0, len(rows), _AT_ONCE)
        ),
        "row range": float(np.linalg.norm(ranges)),
        "cell typical": float(np.median([_median_gap(column) for column in rows.T])),
        "cell range": float(ranges.max()),
        "power": float(np.mean((rows - rows.mean(axis=0)) ** 2)),
    }


def _median_gap(column: Array) -> float:
    some = column[:1000]
    return float(np.median(np.abs(np.subtract.outer(some, some))[np.triu_indices(len(some), 1)]))


@lru_cache(maxsize=4096)
def epsilon(distance: float, sigma: float, discrete: bool) -> float:
    """Epsilon at `DELTA` for two tables at that distance; an upper bound if discrete."""
    if sigma == 0:
        return math.inf
    if discrete:
        return zcdp_epsilon(distance, sigma, DELTA)
    return Guarantee(distance / sigma).epsilon(DELTA)


def least(distance: float, sigma: float, discrete: bool) -> float:
    """Lower bound on epsilon at `DELTA`.

    Notes
    -----
    For integer rows d apart the privacy loss has mean m = d^2 / (2 sigma^2), and a variance v of at
    most d^2 / sigma^2, since the variance of the discrete Gaussian is at most sigma^2. The loss
    exceeds m - t with probability at least t^2 / (v + t^2) (Cantelli). Delta at epsilon is at
    least half the probability that the loss exceeds epsilon + log 2. With t^2 = 3 delta v, this
    exceeds delta.
    """
    if not discrete or sigma == 0:
        return epsilon(distance, sigma, discrete)
    mu = distance / sigma
    return max(0.0, mu**2 / 2 - mu * math.sqrt(3 * DELTA) - math.log(2))


def level_of_one(distance: float, power: float) -> float:
    """Signal-to-noise ratio in decibels at which epsilon is 1."""
    return 20 * math.log10(gdp_mu(1.0, DELTA) * math.sqrt(power) / distance)


def page(
    measured: Measured,
    levels: Sequence[float],
    setting: Mapping[str, Scalar],
    *,
    discrete: bool = False,
) -> Iterator[str]:
    """Yield the page's section, a table with one line per noise level."""
    result = _means(measured, setting)
    noisy = [level for level in levels if math.isfinite(level)]
    law = (
        "an upper bound by (d^2 / 2 sigma^2)-zCDP, d the distance of integer rows; for typical "
        "rows also a lower bound"
        if discrete
        else "exactly, by mu = distance / sigma"
    )
    yield (
        f"The exact guarantee of the noise: epsilon at delta = {DELTA:g}, replace-one, {law}. A "
        "person contributes a row; the paper's neighbours differ in a cell.\n"
    )
    yield from table(
        (
            "noise",
            "distance of typical rows / sigma",
            *(f"epsilon, {title}" for title in KINDS.values()),
        ),
        (
            (
                decibels(level),
                short(result["row typical"] / spread(result["power"], level)),
                *(_epsilon(result, kind, level, discrete) for kind in KINDS),
            )
            for level in noisy
        ),
    )
    yield (
        "Epsilon is one at "
        + ", ".join(
            f"{level_of_one(result[kind], result['power']):.1f} dB ({title})"
            for kind, title in KINDS.items()
        )
        + ".\n"
    )


def _epsilon(result: dict[str, float], kind: str, level: float, discrete: bool) -> str:
    sigma = spread(result["power"], level)
    most = short(epsilon(result[kind], sigma, discrete))
    if not discrete or kind != "row typical":
        return most
    return f"{short(least(result[kind], sigma, discrete))} to {most}"


def verdicts(
    name: str,
    measured: Measured,
    levels: Sequence[float],
    setting: Mapping[str, Scalar],
    *,
    discrete: bool = False,
) -> Iterator[Verdict]:
    """Test that the paper's noise levels give no privacy, and which level gives epsilon = 1."""
    result = _means(measured, setting)
    paper = [level for level in levels if SPEAK <= level < math.inf]
    known = {
        kind: min(least(result[kind], spread(result["power"], level), discrete) for level in paper)
        for kind in ("row typical", "row worst")
    }
    where = level_of_one(result["row typical"], result["power"])
    said = "at least " if discrete else ""
    yield Verdict(
        f"{name}: at every noise level of the paper there is no row-level privacy "
        f"(epsilon above {NONE:g} for two typical rows, at {SPEAK:g} dB and more)",
        known["row typical"] > NONE,
        f"at {SPEAK:g} dB epsilon is {said}{short(known['row typical'])} for typical rows, "
        f"{said}{short(known['row worst'])} for the farthest",
    )
    yield Verdict(
        f"{name}: epsilon = 1 for two typical rows needs about {ABOUT:g} dB (within {NEAR:g})",
        abs(where - ABOUT) <= NEAR,
        f"{where:.1f} dB",
    )


def _means(measured: Measured, setting: Mapping[str, Scalar]) -> dict[str, float]:
    return {key: measured.mean(key, **setting).mean for key in (*KINDS, "power")}


_REACH = 12.0  # standard deviations; the omitted tails have less than 1e-32


# The discrete Gaussian N_Z(0, sigma^2) by a table of probabilities, with seeded noise, for
# benchmarks only. A release draws it exactly (`mechanisms.sampling.discrete`).


@dataclass(frozen=True)
class Discrete:
    """A discrete Gaussian: integers and their probabilities."""

    sigma: float
    values: Array
    probabilities: Array

    @property
    def variance(self) -> float:
        """The exact variance, which is far below sigma^2 if sigma is small."""
        return float((self.values**2 * self.probabilities).sum())

    @property
    def changed(self) -> float:
        """The probability that the noise changes a cell."""
        return float(self.probabilities[self.values != 0].sum())

    def draw(self, shape: tuple[int, ...], rng: Rng) -> Array:
        """Draw independent integers."""
        at = np.searchsorted(np.cumsum(self.probabilities), rng.random(shape))
        return self.values[np.minimum(at, self.values.size - 1)]

    def delta(self, shift: int, epsilon: float) -> float:
        """The exact delta at `epsilon` for one cell that moves by `shift`, in either direction."""
        log_ratio = (2 * self.values * shift - shift**2) / (2 * self.sigma**2)
        excess = -np.expm1(np.minimum(log_ratio + epsilon, 0.0))
        return float((self.probabilities * excess).sum())


@lru_cache(maxsize=64)
def discrete(sigma: float) -> Discrete:
    """Return the discrete Gaussian with this positive sigma."""
    end = math.ceil(_REACH * sigma) + 1
    values = np.arange(-end, end + 1, dtype=float)
    weights = np.exp(-np.square(values / sigma) / 2)
    return Discrete(sigma, values, weights / weights.sum())


def moved(shift: int, sigma: float, failure: float) -> Guarantee:
    """The exact guarantee for one cell that moves by `shift`; see `Guarantee` for `failure`."""
    made = discrete(sigma)
    return Guarantee.from_profile(lambda epsilon: made.delta(shift, epsilon), failure)


def zcdp_epsilon(distance: float, sigma: float, delta: float) -> float:
    """Upper bound on epsilon at `delta` for rows `distance` apart, by (d^2 / 2 sigma^2)-zCDP."""
    rho = distance**2 / (2 * sigma**2)
    low, high = 0.0, rho + 2 * math.sqrt(rho * math.log(1 / delta))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_delta(rho, middle) > delta else (low, middle)
    return high
