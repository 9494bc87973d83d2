"""Estimates from matrices that were drawn in the metric of a pilot matrix."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.estimators.about_means import about_means
from gramercy.estimators.components import Components
from gramercy.estimators.input_matrix import with_diagonal_floor
from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.pooling.pool import pooled
from gramercy.estimators.ridge import Ridge
from gramercy.estimators.table_comparison import comparable, over_time
from gramercy.estimators.tuning.cross_validation import training_evidence
from gramercy.estimators.tuning.stability import redraws
from gramercy.reports.reader_notes import spectrum_of
from gramercy.schemas.evidence import Evidence
from tests.support.noisy_matrices import ar
from tests.support.private_release import (
    Scaled,
    numeric_columns,
    privately_scaled,
)

Array = NDArray[np.float64]

ROWS, COLUMNS, STRENGTH, EPSILON = 20_000, 12, 0.97, 0.5
TRUTH = ar(COLUMNS, STRENGTH)


@cache
def scaled(seed: int = 0, folds: int = 1, whitened: bool = True) -> Scaled:
    """An autoregressive table of Gaussian rows, whose small directions plain noise hides."""
    stream = np.random.default_rng(seed)
    table = stream.normal(size=(ROWS, COLUMNS)) @ np.linalg.cholesky(TRUTH).T
    found = privately_scaled(
        table, numeric_columns([(-8.0, 8.0)] * COLUMNS), EPSILON, stream, folds, whitened=whitened
    )
    assert found is not None
    return found


@cache
def release(seed: int = 0, folds: int = 1) -> Evidence:
    evidence = scaled(seed, folds).release(np.random.default_rng([seed, 1]))
    assert evidence.terms
    return evidence


def stein_loss(precision: Array, evidence: Evidence) -> float:
    """Of a precision matrix with the intercept first; it does not depend on its size."""
    scale = np.array([column.scale for column in evidence.columns if column is not None])
    product = precision[1:, 1:] @ (TRUTH / np.outer(scale, scale))
    values = np.linalg.eigvals(product * (COLUMNS / np.trace(product))).real
    return float((values - np.log(values) - 1).sum())


def test_ridge_resolves_the_directions_that_the_noise_spares() -> None:
    automatic = Ridge().fit(release())
    smaller = Ridge(penalty=automatic.tuning["penalty"] / 100).fit(release())
    loss = stein_loss(automatic.matrix, release())
    assert loss < 1.03 * stein_loss(smaller.matrix, release())


def test_components_count_by_the_noise_in_their_own_directions() -> None:
    found = Components().fit(release())
    assert found.tuning["components"] == COLUMNS
    assert found.tables["loadings"]["loading"].notna().mean() > 0.3
    assert found.tuning["noise_edge"] < np.linalg.eigvalsh(TRUTH)[0]


def smallest(evidence: Evidence) -> tuple[float, Array]:
    """The smallest eigenvalue about means of the denoised matrix, and its eigenvector."""
    values, vectors = np.linalg.eigh(about_means(evidence).evidence.repaired)
    return float(values[0]), vectors[:, 0]


def test_floor_is_small_where_the_noise_is_small() -> None:
    value, vector = smallest(release())
    centred = about_means(release()).evidence
    assert vector @ (with_diagonal_floor(centred) - centred.repaired) @ vector < 0.03 * value


@pytest.mark.slow
def test_noise_about_means_is_that_of_repeated_releases() -> None:
    source = scaled()
    rng = np.random.default_rng(5)
    drawn = np.array([about_means(source.release(rng)).evidence.raw for _ in range(60)])
    stated = about_means(release()).evidence.deviations
    ratio = drawn.std(axis=0, ddof=1) / stated
    np.testing.assert_allclose(np.sqrt((ratio**2).mean(axis=1)), 1, atol=0.15)


@pytest.mark.parametrize("about", ["zero", "means"])
def test_redrawn_noise_has_the_law_of_the_release(about: str) -> None:
    evidence = release() if about == "zero" else about_means(release()).evidence
    value, vector = smallest(release())
    along = vector if about == "means" else np.concatenate([[0.0], vector])
    drawn = [along @ each @ along for each in islice(redraws(evidence, evidence.repaired), 300)]
    (term,) = evidence.terms
    noise = term.law.sd_diagonal * float(along @ term.linear @ term.linear.T @ along)
    if about == "zero":
        value = float(along @ evidence.repaired @ along)
    assert np.std(drawn) == pytest.approx(np.hypot(noise, value * np.sqrt(2 / ROWS)), rel=0.15)


def test_folds_are_denoised_in_the_metric() -> None:
    value, _ = smallest(release(folds=4))
    others = training_evidence(about_means(release(folds=4)).evidence, 0)
    assert np.linalg.eigvalsh(others.repaired)[0] == pytest.approx(value, rel=0.4)


def test_pool_of_releases_in_different_metrics_is_denoised_in_one() -> None:
    """Of the same rows, in the same units; each with a draw of its own."""
    first, second = release(), scaled().release(np.random.default_rng(9))
    together, _ = pooled([first, second], same_rows=True)
    assert together.terms
    mean = (smallest(first)[0] + smallest(second)[0]) / 2
    assert smallest(together)[0] == pytest.approx(mean, rel=0.25)


def test_pool_with_a_plain_release_of_the_same_rows_keeps_the_small_directions() -> None:
    plain = scaled(whitened=False).release(np.random.default_rng(9))
    assert not plain.terms
    together, weights = pooled([release(), plain], same_rows=True)
    assert weights[0] > 0.9
    assert smallest(together)[0] == pytest.approx(smallest(release())[0], rel=0.1)


@pytest.mark.slow
def test_p_values_of_tables_in_one_metric_are_uniform_without_a_change() -> None:
    rng, root = np.random.default_rng(3), np.linalg.cholesky(TRUTH).T
    p_values = []
    for _ in range(6):
        cells = rng.normal(size=(ROWS, COLUMNS)) @ root
        other = replace(scaled(), cells=cells, rows=scaled().of(cells)).release(rng)
        found = over_time({"first": scaled().release(rng), "second": other}).changes
        p_values.append(found.loc[found["kind"] != "standard deviation", "one_population"])
    together = pd.concat(p_values)
    assert 0.4 < together.mean() < 0.6
    assert (together < 0.05).mean() < 0.1


def test_spectrum_is_compared_with_noise_in_the_metric() -> None:
    bundle = scaled().bundle(np.random.default_rng(2))
    assert spectrum_of(bundle).above_noise == COLUMNS + 1


def test_rows_that_are_clipped_in_metrics_of_their_own_are_not_compared_by_entry() -> None:
    bundle = scaled().bundle(np.random.default_rng(2))
    assert not comparable(bundle.manifest, bundle.manifest)


def test_rows_that_may_be_long_must_be_long_in_the_metric() -> None:
    """Noise in one histogram of lengths does not make clipping hide what the other shows."""
    evidence = release()
    lengths = evidence.lengths
    assert lengths is not None
    count = lengths.count.copy()
    count[-1] = round(2.8 * lengths.sd)
    histograms = tuple(
        replace(each, count=count) if each is lengths else each for each in evidence.histograms
    )
    moments = clipped_moments(replace(evidence, histograms=histograms))
    assert moments is not None
    above = np.triu_indices(COLUMNS, 1)
    assert moments.variance_shift[1].max() < 0.5
    assert moments.correlation_bias[above].mean() < 0.2
