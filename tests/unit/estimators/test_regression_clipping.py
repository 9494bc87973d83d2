"""Regressions of releases whose rows were clipped: bias, and columns that clipping hides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.api.regression import RegressionResult
from gramercy.estimators.regression import CLIPPED, LinearRegression
from gramercy.schemas.evidence import Evidence
from tests.support.simulated_release import privately_scaled

Array = NDArray[np.float64]

P = 8
LIMITS = [(-200.0, 200.0)] * P


def mixture(seed: int, rows: int = 20_000) -> Array:
    """Most rows of one law, and one in a hundred longer ones of another."""
    stream = np.random.default_rng(seed)

    def rows_of_factors() -> Array:
        loadings = stream.normal(size=(3, P))
        return stream.normal(size=(rows, 3)) @ loadings + stream.normal(size=(rows, P))

    usual, others = rows_of_factors(), rows_of_factors()
    is_long = stream.random((rows, 1)) < 0.01
    return np.where(is_long, 6 * others, usual)


def coefficients(release: Evidence, outcome: str = "c0") -> pd.DataFrame:
    tables = LinearRegression(outcome=outcome).fit(release).tables
    return tables["coefficients"].set_index("term")


@pytest.mark.slow
def test_intervals_contain_the_coefficients_of_the_unclipped_table() -> None:
    with_lost, without, known = [], [], []
    for seed in range(4):
        table = mixture(seed)
        release = privately_scaled(table, LIMITS, 2.0, seed)
        design = np.column_stack([np.ones(len(table)), table[:, 1:]])
        actual = np.linalg.lstsq(design, table[:, 0])[0][1:]
        for each, covered in ((release, with_lost), (replace(release, lost=None), without)):
            found = coefficients(each).iloc[1:]
            inside = (found["lower"] <= actual) & (actual <= found["upper"])
            known.append(found["known"].eq("yes"))
            covered.extend(inside[known[-1]].tolist())
    assert np.mean(known) > 0.95  # at times, a bin far out is noise and hides a column
    assert np.mean(with_lost) > 0.8
    assert np.mean(without) < 0.5


def test_plain_rows_keep_narrow_intervals() -> None:
    table = np.random.default_rng(1).normal(size=(20_000, P))
    table[:, 0] += table[:, 1]
    release = privately_scaled(table, [(-20.0, 20.0)] * P, 4.0)
    found = coefficients(release).loc["c1"]
    plain = coefficients(replace(release, lost=None)).loc["c1"]
    ratio = (found["upper"] - found["lower"]) / (plain["upper"] - plain["lower"])
    assert 1 <= ratio < 1.2


def test_columns_that_clipping_hides_have_no_coefficients() -> None:
    rows, stream = 20_000, np.random.default_rng(1)
    table = stream.normal(size=(rows, 5))
    table[:, 1] = np.where(stream.random(rows) < 0.03, np.exp(5 + stream.normal(size=rows)), 0)
    limits = [(-20.0, 20.0), (0.0, 10_000.0), *[(-20.0, 20.0)] * 3]
    release = privately_scaled(table, limits, 1.0, 1)
    result = RegressionResult(release, LinearRegression(outcome="c0"))
    assert result.known.drop("c1").all()
    assert "unknown" in str(result.summary())
    assert result.table.loc["c1", ["known", "reason"]].tolist() == ["no", CLIPPED]
    assert result.prediction_params["c1"] == 0.0
    assert result.predict(pd.DataFrame(table, columns=[f"c{j}" for j in range(5)])).abs().max() < 3
    assert coefficients(release, "c1")["known"].eq("no").all()


def test_signs_have_no_coefficients() -> None:
    table = np.random.default_rng(3).normal(size=(20_000, P))
    table[:, 0] += table[:, 2]
    release = replace(privately_scaled(table, [(-20.0, 20.0)] * P, 4.0), signs=("c2",))
    result = RegressionResult(release, LinearRegression(outcome="c0"))
    assert result.known.drop("c2").all()
    assert result.table.loc["c2", ["known", "reason"]].tolist() == ["no", CLIPPED]
    assert np.isnan(result.table.loc["c2", "coefficient"])
    assert coefficients(release, "c2")["known"].eq("no").all()


def test_stated_share_of_variance_is_attained_on_rows() -> None:
    table = mixture(5, 60_000)
    result = RegressionResult(privately_scaled(table, LIMITS, 4.0), LinearRegression(outcome="c0"))
    frame = pd.DataFrame(table, columns=[f"c{j}" for j in range(P)])
    residual = frame["c0"] - result.predict(frame)
    attained = 1 - residual.var() / frame["c0"].var()
    assert abs(attained - result.rsquared) < 0.03


def test_rows_of_persons_are_weighted_together() -> None:
    """A matrix that is divided by the number of persons has the sums of three rows each."""
    table = 5.0 + np.random.default_rng(2).normal(size=(20_000, P))
    rows = replace(privately_scaled(table, [(-20.0, 20.0)] * P, 4.0), lost=None, histograms=())
    law = rows.law.model_copy(
        update={
            "sd_diagonal": 3 * rows.law.sd_diagonal,
            "sd_off_diagonal": 3 * rows.law.sd_off_diagonal,
        }
    )
    persons = replace(
        rows, raw=3 * rows.raw, repaired=3 * rows.repaired, law=law, rows_each=3.0, rows=20_000 / 3
    )
    fits = [LinearRegression(outcome="c0").fit(each).tables["fit"] for each in (rows, persons)]
    spreads = [
        fit.set_index("quantity").loc["residual standard deviation", "value"] for fit in fits
    ]
    np.testing.assert_allclose(spreads[1], spreads[0], rtol=0.01)
