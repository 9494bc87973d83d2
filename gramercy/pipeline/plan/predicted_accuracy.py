"""The error of correlations that a plan predicts, from public facts alone.

Before a release nothing is known of how columns fill their bounds. So the error is simulated for
several tables within them, whose columns are Gaussian or skewed and have correlations of 0.3:

- constants from histograms, or declared for a column: the mean at the centre, the deviation equal
  to the scale;
- the middle and half width of bounds: the mean in the middle and a sixth of the range as the
  deviation, or a mean halfway to a bound and a twentieth of the range.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gramercy.estimators.accuracy.row_simulation import (
    Law,
    Normalisation,
    Simulated,
    before_and_after,
    gaussian,
    lognormal,
    one_factor_rows,
)
from gramercy.scaling.column_constants import WINSOR
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import Clip

Array = NDArray[np.float64]

_CORRELATION = 0.3
_SKEWNESS = 0.6
_LAWS: tuple[Law, ...] = (gaussian, lognormal(_SKEWNESS))
_FILLS = ((0.0, 1 / 3), (0.5, 0.1))  # mean and deviation, in half widths from the middle
_RADII = (1.2, 3.0)  # an estimated radius in units of sqrt(q): for Gaussian and for skewed columns
_SAME_SCALE = 1e-9


@dataclass(frozen=True)
class PredictedAccuracy:
    """The error of correlations, for each of the simulated tables.

    Parameters
    ----------
    tables
        Standard deviation of the noise in a typical correlation, and root mean square of the change
        of correlations by the normalisation, by table.
    """

    tables: tuple[tuple[float, float], ...]

    @property
    def noise(self) -> tuple[float, float]:
        """The least and the largest noise."""
        return _range([noise for noise, _ in self.tables])

    @property
    def bias(self) -> tuple[float, float]:
        """The least and the largest change by the normalisation."""
        return _range([bias for _, bias in self.tables])

    @property
    def error(self) -> tuple[float, float]:
        """The least and the largest error: noise and bias together."""
        return _range([math.hypot(*each) for each in self.tables])

    def sufficient_division(self, error: float) -> float:
        """The number by which the noise has to be divided, so that no table has a larger error.

        Infinite if the bias alone is larger.
        """
        if self.bias[1] >= error:
            return math.inf
        return max(noise / math.sqrt(error**2 - bias**2) for noise, bias in self.tables)


def _range(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)


def predicted_accuracy(spec: ReleaseSpec, law: NoiseLaw) -> PredictedAccuracy | None:
    """Predict the error of the correlations of a release.

    Parameters
    ----------
    spec
        Its public facts.
    law
        The noise law of its matrix.

    Returns
    -------
    PredictedAccuracy or None
        None if there are fewer than two columns.
    """
    if len(spec.names) - int(spec.intercept) < 2:
        return None
    return PredictedAccuracy(tuple(_simulated(spec, law.sd_off_diagonal)))


def typical_entry(spec: ReleaseSpec) -> float:
    """A favourable guess of a typical diagonal entry of the matrix: the noise must be below it."""
    q = len(spec.names)
    normalisation = spec.normalisation
    if normalisation.unit_rows:
        return 1 / q
    if normalisation.lacks_radius:
        return 1 / (q * _RADII[0] ** 2)
    if isinstance(normalisation, Clip):
        return 1 / normalisation.length**2
    widths = [
        1.0 if isinstance(c, LevelsFacts) else ((c.upper - c.lower) / (2 * c.scale)) ** 2 / 3
        for c in spec.columns
    ]
    scale = normalisation.divisor(spec.largest_norm) or 1.0
    return float(np.median(widths)) / scale**2


def depends_on_bounds(spec: ReleaseSpec) -> bool:
    """Whether the error depends on how columns fill their bounds: no scale was chosen for some."""
    return spec.scaling is None and any(
        isinstance(column, ColumnFacts) and _has_default_scale(column, spec)
        for column in spec.columns
    )


def _has_default_scale(column: ColumnFacts, spec: ReleaseSpec) -> bool:
    """Whether the scale is half of the range, or that of whole numbers."""
    half = (column.upper / 2 - column.lower / 2) / column.scale
    return abs(half - 1) <= _SAME_SCALE or spec.normalisation.keeps_rows


def _simulated(spec: ReleaseSpec, sd: float) -> Iterator[tuple[float, float]]:
    """Noise and bias of a typical correlation, by table."""
    columns = _matrix_columns(spec)
    cells = one_factor_rows(len(columns), _CORRELATION)
    persons = max(1, round(spec.dataset.rows / spec.dataset.count))
    cells = cells[: len(cells) // persons * persons]
    divisor = 1.0 if spec.normalisation.keeps_rows else None
    for law, radius in zip(_LAWS, _radii(spec), strict=True):
        drawn = law(cells)
        drawn = (drawn - drawn.mean(axis=0)) / drawn.std(axis=0)
        for fill in _FILLS[: 1 if spec.scaling is not None else None]:
            constants = [_fill(column, spec, fill) for column in columns]
            mean, deviation, lower, upper = np.array(constants).T
            rows = drawn * deviation + mean
            for j, column in enumerate(columns):
                if isinstance(column, LevelsFacts):
                    rows[:, j] = cells[:, j] < ndtri(1 / (len(column.levels) + 1))
            limits = np.array([lower, upper])
            how = Normalisation(radius, spec.intercept, limits, rows_per_person=persons)
            simulated = before_and_after(rows, how)
            entry = float(np.median(simulated.variance)) * simulated.mean_weight * persons
            noise = sd * (divisor or radius or 1.0) ** 2 / max(entry, 1e-300)
            yield min(noise, 1.0), _typical_change(simulated)


def _matrix_columns(spec: ReleaseSpec) -> list[ColumnFacts | LevelsFacts]:
    """The table column of each matrix column but the intercept."""
    columns: list[ColumnFacts | LevelsFacts] = []
    for column in spec.columns:
        columns += [column] * (len(column.levels) if isinstance(column, LevelsFacts) else 1)
    return columns


def _typical_change(simulated: Simulated) -> float:
    """Root mean square change of the correlations by the normalisation."""
    pairs = np.triu_indices(len(simulated.correlation), 1)
    change = (simulated.normalised - simulated.correlation)[pairs]
    return float(np.sqrt(np.mean(change**2)))


def _radii(spec: ReleaseSpec) -> tuple[float | None, float | None]:
    """Clipping radii for Gaussian and for skewed columns; None for unit rows."""
    normalisation = spec.normalisation
    if normalisation.lacks_radius:
        small, large = (times * math.sqrt(len(spec.names)) for times in _RADII)
        return small, large
    radius = normalisation.longest(spec.largest_norm)
    return radius, radius


def _fill(
    column: ColumnFacts | LevelsFacts, spec: ReleaseSpec, fill: tuple[float, float]
) -> tuple[float, float, float, float]:
    """Mean, deviation and bounds of a simulated column, in scaled units."""
    if isinstance(column, LevelsFacts):
        return 0.0, 1.0, 0.0, 1.0
    if spec.scaling is not None:
        return 0.0, 1.0, -WINSOR, WINSOR
    lower, upper = ((end - column.centre) / column.scale for end in (column.lower, column.upper))
    if not _has_default_scale(column, spec):
        return 0.0, 1.0, lower, upper
    half = upper / 2 - lower / 2
    return lower / 2 + upper / 2 + fill[0] * half, fill[1] * half, lower, upper
