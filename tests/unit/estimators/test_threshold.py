"""Thresholded covariances: the papers' exact thresholds, exact zeros, and clipping."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gramercy.estimators.about_means import about_means
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.threshold import (
    ThresholdedCovariance,
    auto_level,
    paper_constant,
    psd_projection,
    threshold_entries,
)
from gramercy.estimators.tuning.cross_validation import training_evidence
from gramercy.estimators.uncertainty.pair_variance import gaussian_variance, pair_variance
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence, Fold
from gramercy.schemas.noise import NoiseLaw
from tests.support.factories import at_scale
from tests.support.noisy_matrices import gaussian_law, goe
from tests.support.private_release import numeric_columns, privately_scaled
from tests.support.problems import raises

EYE = np.eye(3, dtype=bool)
RAW = np.array([[0.5, 0.3, -0.05], [0.3, 0.25, 0.2], [-0.05, 0.2, 0.04]])


def seen(raw: np.ndarray = RAW, sd: float = 1e-3, n: float = 1000.0) -> Evidence:
    return Evidence(raw, project(raw), gaussian_law(sd), n)


def banded(p: int) -> np.ndarray:
    matrix = np.eye(p) + 0.4 * (np.eye(p, k=1) + np.eye(p, k=-1))
    return matrix / p


def entry_standard_errors(evidence: Evidence) -> np.ndarray:
    return np.sqrt(evidence.deviations**2 + gaussian_variance(evidence) / evidence.rows)


def released(rng: np.random.Generator, truth: np.ndarray, n: int, sd: float) -> Evidence:
    p = len(truth)
    rows = rng.normal(size=(n, p)) @ np.linalg.cholesky(truth).T
    return seen(rows.T @ rows / n + goe(rng, p, sd), sd, n)


def test_hard_and_soft_thresholding() -> None:
    hard = ThresholdedCovariance(threshold=0.2).fit(seen()).matrices["thresholded"]
    np.testing.assert_array_equal(hard, [[0.5, 0.3, 0], [0.3, 0.25, 0], [0, 0, 0.04]])
    soft = ThresholdedCovariance(threshold=0.1, rule="soft").fit(seen()).matrices["thresholded"]
    np.testing.assert_allclose(soft, [[0.5, 0.2, 0], [0.2, 0.25, 0.1], [0, 0.1, 0.04]], rtol=1e-14)
    papers = ThresholdedCovariance(threshold=0.2, keep_diagonal=False).fit(seen())
    np.testing.assert_array_equal(
        papers.matrices["thresholded"], [[0.5, 0.3, 0], [0.3, 0.25, 0], [0, 0, 0]]
    )
    entrywise = threshold_entries(RAW, np.where(RAW == 0.3, 0.4, 0.01), "hard")
    np.testing.assert_array_equal(entrywise, np.where(RAW == 0.3, 0.0, RAW))
    assert not np.signbit(
        threshold_entries(-np.ones((2, 2)), 2.0, "soft", keep_diagonal=False)
    ).any()


def test_thresholded_and_projected_covariance_and_graph() -> None:
    """Thresholding a chain of three leaves an indefinite matrix; projection fills the zero."""
    raw = np.array([[0.3, 0.28, 0.1], [0.28, 0.3, 0.28], [0.1, 0.28, 0.3]])
    found = ThresholdedCovariance(threshold=0.2).fit(seen(raw))
    assert found.kind == "covariance"
    assert found.matrix is found.matrices["covariance"]
    sparse, covariance = found.matrices["thresholded"], found.matrices["covariance"]
    assert sparse[0, 2] == 0
    assert np.linalg.eigvalsh(sparse)[0] < -0.05
    assert covariance[0, 2] != 0
    values, vectors = np.linalg.eigh(sparse)
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance), np.maximum(values, 0), atol=1e-15)
    np.testing.assert_allclose(covariance @ vectors[:, 2], values[2] * vectors[:, 2])
    power = np.sqrt(np.diagonal(project(raw)))
    assert found.edges is not None
    expected = np.clip(sparse / np.outer(power, power), -1, 1) * ~EYE
    np.testing.assert_allclose(found.edges, expected, rtol=1e-12)
    assert found.tuning == {"threshold": 0.2}


def test_semidefinite_matrix_is_its_own_projection() -> None:
    for matrix in (np.diag([0.5, 0.2, 0.0]), np.zeros((2, 2)), np.diag([1.0, 1.0])):
        assert psd_projection(matrix) is matrix
    assert psd_projection(np.array([[-1.0]])) == 0.0


def test_edges_of_columns_without_variance() -> None:
    raw = np.array([[0.5, 0.3], [0.3, -0.1]])
    kept = Evidence(raw, np.diag([0.5, 0.0]), gaussian_law(0.01), 100.0)
    found = ThresholdedCovariance(threshold=0.1).fit(kept)
    assert found.edges is not None
    assert not found.edges.any()
    assert np.linalg.eigvalsh(found.matrix)[0] >= -1e-15
    # The covariances exceed the denoised variances.
    too_small = Evidence(raw, np.diag([0.5, 0.01]), gaussian_law(0.01), 100.0)
    edges = ThresholdedCovariance(threshold=0.1).fit(too_small).edges
    assert edges is not None
    assert edges[0, 1] == 1.0


@pytest.mark.parametrize("delta", [1e-6, 1e-3])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_thresholds_equal_those_printed_in_the_papers(epsilon: float, delta: float) -> None:
    """Formulas of both papers for their own noise, including the misprinted sqrt(n)."""
    p, n, constant = 3, 400.0, 0.7
    root, log = math.sqrt(2 * math.log(1.25 / delta)), math.log(p)
    sampling = constant * math.sqrt(log / n)
    printed = {
        "wx": (root / (n * epsilon), 4 * root * math.sqrt(log) / (n * epsilon)),
        "wx-local": (
            root / (epsilon * math.sqrt(n)),
            4 * root * math.sqrt(log) / (math.sqrt(n) * epsilon),
        ),
    }
    sigma_1 = 2 * math.sqrt(math.log(1.25 / delta)) / (n * epsilon)
    sigma_2 = root / epsilon
    printed["lw"] = (sigma_1, 4 * sigma_1 * math.sqrt(log))
    printed["lw-local"] = (sigma_2 / math.sqrt(n), 4 * sigma_2 * math.sqrt(log / n))
    for name, (sd, noise) in printed.items():
        asked = ThresholdedCovariance.model_validate({"threshold": name, "constant": constant})
        found = asked.fit(seen(sd=sd, n=n))
        assert found.tuning["threshold"] == pytest.approx(sampling + noise, rel=1e-12)
        assert found.tuning["constant"] == constant


def test_default_constants_of_paper_thresholds() -> None:
    given = Evidence(RAW, np.diag([0.6, 0.2, 0.1]), gaussian_law(0.01), 100.0)
    assert paper_constant(given, "wx") == paper_constant(given, "wx-local") == pytest.approx(0.6)
    assert paper_constant(given, "lw") == pytest.approx(4 * math.sqrt(2) / 3 * 2 * 0.6)
    found = ThresholdedCovariance(threshold="lw-local").fit(given)
    assert found.tuning["constant"] == paper_constant(given, "lw-local")


def test_stated_deviations_match_simulated_releases() -> None:
    """Stated deviations match simulations, also for noisy rows, where they differ by entry."""
    rng, n, v, p = np.random.default_rng(5), 200, 0.05, 3
    truth = np.diag([0.6, 0.3, 0.1])
    truth[0, 1] = truth[1, 0] = 0.2
    root = np.linalg.cholesky(truth)
    errors = []
    for _ in range(at_scale(3000, 20_000)):
        rows = rng.normal(size=(n, p)) @ root.T + math.sqrt(v) * rng.normal(size=(n, p))
        errors.append(rows.T @ rows / n - v * np.eye(p))
    noisy = NoiseLaw(family="noisy-rows", sd_diagonal=1.0, sd_off_diagonal=1.0, cell_variance=v)
    found = entry_standard_errors(Evidence(truth, truth, noisy, float(n)))
    np.testing.assert_allclose(np.std(errors, axis=0), found, rtol=0.08)
    assert found[0, 1] > 1.5 * found[1, 2]
    quiet = entry_standard_errors(Evidence(truth, truth, NoiseLaw.none(), 100.0))
    assert quiet[1, 2] == pytest.approx(math.sqrt(0.3 * 0.1 / 100))


def test_auto_threshold_is_entrywise() -> None:
    given = seen()
    found = ThresholdedCovariance().fit(given)
    assert found.tuning == {"level": auto_level(3)} == {"level": math.sqrt(2 * math.log(3))}
    by = auto_level(3) * entry_standard_errors(given)
    sparse = found.matrices["thresholded"]
    assert ((sparse != 0)[~EYE] == (np.abs(RAW) > by)[~EYE]).all()
    assert ThresholdedCovariance().fit(seen(np.array([[0.4]]))).matrix == 0.4


@pytest.mark.parametrize("share", [1e-3, 0.02])
def test_auto_threshold_finds_the_support_and_lowers_the_error(share: float) -> None:
    p, rng = 30, np.random.default_rng(8)
    truth = banded(p)
    support = (truth != 0) & ~np.eye(p, dtype=bool)
    scores, gains = [], []
    for _ in range(5):
        given = released(rng, truth, 2000, share / p)
        found = ThresholdedCovariance().fit(given)
        assert found.edges is not None
        there = found.edges != 0
        scores.append(2 * (there & support).sum() / (there.sum() + support.sum()))
        errors = [np.linalg.norm(m - truth) for m in (found.matrix, given.repaired)]
        gains.append(errors[0] / errors[1])
    assert np.mean(scores) > 0.85
    assert np.mean(gains) < 0.7


def test_pure_noise_is_thresholded_away() -> None:
    """Of p^2/2 noise entries few exceed sqrt(2 log p) deviations, and no error is raised."""
    rng, p = np.random.default_rng(2), 40
    left = []
    for _ in range(5):
        edges = ThresholdedCovariance().fit(released(rng, np.eye(p) / p, 500, 0.5 / p)).edges
        assert edges is not None
        left.append(np.count_nonzero(edges) / p**2)
    assert np.mean(left) < 0.02
    nothing = Evidence(np.zeros((3, 3)), np.zeros((3, 3)), NoiseLaw.none(), 0.0)
    for name in ("auto", "adaptive", "wx", "lw"):
        chosen: Any = ThresholdedCovariance.model_validate({"threshold": name})
        assert not chosen.fit(nothing).matrix.any()


def in_folds(rng: np.random.Generator, rows: np.ndarray, sd: float, count: int = 10) -> Evidence:
    """A release in folds, each with noise of `sd` on its sum of rows, divided by their number."""
    p, n = rows.shape[1], len(rows)
    folds = tuple(
        Fold(each.T @ each / len(each) + goe(rng, p, sd * n / len(each)), float(len(each)))
        for each in np.array_split(rows, count)
    )
    raw = sum((fold.moment * fold.rows for fold in folds), np.zeros((p, p))) / n
    law = gaussian_law(sd * math.sqrt(count))
    return Evidence(raw, project(raw), law, float(n), folds=folds, unit=False, trace=math.inf)


def far_rows(rng: np.random.Generator, n: int, truth: np.ndarray) -> np.ndarray:
    """Rows of Student's t distribution with 5 degrees of freedom."""
    rows = rng.normal(size=(n, len(truth))) @ np.linalg.cholesky(truth).T
    return rows * np.sqrt(3 / rng.chisquare(5, size=(n, 1)))


