"""The sampler draws its integer laws exactly, without floating-point artefacts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpmath import MPContext, MPIntervalContext
from scipy import special, stats

from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.sampling import discrete
from gramercy.mechanisms.sampling.inverse_cdf_table import InverseCdfTable, inverse_cdf_table
from gramercy.mechanisms.sampling.rounding import LAPLACE, NORMAL, Law, resolve_exact
from gramercy.mechanisms.sampling.sampler import (
    _cornish_fisher_gamma,
    discrete_gaussian,
    discrete_gaussian_variance,
    gamma,
    gaussian,
    rounded_gaussian,
    rounded_laplace,
    self_test,
)
from gramercy.schemas import families
from gramercy.tables.sums.exact_sums import ExactGram
from gramercy.tables.sums.row_transform import integer_rows
from tests.support.factories import at_scale
from tests.support.problems import raises

DRAWS = at_scale(500_000, 13_000_000)  # at full scale 0.2 % of a variance is 5 standard errors
Cdf = Callable[[np.ndarray], np.ndarray]  # of an integer law, at half-integers
rounded = pytest.mark.parametrize(
    ("draw", "law"), [(rounded_gaussian, stats.norm), (rounded_laplace, stats.laplace)]
)
both_laws = pytest.mark.parametrize("law", [NORMAL, LAPLACE], ids=["normal", "laplace"])


def chi_square_p(drawn: np.ndarray, cdf: Cdf, width: float) -> float:
    """p-value of a chi-squared test against exact probabilities, of large enough cells."""
    edges = np.unique(np.rint(np.linspace(-3.5, 3.5, 80) * width)) - 0.5
    edges = edges[np.minimum(cdf(edges), cdf(-edges)) * drawn.size > 10]
    counts = np.histogram(drawn, bins=np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    cells = np.diff(np.concatenate([[0], cdf(edges), [1]]))
    return float(stats.chisquare(counts, drawn.size * cells).pvalue)


def rejected(draw: Callable[[int], np.ndarray], cdf: Cdf, width: float) -> bool:
    """Whether two samples in a row are rejected at 1e-4: a false alarm in 1e8 runs."""
    return all(chi_square_p(draw(DRAWS // 2), cdf, width) < 1e-4 for _ in range(2))


def has_moments(drawn: np.ndarray, variance: float) -> bool:
    """Whether the draws have this variance and mean zero, within six standard errors."""
    squares = drawn.astype(float) ** 2
    return bool(
        abs(drawn.mean()) < 6 * math.sqrt(variance / drawn.size)
        and abs(squares.mean() - variance) < 6 * squares.std() / math.sqrt(drawn.size)
    )


def rounded_variance(law: Any, scale: float) -> float:
    """Variance of the rounded law: rounding adds 1/12 (Sheppard), except at the smallest scales."""
    if scale > 10:
        return float(scale**2 * law.var() + 1 / 12)
    j = np.arange(-400, 401)
    cells = np.diff(law.cdf((np.append(j, 401) - 0.5) / scale))
    return float((j**2 * cells).sum())


@pytest.mark.parametrize("scale", [0.6, 3.0, 250.5, 6.1e6, 3e9])
@rounded
def test_draws_have_their_law(draw: Any, law: Any, scale: float) -> None:
    assert not rejected(lambda size: draw(scale, size), lambda x: law.cdf(x / scale), scale)
    assert has_moments(draw(scale, DRAWS), rounded_variance(law, scale))


@pytest.mark.parametrize("wrong", [0.97, 1.03])
@rounded
def test_law_test_rejects_wrong_scales(draw: Any, law: Any, wrong: float) -> None:
    s = 6.1e6
    assert rejected(lambda size: draw(s * wrong, size), lambda x: law.cdf(x / s), s)


def tail_probability(law: Law, mp: MPContext, x: Any) -> Any:
    return mp.erfc(x / mp.sqrt(2)) / 2 if law is NORMAL else mp.exp(-x) / 2


def reference(law: Law, scale: float, tail: int, bits: int) -> int:
    """The integer from mpmath at high precision, by bisection."""
    mp = MPContext()
    mp.prec = bits + 200
    u, low, high = mp.ldexp(mp.mpf(2 * tail + 1), -bits - 1), mp.mpf(0), mp.mpf(300)
    for _ in range(bits + 120):
        half = (low + high) / 2
        low, high = (half, high) if tail_probability(law, mp, half) > u else (low, half)
    return int(mp.floor(mp.mpf(scale) * low + 0.5))


def boundary(law: Law, scale: float, j: int, bits: int) -> int:
    """The k for which [k, k+1] 2^-bits contains Q((j + 1/2) / scale)."""
    mp = MPContext()
    mp.prec = bits + 200
    q = tail_probability(law, mp, (j + mp.mpf(0.5)) / mp.mpf(scale))
    return int(mp.floor(mp.ldexp(q, bits)))


def certified(law: Law, scale: float, tails: list[int]) -> dict[int, int]:
    """The results of the fast path for 63 bits each, if they are certified."""
    drawn = np.zeros(len(tails), dtype=np.int64)
    uncertified = set(
        inverse_cdf_table(law).resolve_certified(scale, np.array(tails), drawn).tolist()
    )
    return {k: int(drawn[i]) for i, k in enumerate(tails) if i not in uncertified}


@both_laws
@pytest.mark.parametrize("scale", [2.5, 1e6, 3e9])
@pytest.mark.parametrize("quantile", [0.0, 0.7, 2.0, 5.0])
def test_ambiguous_draws_are_decided_by_more_bits(law: Law, scale: float, quantile: float) -> None:
    """At a boundary between two integers the fast path is undecided; more bits decide."""
    j = int(quantile * scale)
    k = boundary(law, scale, j, 64)
    assert certified(law, scale, [k]) == {}
    finer = boundary(law, scale, j, 128)
    assert finer >> 64 == k
    for step, expected in ((-5, j + 1), (5, j)):
        appended = [(finer + step) & ((1 << 64) - 1)]
        assert resolve_exact(law, scale, k, appended.pop) == expected
        assert not appended
        assert reference(law, scale, finer + step, 128) == expected
    # Still undecided after 128 bits: a third word is appended, and no bits are drawn again.
    words = [5, finer & ((1 << 64) - 1)]
    resolve_exact(law, scale, k, words.pop)
    assert not words


@both_laws
@pytest.mark.parametrize("scale", [2.5, 1e6, 3e9])
@pytest.mark.parametrize("k", [0, 1, 12345, 1 << 19])
def test_deep_tail_draws_are_exact(law: Law, scale: float, k: int) -> None:
    """In the deep tail every draw is decided by interval arithmetic."""
    assert certified(law, scale, [k]) == {}
    word = 0x9E3779B97F4A7C15
    words, tail = [word] * 4, k
    drawn = resolve_exact(law, scale, k, words.pop)
    for _ in range(used := 4 - len(words)):
        tail = (tail << 64) | word
    assert drawn == reference(law, scale, tail, 64 + 64 * used)


@both_laws
def test_fast_and_exact_paths_agree(law: Law) -> None:
    self_test()
    rng = np.random.default_rng(1)
    for scale in (0.4, 77.7, 4.2e8, 2.0**45 / 3):
        tails = rng.integers(0, 1 << 63, size=at_scale(8, 200)).tolist()
        fast = certified(law, scale, tails)
        assert len(fast) >= 0.9 * len(tails)
        for k, j in fast.items():
            assert resolve_exact(law, scale, k, list[int]().pop) == j


@both_laws
def test_inverse_cdf_table_is_accurate(law: Law) -> None:
    """Checks tails, slopes and series coefficients by interval arithmetic."""
    table, iv = inverse_cdf_table(law), MPIntervalContext()
    iv.prec = 200
    for piece in range(0, table.tails.size, at_scale(50, 1)):
        x, unit = table.series[piece, :2].tolist()
        assert x < 16
        assert (x * 2**16).is_integer()
        assert abs(law.tail(iv, iv.mpf(x)) * 2**64 - int(table.tails[piece])).b <= 0.5
        slope = iv.exp(iv.mpf(x)) * 2
        if law is NORMAL:
            slope = iv.sqrt(2 * iv.pi) * iv.exp(iv.mpf(x) ** 2 / 2)
        assert abs(slope / iv.mpf(2) ** 64 / iv.mpf(unit) - 1).b < 2**-52
    x = table.series[:, 0]
    series = [
        x / 2,
        (2 * x**2 + 1) / 6,
        (6 * x**3 + 7 * x) / 24,
        (24 * x**4 + 46 * x**2 + 7) / 120,
        (120 * x**5 + 326 * x**3 + 127 * x) / 720,
        (720 * x**6 + 2556 * x**4 + 1740 * x**2 + 127) / 5040,
    ]
    if law is LAPLACE:
        series = [np.full_like(x, 1 / n) for n in range(2, 8)]
    np.testing.assert_allclose(table.series[:, 2:].T, series, rtol=2**-49)


@both_laws
def test_inverse_cdf_is_exact_at_the_ends_of_every_piece(law: Law) -> None:
    """The series is least accurate there, and at the largest scale it is used for."""
    scale = 2.0**48 / 1.7
    octave, place = np.divmod(np.arange(0, 23 * 128, at_scale(100, 1)), 128)
    first = (place + 128) << (octave + 33)
    ends = np.concatenate([first, first + (1 << (octave + 33)) - 1])
    fast = certified(law, scale, ends.tolist())
    assert len(fast) > 0.5 * ends.size  # deep tails need more bits
    for k, j in fast.items():
        assert j == resolve_exact(law, scale, k, [0x9E3779B97F4A7C15].pop)


@both_laws
@pytest.mark.parametrize("scale", [0.3, 7.7, 1e6, 3e9, 2.0**40 / 3])
def test_compiled_sampler_equals_python_loop(law: Law, scale: float) -> None:
    """Nearly all draws are certified by the fast path."""
    bits = np.random.default_rng(2).integers(-(1 << 63), 1 << 63, size=at_scale(1 << 15, 1 << 20))
    bits[:6] = (1 << 63) - 1, -1, 1 << 62, (1 << 40) + 1, 1 << 40, 0
    drawn, by_python = np.zeros_like(bits), np.zeros_like(bits)
    table = inverse_cdf_table(law)
    uncertified = table.resolve_certified(scale, bits, drawn).tolist()
    uncertified_by_python = []
    for start in range(0, bits.size, 10_000):
        part, uncompiled = slice(start, start + 10_000), InverseCdfTable(table.tails, table.series)
        uncertified_by_python += (
            start + uncompiled.resolve_certified(scale, bits[part], by_python[part])
        ).tolist()
    assert uncertified == uncertified_by_python
    assert len(uncertified) < 20
    np.testing.assert_array_equal(drawn, by_python)


def test_wrong_compiled_code_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code may come from another machine's cache: it is checked before the first draw."""

    def faulty(*arguments: Any) -> int:
        arguments[6][7] += 1
        return 0

    monkeypatch.setattr("gramercy.mechanisms.sampling.inverse_cdf_table.compiled", lambda _: faulty)
    table = InverseCdfTable(inverse_cdf_table(NORMAL).tails, inverse_cdf_table(NORMAL).series)
    bits = np.arange(1 << 15)
    for _ in range(2):
        with raises(families.SAMPLER):
            table.resolve_certified(3e9, bits, np.zeros_like(bits))


