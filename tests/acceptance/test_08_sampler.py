"""The sampler draws the rounded Gaussian, exactly, and shows nothing of its floating point."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import MPContext
from scipy import stats

from mechanisms.gaussian import Gaussian
from mechanisms.sampler import exact, fast, rounded_gaussian, self_test
from schemas.lattice import Lattice
from tables.gram import ExactGram
from tables.integers import integer_rows
from tests.making import at_scale

DRAWS = at_scale(500_000, 13_000_000)  # at full scale 0.2 % of a variance is 5 standard errors


def chi_square_p(drawn: np.ndarray, scale: float) -> float:
    """p-value of the exact cell probabilities of floor(scale Z + 1/2)."""
    edges = np.unique(np.rint(np.linspace(-3.5, 3.5, 80) * scale)) - 0.5
    counts = np.histogram(drawn, bins=np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    cdf = np.concatenate([[0], stats.norm.cdf(edges / scale), [1]])
    return float(stats.chisquare(counts, drawn.size * np.diff(cdf)).pvalue)


def exact_variance(scale: float) -> float:
    """Of the rounded Gaussian: the rounding adds 1/12 (Sheppard), but for the smallest scales."""
    if scale > 10:
        return scale**2 + 1 / 12
    j = np.arange(-200, 201)
    cells = np.diff(stats.norm.cdf((np.append(j, 201) - 0.5) / scale))
    return float((j**2 * cells).sum())


def rejected(drawn_at: float, claimed: float) -> bool:
    """Whether two samples in a row are rejected at 1e-4: a false alarm in 1e8 runs."""
    samples = (rounded_gaussian(drawn_at, DRAWS // 2) for _ in range(2))
    return all(chi_square_p(sample, claimed) < 1e-4 for sample in samples)


@pytest.mark.parametrize("scale", [0.6, 3.0, 250.5, 6.1e6, 3e9])
def test_law(scale: float) -> None:
    assert not rejected(scale, scale)
    variance = float(np.var(rounded_gaussian(scale, DRAWS).astype(float)))
    tolerance = max(0.002, 5 * math.sqrt(2 / DRAWS))
    assert variance == pytest.approx(exact_variance(scale), rel=tolerance)


@pytest.mark.parametrize("wrong", [0.97, 1.03])
def test_the_test_can_fail(wrong: float) -> None:
    assert rejected(6.1e6 * wrong, 6.1e6)


def reference(scale: float, tail: int, bits: int) -> int:
    """The integer by mpmath at high precision, its inverse found by bisection."""
    mp = MPContext()
    mp.prec = bits + 200
    u = mp.ldexp(mp.mpf(2 * tail + 1), -bits - 1)
    low, high = mp.mpf(0), mp.mpf(60)
    for _ in range(bits + 120):
        half = (low + high) / 2
        low, high = (half, high) if mp.erfc(half / mp.sqrt(2)) / 2 > u else (low, half)
    return int(mp.floor(mp.mpf(scale) * low + 0.5))


def boundary(scale: float, j: int, bits: int) -> int:
    """The k for which U = k 2^-bits meets Q((j + 1/2) / scale)."""
    mp = MPContext()
    mp.prec = bits + 200
    q = mp.erfc((j + mp.mpf(0.5)) / mp.mpf(scale) / mp.sqrt(2)) / 2
    return int(mp.floor(mp.ldexp(q, bits)))


@pytest.mark.parametrize("scale", [2.5, 1e6, 3e9])
@pytest.mark.parametrize("at", [0.0, 0.7, 2.0, 5.0])
def test_forced_ambiguity(scale: float, at: float) -> None:
    """On a boundary between two integers the fast path gives up, and appended bits decide."""
    j = int(at * scale)
    k = boundary(scale, j, 64)
    assert not fast(scale, np.array([k], dtype=np.uint64))[1][0]
    finer = boundary(scale, j, 128)
    assert finer >> 64 == k
    for step, expected in ((-5, j + 1), (5, j)):
        more = (finer + step) & ((1 << 64) - 1)
        appended = [more]
        assert exact(scale, k, appended.pop) == expected
        assert not appended
        assert reference(scale, finer + step, 128) == expected
    # Undecided after 128 bits as well: a third word is asked for, and none before is drawn anew.
    words = [5, finer & ((1 << 64) - 1)]
    exact(scale, k, words.pop)
    assert not words


@pytest.mark.parametrize("scale", [2.5, 1e6, 3e9])
@pytest.mark.parametrize("k", [0, 1, 12345, 1 << 19])
def test_deep_tail(scale: float, k: int) -> None:
    """Beyond the fast path's reach every draw is decided by interval arithmetic."""
    assert not fast(scale, np.array([k], dtype=np.uint64))[1][0]
    word = 0x9E3779B97F4A7C15
    words = [word, word, word, word]
    drawn = exact(scale, k, words.pop)
    tail, bits = k, 64
    for _ in range(4 - len(words)):
        tail, bits = (tail << 64) | word, bits + 64
    assert drawn == reference(scale, tail, bits)


def test_paths_agree() -> None:
    self_test()
    rng = np.random.default_rng(1)
    for scale in (0.4, 77.7, 4.2e8):
        tails = rng.integers(0, 1 << 63, size=at_scale(8, 200), dtype=np.uint64)
        quick, settled = fast(scale, tails)
        for k, j in zip(tails[settled].tolist(), quick[settled].tolist(), strict=True):
            assert exact(scale, k, list[int]().pop) == j


def distinguishable(outputs: np.ndarray, step: float) -> bool:
    """Whether the low bits of what was published depend on what was summed.

    Mironov's attack: the doubles that x + noise can hit depend on x. The attacker asks which
    outputs are whole multiples of the public step; where all are, for every x, nothing is told.
    """
    units = outputs / step
    return bool((np.abs(units - np.rint(units)) > 1e-3).any())


def test_precision_attack() -> None:
    """Published numbers lie on one lattice whatever the data; plain float noise does not."""
    p, lattice, rng = 90, Lattice(90, 12), np.random.default_rng(2)
    made = Gaussian.calibrated(p=p, n=100, neighbours="replace-one", epsilon=1.0, delta=1e-6)
    rows = rng.normal(size=(p, 100))
    rows /= np.linalg.norm(rows, axis=0)
    for table in (rows, rows[:, 1:]):
        gram = ExactGram(lattice)
        gram.add(integer_rows(table, lattice))
        published = made.perturb(gram.matrix(), 100, lattice).gram / lattice.divisor
        assert published.size > 8000
        assert not distinguishable(published, 1 / lattice.divisor)
        naive = table @ table.T + rng.normal(size=(p, p)) * made.scale
        assert distinguishable(naive, 1 / lattice.divisor)


def test_scale_is_bounded() -> None:
    for bad in (0.0, -1.0, math.nan, math.inf, 2.0**60):
        with pytest.raises(ValueError, match="scale"):
            rounded_gaussian(bad, 1)
