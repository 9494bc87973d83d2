"""Where a release has an intercept, dependences are estimated about the means."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gramercy.estimators import Estimator, Evidence
from gramercy.estimators.about_means import about_means
from gramercy.estimators.clime import Clime
from gramercy.estimators.estimator import Estimate
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.neighbourhood import NeighbourhoodSelection
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.ridge import Ridge
from gramercy.estimators.scio import Scio
from gramercy.estimators.threshold import ThresholdedCovariance
from gramercy.schemas import families
from gramercy.schemas.evidence import Fold
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.noise import NoiseLaw
from tests.support.noisy_matrices import gaussian_law, goe
from tests.support.problems import raises

Array = np.ndarray

P, ROWS = 6, 20_000
MEANS = np.array([2.0, -1.5, 1.0, 0.0, 3.0, -2.0])
CHAIN = np.eye(P) + 0.45 * (np.eye(P, k=1) + np.eye(P, k=-1))
COVARIANCE = np.linalg.inv(CHAIN)
ESTIMATORS: dict[str, Estimator] = {
    "ridge": Ridge(penalty=0.01),
    "graphical-lasso": GraphicalLasso(penalty=0.05),
    "raw": GraphicalLasso(penalty=0.05, input="raw"),
    "refit": GraphicalLasso(penalty=0.1, refit=True),
    "ebic": GraphicalLasso(penalty="ebic"),
    "stability": GraphicalLasso(penalty="stability"),
    "scio": Scio(penalty=0.1),
    "clime": Clime(bound=0.1),
    "neighbourhood": NeighbourhoodSelection(),
    "thresholded": ThresholdedCovariance(),
}


def columns(count: int) -> tuple[ColumnFacts, ...]:
    return tuple(
        ColumnFacts(name=f"c{i}", lower=-9, upper=9, centre=0, scale=1) for i in range(count)
    )


def bordered(covariance: Array, means: Array, weight: float) -> Array:
    """Second moment of rows (1, x) with these means, whose first entry is `weight`."""
    row = np.append(1.0, means)
    return weight * (np.pad(covariance, ((1, 0), (1, 0))) + np.outer(row, row))


def evidence(raw: Array, law: NoiseLaw | None = None, *, intercept: bool = True) -> Evidence:
    law = law or NoiseLaw.none()
    ones = (None,) if intercept else ()
    return Evidence(
        raw,
        denoise(raw, law, math.inf, unit=False),
        law,
        float(ROWS),
        columns=ones + columns(len(raw) - intercept),
        unit=False,
        trace=math.inf,
    )


def noisy(sd: float, seed: int, covariance: Array = COVARIANCE) -> Evidence:
    """A release of Gaussian rows about `MEANS`."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack(
        [np.ones(ROWS), rng.multivariate_normal(MEANS, covariance, ROWS, method="cholesky")]
    )
    return evidence(rows.T @ rows / ROWS + goe(rng, P + 1, sd), gaussian_law(sd))


def dependences(estimate: Estimate) -> Array:
    assert estimate.edges is not None
    return estimate.edges


@pytest.mark.parametrize("name", ESTIMATORS)
def test_without_noise_estimates_equal_those_of_centred_rows(name: str) -> None:
    estimator = ESTIMATORS[name]
    centred = estimator.fit(evidence(COVARIANCE, intercept=False))
    found = estimator.fit(evidence(bordered(COVARIANCE, MEANS, 1.0)))
    expected = np.pad(dependences(centred), ((1, 0), (1, 0)))
    np.testing.assert_allclose(dependences(found), expected, atol=1e-8)
    assert found.tuning == pytest.approx(centred.tuning, rel=1e-9)
    for key, matrix in centred.matrices.items():
        whole, size = found.matrices[key], np.abs(matrix).max()
        assert whole.shape == (P + 1, P + 1)
        if key in {"precision", "coefficients"}:
            np.testing.assert_allclose(whole[1:, 1:], matrix, atol=1e-7 * size)
            inverse = np.linalg.inv(matrix)
            expected = bordered(inverse, MEANS, 1.0)
            np.testing.assert_allclose(np.linalg.inv(whole), expected, rtol=1e-6, atol=1e-6)
        elif key in {"covariance", "thresholded"}:
            np.testing.assert_allclose(whole, bordered(matrix, MEANS, 1.0), atol=1e-9)
        else:
            np.testing.assert_allclose(whole, np.pad(matrix, ((1, 0), (1, 0))), atol=1e-9)


def test_noisy_graphs_are_those_of_the_rows_about_their_means() -> None:
    """All edges of three pairs of columns, and hardly another, though the means are far off."""
    pairs = np.kron(np.eye(3), np.array([[1.0, 0.5], [0.5, 1.0]]))
    expected, false, about_zero = np.pad(pairs - np.eye(P) != 0, ((1, 0), (1, 0))), 0, 0
    for seed in range(5):
        release = noisy(0.002, seed, pairs)
        for estimator in (GraphicalLasso(), Scio(), NeighbourhoodSelection()):
            edges = dependences(estimator.fit(release)) != 0
            assert edges[expected].all()
            false += int((edges & ~expected).sum()) // 2
            former = dependences(estimator.fit_columns(release)) != 0
            about_zero += int((former & ~expected)[1:, 1:].sum()) // 2
    assert false <= 6  # of 180 pairs without a dependence
    assert about_zero >= 10 * false