def discrete_cdf(sigma: float) -> Cdf:
    reach = math.ceil(12 * sigma + 2)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    below = np.concatenate([[0], np.cumsum(weights / weights.sum()), [1]])
    return lambda x: below[np.clip(np.ceil(x).astype(int) + reach, 0, 2 * reach + 2)]


@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.5, 300.0, 16384.0])
def test_discrete_gaussian_draws_have_their_law(sigma: float) -> None:
    cdf = discrete_cdf(sigma)
    assert not rejected(lambda size: discrete_gaussian(sigma, size), cdf, sigma)
    assert has_moments(discrete_gaussian(sigma, DRAWS), discrete_gaussian_variance(sigma))


@pytest.mark.parametrize("sigma", [0.3, 7.5, 16384.0])
@pytest.mark.parametrize("wrong", [0.97, 1.03])
def test_discrete_law_test_rejects_wrong_sigmas(sigma: float, wrong: float) -> None:
    drawn_at = min(sigma, 16384.0 / wrong) * wrong
    claimed = discrete_cdf(drawn_at / wrong)
    assert rejected(lambda size: discrete_gaussian(drawn_at, size), claimed, sigma)


def discrete_tail(mp: MPContext, sigma: float, m: int) -> Any:
    """P[|X| >= m], summed to the working precision."""
    reach = int(sigma * math.sqrt(1.4 * mp.prec)) + 2
    weights = [mp.exp(-(mp.mpf(j) ** 2) / (2 * mp.mpf(sigma) ** 2)) for j in range(reach)]
    return 2 * mp.fsum(weights[m:]) / (2 * mp.fsum(weights) - 1)


