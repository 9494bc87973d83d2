"""How accurate the correlations of a release are that publishes what clipping took away.

Every correlation has a bound: two standard deviations of the noise, and the bias of clipping and of
missing cells, together. The verdict looks at the largest of these bounds, so it needs no law of the
rows. Set apart are columns of which only the sign is published, because their correlations are
those of whether a cell differs, and columns that are constant as far as the noise can tell, because
theirs are unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.accuracy.correlation_accuracy import ScaledMoments
from gramercy.estimators.clipped_moments import ClippedMoments
from gramercy.estimators.lost_moments import clipped_moments
from gramercy.schemas.evidence import Evidence, Histogram

Array = NDArray[np.float64]
Level = Literal["good", "warning", "danger"]

LARGEST, TYPICAL, LOST_SHARE = 0.12, 0.05, 0.05
_RED_TYPICAL, _RED_LOST = 0.2, 0.5
MOST_NOISE = 0.3  # of a correlation that is not lost
_REACH = 2.0  # standard deviations of the noise
_SET_ASIDE = 0.1  # share of the columns that a verdict may leave out
_CONSTANT = 3.0 * math.sqrt(2.0)  # standard deviations of a count
_CELLS, _ROWS = 5.0, 4.5
_NOTICED = 1.15
_MOST_NAMED = 3


def level_of(typical: float, largest: float, lost_share: float) -> Level:
    """The verdict on correlations, of a release and of a plan.

    `typical`, `largest`: their typical error, and the largest bound. `lost_share`: share of the
    pairs of columns whose correlation is lost in the noise.
    """
    if typical > _RED_TYPICAL or lost_share > _RED_LOST:
        return "danger"
    accurate = typical <= TYPICAL and largest <= LARGEST and lost_share <= LOST_SHARE
    return "good" if accurate else "warning"


@dataclass(frozen=True)
class ClippedAccuracy:
    """Bounds of the errors of all correlations; q columns without the intercept."""

    names: tuple[str, ...]
    moments: ClippedMoments
    # At most by missing cells, shape (q, q): by rows with one cell of a pair, if it is published
    # which are missing together; otherwise by missing cells of both columns in the same rows.
    missing: Array
    apart: NDArray[np.bool_]  # columns whose correlations the verdict is not about, shape (q,)

    @classmethod
    def of(cls, evidence: Evidence) -> ClippedAccuracy | None:
        """The accuracy of a release; None if it does not publish what clipping took away."""
        moments, scaled = clipped_moments(evidence), ScaledMoments.of(evidence)
        if moments is None or scaled is None or len(moments.mean) < 2:
            return None
        names = tuple(evidence.names[1:])
        marginals = {each.column: each for each in evidence.marginals}
        apart = [
            name in evidence.signs
            or (not known and name in marginals and _is_constant(marginals[name]))
            for name, known in zip(names, moments.known.tolist(), strict=True)
        ]
        measured = evidence.has_missing_matrix
        missing = moments.correlation_missing if measured else scaled.jointly_missing()
        return cls(names, moments, missing, np.array(apart))

    @cached_property
    def pairs(self) -> NDArray[np.bool_]:
        """Pairs of columns with a correlation that is not lost in the noise; shape (q, q)."""
        known = self.moments.known & ~self.apart
        pairs: NDArray[np.bool_] = np.logical_and.outer(known, known)
        return np.triu(pairs & (self.moments.correlation_noise <= MOST_NOISE), 1)

    @cached_property
    def bounds(self) -> Array:
        """Bound of the error of every correlation; shape (q, q)."""
        noise = _REACH * self.moments.correlation_noise
        bounds: Array = np.hypot(noise, self.moments.correlation_bias) + np.abs(self.missing)
        return bounds

    @property
    def noise(self) -> float:
        """Typical noise: the root mean square over the pairs that are not lost."""
        return self._typical(self.moments.correlation_noise)

    @property
    def clipping(self) -> float:
        """Typical bias of clipping; see `noise`."""
        return self._typical(self.moments.correlation_spread)

    @property
    def together(self) -> float:
        """Typical bias of cells that are missing together; see `noise`."""
        return self._typical(self.missing) / 2

    @property
    def typical(self) -> float:
        """Typical error: noise and bias."""
        return math.hypot(self.noise, self.clipping, self.together)

    @property
    def largest(self) -> float:
        """The largest bound."""
        return float(self.bounds[self.pairs].max()) if self.pairs.any() else math.inf

    @property
    def lost_share(self) -> float:
        """Share of the pairs that are lost, without the columns that are set apart."""
        q = int((~self.apart).sum())
        return 1 - float(self.pairs.sum()) / (q * (q - 1) / 2) if q > 1 else 0.0

    @property
    def level(self) -> Level:
        """Green, orange or red: green also if it is so without the columns `excepted`."""
        level = self._level_of_all
        return "good" if level != "good" and self.excepted else level

    @cached_property
    def excepted(self) -> tuple[str, ...]:
        """The columns without which all correlations are accurate.

        Empty if all are accurate as they are, or if there are too many such columns.
        """
        without, left_out = self, list[int]()
        while without._level_of_all != "good":
            if len(left_out) >= max(1, round(_SET_ASIDE * len(self.names))):
                return ()
            left_out.append(without._worst)
            without = without._without(left_out[-1])
        return tuple(self.names[each] for each in left_out)

    @property
    def accurate(self) -> ClippedAccuracy:
        """The accuracy of the columns that the verdict is about: without those of `excepted`."""
        apart = self.apart | np.isin(self.names, self.excepted)
        return replace(self, apart=apart)

    @property
    def least_accurate(self) -> tuple[str, ...]:
        """The columns of the least accurate correlations, the worst first; at most three."""
        without, names = self, list[str]()
        while without.pairs.any() and without.largest > LARGEST and len(names) < _MOST_NAMED:
            worst = without._worst
            names.append(self.names[worst])
            without = without._without(worst)
        return tuple(names)

    def _without(self, column: int) -> ClippedAccuracy:
        apart = self.apart.copy()
        apart[column] = True
        return replace(self, apart=apart)

    @property
    def _level_of_all(self) -> Level:
        """See `level`."""
        return level_of(self.typical, self.largest, self.lost_share)

    @property
    def _worst(self) -> int:
        """The column with the most inaccurate correlations; of several, the least accurate one."""
        live = np.logical_and.outer(~self.apart, ~self.apart)
        bounds = np.where(self.pairs | self.pairs.T, self.bounds, np.where(live, math.inf, 0.0))
        np.fill_diagonal(bounds, 0.0)
        inaccurate = (bounds > LARGEST).sum(axis=1)
        return int(np.argmax(inaccurate + np.minimum(bounds, 1.0).mean(axis=1)))

    def _typical(self, errors: Array) -> float:
        """Root mean square over the pairs that are not lost."""
        return float(np.sqrt(np.mean(errors[self.pairs] ** 2))) if self.pairs.any() else math.inf


def _is_constant(marginal: Histogram) -> bool:
    """Whether all cells but a few, which the noise may hide, are in one bin."""
    present = marginal.count[:-1].astype(np.float64)
    others = float(present.sum()) - float(present.max())
    return others <= _CONSTANT * marginal.sd * math.sqrt(max(len(present) - 1, 1))


@dataclass(frozen=True)
class Traceless:
    """How many cells or rows may be unlike all others and leave no trace in a release."""

    column: str
    cells: int
    share: float
    deviation: float  # the standard deviation, in the column's units
    possible: float  # the same if all of these cells were at the farther declared bound


def traceless_cells(
    evidence: Evidence, deviations: Array, means: Array, bounds: dict[str, tuple[float, float]]
) -> list[Traceless]:
    """The columns whose standard deviation traceless cells could raise by more than 15 %.

    `deviations`, `means`: of the columns without the intercept, in their units. `bounds`: declared
    bounds by column.
    """
    result = []
    marginals = {each.column: each for each in evidence.marginals}
    for name, deviation, mean in zip(evidence.names[1:], deviations, means, strict=True):
        if name not in bounds or name not in marginals or not np.isfinite(deviation):
            continue
        cells = math.ceil(_CELLS * marginals[name].sd)
        share = cells / max(evidence.rows, 1.0)
        farthest = max(bounds[name][1] - mean, mean - bounds[name][0])
        possible = math.hypot(deviation, math.sqrt(share) * farthest)
        if possible > _NOTICED * deviation:
            result.append(Traceless(name, cells, share, float(deviation), possible))
    return result


def traceless_rows(evidence: Evidence) -> int | None:
    """Number of rows that may be unlike all others; None if no lengths are published."""
    lengths = evidence.lengths
    return None if lengths is None else math.ceil(_ROWS * lengths.sd)
