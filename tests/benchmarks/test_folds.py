"""Releases with folds, and what clipping does to their regressions."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.analyses.methods import FOLDED_EPSILONS
from benchmarks.analyses.populations import Fitted, Population
from benchmarks.analyses.regressions import clipped_coefficients, clipped_coverage, with_and_without
from benchmarks.analyses.releases import private_constants
from benchmarks.analyses.tables import MANY, SMALL, small_table
from benchmarks.statistics.tables import Table
from gramercy.pipeline.plan.calibration import FOLDS, folds_of_draft
from tests.support.kinds_of_tables import round_bounds
from tests.support.private_release import DELTA, clipped_moment

RNG = np.random.default_rng(5)
X = RNG.normal(size=(20_000, 2))
CELLS = np.column_stack([X, X @ [1.0, -1.0] + (1 + np.abs(X[:, 0])) * RNG.normal(size=20_000)])
TABLE = Table(CELLS, np.array(round_bounds(CELLS)))


def test_folds_are_parts_of_the_rows_with_noise_of_their_own() -> None:
    """In one stage: with their noise, rows may be clipped in another metric."""
    whole = private_constants(TABLE, 20.0, np.random.default_rng(1), whitened=False).release(RNG)
    scaled = private_constants(TABLE, 20.0, np.random.default_rng(1), folds=10, whitened=False)
    folded = scaled.release(np.random.default_rng(2))
    assert whole.folds == ()
    assert [each.rows for each in folded.folds] == [2000.0] * 10
    assert folded.law.sd_off_diagonal == pytest.approx(np.sqrt(10) * whole.law.sd_off_diagonal)
    mean = np.mean([each.moment for each in folded.folds], axis=0)
    assert folded.raw == pytest.approx(mean)
    exact = clipped_moment(scaled.rows, scaled.radius)
    assert np.abs(folded.raw - exact).max() < 8 * folded.law.sd_diagonal


def test_rows_that_are_not_clipped_keep_their_coefficients() -> None:
    population = Population(TABLE)
    scaled = private_constants(TABLE, 1000.0, np.random.default_rng(1))
    found = clipped_coefficients(population, scaled)
    assert found == pytest.approx(population.coefficients[1:], abs=0.01)


def test_clipped_coverage_is_of_the_target_of_each_release() -> None:
    fits = [Fitted(np.zeros(2), np.array([low]), np.array([low + 1])) for low in (0.0, 1.0, 2.0)]
    found = clipped_coverage(fits, [np.array([0.5]), np.array([1.5]), np.array([0.5])])
    assert found == pytest.approx({"clipped coverage": 2 / 3, "clipped worst": 2 / 3})


def test_intervals_with_folds_and_without() -> None:
    scores = with_and_without(Population(TABLE), 20.0, np.random.default_rng(1), 4)
    for each in scores.values():
        assert each["known"] == 1.0
        assert each["clipped coverage"] > 0.5
        assert each["error"] < 0.05
    assert scores["folds"]["width"] > scores["no folds"]["width"] > 0


def test_a_plan_proposes_folds_at_the_larger_epsilon_only() -> None:
    assert [folds_of_draft(MANY, 4, epsilon, DELTA) for epsilon in FOLDED_EPSILONS] == [1, FOLDS]


def test_small_tables_are_within_their_bounds() -> None:
    made = small_table("Poisson")
    assert made.p == 4
    assert made.bounds is not None
    assert (made.bounds[0] <= made.cells).all()
    assert (made.cells <= made.bounds[1]).all()
    assert {small_table(name).p for name in SMALL if name.endswith("one regressor")} == {2}