@pytest.mark.parametrize(
    ("sigma", "m"), [(0.3, 1), (0.3, 2), (1.0, 4), (7.5, 1), (7.5, 40), (40.25, 50)]
)
def test_ambiguous_discrete_draws_are_decided_by_more_bits(sigma: float, m: int) -> None:
    """At a tail probability, more bits decide between m - 1 and m, however many are needed."""
    mp = MPContext()
    mp.prec = 600
    bits = int(mp.floor(mp.ldexp(discrete_tail(mp, sigma, m), 63 + 5 * 64)))
    k = bits >> 5 * 64
    table = discrete.tail_table(sigma)
    assert not table.resolve_certified(np.array([k], dtype=np.uint64))[1]
    words = [bits >> 64 * n & ((1 << 64) - 1) for n in range(5)]
    for count in (1, 5):
        for step, expected in ((-2, m), (2, m - 1)):
            appended = words[5 - count :]
            appended[0] += step
            assert table.resolve_exact(k, appended.pop) == expected
            assert not appended
    for next_to, expected in ((k - 1, m), (k + 1, m - 1)):
        assert table.resolve_exact(next_to, list[int]().pop) == expected
        certified_next = table.resolve_certified(np.array([next_to], dtype=np.uint64))
        assert certified_next == (expected, True)


