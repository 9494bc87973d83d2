"""Weights of prefix sums, their exact encoding, and the noise of what is decoded."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from gramercy.common.prefix_sums import UNIT, PrefixSums
from gramercy.mechanisms.gaussian import Gaussian, GaussianIid
from gramercy.mechanisms.mechanism import PublicParameters
from gramercy.schemas.neighbours import Neighbours


def test_every_row_has_about_the_same_guarantee() -> None:
    for steps in (1, 2, 52, 54, 366):
        weights = PrefixSums(steps).weights
        norms = (weights * weights).sum(axis=0)
        assert norms.min() > 0.998 * norms.max()
        assert PrefixSums(steps).squared_norm() == norms.max()
        assert (np.triu(weights, 1) == 0).all()
        assert (np.diag(weights) >= UNIT).all()


def test_encoding_is_exact_beyond_64_bits() -> None:
    sums = [np.array([3 * 10**18 + k, -(10**18)], dtype=object) for k in range(30)]
    encoded = PrefixSums(52).encode(sums)
    row = PrefixSums(52).weights[29]
    assert encoded[0] == sum(int(w) * int(x[0]) for w, x in zip(row, sums, strict=False))
    assert encoded[0] > 1 << 64


def test_decoding_inverts_encoding() -> None:
    prefix = PrefixSums(52)
    sums = [np.array([10**19 + 7 * k, k**3], dtype=object) for k in range(52)]
    decoded = prefix.decode([prefix.encode(sums[: t + 1]) for t in range(52)])
    for each, exact in zip(decoded, sums, strict=True):
        assert np.allclose(each, exact.astype(float), rtol=1e-13, atol=1e4)  # of 1e19


def test_decoding_agrees_with_exact_fractions() -> None:
    prefix, rng = PrefixSums(8), np.random.default_rng(1)
    published = [np.array([int(x)], dtype=object) for x in rng.integers(-(1 << 62), 1 << 62, 8)]
    exact: list[Fraction] = []
    for row, each in zip(prefix.weights.tolist(), published, strict=True):
        rest = Fraction(int(each[0])) - sum(w * x for w, x in zip(row, exact, strict=False))
        exact.append(rest / row[len(exact)])
    decoded = [float(each[0]) for each in prefix.decode(published)]
    assert decoded == pytest.approx([float(x) for x in exact], rel=1e-13)


def test_noise_of_disjoint_windows_is_correlated_as_stated() -> None:
    prefix, rng = PrefixSums(13), np.random.default_rng(2)
    decoded = prefix.decode([rng.standard_normal(20_000) for _ in range(13)])
    early, late = np.sum(decoded[:6], axis=0), np.sum(decoded[6:], axis=0)
    expected = prefix.covariance((0, 6), (6, 13))
    assert expected < 0
    assert np.cov(early, late)[0, 1] == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("mechanism", [Gaussian, GaussianIid])
def test_a_series_is_charged_for_all_sums_of_a_row(
    mechanism: type[Gaussian], neighbours: Neighbours
) -> None:
    """Each sum moves by the row's weight; together, by at most mu times the noise."""
    counts = neighbours is Neighbours.ADD_REMOVE
    public = PublicParameters(4, 10_000, neighbours, counts, series=PrefixSums(52))
    spec = mechanism.spec.model_validate({"name": mechanism.name, "mu": 0.5, "delta": 1e-6})
    series = mechanism.from_spec(spec, public)
    once = mechanism.from_spec(spec, replace(public, series=None))
    assert series.guarantee.mu <= 0.5
    norm = (PrefixSums(52).weights[:, 30] ** 2).sum() ** 0.5 / UNIT
    assert series.scale / once.scale == pytest.approx(norm, rel=1e-3)
    drawn = [series.perturb(np.zeros((4, 4), dtype=object), 0) for _ in range(400)]
    sd = np.std([each.gram[0, 1] for each in drawn]) / (series.lattice.divisor * UNIT)
    assert sd == pytest.approx(series.law.sd_off_diagonal, rel=0.2)
    if counts:
        assert np.std([each.rows for each in drawn]) == pytest.approx(
            UNIT * (series.sd_rows or 0), rel=0.2
        )


def test_shares_of_rows_are_those_of_readings_that_differ() -> None:
    """A row of step 3 that is added at step 5, and one that is deleted then, decoded directly."""
    sums = PrefixSums(9)
    for is_late in (True, False):
        encoded = []
        for reading in range(1, 10):
            is_there = reading >= 3 and (reading >= 5) == is_late
            steps = [np.array([int(is_there and step == 3)]) for step in range(1, reading + 1)]
            encoded.append(sums.encode(steps))
        found = np.cumsum([float(each[0]) for each in sums.decode(encoded)])
        share = sums.shares(3, 5)
        np.testing.assert_allclose(found[4:], share[4:] if is_late else 1 - share[4:], atol=1e-12)
    assert sums.shares(3, 3) == pytest.approx([0, 0, 1, 1, 1, 1, 1, 1, 1])