def test_adaptive_errors_are_those_of_the_rows() -> None:
    """Student's t with 5 degrees of freedom has three times the variance of x_i x_j."""
    rng, truth = np.random.default_rng(4), np.eye(20) / 20
    given = in_folds(rng, far_rows(rng, 20_000, truth), 1e-6)
    pairs = np.triu_indices(20, 1)
    ratio = (pair_variance(given) / gaussian_variance(given))[pairs]
    assert 2 < np.median(ratio) < 4
    counts = [
        np.count_nonzero(ThresholdedCovariance(threshold=name).fit(given).edges)
        for name in ("auto", "adaptive")
    ]
    assert counts[1] < counts[0] / 3
    normal = in_folds(rng, rng.normal(size=(20_000, 20)) / math.sqrt(20), 1e-6)
    ratio = (pair_variance(normal) / gaussian_variance(normal))[pairs]
    assert 0.85 < np.median(ratio) < 1.15
    without = replace(normal, folds=())
    np.testing.assert_array_equal(pair_variance(without), gaussian_variance(without))


@pytest.mark.parametrize("independent", [True, False])
def test_lengths_show_whether_rows_are_far_out_in_several_columns(independent: bool) -> None:
    """Independent columns with heavy tails have the errors of Gaussian rows off the diagonal."""
    rng, p, n = np.random.default_rng(7), 12, 20_000
    rows = rng.normal(size=(n, p))
    rows *= np.sqrt(3 / rng.chisquare(5, size=(n, p if independent else 1)))
    scaled = privately_scaled(rows, numeric_columns([(-30.0, 30.0)] * p), 8.0, rng)
    assert scaled is not None
    given = about_means(scaled.release(rng), "raw").evidence
    ratio = (pair_variance(given) / gaussian_variance(given))[np.triu_indices(p, 1)]
    assert (np.median(ratio) < 1.05) if independent else (1.1 < np.median(ratio) < 2.5)


