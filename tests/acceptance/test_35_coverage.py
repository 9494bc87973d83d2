"""Intervals cover the truth in populations resampled from skewed tables, if a release has folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators.intervals import Intervals
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.noise.draws import draw
from gramercy.estimators.uncertainty.jackknife import jackknife, student_quantile
from gramercy.schemas.evidence import Evidence, Fold
from gramercy.schemas.noise import NoiseLaw
from tests.support.factories import FULL, at_scale

Array = NDArray[np.float64]

ROWS, FOLDS, TABLE_ROWS, RADIUS = 20_000, 20, 20_000, 1.5
TIMES = at_scale(30, 400)
NOISE = 0.3  # standard deviations of the sampling error of a typical entry
TABLES = ("lognormal", "zero-inflated", "t4", "mixed levels")
QUANTITIES = ("variance", "correlation", "partial-correlation", "regression")


def table(kind: str) -> Array:
    """The table of a population in its own units: a column each, and an indicator a level."""
    rng = np.random.default_rng(3)
    normal = rng.normal(size=(TABLE_ROWS, 8)) @ (0.35 * rng.normal(size=(8, 8)) + np.eye(8)).T
    normal /= normal.std(axis=0)
    if kind == "lognormal":
        return np.exp(normal)
    if kind == "zero-inflated":
        return np.where(normal > 0.5, np.exp(normal), 0.0)
    if kind == "t4":
        scale: Array = np.sqrt(rng.chisquare(4, size=(TABLE_ROWS, 1)) / 4)
        return normal / scale
    levels = np.digitize(normal[:, 4], [-1.0, 0.2, 1.6]), np.digitize(normal[:, 5], [-1.5, 1.0])
    return np.hstack(
        [np.exp(0.7 * normal[:, :4]), np.eye(4)[levels[0]][:, :3], np.eye(3)[levels[1]][:, :2]]
    )


def normalised(values: Array) -> Array:
    """Rows (1, z) clipped to a length, in units of this length."""
    low, high = np.quantile(values, [0.0005, 0.9995], axis=0)
    clamped = np.clip(values, low, high)
    z = np.clip((clamped - clamped.mean(axis=0)) / clamped.std(axis=0), -10, 10)
    rows = np.column_stack([np.ones(len(z)), z])
    radius = RADIUS * np.sqrt(rows.shape[1])
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    clipped: Array = rows * np.minimum(1, radius / length) / radius
    return clipped


def about_means(moment: Array) -> Array:
    centred: Array = moment[1:, 1:] - np.outer(moment[0, 1:], moment[0, 1:]) / moment[0, 0]
    return centred


def correlations(matrix: Array) -> Array:
    root = np.sqrt(np.diag(matrix))
    result: Array = matrix / np.outer(root, root)
    return result


def regression(moment: Array) -> Array:
    """Coefficients of the first column on all others."""
    centred = about_means(moment)
    coefficients: Array = np.linalg.solve(centred[1:, 1:], centred[1:, 0])
    return coefficients


@dataclass(frozen=True)
class Population:
    """The normalised rows of a table, which are drawn with replacement."""

    rows: Array

    @property
    def truths(self) -> dict[str, Array]:
        moment = self.rows.T @ self.rows / len(self.rows)
        centred = about_means(moment)
        pairs = np.triu_indices(len(centred), 1)
        partial = -correlations(np.asarray(np.linalg.inv(centred)))
        return {
            "variance": np.diag(centred),
            "correlation": correlations(centred)[pairs],
            "partial-correlation": partial[pairs],
            "regression": regression(moment),
        }

    def releases(self, folds: int, times: int) -> Iterator[Evidence]:
        """Second moments of the folds of a sample, each with its own noise."""
        rng, stream = np.random.default_rng(4), np.random.RandomState(4)
        p = self.rows.shape[1]
        products = self.rows[:, :, None] * self.rows[:, None, :]
        sd = NOISE * float(np.sqrt(np.median(products.var(axis=0)) / ROWS))
        whole, part = (
            NoiseLaw(family="gaussian-isotropic", sd_diagonal=2**0.5 * s, sd_off_diagonal=s)
            for s in (sd, sd * folds**0.5)
        )
        for _ in range(times):
            drawn = self.rows[rng.integers(0, len(self.rows), size=ROWS)].reshape(folds, -1, p)
            moments = np.matmul(drawn.transpose(0, 2, 1), drawn) * folds / ROWS
            moments += np.array([draw(stream, p, part) for _ in range(folds)])
            raw = moments.mean(axis=0)
            parts = tuple(Fold(moment, ROWS / folds) for moment in moments) if folds > 1 else ()
            columns = (None,) * p
            yield Evidence(
                raw, project(raw), whole, float(ROWS), columns=columns, unit=False, folds=parts
            )


def bounds(evidence: Evidence, quantity: str) -> tuple[Array, Array]:
    """Lower and upper bounds of 95 % intervals of all entries of a quantity."""
    if quantity == "regression":
        found = jackknife(evidence, regression)
        assert found is not None
        reach = student_quantile(0.95, found.freedom) * found.standard_error
        return found.estimate - reach, found.estimate + reach
    of = "covariance" if quantity == "variance" else quantity
    matrices = Intervals.model_validate({"of": of}).fit(evidence).matrices
    lower, upper = matrices["lower"][1:, 1:], matrices["upper"][1:, 1:]
    if quantity == "variance":
        return np.diag(lower), np.diag(upper)
    pairs = np.triu_indices(len(lower), 1)
    return lower[pairs], upper[pairs]


def coverage(
    population: Population, quantities: tuple[str, ...], folds: int, times: int
) -> dict[str, Array]:
    """Share of the releases in which each entry is covered."""
    truths = population.truths
    covered: dict[str, list[Array]] = {quantity: [] for quantity in quantities}
    for evidence in population.releases(folds, times):
        for quantity in quantities:
            lower, upper = bounds(evidence, quantity)
            covered[quantity].append((lower <= truths[quantity]) & (truths[quantity] <= upper))
    return {quantity: np.mean(shares, axis=0) for quantity, shares in covered.items()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_jackknife_intervals_cover(kind: str) -> None:
    """The estimand is that of the normalised rows, so clipping is not an error."""
    slack = 0.0 if FULL else 0.02
    population = Population(normalised(table(kind)))
    for share in coverage(population, QUANTITIES, FOLDS, TIMES).values():
        assert 0.93 - slack <= share.mean() <= 0.97 + slack
        assert share.min() >= (0.88 if FULL else 0.7)


def test_intervals_for_gaussian_rows_are_too_short_and_labelled() -> None:
    """Without folds: variances of a skewed table are rarely covered, and the label says why."""
    population = Population(normalised(table("lognormal")))
    shares = coverage(population, ("variance",), 1, at_scale(15, 400))
    assert shares["variance"].mean() < 0.75
    (evidence,) = population.releases(1, 1)
    tables = Intervals().fit(evidence).tables
    assert set(tables["clearest"]["law"]) == {"Gaussian rows"}
    assert tables["laws"]["law"][1].startswith("Gaussian rows")
    (evidence,) = population.releases(FOLDS, 1)
    tables = Intervals().fit(evidence).tables
    assert set(tables["clearest"]["law"]) == {f"jackknife over {FOLDS} folds"}
    assert tables["laws"]["law"][1] == f"jackknife over {FOLDS} folds"
