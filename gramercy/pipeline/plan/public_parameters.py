"""Public parameters of the noise, computed from the contract and the request alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import row_lattice
from gramercy.mechanisms.mechanism import PublicParameters, SensitivityBounds
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.normalisation import Clip, Unit, Whole

AnyFacts = ColumnFacts | LevelsFacts


def public_parameters(spec: ReleaseSpec) -> PublicParameters:
    """The public parameters of a table, as mechanisms take them."""
    p = len(spec.names)
    bounds, mean_squared_norm = None, 1.0
    if spec.normalisation.by_bounds:
        lattice, norm = row_lattice(p), spec.largest_norm
        bounds = _sensitivity_bounds(
            spec.columns, norm, lattice.unit_length, lattice.squared_radius
        )
        mean_squared_norm = _mean_squared_norm(spec, norm)
    if spec.normalisation.keeps_rows:
        bounds = _sensitivity_bounds(spec.columns, 1.0, 1.0, math.ceil(spec.largest_norm**2))
        mean_squared_norm = _mean_squared_norm(spec, 1.0)
    return PublicParameters(
        p=p,
        n=spec.dataset.count,
        mean_rows_per_person=spec.dataset.rows / spec.dataset.count,
        neighbours=spec.neighbours,
        publishes_noisy_count=spec.publishes_noisy_count,
        privacy_unit=spec.privacy_unit,
        sensitivity_bounds=bounds,
        mean_squared_norm=mean_squared_norm,
        failure_share=spec.budget.failure_share,
        table_columns=len(spec.columns),
        histogram_shares=_histogram_shares(spec),
        grouped=spec.by is not None,
    )


def _histogram_shares(spec: ReleaseSpec) -> tuple[float, ...]:
    """Shares of the stages of histograms, and last that of row lengths; empty without them."""
    if spec.scaling is None or not spec.scaling.stages:
        return ()
    return (*spec.scaling.stages, spec.scaling.lengths)


def row_normalisation(spec: ReleaseSpec) -> Unit | Clip | Whole:
    """How rows are normalised; a box is a clip at a radius that no row exceeds."""
    return spec.normalisation.of_rows(spec.largest_norm)


def published_offset(spec: ReleaseSpec) -> NDArray[np.float64]:
    """Offset of published rows: the centres of whole-number columns, else zero; shape (p, 1)."""
    offset = [0.0] if spec.intercept else []
    for column in spec.columns:
        if isinstance(column, LevelsFacts):
            offset += [0.0] * len(column.levels)
        else:
            offset.append(column.centre if spec.normalisation.keeps_rows else 0.0)
    return np.array(offset)[:, None]


def _mean_squared_norm(spec: ReleaseSpec, norm: float) -> float:
    """Mean squared norm of a row with uniform cells, in units of `norm` squared."""
    squares = [1 / norm**2] if spec.intercept else []
    for column in spec.columns:
        if isinstance(column, LevelsFacts):
            squares.append(1 / norm**2)
        else:
            unit = column.scale * norm
            mean = (column.lower / 2 + column.upper / 2 - column.centre) / unit
            squares.append((column.upper / unit - column.lower / unit) ** 2 / 12 + mean**2)
    return math.fsum(squares)


def _sensitivity_bounds(
    columns: Sequence[AnyFacts], norm: float, per_unit: float, squared_norm: int
) -> SensitivityBounds:
    """Upper bounds on the change of a row or a cell, and on the norm of a row, in lattice units.

    Parameters
    ----------
    columns
        The columns of the table.
    norm
        The divisor of a row of scaled cells.
    per_unit
        Length of a unit row in lattice units.
    squared_norm
        The largest squared norm of an integer row.
    """
    cells = []
    for column in columns:
        if isinstance(column, LevelsFacts):
            entry = int(np.rint(1.0 / norm * per_unit))
            cells.append((2 if len(column.levels) > 1 else 1) * entry * entry)
        else:
            ends = [(end - column.centre) / column.scale for end in (column.lower, column.upper)]
            low, high = (int(np.rint(end / norm * per_unit)) for end in ends)
            cells.append((high - low) ** 2)
    return SensitivityBounds(
        squared_row=sum(cells), squared_cell=max(cells), squared_norm=squared_norm
    )
