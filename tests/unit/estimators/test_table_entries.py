"""Errors of means, standard deviations and covariances in the columns' own units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators.table_units import TableUnits
from gramercy.estimators.uncertainty.entry_estimates import Entries
from gramercy.estimators.uncertainty.table_entries import (
    table_covariance,
    table_deviations,
    table_means,
)
from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.evidence import Evidence, Fold
from gramercy.schemas.facts import ColumnFacts
from tests.support.noisy_matrices import gaussian_law
from tests.support.simulated_release import units_of

Array = NDArray[np.float64]
Estimate = Callable[[Evidence, TableUnits], Entries]

CENTRES, SCALES, RADIUS = np.array([10.0, -1.0]), np.array([5.0, 0.2]), 20.0
LAW = gaussian_law(4e-5)
ESTIMATES = (table_means, table_deviations, table_covariance)


@dataclass(frozen=True)
class Population:
    """A population of rows, of which cells are missing independently, and its releases."""

    draw: Callable[[np.random.Generator, int], Array]  # rows in scaled units
    present: tuple[float, float] = (1.0, 1.0)
    rows: int = 800
    folds: int = 1

    def release(self, stream: np.random.Generator) -> Evidence:
        z = self.draw(stream, self.rows)
        present = stream.uniform(size=z.shape) <= self.present
        z[~present] = 0.0
        full = np.column_stack([np.ones(len(z)), z]) / RADIUS
        parts = []
        for part in np.array_split(full, self.folds):
            noise = stream.normal(scale=LAW.sd_off_diagonal / 2**0.5, size=(3, 3))
            noise *= self.folds**0.5  # the law is of the sum over all folds
            parts.append(Fold(part.T @ part / len(part) + noise + noise.T, float(len(part))))
        raw = np.average([each.moment for each in parts], axis=0, weights=[x.rows for x in parts])
        columns = [
            ColumnFacts(name=name, lower=-1e3, upper=1e3, centre=centre, scale=scale)
            for name, centre, scale in zip("ab", CENTRES, SCALES, strict=True)
        ]
        return Evidence(
            raw,
            raw,
            LAW,
            float(self.rows),
            (INTERCEPT, "a", "b"),
            (None, *columns),
            unit=False,
            folds=tuple(parts) if self.folds > 1 else (),
            radius=RADIUS,
            present=(1.0, *present.mean(axis=0)),
        )


def gaussian(stream: np.random.Generator, rows: int) -> Array:
    return stream.multivariate_normal([0.1, 0.0], [[1.0, 0.7], [0.7, 1.2]], size=rows)


def skewed(stream: np.random.Generator, rows: int) -> Array:
    first = stream.exponential(size=rows) - 1
    return np.column_stack([first, 0.6 * first + 0.8 * stream.exponential(size=rows)])


def estimates(population: Population, draws: int) -> list[tuple[Entries, ...]]:
    stream, made = np.random.default_rng(0), []
    for _ in range(draws):
        release = population.release(stream)
        units = units_of(release)
        made.append(tuple(estimate(release, units) for estimate in ESTIMATES))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("present", [(1.0, 1.0), (0.9, 0.5)], ids=str)
def test_standard_errors_match_simulation(present: tuple[float, float]) -> None:
    for each in zip(*estimates(Population(gaussian, present), 500), strict=True):
        observed = np.std([entries.estimate for entries in each], axis=0)
        stated = np.mean([entries.standard_error for entries in each], axis=0)
        np.testing.assert_allclose(stated, observed, rtol=0.1)
        noise = np.mean([entries.noise_error for entries in each], axis=0)
        assert (noise > 0.2 * stated).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("population", "least"),
    [
        (Population(gaussian, (1.0, 0.6)), 0.91),
        pytest.param(Population(skewed, rows=2000, folds=10), 0.90, marks=pytest.mark.slow),
    ],
    ids=["Gaussian rows", "jackknife"],
)
def test_intervals_cover(population: Population, least: float) -> None:
    exact = population.draw(np.random.default_rng(1), 2_000_000) * SCALES + CENTRES
    truths = (exact.mean(axis=0), exact.std(axis=0), np.cov(exact.T))
    for each, truth in zip(zip(*estimates(population, 300), strict=True), truths, strict=True):
        bounds = [entries.interval(0.95) for entries in each]
        coverage = np.mean([(low <= truth) & (truth <= high) for low, high in bounds], axis=0)
        assert coverage.min() > least
        assert coverage.max() < 0.99


@pytest.mark.slow
def test_gaussian_law_is_too_narrow_for_skewed_rows_without_folds() -> None:
    """The reason for folds: what the jackknife covers, the Gaussian law does not."""
    skew = Population(skewed, rows=2000)
    truth = float(np.var(skewed(np.random.default_rng(1), 2_000_000)[:, 0])) * SCALES[0] ** 2
    bounds = [each[2].interval(0.95) for each in estimates(skew, 200)]
    assert np.mean([low[0, 0] <= truth <= high[0, 0] for low, high in bounds]) < 0.85


def test_variances_within_the_noise_have_no_deviation() -> None:
    def narrow(stream: np.random.Generator, rows: int) -> Array:
        return stream.normal(size=(rows, 2)) * [1.0, 0.01]

    release = Population(narrow).release(np.random.default_rng(0))
    units = units_of(release)
    assert table_deviations(release, units).estimable.tolist() == [True, False]
    lower, upper = table_covariance(release, units).interval(0.95)
    assert lower[1, 1] == 0.0
    assert upper[1, 1] > 0.0


def test_nothing_is_known_if_the_weight_is_within_the_noise() -> None:
    release = Population(gaussian).release(np.random.default_rng(0))
    release.raw[0, 0] = 4 * LAW.sd_diagonal
    units = units_of(release)
    for estimate in ESTIMATES:
        entries = estimate(release, units)
        assert not entries.estimable.any()
        lower, upper = entries.interval(0.9)
        assert np.isneginf(np.where(lower == 0, -np.inf, lower)).all()
        assert np.isposinf(upper).all()
