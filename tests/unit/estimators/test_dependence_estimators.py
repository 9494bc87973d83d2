"""What all estimators of dependences have in common."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from gramercy.estimators.about_means import DependenceEstimator
from gramercy.estimators.clime import Clime
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.neighbourhood import NeighbourhoodSelection
from gramercy.estimators.ridge import Ridge
from gramercy.estimators.scio import Scio
from gramercy.estimators.threshold import ThresholdedCovariance
from gramercy.estimators.wishart_prior import WishartPrior
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw
from tests.support.noisy_matrices import f1, gaussian_law, hub, hub_release, off
from tests.support.problems import raises, refuses

INPUTS = ["denoised", "raw"]
NOT_POSITIVE = [{"penalty": bad} for bad in (0.0, -1.0, math.nan, math.inf)]
SETTINGS: list[tuple[Any, dict[str, list[Any]], list[dict[str, Any]]]] = [
    (
        Ridge,
        {"penalty": ["auto", 0.1, 0.2], "input": INPUTS},
        [*NOT_POSITIVE, {"penalty": "ebic"}, {"penalty": "stability"}],
    ),
    (
        GraphicalLasso,
        {
            "penalty": ["auto", 0.1],
            "input": INPUTS,
            "penalize_diagonal": [False, True],
            "scale": ["covariance", "correlation"],
        },
        [*NOT_POSITIVE, {"penalty": "cv"}, {"penalize_diagonal": "yes"}],
    ),
    (
        NeighbourhoodSelection,
        {"rule": ["and", "or"], "penalty": ["auto", 0.1]},
        [*NOT_POSITIVE, {"rule": "xor"}],
    ),
    (Scio, {"penalty": ["auto", 0.1, 0.2]}, [*NOT_POSITIVE, {"penalty": 1.0}]),
    (Clime, {"bound": ["auto", 0.1, 0.2]}, [{"bound": bad} for bad in (0.0, math.nan, 1.0)]),
    (
        ThresholdedCovariance,
        {
            "rule": ["hard", "soft"],
            "threshold": ["auto", 0.1, "wx", "lw-local"],
            "keep_diagonal": [True, False],
            "constant": ["auto", 2],
        },
        [
            {"threshold": 0.0},
            {"threshold": "wrong"},
            {"constant": -1.0},
            {"rule": "firm"},
            {"keep_diagonal": "yes"},
        ],
    ),
]


@pytest.mark.parametrize(("spec", "choices", "invalid"), SETTINGS)
def test_settings_determine_the_id_and_are_validated(
    spec: Any, choices: dict[str, list[Any]], invalid: list[dict[str, Any]]
) -> None:
    given = [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]
    made = [spec.model_validate(each) for each in given]
    assert len({each.id for each in made}) == len(made)
    assert all(each.id.startswith(f"{spec().name}-") for each in made)
    assert spec.model_validate({"name": spec().name}).id == spec().id
    assert all(spec.model_validate(each.model_dump()) == each for each in made)
    for bad in invalid:
        with refuses(next(iter(bad))):
            spec.model_validate(bad)


@pytest.mark.parametrize(
    "spec", [GraphicalLasso, NeighbourhoodSelection, Scio, Clime, WishartPrior]
)
def test_degenerate_matrices_still_give_an_estimate(spec: type[DependenceEstimator]) -> None:
    for sd in (1e-5, 0.03, 1.0):
        found = spec().fit(hub_release(1, 10, 2000, sd))
        assert found.edges is not None
        if found.kind == "precision":
            np.linalg.cholesky(found.matrix)
    nothing = np.zeros((3, 3))
    with raises(families.ESTIMATE):
        spec().fit(Evidence(nothing, nothing, NoiseLaw.none(), 100.0))
    assert spec().fit(Evidence(nothing, nothing, gaussian_law(0.1), 100.0)).edges is not None
    for matrix in (np.diag([0.5, 0.5, 0.0]), np.array([[0.4]])):
        for noise in (gaussian_law(0.1), NoiseLaw.none()):
            found = spec().fit(Evidence(matrix, matrix, noise, 100.0))
            assert found.edges is not None
            assert not found.edges.any()
            if found.kind == "precision":
                np.linalg.cholesky(found.matrix)
            assert all(math.isfinite(each) for each in found.tuning.values())


@pytest.mark.parametrize(
    "estimator",
    [
        *(kind(input=source) for kind in (GraphicalLasso, Ridge) for source in INPUTS),
        NeighbourhoodSelection(),
        Scio(),
        Clime(),
    ],
)
def test_auto_penalty_grows_with_noise_and_falls_with_rows(estimator: DependenceEstimator) -> None:
    def penalty(release: Evidence) -> float:
        return float(estimator.fit(release).tuning["penalty"])

    quiet, loud = hub_release(2, 10, 50_000, 1e-5), hub_release(2, 10, 50_000, 4e-3)
    few = Evidence(quiet.raw, quiet.repaired, quiet.law, 100.0)
    assert 0 < penalty(quiet) < min(penalty(loud), penalty(few))
    single = Evidence(np.array([[0.4]]), np.array([[0.4]]), gaussian_law(1e3), 1.0)
    assert 0 < penalty(single) < math.inf


@pytest.mark.parametrize(
    "estimator",
    [
        GraphicalLasso(),
        GraphicalLasso(input="raw"),
        NeighbourhoodSelection(rule="and"),
        NeighbourhoodSelection(rule="or"),
        Scio(),
        Clime(),
    ],
)
def test_auto_penalty_finds_the_graph(estimator: DependenceEstimator) -> None:
    """A hub of five among fifteen columns; the noise is about a third of an edge's covariance."""
    truth, scores = off(hub(15)) != 0, []
    for seed in range(3):
        edges = estimator.fit(hub_release(seed, 15, 5000, 3e-3)).edges
        assert edges is not None
        scores.append(f1(edges != 0, truth))
        # A positive entry of the precision matrix is a negative partial correlation.
        assert (np.sign(edges[truth & (edges != 0)]) == -1).all()
    assert np.mean(scores) > 0.8
