"""The benchmark of synthetic rows: scores as defined, and releases of surveys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.analyses import synthetic_rows
from benchmarks.analyses.surveys import SURVEYS, Survey, survey
from benchmarks.analyses.synthetic_rows import survey_release

CLINIC = survey("clinic")
SMALL = replace(CLINIC, cells=CLINIC.cells[:4000])


@pytest.mark.parametrize("name", SURVEYS)
def test_surveys_are_within_their_bounds(name: str) -> None:
    made = survey(name)
    lower, upper = made.bounds
    assert (lower <= made.cells).all()
    assert (made.cells <= upper).all()
    assert [levels - 1 for levels in made.levels if levels] == [
        high for high, levels in zip(upper, made.levels, strict=True) if levels
    ]


def test_the_population_has_no_error() -> None:
    assert set(SMALL.scores(SMALL.cells).values()) == {0.0}


def test_shuffled_columns_lose_correlations_and_joint_distributions() -> None:
    rng = np.random.default_rng(1)
    shuffled = np.column_stack([rng.permutation(cells) for cells in SMALL.cells.T])
    scores = SMALL.scores(shuffled)
    assert scores["marginals"] > 0.05
    assert scores["correlations"] > 0.1
    assert scores["error"] > 0.1
    assert scores["loss"] == pytest.approx(_r_squared(SMALL), abs=0.02)


def _r_squared(made: Survey) -> float:
    """Of least squares of the last column on the others and the levels of the group."""
    cells = made.cells
    design = np.column_stack([np.ones(len(cells)), cells[:, :-1], cells[:, 2] == 2])
    residual = cells[:, -1] - design @ np.linalg.lstsq(design, cells[:, -1])[0]
    return 1 - float(residual.var() / cells[:, -1].var())


def test_spikes_are_counted_apart() -> None:
    made, rng = survey("purchases"), np.random.default_rng(1)
    assert [len(values) for values in made.spikes] == [6, 1, 4, 1, 0, 0]
    rows = made.sample(rng)
    exact = made.scores(rows)
    assert exact["spikes"] < 0.01
    rows[:, 3] += 1e-6 * rng.normal(size=len(rows))  # half of the cells are no longer .5
    smeared = made.scores(rows)
    assert smeared["spikes"] == pytest.approx(0.5 / 12, rel=0.1)
    assert smeared["marginals"] > 10 * exact["marginals"]
    assert smeared["correlations"] == pytest.approx(exact["correlations"], rel=0.01)
    assert "spikes" not in SMALL.scores(SMALL.cells)


def test_total_variation_of_one_level_for_all_rows() -> None:
    cells = np.column_stack([np.repeat([0.0, 1.0], 50), np.tile([0.0, 1.0], 50)])
    made = Survey("two levels", 100, cells, (2, 2), np.array([[0.0, 0.0], [1.0, 1.0]]))
    rows = cells.copy()
    rows[:, 0] = np.nan  # of no level
    assert made.scores(rows)["marginals"] == pytest.approx(1.0)
    rows[:, 0] = 0.0
    assert made.scores(rows)["marginals"] == pytest.approx(0.5)


def test_a_release_of_a_survey_has_its_moments_and_histograms() -> None:
    rng = np.random.default_rng(1)
    rows = CLINIC.sample(rng)
    evidence = survey_release(CLINIC, rows, 50.0, rng)
    assert evidence.names == (
        "(intercept)",
        "c0",
        "c1=0",
        "c1=1",
        "c2=0",
        "c2=1",
        "c2=2",
        "c3",
        "c4",
    )
    assert evidence.radius is not None
    share = evidence.raw[0, 3] / evidence.raw[0, 0]
    assert share == pytest.approx(rows[:, 1].mean(), abs=0.03)
    assert [each.column for each in evidence.marginals] == ["c0", "c1", "c2", "c3", "c4"]
    assert evidence.marginals[1].count[:2] / len(rows) == pytest.approx(
        [1 - rows[:, 1].mean(), rows[:, 1].mean()], abs=0.01
    )


def test_synthetic_rows_are_closer_with_a_larger_budget() -> None:
    small, large = (
        synthetic_rows.copula(SMALL, epsilon, np.random.default_rng(2), 1)[""]
        for epsilon in (0.3, 30.0)
    )
    sample = synthetic_rows.resampled(SMALL, 1.0, np.random.default_rng(2), 2)[""]
    assert all(large[of] < small[of] for of in ("marginals", "correlations", "error"))
    assert sample["correlations"] < large["correlations"] < 0.06
