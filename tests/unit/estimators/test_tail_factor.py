"""The factor for heavy tails: from published lengths, relative to Gaussian rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators.uncertainty.moment_errors import tail_factor
from gramercy.schemas.evidence import ROW_LENGTHS, Evidence, Histogram
from tests.support.simulated_release import declared_columns, released

Array = NDArray[np.float64]
EDGES = 2 ** (np.arange(26) / 4)  # quarter octaves, as in releases
RADIUS = 9.0  # the largest that is chosen for five columns


def rows(tails: float | None, mean: float = 0.0, number: int = 20_000) -> Array:
    """Four columns; with tails, Student's t distribution with so many degrees of freedom."""
    rng = np.random.default_rng(6)
    table = rng.normal(size=(number, 4))
    if tails is not None:
        table *= np.sqrt(tails / rng.chisquare(tails, size=number))[:, None]
    moved: Array = table + mean
    return moved


def with_lengths(table: Array, sd: float, seed: int = 0) -> Evidence:
    """A release without noise in its matrix; the histogram of lengths has noise of this size."""
    columns = [
        each.model_copy(update={"scale": 1.0}) for each in declared_columns([(-99.0, 99.0)] * 4)
    ]
    counts = np.histogram(np.hypot(1.0, np.linalg.norm(table, axis=1)), [*EDGES, np.inf])[0]
    noise = np.rint(np.random.default_rng(seed).normal(size=len(EDGES)) * sd).astype(np.int64)
    histogram = Histogram(
        4,
        ROW_LENGTHS,
        EDGES,
        np.append(EDGES[1:], np.nan),
        (None,) * len(EDGES),
        counts + noise,
        sd,
    )
    return replace(released(table, columns, RADIUS), histograms=(histogram,))


@pytest.mark.parametrize("mean", [0.0, 2.0])
def test_gaussian_rows_have_the_factor_one_wherever_their_means_are(mean: float) -> None:
    assert tail_factor(with_lengths(rows(None, mean), 1.0)) == pytest.approx(1.0, abs=0.2)


def test_it_is_the_variance_of_squared_lengths_over_that_of_gaussian_rows() -> None:
    table = rows(8.0)
    evidence = with_lengths(table, 1.0)
    exact = ((table**2).sum(axis=1)).var() / (2 * (np.cov(table.T) ** 2).sum())
    assert exact > 1.8
    assert tail_factor(evidence) == pytest.approx(exact, rel=0.1)
    assert tail_factor(replace(evidence, histograms=())) == 1.0


@pytest.mark.parametrize(("tails", "least"), [(None, 1.0), (4.0, 3.2)])
def test_noise_in_the_counts_of_long_rows_does_not_make_it_larger(
    tails: float | None, least: float
) -> None:
    """Most of the bins are empty, and noise in them would count as rows of the largest length."""
    table = rows(tails)
    exact = tail_factor(with_lengths(table, 1e-9))
    noisy = [tail_factor(with_lengths(table, 20.0, seed)) for seed in range(30)]
    assert least <= np.mean(noisy) <= 1.05 * exact


def test_lengths_within_the_noise_say_nothing() -> None:
    evidence = with_lengths(rows(4.0, number=100), 1.0)
    (lengths,) = evidence.histograms
    hidden = replace(lengths, count=np.zeros_like(lengths.count))
    assert tail_factor(replace(evidence, histograms=(hidden,))) == 1.0
