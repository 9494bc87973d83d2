"""Marginals and quantiles of a release, as an analyst reads them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.api.release import Release
from gramercy.schemas import families
from tests.support.factories import run_release, write_request
from tests.support.histogram_tables import ROWS, marginals_request
from tests.support.problems import raises

MATRICES = (
    *("second_moment", "covariance", "correlation", "partial_correlation", "means"),
    *("standard_deviations", "precision", "projected", "denoised", "evidence"),
)
PERSONS = {"privacy_unit": "person", "persons": 700}  # declared; there are 1000


def opened(request: Path, home: Path) -> Release:
    run_release(request)
    return gramercy.open(home / "archive").latest("toy")


def table(tmp_path: Path) -> pd.DataFrame:
    return pd.read_csv(tmp_path / "table.csv")


@pytest.mark.slow
def test_release_of_marginals_has_those_of_the_table_and_no_matrix(
    tmp_path: Path, home: Path
) -> None:
    release = opened(marginals_request(tmp_path), home)
    marginals = release.marginals
    assert release.kind == "marginals"
    assert list(marginals["column"].unique()) == ["weight", "income", "ward"]
    levels = marginals[marginals["level"].notna()]
    assert levels["level"].tolist() == ["A", "B"]
    away = np.abs(levels["share"] - [0.3, 0.7]) / levels["standard_error"]
    assert (away < 12).all()
    missing = marginals[marginals["lower"].isna() & marginals["level"].isna()]
    away = np.abs(missing["share"] - [0, 0.1, 0]) / missing["standard_error"]
    assert (away < 12).all()
    wide, narrow = (release.quantiles([0.5], level) for level in (0.99, 0.6))
    assert (wide["lower"] <= narrow["lower"]).all()
    assert (wide["upper"] >= narrow["upper"]).all()
    assert release.quantiles([]).empty
    for at, level in (([0.0], 0.9), ([0.5, 1.0], 0.9), ([np.nan], 0.9), ([0.5], 0.5), ([0.5], 1.0)):
        with raises(families.ANALYSIS):
            release.quantiles(at, level)
    for name in MATRICES:
        with raises(families.ANALYSIS, release="toy/v1-r1"):
            pytest.fail(f"{name}: {getattr(release, name)}")
    with raises(families.ANALYSIS, release="toy/v1-r1"):
        release.estimate("ridge")
    with raises(families.ESTIMATE, release="toy/v1-r1"):
        next(release.rows())
    with raises(families.ESTIMATE, release="toy/v1-r1"):
        release.graph("ridge")
    assert not release.noise.has_noise
    assert not release.estimates
    assert release.report is None
    assert "toy/v1-r1" in repr(release)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"neighbours": "add-remove"}, PERSONS], ids=str)
def test_quantiles_are_those_of_the_table(
    changes: dict[str, Any], tmp_path: Path, home: Path
) -> None:
    """So few persons are declared that shares of that number would be wrong."""
    release = opened(marginals_request(tmp_path, **changes), home)
    found = release.quantiles([0.25, 0.5, 0.75])
    assert list(found.columns) == ["column", "probability", "value", "lower", "upper"]
    assert found["column"].tolist() == ["weight"] * 3 + ["income"] * 3
    truth = table(tmp_path)[["weight", "income"]].quantile([0.25, 0.5, 0.75])
    spread = np.repeat([np.ptp(truth["weight"]), np.ptp(truth["income"])], 3)
    exact = truth.to_numpy().T.ravel()
    # Intervals may miss by chance, but not by more than the spread of the column.
    assert (found["lower"] <= exact + spread).all()
    assert (found["upper"] >= exact - spread).all()
    assert ((found["lower"] <= found["value"]) & (found["value"] <= found["upper"])).all()
    levels = release.marginals[release.marginals["level"].notna()]
    assert levels["share"].sum() == pytest.approx(1, abs=0.25)
    if "neighbours" in changes:
        assert release.manifest.rows.status == "noisy"
        assert release.manifest.rows.value == pytest.approx(ROWS, rel=0.25)


@pytest.mark.slow
def test_releases_with_private_constants_have_marginals_and_a_matrix(
    tmp_path: Path, home: Path
) -> None:
    mechanism = {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6}
    private = {"mechanism": mechanism, "scaling": "private"}
    release = opened(marginals_request(tmp_path, private), home)
    assert release.kind == "second-moment"
    assert set(release.marginals["column"]) == {"weight", "income", "ward"}
    assert release.second_moment.shape == (5, 5)
    assert pickle.loads(pickle.dumps(release)).quantiles().equals(release.quantiles())


@pytest.mark.slow
def test_releases_of_declared_constants_have_no_marginals(tmp_path: Path, home: Path) -> None:
    release = opened(write_request(tmp_path), home)
    with raises(families.ANALYSIS, release="toy/v1-r1"):
        _ = release.marginals
    with raises(families.ANALYSIS, release="toy/v1-r1"):
        release.quantiles()
