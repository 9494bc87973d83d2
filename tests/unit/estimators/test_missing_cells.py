"""How far unknown missing cells can move a correlation."""

from __future__ import annotations

import numpy as np
import pytest

from gramercy.estimators.table_units import TableMoments, TableUnits, effect_of_missing_cells


@pytest.mark.parametrize("how", ["one", "independently", "same rows"])
@pytest.mark.parametrize("mean", [0.0, 1.5])
def test_effect_is_at_least_that_of_simulated_missing_cells(how: str, mean: float) -> None:
    stream, rows = np.random.default_rng(0), 200_000
    units = TableUnits(("a", "b"), np.array([3.0, 0.0]), np.array([2.0, 1.0]), np.ones(2))
    z = stream.multivariate_normal([mean, -mean], [[1.0, 0.5], [0.5, 1.0]], size=rows)
    missing = stream.uniform(size=(rows, 2)) < 0.2
    if how == "one":
        missing[:, 1] = False
    if how == "same rows":
        missing[:, 1] = missing[:, 0]
    cells = np.where(missing, 0.0, z) * units.scale + units.centre
    moments = TableMoments(cells.mean(axis=0), np.cov(cells.T))
    change = abs(moments.correlation[0, 1] - 0.5)
    effect = effect_of_missing_cells(moments, units, 0.2)
    assert effect[0, 1] > change - 0.01
    assert effect[0, 1] == effect[1, 0]
    if how == "same rows" and mean > 0:  # the worst of the cases
        assert effect[0, 1] < change + 0.01


def test_no_missing_cells_have_no_effect() -> None:
    units = TableUnits(("a", "b"), np.zeros(2), np.ones(2), np.ones(2))
    moments = TableMoments(np.ones(2), np.array([[1.0, 0.3], [0.3, 2.0]]))
    np.testing.assert_allclose(effect_of_missing_cells(moments, units, 0.0), 0.0, atol=1e-12)


def test_variance_that_missing_cells_explain_leaves_nothing_known() -> None:
    units = TableUnits(("a", "b"), np.zeros(2), np.ones(2), np.ones(2))
    moments = TableMoments(np.array([10.0, 0.0]), np.array([[1.0, 0.3], [0.3, 2.0]]))
    assert effect_of_missing_cells(moments, units, 0.05)[0, 1] == 1.0
