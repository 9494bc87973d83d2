"""Draws from known bits: sign, magnitude and place of each are exact; keys are random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import special

from gramercy.mechanisms.sampling import discrete, sampler
from gramercy.mechanisms.sampling.inverse_cdf_table import inverse_cdf_table
from gramercy.mechanisms.sampling.rounding import LAPLACE, NORMAL, Law, resolve_exact
from gramercy.schemas import families
from tests.support.problems import raises

NEGATIVE = 1 << 63
DECIDED = (1 << 62) + 12345  # 63 bits that determine the integer
UNDECIDED = 0  # the deepest tail: further bits are always drawn
NEXT = [0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x94D049BB133111EB]
FIRST = [UNDECIDED | NEGATIVE, DECIDED, UNDECIDED, DECIDED | NEGATIVE, DECIDED, UNDECIDED]


@pytest.fixture(params=[1 << 15, 2], ids=["one chunk", "chunks of two"])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "_CHUNK", request.param)
    monkeypatch.setattr(sampler, "cores", lambda: 1)  # chunks take their bits in order


def give_bits(monkeypatch: pytest.MonkeyPatch, *words: int, length: int = 8) -> Iterator[int]:
    """Let the operating system's generator return these words of 8 bytes, and no others."""
    left = iter(words)

    def urandom(size: int) -> bytes:
        count, rest = divmod(size, length)
        assert rest == 0
        return b"".join(next(left).to_bytes(length, "little") for _ in range(count))

    monkeypatch.setattr(sampler, "os", SimpleNamespace(urandom=urandom))
    return left