def test_folds_are_about_the_means_of_all_rows() -> None:
    whole = bordered(COVARIANCE, MEANS, 0.8)
    half = np.random.default_rng(0).normal(size=whole.shape) * 0.01
    shift = half + half.T
    release = replace(
        evidence(whole), folds=(Fold(whole + shift, 3000.0), Fold(whole - shift, 3000.0))
    )
    centred = about_means(release).evidence
    average = (centred.folds[0].moment + centred.folds[1].moment) / 2
    np.testing.assert_allclose(average, centred.raw, atol=1e-12)
    difference = centred.folds[0].moment - centred.folds[1].moment
    linear = np.column_stack([-MEANS, np.eye(P)])
    np.testing.assert_allclose(difference, 2 * linear @ shift @ linear.T, atol=1e-12)
    chosen = GraphicalLasso(penalty="cross-validation").fit(release)
    assert not dependences(chosen)[0].any()


def test_missing_cells_are_corrected() -> None:
    """Zeros in the place of independently missing cells do not change graphs and moments."""
    present = np.array([1.0, 0.5, 0.8, 0.7, 1.0, 0.9, 0.6])
    shares = np.outer(present, present)
    np.fill_diagonal(shares, present)
    whole = bordered(COVARIANCE, MEANS, 0.9)
    release = replace(
        evidence(whole * shares, intercept=True),
        present=tuple(present),
        folds=(Fold(whole * shares, 1.0), Fold(whole * shares, 1.0)),
    )
    centred = about_means(release)
    np.testing.assert_allclose(centred.evidence.raw, 0.9 * COVARIANCE, atol=1e-12)
    np.testing.assert_allclose(centred.evidence.repaired, 0.9 * COVARIANCE, atol=1e-12)
    np.testing.assert_allclose(centred.evidence.folds[0].moment, 0.9 * COVARIANCE, atol=1e-12)
    np.testing.assert_allclose(centred.mean, MEANS, atol=1e-12)
    estimate = ThresholdedCovariance(threshold=1e-9).fit(release)
    np.testing.assert_allclose(estimate.matrix, whole, atol=1e-12)


@pytest.mark.slow
def test_the_law_has_the_mean_square_of_the_noise_about_the_means() -> None:
    sd, draws = 1e-4, 2000
    rng = np.random.default_rng(5)
    whole = bordered(COVARIANCE, MEANS, 0.7)
    release = evidence(whole, gaussian_law(sd))
    centred = about_means(release, "raw").evidence
    squares = 0.0
    for _ in range(draws):
        moved = replace(release, raw=whole + goe(rng, P + 1, sd))
        error = about_means(moved, "raw").evidence.raw - 0.7 * COVARIANCE
        squares += float((error[np.triu_indices(P, 1)] ** 2).mean()) / draws
    assert math.sqrt(squares) == pytest.approx(centred.law.sd_off_diagonal, rel=0.02)
    assert centred.law.sd_off_diagonal > 5 * sd


def test_an_intercept_that_is_lost_in_the_noise() -> None:
    """Moments remain about the centres, and all estimates are finite."""
    release = evidence(bordered(COVARIANCE, MEANS, 1.0), gaussian_law(2.0))
    centred = about_means(release)
    np.testing.assert_array_equal(centred.evidence.raw, release.raw[1:, 1:])
    assert not centred.mean.any()
    for estimator in (Ridge(), GraphicalLasso(), Scio(), ThresholdedCovariance()):
        estimate = estimator.fit(release)
        assert all(np.isfinite(matrix).all() for matrix in estimate.matrices.values())
        assert np.linalg.eigvalsh(estimate.matrix)[0] > 0


def test_rows_without_weight_are_refused() -> None:
    with raises(families.ESTIMATE):
        about_means(evidence(np.zeros((3, 3))))


def test_an_intercept_alone_is_estimated() -> None:
    estimate = Ridge(penalty=0.1).fit(evidence(np.eye(1)))
    assert estimate.matrix.shape == (1, 1)


# Rules that look for a sparse graph find none among three columns.
CONDITIONAL = [name for name in ESTIMATORS if name not in {"thresholded", "ebic", "stability"}]


@pytest.mark.parametrize("name", CONDITIONAL)
def test_edges_of_levels_are_relative_to_a_reference(name: str) -> None:
    """Two levels add up to one: given both, neither would depend on anything else."""
    rng = np.random.default_rng(5)
    group = (rng.random(ROWS) < 0.4).astype(float)
    x = 1.5 * group + rng.normal(size=ROWS)
    y = 0.8 * x + rng.normal(size=ROWS)
    dead = 1e-4 * rng.normal(size=ROWS)
    rows = np.column_stack([np.ones(ROWS), x, 1 - group, group, y, dead])
    seen = evidence(rows.T @ rows / ROWS + goe(rng, 6, 1e-3), gaussian_law(1e-3))
    levels, facts = LevelsFacts(name="group", levels=("no", "yes")), columns(3)
    seen = replace(seen, columns=(None, facts[0], levels, levels, facts[1], facts[2]))
    found = ESTIMATORS[name].fit(seen)
    edges = dependences(found)
    assert not edges[[2, 5]].any()  # the reference, and the column that noise hides
    assert edges[1, 3] > 0.2
    assert edges[1, 4] > 0.2
    assert abs(edges[3, 4]) < 0.1
    if found.kind == "precision":
        assert np.linalg.eigvalsh(found.matrix)[0] > 0
    marginal = dependences(ThresholdedCovariance().fit(seen))
    assert marginal[1, 2] == pytest.approx(-marginal[1, 3], rel=0.05)  # covariances need no other
