"""Errors from folds: the jackknife against its definition, moderation, and what uses them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t as student

from gramercy.estimators.discoveries import Discoveries
from gramercy.estimators.intervals import Intervals
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.uncertainty.correlation_errors import moderated
from gramercy.estimators.uncertainty.entries import EntryKind, entries
from gramercy.estimators.uncertainty.jackknife import (
    MIN_FOLDS,
    jackknife,
    reach_tail,
    squared_reaches,
)
from gramercy.schemas.evidence import Evidence, Fold
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.noise import NoiseLaw
from tests.support.noisy_matrices import gaussian_law
from tests.support.simulated_release import units_of

Array = NDArray[np.float64]

KINDS: tuple[EntryKind, ...] = ("second moment", "covariance", "correlation", "partial-correlation")


def with_folds(rows: Array, folds: int, **facts: object) -> Evidence:
    """The second moment of rows and of equal parts of them, without noise."""
    parts = np.array_split(rows, folds)
    moments = tuple(Fold(part.T @ part / len(part), float(len(part))) for part in parts)
    raw = rows.T @ rows / len(rows)
    seen = Evidence(raw, project(raw, np.inf), NoiseLaw.none(), float(len(rows)), unit=False)
    return replace(seen, folds=moments, **facts)


def some_rows(n: int, p: int = 4, seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    mixed: Array = rng.normal(size=(n, p)) @ (np.eye(p) + 0.3 * rng.normal(size=(p, p)))
    return mixed


def heavy_rows(n: int, p: int, seed: int) -> Array:
    """Rows of one random length each: uncorrelated, and far from Gaussian."""
    rng = np.random.default_rng(seed)
    lengths = np.minimum(1 / np.sqrt(rng.chisquare(4, size=(n, 1))), 2.0)
    rows: Array = rng.normal(size=(n, p)) * lengths
    return rows


def test_jackknife_of_a_mean_is_its_textbook_error() -> None:
    """For a linear statistic and equal folds: the standard deviation of the folds over sqrt(K)."""
    seen = with_folds(some_rows(600), 12)
    found = jackknife(seen, lambda moment: moment)
    assert found is not None
    folds = np.array([fold.moment for fold in seen.folds])
    expected = folds.std(axis=0, ddof=1) / math.sqrt(12)
    np.testing.assert_allclose(found.standard_error, expected)
    np.testing.assert_allclose(found.estimate, seen.raw)
    assert found.freedom == 11


def test_folds_are_weighted_by_their_rows() -> None:
    seen = with_folds(some_rows(605), 10)
    found = jackknife(seen, lambda moment: np.trace(moment)[None])
    assert found is not None
    sums = np.array([np.trace(fold.moment) * fold.rows for fold in seen.folds])
    rows = np.array([fold.rows for fold in seen.folds])
    without = (sums.sum() - sums) / (rows.sum() - rows)
    np.testing.assert_allclose(found.standard_error[0] ** 2, 0.9 * without.var() * 10)


def test_too_few_folds_give_no_jackknife() -> None:
    rows = some_rows(600)
    assert jackknife(with_folds(rows, MIN_FOLDS - 1), lambda moment: moment) is None
    empty = with_folds(rows, MIN_FOLDS)
    empty = replace(empty, folds=(*empty.folds[1:], Fold(empty.folds[0].moment, -3.0)))
    assert jackknife(empty, lambda moment: moment) is None
    few = with_folds(rows, MIN_FOLDS - 1)
    without = replace(few, folds=())
    for kind in KINDS:
        found, expected = entries(few, kind), entries(without, kind)
        assert found.law == "Gaussian rows"
        np.testing.assert_array_equal(found.standard_error, expected.standard_error)


def test_statistic_that_does_not_exist_has_no_error() -> None:
    found = jackknife(
        with_folds(some_rows(600), 5), lambda moment: np.array([moment[0, 0], math.nan])
    )
    assert found is not None
    assert np.isfinite(found.standard_error[0])
    assert math.isnan(found.standard_error[1])


@pytest.mark.parametrize("kind", KINDS)
def test_standard_errors_are_those_of_the_jackknife(kind: EntryKind) -> None:
    seen = with_folds(some_rows(4000), 10)

    def statistic(moment: Array) -> Array:
        if kind in {"second moment", "covariance"}:
            return moment
        matrix = -np.linalg.inv(moment) if kind == "partial-correlation" else moment
        root = np.sqrt(np.abs(np.diag(matrix)))
        correlations: Array = matrix / np.outer(root, root)
        np.fill_diagonal(correlations, 1.0)
        return correlations

    found, expected = entries(seen, kind), jackknife(seen, statistic)
    assert expected is not None
    assert found.law == "jackknife over 10 folds"
    np.testing.assert_allclose(found.standard_error, expected.standard_error, rtol=0.01)
    np.testing.assert_allclose(found.estimate, expected.estimate, rtol=1e-12)
    lower, upper = found.interval(0.95)
    off = ~np.eye(4, dtype=bool)
    half_width = student.ppf(0.975, expected.freedom) * expected.standard_error
    np.testing.assert_allclose((upper - lower)[off], 2 * half_width[off], rtol=0.05)
    assert (np.abs(lower) <= np.abs(upper).max()).all()


def test_intervals_of_variances_are_skewed_and_positive() -> None:
    seen = with_folds(heavy_rows(60, 3, 2), 6)
    found = entries(seen, "covariance")
    lower, upper = (np.diag(bound) for bound in found.interval(0.99))
    variance = np.diag(found.estimate)
    assert (lower > 0).all()
    assert (upper - variance > variance - lower).all()


def test_standard_errors_are_at_least_those_of_the_noise() -> None:
    """Equal folds would have no error at all, but the law of the noise is known."""
    law = gaussian_law(0.01)
    moment = np.diag([1.0, 2.0, 3.0]) + 0.2
    seen = Evidence(moment, moment, law, 1000.0, unit=False, folds=(Fold(moment, 100.0),) * 10)
    for kind in KINDS:
        found = entries(seen, kind)
        np.testing.assert_allclose(found.sampling_error, 0.0, atol=1e-9)
        np.testing.assert_allclose(found.standard_error, found.noise_error, rtol=1e-6)
        assert (found.noise_error[np.triu_indices(3, 1)] > 0.003).all()


@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-6])
def test_p_values_agree_with_intervals(level: float) -> None:
    """An estimate as far from zero as its interval reaches has the p-value 1 - level."""
    share = np.array([0.0, 0.3, 0.9, 1.0])
    squares = squared_reaches(level, 9, 1 - share, share, np.full(4, np.inf))
    np.testing.assert_allclose(reach_tail(np.sqrt(sum(squares)), 9, share), 1 - level, rtol=1e-9)
    np.testing.assert_array_equal(reach_tail(np.zeros(4), 9, share), np.ones(4))


def test_the_law_is_next_to_the_numbers() -> None:
    seen = with_folds(some_rows(2000), 10)
    for estimator in (Intervals(), Intervals(of="partial-correlation"), Discoveries()):
        tables = estimator.fit(seen).tables
        for name in {"clearest", "discoveries"} & set(tables):
            assert set(tables[name]["law"]) == {"jackknife over 10 folds"}
        assert list(tables["laws"]["law"]) == ["none", "jackknife over 10 folds"]
    tuning = Intervals(level=0.9).fit(seen).tuning
    assert tuning["folds"] == 10
    assert tuning["critical_value"] == pytest.approx(student.ppf(0.95, 9))
    assert "folds" not in Intervals().fit(replace(seen, folds=())).tuning


def test_correlations_are_corrected_for_missing_cells() -> None:
    """They are those of the own units, for any means and shares of cells."""
    rng = np.random.default_rng(4)
    shares = np.array([1.0, 0.7, 0.9, 0.5])
    z = some_rows(60_000, 4) + np.array([0.0, 0.3, -0.2, 0.1])
    z[rng.uniform(size=z.shape) > shares] = 0.0
    rows = np.column_stack([np.ones(len(z)), z])
    columns = tuple(
        ColumnFacts(name=f"c{i}", lower=-9.0, upper=9.0, centre=1.0, scale=2.0) for i in range(4)
    )
    seen = with_folds(rows, 10, columns=(None, *columns), present=(1.0, *shares))
    units = units_of(seen)
    expected = units.moments(seen.raw).correlation
    complete = np.corrcoef(some_rows(60_000, 4).T)
    for evidence in (seen, replace(seen, folds=())):
        found = entries(evidence, "correlation")
        np.testing.assert_allclose(found.estimate, expected, atol=1e-9)
        lower, upper = found.interval(0.9999)
        off = ~np.eye(4, dtype=bool)
        assert ((lower < complete) & (complete < upper))[off].all()
        partial = entries(evidence, "partial-correlation")
        inverse = np.linalg.inv(expected)
        root = np.sqrt(np.diag(inverse))
        np.testing.assert_allclose(
            partial.estimate[off], (-inverse / np.outer(root, root))[off], atol=1e-9
        )
    by_law = entries(replace(seen, folds=()), "correlation").standard_error
    by_folds = entries(seen, "correlation").standard_error
    np.testing.assert_allclose(by_law[off], by_folds[off], rtol=0.7)


def test_a_column_without_any_cell_is_not_estimable() -> None:
    rows = some_rows(500, 3)
    rows[:, 2] = 0.0
    seen = with_folds(rows, 10, present=(1.0, 1.0, 0.0))
    for kind in ("correlation", "partial-correlation"):
        found = Intervals.model_validate({"of": kind}).fit(seen)
        assert found.matrices["lower"][0, 2] == -1
        assert (found.matrices["lower"][0, 1] > -1) == (kind == "correlation")


def test_moderation_finds_the_common_and_the_varying_part() -> None:
    rng = np.random.default_rng(5)
    common = 2.0 * rng.chisquare(9, size=20_000) / 9
    ratios, freedom = moderated(common, 9)
    assert freedom > 500
    np.testing.assert_allclose(ratios, 2.0, rtol=0.05)
    varying = common * 6 / rng.chisquare(6, size=20_000)
    ratios, freedom = moderated(varying, 9)
    assert freedom == pytest.approx(9 + 6, rel=0.1)
    np.testing.assert_allclose(ratios, (6 * 2.0 + 9 * varying) / 15, rtol=0.1)


def test_moderation_of_few_ratios_changes_nothing() -> None:
    few = np.array([0.5, 3.0])
    ratios, freedom = moderated(few, 9)
    np.testing.assert_array_equal(ratios, few)
    assert freedom == 9
    equal, freedom = moderated(np.ones(50), 9)
    np.testing.assert_allclose(equal, equal[0])
    assert freedom >= 1e6


@pytest.mark.slow
@pytest.mark.parametrize("of", ["correlation", "partial-correlation"])
def test_folds_control_false_discoveries_of_heavy_tailed_rows(of: str) -> None:
    """Tests for Gaussian rows have many false edges; those with folds have few."""
    found = Discoveries.model_validate({"of": of, "rate": 0.1})
    false = {0: 0.0, 10: 0.0}
    for seed in range(12):
        seen = with_folds(heavy_rows(1000, 15, seed), 10)
        false[10] += (found.fit(seen).tuning["edges"] > 0) / 12
        false[0] += (found.fit(replace(seen, folds=())).tuning["edges"] > 0) / 12
    assert false[0] > 0.6
    assert false[10] <= 0.35
