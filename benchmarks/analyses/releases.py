"""Seeded releases of a table, as evidence for estimators."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from benchmarks.arrays import Array
from benchmarks.statistics.correlations import noisy
from benchmarks.statistics.methods import middle_and_half, scaled_rows
from benchmarks.statistics.tables import Table
from gramercy.estimators.noise.denoise import denoise
from gramercy.mechanisms import registry
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.noise import NoiseLaw
from tests.support.private_release import (
    DELTA,
    Scaled,
    as_by_default,
    clipped_moment,
    privately_scaled,
)


def private_release(table: Table, epsilon: float, rng: np.random.Generator) -> Evidence:
    """A release with private constants; raises as `private_constants` does."""
    return private_constants(table, epsilon, rng).release(rng)


def private_constants(
    table: Table,
    epsilon: float,
    rng: np.random.Generator,
    folds: int = 1,
    *,
    whitened: bool = True,
) -> Scaled:
    """Private constants of a table, and its rows in scaled units.

    `whitened`: whether there is a pilot matrix, in whose metric the last one is drawn if that pays.

    Raises
    ------
    ValueError
        If the noise is too large for private constants.
    """
    own = as_by_default if whitened else privately_scaled
    scaled = own(table.cells, table.columns, epsilon, rng, folds)
    if scaled is None:
        raise ValueError(f"private constants need more rows than {table.n}")
    return scaled


def declared_release(
    table: Table, epsilon: float, rng: np.random.Generator, radius: float | None = None
) -> Evidence:
    """A release with the middle and the half width of the bounds; by default no row is clipped."""
    centre, scale = middle_and_half(table)
    radius = math.sqrt(table.p + 1) if radius is None else radius
    moment = clipped_moment(scaled_rows(table.cells, centre, scale), radius)
    raw, law = _gaussian(moment, table.n, gdp_mu(epsilon, DELTA), rng)
    constants = zip(map(float, centre), map(float, scale), strict=True)
    return evidence_of(raw, table.n, law, constants, radius)


def pure_release(table: Table, epsilon: float, rng: np.random.Generator) -> Evidence:
    """The same with matrix Laplace noise, at pure epsilon."""
    p, (centre, scale) = table.p + 1, middle_and_half(table)
    mechanism = registry["matrix-laplace"].calibrated(
        p=p, n=table.n, neighbours=Neighbours.REPLACE_ONE, epsilon=epsilon, delta=None, mu=None
    )
    noise = float(mechanism.constants()["scale"]) / table.n
    sd = noise * math.sqrt(2 * (p + 1))
    law = NoiseLaw(
        family="matrix-laplace",
        sd_diagonal=sd * math.sqrt(2),
        sd_off_diagonal=sd,
        dof=p + 1,
    )
    moment = clipped_moment(scaled_rows(table.cells, centre, scale), math.sqrt(p))
    left, right = rng.standard_normal((2, p, p + 1))
    raw = moment + noise * (left @ left.T - right @ right.T)
    constants = zip(map(float, centre), map(float, scale), strict=True)
    return evidence_of(raw, table.n, law, constants, math.sqrt(p))


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
