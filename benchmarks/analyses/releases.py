"""Seeded releases of a table, as evidence for estimators."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.statistics.correlations import noisy
from benchmarks.statistics.methods import clipped_moment, middle_and_half, scaled_rows
from benchmarks.statistics.rule import privately_scaled
from benchmarks.statistics.tables import Table
from gramercy.estimators.noise.denoise import denoise
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.scaling.shares import shares
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]
DELTA = 1e-6


def private_release(table: Table, epsilon: float, rng: np.random.Generator) -> Evidence:
    """A release with private constants.

    Raises
    ------
    ValueError
        If the noise is too large for private constants.
    """
    mu = gdp_mu(epsilon, DELTA)
    planned = shares(table.n, table.p, mu)
    if planned is None:
        raise ValueError(f"private constants need more rows than {table.n}")
    scaled = privately_scaled(table, mu, planned, rng)
    moment = clipped_moment(scaled.rows, scaled.radius)
    constants = [(each.centre, each.scale) for each in scaled.constants]
    raw, law = _gaussian(moment, table.n, scaled.mu, rng)
    found = evidence_of(raw, table.n, law, constants, scaled.radius)
    present = (1.0, *map(float, scaled.present))
    return replace(found, present=present, histograms=(scaled.lengths,))


def declared_release(table: Table, epsilon: float, rng: np.random.Generator) -> Evidence:
    """A release with the middle and the half width of the bounds; no row is clipped."""
    centre, scale = middle_and_half(table)
    radius = math.sqrt(table.p + 1)
    moment = clipped_moment(scaled_rows(table.cells, centre, scale), radius)
    raw, law = _gaussian(moment, table.n, gdp_mu(epsilon, DELTA), rng)
    constants = zip(map(float, centre), map(float, scale), strict=True)
    return evidence_of(raw, table.n, law, constants, radius)


def _gaussian(moment: Array, n: int, mu: float, rng: np.random.Generator) -> tuple[Array, NoiseLaw]:
    """The moment with Gaussian noise, under replace-one."""
    sd = 1 / (mu * n)
    law = NoiseLaw(family="gaussian-isotropic", sd_diagonal=math.sqrt(2) * sd, sd_off_diagonal=sd)
    return noisy(moment, sd, rng), law


def evidence_of(
    raw: Array, n: int, law: NoiseLaw, constants: Iterable[tuple[float, float]], radius: float
) -> Evidence:
    """Evidence of a noisy matrix with an intercept.

    Parameters
    ----------
    raw
        Shape (p + 1, p + 1).
    n
        Number of rows.
    law
        Of the noise in `raw`.
    constants
        Centre and scale of the p columns.
    radius
        At which rows were clipped, in scaled units.
    """
    columns = [_column(f"c{j}", *each) for j, each in enumerate(constants)]
    return Evidence(
        raw,
        denoise(raw, law, rows=float(n), unit=False),
        law,
        float(n),
        names=("intercept", *(each.name for each in columns)),
        columns=(None, *columns),
        unit=False,
        radius=radius,
    )


def _column(name: str, centre: float, scale: float) -> ColumnFacts:
    return ColumnFacts(
        name=name, lower=centre - scale, upper=centre + scale, centre=centre, scale=scale
    )
