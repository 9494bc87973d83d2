"""Thresholded covariances: the papers' exact thresholds, exact zeros, and clipping."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gramercy.estimators.noise.denoise import project
from gramercy.estimators.threshold import (
    ThresholdedCovariance,
    auto_level,
    entry_standard_errors,
    paper_constant,
    psd_projection,
    threshold_entries,
)
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw
from tests.support.factories import at_scale
from tests.support.noisy_matrices import gaussian_law, goe

EYE = np.eye(3, dtype=bool)
RAW = np.array([[0.5, 0.3, -0.05], [0.3, 0.25, 0.2], [-0.05, 0.2, 0.04]])


def seen(raw: np.ndarray = RAW, sd: float = 1e-3, n: float = 1000.0) -> Evidence:
    return Evidence(raw, project(raw), gaussian_law(sd), n)


def banded(p: int) -> np.ndarray:
    matrix = np.eye(p) + 0.4 * (np.eye(p, k=1) + np.eye(p, k=-1))
    return matrix / p


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
    for name in ("auto", "wx", "lw"):
        chosen: Any = ThresholdedCovariance.model_validate({"threshold": name})
        assert not chosen.fit(nothing).matrix.any()
