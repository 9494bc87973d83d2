"""Noise on counts: exact sensitivity, scale, law and guarantee."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from gramercy.mechanisms.histograms import ConstantsNoise, HistogramNoise
from gramercy.schemas import families
from gramercy.schemas.contract import Neighbours
from tests.support.black_box.audit import audit_statistics
from tests.support.black_box.replay import Tape, patched_sampler
from tests.support.conformance import BOTH
from tests.support.problems import raises

Array = np.ndarray[Any, Any]

EDGES = [
    np.array([0.0, 1.0, 2.0, 4.0]),
    np.array([-5.0, -1e-9, 1e-9, 5.0]),
    np.array([-(2.0**40), 0.0, 2.0**40]),
]
CELLS = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, 1.0, 4.0, 1e308, -1e308, 1.9999999]
ROWS = [np.array(row) for row in zip(CELLS, CELLS[3:] + CELLS[:3], reversed(CELLS), strict=True)]
COMMON = np.random.default_rng(1).normal(scale=3.0, size=(20, 3))


def histograms(rows: Array) -> list[Array]:
    """A histogram of every column: one bin for each row, and a last bin for missing cells."""
    counts = []
    for cells, edges in zip(rows.T, EDGES, strict=True):
        inside = np.searchsorted(edges, cells, side="right") - 1
        bins = np.where(np.isfinite(cells), inside.clip(0, len(edges) - 2), len(edges) - 1)
        counts.append(np.bincount(bins, minlength=len(edges)))
    return counts


@pytest.mark.parametrize("neighbours", BOTH)
def test_neighbouring_counts_differ_within_the_claim(neighbours: Neighbours) -> None:
    """Equal noise is requested for both tables, and the claim is attained."""
    noise = HistogramNoise.with_mu(len(EDGES), neighbours, 0.5)
    pairs = [(a, b) for a in ROWS for b in ROWS if a is not b]
    if neighbours == "add-remove":
        pairs = [(np.vstack([a, b]), b) for a, b in pairs]
    assert len(pairs) >= 30
    worst = 0.0
    for first, second in pairs:
        requests, drawn = [], []
        for rows in (first, second):
            tape = Tape([])
            with patched_sampler(tape):
                noisy = noise.perturb(histograms(np.vstack([COMMON, rows])))
            requests.append(tape.requests)
            drawn.append(np.concatenate(noisy))
        assert requests[0] == requests[1]
        assert requests[0] == [("rounded_gaussian", (noise.scale,), drawn[0].size)]
        distance = float(np.linalg.norm(drawn[0] - drawn[1])) / noise.scale
        assert distance <= noise.mu
        worst = max(worst, distance / noise.mu)
    assert worst == pytest.approx(1.0, rel=1e-12)


def test_noise_is_independent_of_the_counts() -> None:
    noise, tape = HistogramNoise.with_mu(3, "replace-one", 1e-6), Tape([])
    counts = histograms(COMMON)
    with patched_sampler(tape):
        noisy = noise.perturb(counts)
    with patched_sampler(Tape([])):
        alone = noise.perturb([np.zeros_like(each) for each in counts])
    for exact, published, drawn in zip(counts, noisy, alone, strict=True):
        assert published.dtype == np.int64
        assert (published == exact + drawn).all()
    assert np.unique(np.concatenate(alone)).size == sum(each.size for each in counts)


@given(st.integers(1, 1000), st.sampled_from(BOTH), st.floats(1e-6, 10.0))
def test_scale_is_the_least_with_the_requested_mu(
    columns: int, neighbours: Neighbours, mu: float
) -> None:
    noise = HistogramNoise.with_mu(columns, neighbours, mu)
    squared = {"replace-one": 2 * columns, "add-remove": columns}[neighbours]
    assert noise.squared_sensitivity == squared
    assert noise.mu <= mu
    assert Fraction(noise.mu) ** 2 * Fraction(noise.scale) ** 2 >= squared
    smaller = HistogramNoise(columns, neighbours, math.nextafter(noise.scale, 0))
    assert smaller.mu >= noise.mu
    assert noise.scale == pytest.approx(math.sqrt(squared) / mu, rel=1e-15)


def test_noise_that_cannot_be_drawn_is_refused() -> None:
    with raises(families.NOISE_RANGE, mechanism="histograms"):
        HistogramNoise.with_mu(1, "add-remove", 17.0)
    with raises(families.NOISE_RANGE, mechanism="histograms"):
        HistogramNoise.with_mu(1000, "replace-one", 1e-13)


def test_wrong_number_of_histograms_is_refused() -> None:
    noise = HistogramNoise(2, "replace-one", 5.0)
    with raises(families.ARGUMENT, histograms=2):
        noise.perturb([np.zeros(3, dtype=np.int64)])


@pytest.mark.parametrize("scale", [0.07, 0.3, 1.0, 7.5, 40.0])
def test_rounded_noise_has_the_stated_deviation(scale: float) -> None:
    """Computed from the law floor(s Z + 1/2), also where the lattice of ones is coarse."""
    j = np.arange(1, 501)
    masses = ndtr(-(j - 0.5) / scale) - ndtr(-(j + 0.5) / scale)
    sd = HistogramNoise(1, "add-remove", scale).sd
    assert sd == pytest.approx(math.sqrt(2 * (masses * j**2).sum()), rel=1e-9)


@pytest.mark.parametrize("scale", [0.3, 1.0, 25.0])
def test_drawn_noise_has_the_stated_law(scale: float) -> None:
    noise, size = HistogramNoise(1, "add-remove", scale), 40_000
    (drawn,) = noise.perturb([np.zeros(size, dtype=np.int64)])
    for threshold in (0, 1, round(scale), round(2 * scale) + 1):
        expected = ndtr(-(threshold - 0.5) / scale)
        error = math.sqrt(expected * (1 - expected) / size) + 1e-4
        assert abs((drawn >= threshold).mean() - expected) < 7 * error


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("mu", [0.5, 4.0])
def test_audit_proves_most_of_the_claim_and_never_exceeds_it(
    neighbours: Neighbours, mu: float
) -> None:
    """The best test projects onto the bins that change; at mu = 4 the noise is below one count."""
    noise, draws = HistogramNoise.with_mu(1, neighbours, mu), 20_000
    first = np.repeat(np.array([1, 0]), draws)
    second = 1 - first if neighbours == "replace-one" else 0 * first
    statistics = []
    for counts in (second, first):
        (noisy,) = noise.perturb([counts])
        statistics.append((noisy[:draws] - (first[-1] != second[-1]) * noisy[draws:]).astype(float))
    bounds = audit_statistics(*statistics, confidence=1 - 1e-10)
    assert bounds.mu <= noise.mu
    assert bounds.mu > 0.5 * noise.mu


def test_constants_noise_composes_its_draws() -> None:
    noise = ConstantsNoise.with_mu(7, "add-remove", [0.2, 0.1], 0.05)
    assert [each.histograms for each in noise.draws] == [7, 7, 1]
    assert noise.draws == (*noise.stages, noise.lengths)
    squares = sum((Fraction(each.mu) ** 2 for each in noise.draws), Fraction(0))
    assert squares <= Fraction(noise.mu) ** 2
    assert noise.mu == pytest.approx(math.sqrt(0.04 + 0.01 + 0.0025), rel=1e-12)
