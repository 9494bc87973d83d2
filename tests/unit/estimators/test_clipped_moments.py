"""Moments of releases that publish what clipping took away: groups, pools and sampling errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.missing_cells import Presence
from gramercy.estimators.table_comparison import DEVIATION, measure, numbers
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.column_kurtosis import column_kurtosis
from gramercy.estimators.uncertainty.entries import correlation
from gramercy.estimators.uncertainty.table_entries import table_deviations
from gramercy.schemas.evidence import ROW_LENGTHS, Evidence
from tests.support.kinds_of_tables import gaussian
from tests.support.private_release import level_column, numeric_columns
from tests.support.private_release import privately_scaled as in_memory
from tests.support.simulated_release import privately_scaled

Array = NDArray[np.float64]


def as_group(release: Evidence) -> Evidence:
    """The release as if it were one of four groups with equal rows: lengths are of all rows."""
    (lengths,) = (each for each in release.histograms if each.column == ROW_LENGTHS)
    of_all = replace(lengths, count=4 * lengths.count)
    return replace(release, histograms=(of_all,), declared=None)


def deviations(release: Evidence) -> tuple[Array, Array, Array]:
    """Estimate and bounds of every standard deviation."""
    lines, found = numbers(release), measure(release)
    of_kind = lines["kind"].eq(DEVIATION).to_numpy()
    return found.estimate[of_kind], found.lower[of_kind], found.upper[of_kind]


@pytest.mark.slow
@pytest.mark.parametrize("whitened", [False, True])
def test_noise_of_moments_is_as_stated(whitened: bool) -> None:
    """By repetition, of columns that have a factor in common."""
    shared = np.random.default_rng(1).normal(size=(20_000, 8))
    table = 0.3 * shared + shared[:, :1] + np.linspace(0, 2, 8)
    stream, found = np.random.default_rng(2), []
    scaled = in_memory(table, numeric_columns([(-9.0, 9.0)] * 8), 1.0, stream, whitened=whitened)
    assert scaled is not None
    for _ in range(50):
        moments = clipped_moments(scaled.release(stream))
        assert moments is not None
        found.append(moments)
    assert (scaled.release(stream).metric_radius is not None) == whitened
    for of, more in (("mean", 0.0), ("variance", 1.0)):
        noise, bias = (
            np.array([getattr(each, f"{of}_{name}") for each in found]).mean(axis=0)
            for name in ("noise", "bias")
        )
        stated = np.hypot(noise, more * bias / 1.96)
        spread = np.std([getattr(each, of) for each in found], axis=0)
        assert (spread < 1.25 * stated).all()
        assert (spread > 0.6 * stated).all()
    pairs = np.triu_indices(8, 1)
    noise, bias = (
        np.array([getattr(each, f"correlation_{name}")[pairs] for each in found]).mean(axis=0)
        for name in ("noise", "bias")
    )
    spread = np.std([each.correlation[pairs] for each in found], axis=0)
    assert (spread < 1.25 * np.hypot(noise, bias / 1.96)).all()
    assert 0.5 < np.median(spread / noise) < 1.25


def test_groups_have_the_moments_of_releases() -> None:
    stream = np.random.default_rng(1)
    table = stream.normal(size=(20_000, 6)) / np.sqrt(stream.chisquare(4, (20_000, 1)) / 4)
    release = privately_scaled(table, [(-50.0, 50.0)] * 6, 1.0)
    estimate, lower, upper = deviations(release)
    of_group, least, most = deviations(as_group(release))
    assert np.abs(of_group / estimate - 1).max() < 0.06
    assert (least < 1.03 * table.std(axis=0)).all()
    assert (most > 0.95 * table.std(axis=0)).all()
    assert np.mean((most - least) / (upper - lower)) < 2


@pytest.mark.slow
def test_rows_of_one_length_have_no_long_tail() -> None:
    """Columns of two modes: nothing is lost, and the noise of that is not a column's share."""
    stream = np.random.default_rng(3)
    modes = stream.normal(size=(20_000, 10)) > 0.3
    table = modes + 0.05 * stream.normal(size=modes.shape)
    wide = []
    for seed in range(6):
        moments = clipped_moments(privately_scaled(table, [(-1.0, 2.0)] * 10, 1.0, seed))
        assert moments is not None
        wide.append(moments.variance_shift[1] / moments.variance)
    assert np.median(wide) < 0.02
    assert np.max(wide) < 0.2


def test_group_with_all_the_tails_is_covered() -> None:
    """Where the lengths of all rows say less than the group's own lost moments."""
    stream = np.random.default_rng(2)
    table = stream.normal(size=(20_000, 6))
    release = privately_scaled(table, [(-50.0, 50.0)] * 6, 1.0)
    assert release.lost is not None
    assert release.radius is not None
    more = release.lost.matrix + 0.3 * np.diag([0.0, *[1.0] * 6])
    tailed = as_group(replace(release, lost=replace(release.lost, matrix=more)))
    squares = [moments.variance for each in (release, tailed) if (moments := clipped_moments(each))]
    assert (squares[1] > squares[0] + 0.1).all()


def test_tails_of_all_rows_may_be_in_one_group() -> None:
    stream = np.random.default_rng(3)
    table = np.exp(1.5 * stream.normal(size=(20_000, 5)))
    release = privately_scaled(table, [(0.0, 1e6)] * 5, 1.0)
    group = replace(as_group(release), of_all=release.histograms)
    _, _, most = deviations(group)
    _, _, without = deviations(as_group(release))
    estimate, _, of_release = deviations(release)
    assert (most > 1.02 * without).all()
    assert (most > of_release).all()
    assert (estimate < most).all()