@pytest.mark.parametrize("sigma", [0.0625, 0.8, 33.3])
def test_deep_tail_discrete_draws_are_exact(sigma: float) -> None:
    """Tails are not truncated: 63 zero bits and 448 more give the exact integer."""
    mp = MPContext()
    mp.prec = 700
    words = [1 << 63, 0, 0, 0, 0, 0, 0, 0]
    drawn = discrete.tail_table(sigma).resolve_exact(0, words.pop)
    assert not words
    v = mp.ldexp(1, -63 - 7 * 64 - 1)
    assert discrete_tail(mp, sigma, drawn) > v > discrete_tail(mp, sigma, drawn + 1)


@pytest.mark.parametrize("sigma", [0.0625, 0.1, 0.3, 0.9, 2.0, 7.5, 300.0])
def test_discrete_variance_equals_exact_sum(sigma: float) -> None:
    """Against the sum by definition; sigma^2 is accurate only from sigma = 2."""
    mp = MPContext()
    mp.prec = 120
    j = [mp.mpf(i) for i in range(int(14 * sigma) + 3)]
    weights = [mp.exp(-(i**2) / (2 * mp.mpf(sigma) ** 2)) for i in j]
    squares = mp.fsum(i**2 * w for i, w in zip(j, weights, strict=True))
    variance = discrete_gaussian_variance(sigma)
    assert variance == pytest.approx(float(2 * squares / (2 * mp.fsum(weights) - 1)), rel=4e-16)
    assert (variance == pytest.approx(sigma**2, rel=1e-14)) == (sigma >= 2)
    assert variance <= sigma**2