@pytest.mark.parametrize("name", ["auto", "adaptive", "wx", "lw"])
def test_cross_validated_constants_lower_the_loss(name: str) -> None:
    rng, truth = np.random.default_rng(9), banded(15)
    rows = rng.normal(size=(4000, 15)) @ np.linalg.cholesky(truth).T
    given = in_folds(rng, rows, 1e-4)
    key = "level" if name in {"auto", "adaptive"} else "constant"
    asked: Any = ThresholdedCovariance.model_validate(
        {"threshold": name, "constant": "cross-validation"}
    )
    found = asked.fit(given)
    chosen = found.tuning[key]
    table = found.tables["tuning"]
    best = table["constant"][table["loss"] == table["loss"].min()]
    assert chosen in set(best)
    losses = {}
    for constant in (chosen, 1e-9, 20 * max(table["constant"])):
        fixed: Any = ThresholdedCovariance.model_validate(
            {"threshold": name, "constant": max(constant, 1e-12)}
        )
        losses[constant] = np.linalg.norm(fixed.fit(given).matrices["thresholded"] - truth)
    assert losses[chosen] == min(losses.values())
    with raises(families.ESTIMATE, setting="constant"):
        asked.fit(replace(given, folds=()))


@pytest.mark.slow
def test_losses_on_folds_are_true_errors_plus_a_constant() -> None:
    """Noise and sampling of the held-out fold add the same number to every mean loss."""
    rng, truth, differences, losses = np.random.default_rng(10), banded(6), [], []
    asked = ThresholdedCovariance(constant="cross-validation")
    for _ in range(at_scale(150, 1000)):
        rows = rng.normal(size=(600, 6)) @ np.linalg.cholesky(truth).T
        given = in_folds(rng, rows, 2e-3, count=2)
        table = asked.fit(given).tables["tuning"].iloc[[1, 8, 15, 22]]
        others = [training_evidence(given, out) for out in range(2)]
        true = [
            np.mean(
                [np.sum((fixed.fit(each).matrices["thresholded"] - truth) ** 2) for each in others]
            )
            for fixed in (ThresholdedCovariance(constant=each) for each in table["constant"])
        ]
        differences.append(table["loss"].to_numpy() - true)
        losses.append(true)
    mean = np.mean(differences, axis=0)
    error = np.std(np.subtract(differences, np.mean(differences, axis=1)[:, None]), axis=0)
    spread = np.ptp(np.mean(losses, axis=0))
    assert np.ptp(mean) < max(6 * error.max() / math.sqrt(len(losses)), 0.05 * spread)
    assert np.ptp(mean) < 0.3 * spread
