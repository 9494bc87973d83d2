"""Variants of the rule: constants and branches of `gramercy.scaling` that are replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array
from gramercy.estimators.noise.denoise import project
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.scaling.clipping_radius import clipping_bias
from gramercy.scaling.column_constants import NoisyHistogram
from gramercy.scaling.column_scan import ColumnScan
from gramercy.scaling.runs import SEEN, centred
from gramercy.scaling.whitening import Turning

TODAY = "today"


@dataclass(frozen=True)
class Variant:
    """The objects that are replaced.

    Parameters
    ----------
    of_estimates
        Whether estimates change even if what is published does not.
    whitened
        Whether there is a pilot matrix, in the variant and in the rule that it is compared with.
    """

    patches: Mapping[str, Any]
    of_estimates: bool = False
    whitened: bool = False


def _of(file: str, **values: Any) -> Variant:
    return Variant({f"gramercy.scaling.{file}.{name}": each for name, each in values.items()})


def _whitened(file: str, **values: Any) -> Variant:
    return replace(_of(file, **values), whitened=True)


def _metric(floor: float, exponent: float = 1.0) -> property:
    """The metric with another floor, or another exponent."""

    def metric(turning: Turning) -> Array:
        values, vectors = np.linalg.eigh(turning.pilot.estimate)
        least = max(turning.pilot.noise * len(values) ** 0.5, floor * float(values.mean()))
        powers = (np.maximum(values, 0.0) + least) ** (-exponent / 2)
        inverse: Array = (vectors * powers) @ vectors.T
        return (inverse + inverse.T) / 2

    return property(metric)


def _other_bias(factor: float) -> Callable[[float], float]:
    return lambda strength: factor * clipping_bias(strength)


def _noisy_estimate(pilot: Gaussian, total: Array, _: int) -> Array:
    """The pilot matrix with its noise, without negative eigenvalues."""
    return project(total, np.inf)


def _runs(how: Callable[..., int]) -> Variant:
    files = ("clipping_radius", "column_scan")
    return Variant({f"gramercy.scaling.{file}.seen_bins": how for file in files}, of_estimates=True)


def _best_run(evidence: Array, least: float = SEEN) -> int:
    last, found = _candidates(evidence)
    return int(last[np.argmax(found)]) if len(found) and found.max() >= least else 0


def _outermost_run(evidence: Array, least: float = SEEN) -> int:
    last, found = _candidates(evidence)
    return int(last[found >= least].max(initial=0))


def _candidates(evidence: Array) -> tuple[NDArray[np.int64], Array]:
    """The last bins of all runs, and their evidence as in `seen_bins`."""
    sums = np.concatenate([[0.0], np.cumsum(evidence)])
    first, last = np.triu_indices(len(sums), 1)
    found = (sums[last] - sums[first]) / np.sqrt(last - first)
    return last, found - 0.2 * np.maximum(first - 1, 0)


def _last_stage(scan: ColumnScan, rows: float) -> tuple[Array, Array]:
    last = scan.stages[-1]
    values = centred(last.counts, rows)
    return values, np.full(len(values), last.sd)


def _same(value: Any, *_: Any) -> Any:
    return value


def _one(*_: Any) -> float:
    return 1.0


class _UnknownSum(NoisyHistogram):
    def variance(self, bins: Array) -> Array:
        return bins * (self.sd * self.sd)


_RADIUS, _CONSTANTS, _SCAN = "clipping_radius", "column_constants", "column_scan"
_METRIC, _PILOT = "whitening", "gramercy.scaling.whitening.Turning.metric"
_HALVES = (0, 0.5, 0.5**0.5, 1, 2**0.5, 2, 8**0.5, 4)
_THIRDS = (1 / 3,) * 3

VARIANTS: Mapping[str, Variant] = {
    TODAY: Variant({}),
    "clipping_radius _EDGES: half octaves": _of("clipping_radius", _EDGES=_HALVES),
    "clipping_radius _EDGES: octaves": _of(_RADIUS, _EDGES=(0, 0.5, 1, 2, 4)),
    "clipping_radius _EIGHTH: quarters of an octave": _of(_RADIUS, _EIGHTH=2**0.25),
    "clipping_radius _EIGHTH: halves of an octave": _of(_RADIUS, _EIGHTH=2**0.5),
    "clipping_radius _CUTS: 1 always": _of(_RADIUS, _CUTS=(1.0,)),
    "clipping_radius _CUTS: 1/2 always": _of(_RADIUS, _CUTS=(0.5,)),
    "clipping_radius _CUTS: 1/4 always": _of(_RADIUS, _CUTS=(0.25,)),
    "clipping_radius _CUTS: 1/2 to 2": _of(_RADIUS, _CUTS=(0.5, 1.0, 2.0)),
    "clipping_radius _CUTS: 1/8 to 1": _of(_RADIUS, _CUTS=(0.125, 0.25, 0.5, 1.0)),
    "clipping_radius _LARGEST_RADIUS: 4": _of(_RADIUS, _LARGEST_RADIUS=4.0),
    "chain rows: the public number": _of("chain", SEEN=1e9),
    "chain rows: the counted number": _of("chain", SEEN=0.0),
    "runs seen_bins: the best run only": _runs(_best_run),
    "runs seen_bins: the outermost run": _runs(_outermost_run),
    "shares _FACTOR: 3": _of("shares", _FACTOR=3.0),
    "shares _FACTOR: 12": _of("shares", _FACTOR=12.0),
    "shares _FACTOR: .1 for all strengths": _of("shares", _LEAST=0.1, _LARGEST=0.1),
    "shares _FACTOR: .2 for all strengths": _of("shares", _LEAST=0.2, _LARGEST=0.2),
    "shares _LEAST, _LARGEST: none": _of("shares", _LEAST=0.0, _LARGEST=0.9),
    "shares _LEAST: .1": _of("shares", _LEAST=0.1),
    "shares _STAGES, _LENGTHS: four equal parts": _of("shares", _STAGES=_THIRDS, _LENGTHS=0.25),
    "shares _STAGES: equal": _of("shares", _STAGES=_THIRDS),
    "shares _STAGES: two": _of("shares", _STAGES=(0.5, 0.5)),
    "shares _LENGTHS: .3": _of("shares", _LENGTHS=0.3),
    "shares _LENGTHS: .075": _of("shares", _LENGTHS=0.075),
    "shares _LOST: .03": _of("shares", _LOST=0.03),
    "shares _LOST: .05": _of("shares", _LOST=0.05),
    "shares _LOST: .12": _of("shares", _LOST=0.12),
    "column_constants _MEMORY: 0": _of(_CONSTANTS, _MEMORY=0.0),
    "column_constants _SIMILAR: always": _of(_CONSTANTS, _SIMILAR=1e9),
    "column_constants _UNRESOLVED, _FINE_BINS: never": _of(_CONSTANTS, _UNRESOLVED=0),
    "column_constants _FINER: never": _of(_CONSTANTS, _FINER=()),
    "column_constants _FINER: 64 bins at 1500 only": _of(
        "column_constants", _FINER=((1500.0, 64),)
    ),
    "column_constants _FINER: 32 bins always": _of(_CONSTANTS, _FINER=((0.0, 32),)),
    "column_constants _PENALTY: 1": _of(_CONSTANTS, _PENALTY=1.0),
    "column_constants _CHANCE: 9": _of(_CONSTANTS, _CHANCE=9.0),
    "column_constants _CHANCE: off": _of(_CONSTANTS, _CHANCE=1e12),
    "column_constants _SURPRISE: 0": _of(_CONSTANTS, _SURPRISE=0.0),
    "column_constants _USUAL_WIDTH: 8": _of(_CONSTANTS, _USUAL_WIDTH=8.0),
    "column_constants variance: without the known sum": _of(
        "column_constants", NoisyHistogram=_UnknownSum
    ),
    "column_constants _OCTAVES: 14": _of(_CONSTANTS, _OCTAVES=tuple(range(1, 15))),
    "column_constants _OCTAVES: 20": _of(_CONSTANTS, _OCTAVES=tuple(range(1, 21))),
    "column_constants _REACH: 2": _of(_CONSTANTS, _REACH=2.0),
    "column_constants _REACH: 8": _of(_CONSTANTS, _REACH=8.0),
    "column_scan _ATOM: .5": _of(_SCAN, _ATOM=0.5),
    "column_scan _ATOM: .9": _of(_SCAN, _ATOM=0.9),
    "column_scan _ATOM: never": _of(_SCAN, _ATOM=2.0),
    "column_scan _INNER_BINS: 64": _of(_SCAN, _INNER_BINS=64),
    "column_scan _ATOM_OCTAVES: 14": _of(_SCAN, _ATOM_OCTAVES=14),
    "column_scan _ATOM_OCTAVES: 40": _of(_SCAN, _ATOM_OCTAVES=40),
    "column_scan _CORE, _EDGE: 4": _of(_SCAN, _CORE=4.0, _EDGE=4.0),
    "column_scan _EDGE: 0": _of(_SCAN, _EDGE=0.0),
    "column_scan _SIGN_BINS: 2": _of(_SCAN, _SIGN_BINS=2.0),
    "column_scan _BEYOND: 1": _of(_SCAN, _BEYOND=1.0),
    "column_scan _BEYOND: 3": _of(_SCAN, _BEYOND=3.0),
    "column_scan _widened: never": _of(_SCAN, _widened=_one),
    "column_scan _RADIUS: 1": _of(_SCAN, _RADIUS=1.0),
    "column_scan _LOST: .1": _of(_SCAN, _LOST=0.1),
    "column_scan _pooled: the last stage only": Variant(
        {"gramercy.scaling.column_scan.ColumnScan._pooled": _last_stage}
    ),
    "whitening: never": Variant(
        {
            "gramercy.scaling.shares.Shares.with_pilot": property(_same),
            "tests.support.private_release._turned": _same,
        },
        whitened=True,
    ),
    "shares _PILOT: .03": _whitened("shares", _PILOT=0.03),
    "shares _PILOT: .1": _whitened("shares", _PILOT=0.1),
    "shares _PILOT: .15": _whitened("shares", _PILOT=0.15),
    "shares _TURNED: .01": _whitened("shares", _TURNED=0.01),
    "shares _LOST: .12, with a pilot": _whitened("shares", _LOST=0.12),
    "whitening _SLACK: 1": _whitened(_METRIC, _SLACK=1.0),
    "whitening _SLACK: 1.5": _whitened(_METRIC, _SLACK=1.5),
    "whitening _SLACK: always": _whitened(_METRIC, _SLACK=1e9),
    "whitening _LEAST: 0": _whitened(_METRIC, _LEAST=0.0),
    "whitening _LEAST: .3": _whitened(_METRIC, _LEAST=0.3),
    "whitening metric: exponent .8": Variant({_PILOT: _metric(0.1, 0.8)}, whitened=True),
    "whitening clipping_bias: half": _whitened(_METRIC, clipping_bias=_other_bias(0.5)),
    "whitening clipping_bias: twice": _whitened(_METRIC, clipping_bias=_other_bias(2.0)),
    "pilot without_noise: clipped eigenvalues": Variant(
        {"tests.support.private_release.without_noise": _noisy_estimate}, whitened=True
    ),
}

# Variants that are the rule now: their results are kept.
GONE = (
    "clipping_radius _LEAST_POWER: 0",
    "clipping_radius _LEAST_BIAS, _LARGEST_BIAS: none",
    "clipping_radius _ROOM: 1",
    "clipping_radius _LARGEST_RADIUS: 128 for rows too",
    "clipping_radius _HOLES_ROOM: 0",
    "clipping_radius _SHARE_NOISE: 0",
    "clipping_radius missing_cut: all columns with missing cells",
    "column_constants _TOO_FEW: 0",
    "column_constants _LEAST_SQUARE: 0",
    "column_constants _COLLAPSE: 0",
    "column_constants winsor_limit: 10",
    "column_constants LARGEST_WINSOR: 20",
    "column_constants LARGEST_WINSOR: none",
    "column_constants _COVERED: 1",
    "column_constants _EQUAL_BINS: 16, with octaves or without",
    "column_scan _MORE, _REST: no burden of proof",
    "column_scan _REST: 3",
    "column_scan _STRONG: 9",
    "column_scan _GAP, _BODY_GAP: .2",
    "column_scan _FAR: 9",
    "column_scan _FAR: never",
    "column_scan _SIGN_SIZE: 2^-14",
    "column_scan _SIGN_SIZE: eight bins for all atoms",
    "column_scan _MOST_BODY: 7, as for atoms",
    "column_scan _SQUARED_NOISE: 0",
    "all removals, but winsor_limit and _SIGN_SIZE: with _CHANCE 9 and _EDGE 0",
    "all removals, but _SIGN_SIZE: with _CHANCE 9 and _EDGE 0",
)

# Why a constant is kept that earns little here.
KEPT_FOR = {
    "clipping_radius length_edges: the same for all tables": "kept: noise in empty far bins",
    "clipping_radius _BIAS: .03 for all strengths": "kept: widths of means",
    "column_constants _SIMILAR: always": "kept: narrow columns far from zero, without bounds",
    "column_constants _CHANCE: 9": "kept: columns without bounds",
    "column_scan _pooled: the last stage only": "kept: codes far out",
    "whitening _LEAST: 0": "kept: large tables where few rows break a near-identity",
    "whitening _SLACK: 1": "kept: coefficients",
    "pilot without_noise: clipped eigenvalues": "kept: partial correlations",
}
