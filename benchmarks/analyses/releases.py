"""Seeded releases of a table, as evidence for estimators."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from benchmarks.arrays import Array
from benchmarks.statistics.correlations import noisy
from benchmarks.statistics.methods import clipped_moment, middle_and_half, scaled_rows
from benchmarks.statistics.rule import Scaled, privately_scaled
from benchmarks.statistics.tables import Table
from gramercy.estimators.noise.denoise import denoise
from gramercy.mechanisms import registry
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.scaling.shares import shares
from gramercy.schemas.evidence import Evidence, Fold
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.noise import NoiseLaw

DELTA = 1e-6


def private_release(table: Table, epsilon: float, rng: np.random.Generator) -> Evidence:
    """A release with private constants; raises as `private_constants` does."""
    return release_with(private_constants(table, epsilon, rng), rng)


def private_constants(
    table: Table, epsilon: float, rng: np.random.Generator, folds: int = 1
) -> Scaled:
    """Private constants of a table, and its rows in scaled units.

    Raises
    ------
    ValueError
        If the noise is too large for private constants.
    """
    mu = gdp_mu(epsilon, DELTA)
    planned = shares(table.n, table.p, mu)
    if planned is None:
        raise ValueError(f"private constants need more rows than {table.n}")
    return privately_scaled(table, mu, planned, rng, folds)


def release_with(scaled: Scaled, rng: np.random.Generator, folds: int = 1) -> Evidence:
    """A release with private constants: consecutive rows, drawn independently, make a fold."""
    n, blocks = len(scaled.rows), np.array_split(scaled.rows, folds)
    parts = []
    for block in blocks:
        moment = clipped_moment(block, scaled.radius)
        raw, _ = _gaussian(moment, len(block), scaled.mu, rng)
        parts.append(Fold(raw, float(len(block))))
    mean = np.sum([each.moment * (each.rows / n) for each in parts], axis=0)
    law = _gaussian_law(n, scaled.mu / math.sqrt(folds))
    constants = [(each.centre, each.scale) for each in scaled.constants]
    found = evidence_of(mean, n, law, constants, scaled.radius)
    present = (1.0, *map(float, scaled.present))
    kept = tuple(parts) if folds > 1 else ()
    return replace(found, present=present, histograms=(scaled.lengths,), folds=kept)


def declared_release(table: Table, epsilon: float, rng: np.random.Generator) -> Evidence:
    """A release with the middle and the half width of the bounds; no row is clipped."""
    centre, scale = middle_and_half(table)
    radius = math.sqrt(table.p + 1)
    moment = clipped_moment(scaled_rows(table.cells, centre, scale), radius)
    raw, law = _gaussian(moment, table.n, gdp_mu(epsilon, DELTA), rng)
    constants = zip(map(float, centre), map(float, scale), strict=True)
    return evidence_of(raw, table.n, law, constants, radius)


def pure_release(table: Table, epsilon: float, rng: np.random.Generator) -> Evidence:
    """The same with matrix Laplace noise, at pure epsilon."""
    p, (centre, scale) = table.p + 1, middle_and_half(table)
    mechanism = registry["matrix-laplace"].calibrated(
        p=p, n=table.n, neighbours="replace-one", epsilon=epsilon, delta=None, mu=None
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
    law = _gaussian_law(n, mu)
    return noisy(moment, law.sd_off_diagonal, rng), law


def _gaussian_law(n: int, mu: float) -> NoiseLaw:
    sd = 1 / (mu * n)
    return NoiseLaw(family="gaussian-isotropic", sd_diagonal=math.sqrt(2) * sd, sd_off_diagonal=sd)


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
