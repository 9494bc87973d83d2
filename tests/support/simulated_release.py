"""Releases simulated with numpy: exact sums and seeded noise, without the pipeline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.table_units import TableUnits, table_units
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from tests.support import private_release
from tests.support.noisy_matrices import gaussian_law, goe
from tests.support.private_release import numeric_columns

Array = NDArray[np.float64]


def declared_columns(bounds: Sequence[tuple[float, float]]) -> list[ColumnFacts]:
    """Columns with the middle and half width of their bounds as constants."""
    return list(numeric_columns(bounds))


def scaled_rows(table: Array, columns: Sequence[ColumnFacts], intercept: bool) -> Array:
    """Rows in scaled units, with the intercept first; missing cells are zero."""
    cells = [
        (np.clip(table[:, j], c.lower, c.upper) - c.centre) / c.scale for j, c in enumerate(columns)
    ]
    ones = [np.ones(len(table))] if intercept else []
    return np.nan_to_num(np.column_stack(ones + cells))


def noisy_moment(
    table: Array,
    columns: Sequence[ColumnFacts],
    radius: float | None,
    sd: float,
    intercept: bool,
    seed: int,
) -> Array:
    """The second moment of rows, clipped or of unit length, with Gaussian noise."""
    rows = scaled_rows(table, columns, intercept)
    lengths = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    factor = 1 / lengths if radius is None else np.minimum(1.0, radius / lengths) / radius
    rows = rows * factor[:, None]
    moment = rows.T @ rows / len(rows)
    return np.asarray(moment + goe(np.random.default_rng(seed), len(moment), sd))


def released(
    table: Array,
    columns: Sequence[ColumnFacts],
    radius: float | None,
    sd: float = 1e-9,
    intercept: bool = True,
    present: tuple[float, ...] = (),
    seed: int = 0,
) -> Evidence:
    """A release with Gaussian noise of deviation `sd` off the diagonal.

    Rows are clipped at `radius`, or divided by their length if it is None.
    """
    raw = noisy_moment(table, columns, radius, sd, intercept, seed)
    law = gaussian_law(sd)
    return Evidence(
        raw,
        denoise(raw, law, unit=radius is None),
        law,
        float(len(table)),
        columns=((None,) if intercept else ()) + tuple(columns),
        unit=radius is None,
        radius=radius,
        present=present,
    )


def units_of(release: Evidence) -> TableUnits:
    """The units of the columns of a release that has them."""
    units = table_units(release)
    assert units is not None
    return units


def privately_scaled(
    table: Array,
    bounds: Sequence[tuple[float, float]],
    epsilon: float,
    seed: int = 0,
    declared: int | None = None,
    whitened: bool = False,
) -> Evidence:
    """A release with ``scaling: private``, with all of its matrices.

    `declared`: the number of rows in the contract, if it is not that of the table. `whitened`:
    whether there is a pilot matrix, in whose metric the last one is drawn if that pays.
    """
    stream = np.random.default_rng(seed)
    scaled = private_release.privately_scaled(
        table, numeric_columns(bounds), epsilon, stream, declared=declared, whitened=whitened
    )
    assert scaled is not None
    return scaled.release(stream)


def series(
    tables: Sequence[Array], bounds: Sequence[tuple[float, float]], epsilon: float, seed: int = 0
) -> list[Evidence]:
    """Releases of several tables: the later ones have the constants of the first."""
    stream = np.random.default_rng(seed)
    first = private_release.privately_scaled(tables[0], numeric_columns(bounds), epsilon, stream)
    assert first is not None
    bundle = first.bundle(stream)
    later = (private_release.scaled_as(bundle, each, stream) for each in tables[1:])
    return [bundle.evidence, *(each.release(stream) for each in later)]