def test_gamma_formulas_agree_at_the_switch() -> None:
    """Above 10^5, to a billionth of a standard deviation, in both tails."""
    z = np.linspace(-9, 9, 37)
    tail = special.ndtr(-np.abs(z))
    exact = np.where(z < 0, special.gammaincinv(2e5, tail), special.gammainccinv(2e5, tail))
    assert _cornish_fisher_gamma(2e5, z) == pytest.approx(exact, abs=1e-9 * math.sqrt(2e5))


def test_floating_point_draws_have_their_law() -> None:
    """Each test has a false alarm in 1e8 runs, and detects an error of 3 %.

    That error moves the distribution function by 0.0073: 4 standard units of 300,000 draws, where
    2.2 are rejected.
    """
    size = at_scale(300_000, 1_000_000)

    def looks_like(draw: Callable[[], np.ndarray], law: Any) -> bool:
        return any(stats.kstest(draw(), law.cdf).pvalue > 1e-4 for _ in range(2))

    assert looks_like(lambda: gaussian(size), stats.norm)
    assert not looks_like(lambda: 1.03 * gaussian(size), stats.norm)
    for shape in (0.05, 0.5, 3.0, 712.5, 2e5):
        assert looks_like(lambda shape=shape: gamma(shape, size // 10), stats.gamma(shape))
    assert not looks_like(lambda: gamma(3.2, size // 10), stats.gamma(3.0))


def distinguishable(outputs: np.ndarray, step: float) -> bool:
    """Whether the low bits of published numbers depend on the data.

    Mironov's attack: the doubles that x + noise can hit depend on x. The attacker asks which
    outputs are multiples of the public step; if all are, for every x, nothing is revealed.
    """
    units = outputs / step
    return bool((np.abs(units - np.rint(units)) > 1e-3).any())


def test_low_bits_reveal_nothing() -> None:
    """Published numbers are on one lattice for any data; plain floating-point noise is not."""
    p, rng = 90, np.random.default_rng(2)
    mechanism = Gaussian.calibrated(p=p, n=100, neighbours="replace-one", epsilon=1.0, delta=1e-6)
    lattice = mechanism.lattice
    rows = rng.normal(size=(p, 100))
    rows /= np.linalg.norm(rows, axis=0)
    for table in (rows, rows[:, 1:]):
        gram = ExactGram(lattice)
        gram.add(integer_rows(table, lattice))
        published = mechanism.perturb(gram.matrix(), 100).gram / lattice.divisor
        assert published.size > 8000
        assert not distinguishable(published, 1 / lattice.divisor)
        naive = table @ table.T + rng.normal(size=(p, p)) * mechanism.scale
        assert distinguishable(naive, 1 / lattice.divisor)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**60])
def test_invalid_scales_are_refused(scale: float) -> None:
    """Even if nothing is drawn."""
    for size in (0, 1):
        for draw in (rounded_gaussian, rounded_laplace):
            with raises(families.ARGUMENT, argument="scale"):
                draw(scale, size)
        with raises(families.ARGUMENT, argument="sigma"):
            discrete_gaussian(scale, size)
        with raises(families.ARGUMENT, argument="shape"):
            gamma(scale, size)
    with raises(families.ARGUMENT, argument="sigma"):
        discrete_gaussian_variance(scale)


@pytest.mark.parametrize("size", [0, 1, (1 << 15) + 1])
def test_draws_are_complete_for_any_size(size: int) -> None:
    """The largest size is one more than a chunk."""
    for drawn in (rounded_laplace(9e9, size), gaussian(size), gamma(3.0, size)):
        assert size >= np.unique(drawn).size >= 0.999 * size