def no_further_bits() -> int:
    pytest.fail("these bits determine the integer")


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("scale", [2.5, 3e9])
@pytest.mark.parametrize(
    ("draw", "law"), [(sampler.rounded_gaussian, NORMAL), (sampler.rounded_laplace, LAPLACE)]
)
def test_rounded_draws_are_decided_by_their_bits(
    draw: Callable[[float, int], Any], law: Law, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = give_bits(monkeypatch, *FIRST, *NEXT)
    drawn = draw(scale, len(FIRST)).tolist()
    assert next(left, None) is None
    deep = [resolve_exact(law, scale, UNDECIDED, [word].pop) for word in NEXT]
    shallow = resolve_exact(law, scale, DECIDED, no_further_bits)
    assert drawn == [-deep[0], shallow, deep[1], -shallow, shallow, deep[2]]
    assert min(deep) > shallow > 0


@pytest.mark.parametrize("ends", ["above", "below"])
@pytest.mark.parametrize("inside", [0.0, 0.5, 1.0])
def test_integer_is_proven_only_outside_both_intervals(ends: str, inside: float) -> None:
    """A made-up law: with 64 bits, an end of the draw is in the interval that a tail is in.

    The integer is 1, between the tails at 1.5 and at 0.5; 128 bits have narrower intervals.
    """
    k = (1 << 61) - (ends == "below")  # the end is a double

    def tail(iv: Any, x: Any) -> Any:
        at_above = x == iv.mpf(1.5)
        assert at_above or x == iv.mpf(0.5)
        if iv.prec > 64 + 80 or at_above != (ends == "above"):
            return iv.mpf(0.01 if at_above else 0.4)
        end = (k + (0 if at_above else 1)) / 2**64
        width = 1e-3
        return iv.mpf([end - inside * width, end + (1 - inside) * width])

    law = replace(NORMAL, tail=tail, inverse=lambda mp, _: mp.mpf(1))
    words = [5, 5]
    assert resolve_exact(law, 1.0, k, words.pop) == 1
    proven_at_once = inside == (1.0 if ends == "above" else 0.0)  # the ends touch
    assert len(words) == (2 if proven_at_once else 1)


@pytest.mark.usefixtures("chunk")
def test_discrete_draws_are_decided_by_their_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    left = give_bits(monkeypatch, *FIRST, *NEXT)
    drawn = sampler.discrete_gaussian(40.25, len(FIRST)).tolist()
    assert next(left, None) is None
    table = discrete.tail_table(40.25)
    deep = [table.resolve_exact(UNDECIDED, [word].pop) for word in NEXT]
    shallow = table.resolve_exact(DECIDED, no_further_bits)
    assert drawn == [-deep[0], shallow, deep[1], -shallow, shallow, deep[2]]
    assert min(deep) > shallow > 0


@pytest.mark.usefixtures("chunk")
def test_doubles_are_quantiles_of_their_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words below 2^63 are the upper tail."""
    words = [DECIDED, DECIDED | NEGATIVE, 3, NEGATIVE | 3, NEGATIVE | 1 << 60]
    tails = [(k % NEGATIVE + 0.5) / 2**64 for k in words]
    lower = np.array(words) >= NEGATIVE
    give_bits(monkeypatch, *words)
    quantiles = -special.ndtri(tails)
    assert sampler.gaussian(5) == pytest.approx(np.where(lower, -quantiles, quantiles), rel=1e-15)
    for shape in (0.7, 50.0, 1e5):
        give_bits(monkeypatch, *words)
        expected = [
            (special.gammaincinv if low else special.gammainccinv)(shape, tail)
            for low, tail in zip(lower, tails, strict=True)
        ]
        assert sampler.gamma(shape, 5) == pytest.approx(expected, rel=1e-15)


def test_uniform_integers_reject_what_would_be_uneven(monkeypatch: pytest.MonkeyPatch) -> None:
    """2^32 = 1 modulo 3, so the largest word is drawn again, and only it."""
    last = (1 << 32) - 1
    left = give_bits(monkeypatch, last, 5, last, last - 1, last - 2, 4, length=4)
    assert sampler.uniform_integers(3, 3).tolist() == [2, 2, 1]
    assert list(left) == [4]
    most = (1 << 32) - 1
    give_bits(monkeypatch, last, 0, length=4)  # 2^32 = 1 modulo 2^32 - 1 too
    assert sampler.uniform_integers(most, 1).tolist() == [0]
    give_bits(monkeypatch, last, length=4)
    assert sampler.uniform_integers(1, 1).tolist() == [0]
    for count in (-1, 0, 1 << 32):
        with raises(families.ARGUMENT, argument="count"):
            sampler.uniform_integers(count, 1)


def test_every_key_has_a_high_and_a_low_word(monkeypatch: pytest.MonkeyPatch) -> None:
    give_bits(monkeypatch, *range(6))
    assert sampler.random_keys(3).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_largest_scale_of_an_integer_draw() -> None:
    for draw in (sampler.rounded_gaussian, sampler.rounded_laplace):
        with raises(families.ARGUMENT, argument="scale"):
            draw(2.0**56, 0)
        assert draw(2.0**56 * (1 - 2.0**-53), 1).shape == (1,)


def test_largest_shape_of_a_gamma_draw() -> None:
    for shape in (2.0**50 * (1 + 2.0**-52), 0.0):
        with raises(families.ARGUMENT, argument="shape"):
            sampler.gamma(shape, 1)
    drawn = float(sampler.gamma(2.0**50, 1)[0])
    assert abs(drawn / 2.0**25 - 2.0**25) < 9


def run_self_test(monkeypatch: pytest.MonkeyPatch, law: Law, fault: Callable[..., Any]) -> None:
    """The test before the first charge, with a table of one law that errs."""

    def table(given: Law) -> Any:
        exact = inverse_cdf_table(given).resolve_certified
        return SimpleNamespace(resolve_certified=partial(fault, exact) if given is law else exact)

    monkeypatch.setattr(sampler, "inverse_cdf_table", table)
    sampler.self_test.__wrapped__()


@pytest.mark.parametrize("law", [NORMAL, LAPLACE], ids=["normal", "laplace"])
@pytest.mark.parametrize("fraction", [6e-7, 0.02, 0.49999])
@pytest.mark.parametrize("wrong_at", [37.5, pytest.param(3e9, marks=pytest.mark.slow)])
def test_self_test_finds_one_wrong_integer(
    law: Law, fraction: float, wrong_at: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(exact: Any, scale: float, bits: Any, drawn: Any) -> Any:
        left = exact(scale, bits, drawn)
        if scale == wrong_at:
            drawn[np.argmin(np.abs(bits - fraction * 2.0**64))] += 1
        return left

    with raises(families.SAMPLER):
        run_self_test(monkeypatch, law, fault)


@pytest.mark.slow
def test_self_test_finds_draws_that_should_have_been_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def undecided(exact: Any, scale: float, bits: Any, drawn: Any) -> Any:
        exact(scale, bits, drawn)
        return np.array([0])

    with monkeypatch.context() as patch, raises(families.SAMPLER):
        run_self_test(patch, LAPLACE, undecided)

    def needs_more_bits(*arguments: Any) -> int:
        return int(arguments[-1]())

    monkeypatch.setattr(sampler, "resolve_exact", needs_more_bits)
    with raises(families.SAMPLER):
        sampler.self_test.__wrapped__()


def test_bits_of_random_keys_are_balanced() -> None:
    keys = sampler.random_keys(5_000)
    assert (keys.shape, keys.dtype) == ((2, 5_000), np.uint64)
    bits = np.stack([(half >> np.uint64(k)) & np.uint64(1) for half in keys for k in range(64)])
    shares = bits.astype(float) @ bits.T.astype(float) / bits.shape[1]
    sd = np.sqrt(1 / bits.shape[1])
    assert abs(np.diag(shares) - 0.5).max() < 0.5 * 8 * sd
    pairs = shares[~np.eye(128, dtype=bool)]  # both bits are 1 in a quarter of the keys
    assert abs(pairs - 0.25).max() < 0.44 * 8 * sd


def test_no_keys_for_no_rows() -> None:
    assert sampler.random_keys(0).shape == (2, 0)