def two_values(cells: Array) -> Array:
    return np.where(cells > 0, 1.0, 0.0) + 0.05 * cells


@pytest.mark.parametrize(
    ("cells", "least", "most"),
    [(norm.cdf, 1.6, 2.0), (two_values, 1.0, 2.5), (np.array, 2.4, 3.9), (np.exp, 9.0, 140.0)],
)
def test_kurtosis_is_that_of_the_cells(
    cells: Callable[[Array], Array], least: float, most: float
) -> None:
    table = cells(np.random.default_rng(3).normal(size=(20_000, 5)))
    release = privately_scaled(table, [(-100.0, 100.0)] * 5, 1.0)
    moments = clipped_moments(release)
    assert moments is not None
    found = column_kurtosis(release, moments.variance)
    assert (found > least).all()
    assert (found < most).all()


@pytest.mark.slow
def test_bias_spans_correlations_with_and_without_what_was_lost() -> None:
    """A pair that only the tail correlates: what is estimated lies half way."""
    table = np.random.default_rng(4).normal(size=(200_000, 6))
    release = privately_scaled(table, [(-50.0, 50.0)] * 6, 4.0)
    assert release.lost is not None
    pair = np.zeros((7, 7))
    pair[1:3, 1:3] = 0.5
    tailed = replace(release, lost=replace(release.lost, matrix=release.lost.matrix + pair))
    plain, moments = clipped_moments(release), clipped_moments(tailed)
    assert plain is not None
    assert moments is not None
    moved = moments.correlation[0, 1] - plain.correlation[0, 1]
    assert moved > 0.1
    assert moments.correlation_bias[0, 1] > 0.9 * moved
    assert plain.correlation_bias.max() < 0.02


def test_noise_of_shares_is_symmetric_to_the_last_digit() -> None:
    """Matrices of estimates are read back only if they are symmetric."""
    stream = np.random.default_rng(8)

    def symmetric() -> Array:
        half = stream.random((40, 40))
        return (half + half.T) / 2

    shares = Presence(symmetric(), symmetric(), stream.random((40, 40)), stream.random((40, 40)))
    noise = shares.noise(symmetric(), stream.normal(size=40))
    np.testing.assert_array_equal(noise, noise.T)


def with_levels(rows: int, shares: Sequence[float], seed: int) -> tuple[Array, Evidence]:
    """A number of a column of levels by its ranks, and five normal columns; and a release."""
    stream = np.random.default_rng(seed)
    cells = gaussian(stream, rows, 6)
    cells[:, 0] = np.searchsorted(np.cumsum(shares), norm.cdf(cells[:, 0]))
    columns = (level_column("ward", len(shares)), *numeric_columns([(-50.0, 50.0)] * 5))
    scaled = in_memory(cells, columns, 1.0, stream)
    assert scaled is not None
    return cells, scaled.release(stream)


@pytest.mark.slow
@pytest.mark.parametrize("shares", [(0.7, 0.3), (0.6, 0.35, 0.05)])
def test_correlations_of_the_levels_of_a_column_follow_from_their_shares(
    shares: tuple[float, ...],
) -> None:
    for seed in range(4):
        cells, release = with_levels(5000, shares, seed)
        indicators = cells[:, :1] == np.arange(len(shares))
        truth = np.corrcoef(indicators.T)
        found = correlation(release)
        own = np.s_[: len(shares), : len(shares)]
        assert np.abs(found.estimate[own] - truth).max() < 0.03
        lower, upper = (each[own] for each in found.interval(0.999, "table"))
        assert ((lower <= truth + 1e-9) & (truth - 1e-9 <= upper)).all()
        units = table_units(release)
        assert units is not None
        deviations = table_deviations(release, units).estimate[: len(shares)]
        np.testing.assert_allclose(deviations, indicators.std(axis=0), rtol=0.15)
        assert (np.diag(found.estimate) == 1).all()
        np.testing.assert_array_equal(found.estimate, found.estimate.T)


def test_lengths_that_the_lost_matrix_contradicts_widen_no_interval() -> None:
    """Noise now and then shows a few rows far longer than all others."""
    cells = np.random.default_rng(6).normal(size=(20_000, 6))
    release = privately_scaled(cells, [(-50.0, 50.0)] * 6, 1.0, seed=2)
    assert release.lost is not None
    counts = [
        each.count + (each.column == ROW_LENGTHS) * round(6 * each.sd) * (at_end(each.count, 2))
        for each in release.histograms
    ]
    histograms = tuple(
        replace(each, count=count) for each, count in zip(release.histograms, counts, strict=True)
    )
    longer = replace(release, histograms=histograms)
    nothing = replace(release.lost, matrix=0 * release.lost.matrix, sd=1e-4)
    contradicted = replace(longer, lost=nothing)
    found = [clipped_moments(each) for each in (longer, contradicted)]
    bias = [each.correlation_bias.max() for each in found if each]
    assert bias[0] > 0.1
    assert bias[1] < 0.05


def at_end(counts: NDArray[np.int64], place: int) -> NDArray[np.int64]:
    """One at a place from the end."""
    return (np.arange(len(counts)) == len(counts) - place).astype(np.int64)
