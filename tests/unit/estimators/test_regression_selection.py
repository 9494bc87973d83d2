"""Regressors that a lasso selects from noisy moments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.api.regression import RegressionResult
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.regression import LinearRegression
from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from tests.support.noisy_matrices import gaussian_law, goe

Array = NDArray[np.float64]

K, ROWS, RADIUS = 25, 4000, 25.0
TRUE = np.zeros(K)
TRUE[[1, 7, 12, 20]] = [0.5, -0.4, 0.4, 0.3]
CORRELATION = 0.5 ** np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
OUTCOME = LinearRegression(outcome="y")
LASSO = LinearRegression(outcome="y", selection="lasso")


def released(sd: float, seed: int, coefficients: Array = TRUE) -> Evidence:
    """Columns y and x0, x1, ... with noise of deviation `sd` on the mean of z z^T."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, K)) @ np.linalg.cholesky(CORRELATION).T
    y = x @ coefficients + rng.normal(size=ROWS)
    z = np.column_stack([np.ones(ROWS), y, x])
    raw = (z.T @ z / ROWS + goe(rng, 2 + K, sd)) / RADIUS**2
    law = gaussian_law(sd / RADIUS**2)
    names = ("y", *(f"x{i}" for i in range(K)))
    facts = [ColumnFacts(name=n, lower=-20.0, upper=20.0, centre=0.0, scale=1.0) for n in names]
    return Evidence(
        raw,
        denoise(raw, law, unit=False),
        law,
        float(ROWS),
        (INTERCEPT, *names),
        (None, *facts),
        unit=False,
        radius=RADIUS,
    )


def loss(found: RegressionResult) -> float:
    """Variance of the outcome that a prediction misses."""
    error = found.prediction_params.to_numpy()[1:] - TRUE
    return float(error @ CORRELATION @ error)


@pytest.mark.slow
def test_selection_finds_the_regressors_and_predicts_better() -> None:
    false, losses = [], []
    for seed in range(6):
        evidence = released(0.02, seed)
        plain, sparse = (RegressionResult(evidence, each) for each in (OUTCOME, LASSO))
        selected = sparse.selected.to_numpy()[1:]
        assert selected[TRUE != 0].all()
        false.append(int(selected[TRUE == 0].sum()))
        assert (sparse.prediction_params.to_numpy()[1:][~selected] == 0).all()
        losses.append((loss(sparse), loss(plain)))
        assert sparse.rsquared <= plain.rsquared
    assert sum(false) <= 12  # of 126
    assert np.mean([a for a, _ in losses]) < 0.5 * np.mean([b for _, b in losses])


def test_inference_does_not_depend_on_the_selection() -> None:
    evidence = released(0.02, 1)
    plain, sparse = (RegressionResult(evidence, each) for each in (OUTCOME, LASSO))
    shared = sparse.table.drop(columns=["fitted", "selected"])
    pd.testing.assert_frame_equal(shared, plain.table.drop(columns="fitted"))
    assert plain.selected.all()


def test_selected_regressors_are_fitted_without_the_others() -> None:
    evidence = released(0.01, 2)
    sparse = RegressionResult(evidence, LASSO)
    names = tuple(sparse.selected.index[sparse.selected][1:])
    alone = RegressionResult(evidence, LinearRegression(outcome="y", predictors=names))
    fitted = sparse.prediction_params[["Intercept", *names]]
    pd.testing.assert_series_equal(fitted, alone.prediction_params, atol=2e-3)


def test_nothing_is_selected_without_a_relation() -> None:
    chosen = 0
    for seed in range(5):
        found = RegressionResult(released(0.02, seed, 0 * TRUE), LASSO)
        chosen += int(found.selected[1:].sum())
        assert found.rsquared < 0.02
    assert chosen <= 3  # of 125


def test_collinear_and_lost_columns() -> None:
    evidence = released(0.0001, 3)
    copied = evidence.raw.copy()
    copied[4], copied[:, 4] = copied[3], copied[:, 3]  # x2 is a copy of x1
    copied[4, 4] = copied[3, 3]
    found = RegressionResult(replace(evidence, raw=copied, repaired=copied), LASSO)
    assert found.selected[["x1", "x2"]].any()
    assert found.prediction_params[["x1", "x2"]].sum() == pytest.approx(0.5, abs=0.1)
    hidden = RegressionResult(replace(evidence, raw=evidence.raw * 0), LASSO)
    assert not hidden.selected.any()


@pytest.mark.slow
def test_the_summary_says_what_is_selected() -> None:
    found = RegressionResult(released(0.02, 1), LASSO)
    text = found.summary()
    assert f"A lasso selects {found.selected[1:].sum()} of {K} predictors" in text
    line = next(line for line in text.splitlines() if line.startswith("x7 "))
    assert line.endswith(" yes")
    assert "selected" in found._repr_html_()
    assert "selected" not in RegressionResult(released(0.02, 1), OUTCOME).summary()
