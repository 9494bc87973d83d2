"""Pooling: exact units, weights inverse to variances, and the errors of the sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators.noise.draws import draw, stream
from gramercy.estimators.pooling.agreement import check_agreement
from gramercy.estimators.pooling.pool import pooled
from gramercy.estimators.table_units import TableUnits
from gramercy.estimators.uncertainty.entries import correlation
from gramercy.estimators.uncertainty.jackknife import jackknife
from gramercy.estimators.uncertainty.table_entries import table_covariance, table_means
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence, Fold
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.noise import Family, NoiseLaw
from tests.support.problems import raises
from tests.support.simulated_release import released, units_of

Array = NDArray[np.float64]

MEANS, SCALES = np.array([3.0, -1.0, 40.0]), np.array([1.0, 2.0, 10.0])
ROOT = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.2, -0.3, 0.93]])
NAMES = ("(intercept)", "c0", "c1", "c2")


def table(rows: int, seed: int = 0) -> Array:
    return MEANS + np.random.default_rng(seed).normal(size=(rows, 3)) @ ROOT.T * SCALES


def columns(shift: float = 0.0, factor: float = 1.0) -> list[ColumnFacts]:
    return [
        ColumnFacts(name=f"c{j}", lower=-1e3, upper=1e3, centre=m + shift * s, scale=s * factor)
        for j, (m, s) in enumerate(zip(MEANS, SCALES, strict=True))
    ]


def release(
    data: Array,
    facts: Sequence[ColumnFacts],
    radius: float | None = 60.0,
    sd: float = 1e-12,
    intercept: bool = True,
    present: tuple[float, ...] = (),
    seed: int = 0,
) -> Evidence:
    evidence = released(data, facts, radius, sd, intercept, present, seed)
    return replace(evidence, names=NAMES[1 - int(intercept) :])


def mean_of(units: TableUnits, matrix: Array) -> Array:
    return units.moments(matrix).mean


@pytest.mark.slow
def test_two_releases_of_one_table_have_seven_tenths_of_the_noise() -> None:
    data = table(2000)
    exact = np.cov(data.T, ddof=0)
    ratios, squares = [], []
    for seed in range(60):
        pair = [release(data, columns(), 4.0, 1e-4, seed=2 * seed + k) for k in range(2)]
        both, weights = pooled(pair, same_rows=True)
        np.testing.assert_allclose(weights, 0.5)
        assert both.rows == 2000
        assert not both.terms  # the exact law is Gaussian again
        singles = [table_covariance(each, units_of(each)) for each in pair]
        entries = table_covariance(both, units_of(both))
        ratios.append(entries.noise_error / singles[0].noise_error)
        clipped = units_of(pair[0]).moments(release(data, columns(), 4.0).raw).covariance
        squares.append([(each.estimate - clipped) ** 2 for each in (entries, singles[0])])
        np.testing.assert_allclose(entries.sampling_error, singles[0].sampling_error, rtol=0.05)
    assert np.abs(clipped / exact - 1).max() < 0.5
    np.testing.assert_allclose(np.mean(ratios, axis=0), np.sqrt(0.5), rtol=0.01)
    of_pool, of_single = np.mean(squares, axis=0)
    assert np.sqrt(of_pool / of_single).mean() == pytest.approx(np.sqrt(0.5), abs=0.08)


def test_same_rows_are_weighted_inverse_to_the_variance_of_the_noise() -> None:
    data = table(500)
    pair = [release(data, columns(), 4.0, sd, seed=k) for k, sd in enumerate((1e-3, 2e-3))]
    both, weights = pooled(pair, same_rows=True)
    np.testing.assert_allclose(weights, [0.8, 0.2])
    assert both.law.family == "gaussian-isotropic"
    assert both.law.sd_off_diagonal == pytest.approx(1e-3 * np.sqrt(0.8))
    np.testing.assert_allclose(both.raw, 0.8 * pair[0].raw + 0.2 * pair[1].raw, atol=1e-15)
    assert both.trace == pair[0].trace


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_releases_with_other_constants_are_brought_to_common_units(missing: float) -> None:
    """Without noise and clipped rows, means and covariances are those of every release."""
    data = table(4000)
    data[np.random.default_rng(1).random(data.shape) < missing] = np.nan
    present = (1.0, *(~np.isnan(data)).mean(axis=0)) if missing else ()
    one = release(data, columns(), 60.0, present=present)
    # Far from the means, products of missing cells depend on the centres by sampling.
    other = release(data, columns(0.5 if missing else 5.0, 3.0), 40.0, present=present)
    reordered = Evidence(
        other.raw[np.ix_([0, 3, 1, 2], [0, 3, 1, 2])],
        other.repaired[np.ix_([0, 3, 1, 2], [0, 3, 1, 2])],
        other.law,
        other.rows,
        tuple(NAMES[k] for k in (0, 3, 1, 2)),
        tuple(other.columns[k] for k in (0, 3, 1, 2)),
        unit=False,
        radius=other.radius,
        present=tuple(present[k] for k in (0, 3, 1, 2)) if missing else (),
    )
    expected = units_of(one).moments(one.raw)
    for pair in ([one, other], [other, one], [one, reordered]):
        check_agreement(["a", "b"], pair)
        both, _ = pooled(pair, same_rows=True)
        order = [both.names.index(name) - 1 for name in NAMES[1:]]
        moments = units_of(both).moments(both.raw)
        np.testing.assert_allclose(moments.mean[order], expected.mean, rtol=1e-6)
        covariance = moments.covariance[np.ix_(order, order)]
        np.testing.assert_allclose(np.diag(covariance), np.diag(expected.covariance), rtol=1e-4)
        scales = np.outer(SCALES, SCALES)
        atol = 0.04 * scales if missing else 1e-4 * scales
        assert (np.abs(covariance - expected.covariance) < atol).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [
        "gaussian-isotropic",
        pytest.param("gaussian-iid", marks=pytest.mark.slow),
        pytest.param("laplace", marks=pytest.mark.slow),
    ],
)
def test_noise_of_a_pool_with_other_constants_has_the_stated_errors(family: Family) -> None:
    """Far centres correlate the entries of the noise; the errors account for it."""
    data, sd = table(3000), 2e-5
    diagonal = sd * (np.sqrt(2) if family == "gaussian-isotropic" else 1.0)
    law = NoiseLaw(family=family, sd_diagonal=diagonal, sd_off_diagonal=sd)
    clean = [
        replace(release(data, columns(shift, factor), 60.0), law=law)
        for shift, factor in ((0.0, 1.0), (4.0, 1.5))
    ]
    both, _ = pooled(clean, same_rows=True)
    assert len(both.terms) == 2
    units, source, draws, correlations = units_of(both), stream(), [], []
    for _ in range(1000):
        noisy = [replace(each, raw=each.raw + draw(source, 4, law)) for each in clean]
        raw = pooled_raw(noisy)
        moments = units.moments(raw)
        draws.append(np.column_stack([moments.mean, moments.covariance]))
        correlations.append(moments.correlation)
    spread = np.std(draws, axis=0)
    means, covariance = table_means(both, units), table_covariance(both, units)
    np.testing.assert_allclose(means.noise_error, spread[:, 0], rtol=0.1)
    np.testing.assert_allclose(covariance.noise_error, spread[:, 1:], rtol=0.1)
    off = ~np.eye(3, dtype=bool)
    stated = correlation(both).noise_error[off]
    np.testing.assert_allclose(stated, np.std(correlations, axis=0)[off], rtol=0.1)


def pooled_raw(evidences: list[Evidence]) -> Array:
    """The matrix of a pool, without denoising it."""
    from gramercy.estimators.pooling import pool

    units = pool._units(evidences, 0, None)
    share = pool._weights(evidences, units, same_rows=True)
    assert np.argmax(share) == 0
    maps = [pool.matrix_map(each, units) for each in evidences]
    return np.sum([w * to(e.raw) for w, to, e in zip(share, maps, evidences, strict=True)], axis=0)


def test_disjoint_rows_have_the_error_of_the_whole_table() -> None:
    data = table(4000)
    parts = [release(data[:1000], columns(), 8.0), release(data[1000:], columns(1.0, 2.0), 8.0)]
    both, weights = pooled(parts, same_rows=False)
    np.testing.assert_allclose(weights, [0.25, 0.75], rtol=1e-3)
    assert both.rows == pytest.approx(4000, rel=1e-3)
    whole = release(data, columns(), 8.0)
    np.testing.assert_allclose(
        table_means(both, units_of(both)).standard_error,
        table_means(whole, units_of(whole)).standard_error,
        rtol=0.02,
    )


def test_noisy_release_of_other_rows_gets_less_weight_than_its_rows() -> None:
    data = table(4000)
    parts = [release(data[:2000], columns(), 8.0), release(data[2000:], columns(), 8.0, 0.01)]
    both, weights = pooled(parts, same_rows=False)
    assert weights[1] < 0.01
    assert 1990 < both.rows < 2010


@pytest.mark.slow
def test_folds_of_different_tables_are_strata() -> None:
    """The difference between two tables does not count as a sampling error."""
    source, folds = np.random.default_rng(3), 10
    errors, means = [], []
    for _ in range(12):
        evidences = []
        for shift in (0.0, 6.0):
            data = source.normal(size=(500, 3)) * SCALES + MEANS + shift * SCALES
            parts = [release(part, columns(), 30.0) for part in np.split(data, folds)]
            moments = [each.raw for each in parts]
            whole = replace(parts[0], raw=np.mean(moments, axis=0), rows=500.0)
            evidences.append(replace(whole, folds=tuple(Fold(m, 50.0) for m in moments)))
        both, _ = pooled(evidences, same_rows=False)
        estimated = jackknife(both, partial(mean_of, units_of(both)))
        assert estimated is not None
        assert estimated.freedom == 2 * (folds - 1)
        errors.append(estimated.standard_error)
        means.append(estimated.estimate)
    np.testing.assert_allclose(np.mean(errors, axis=0), SCALES / np.sqrt(1000), rtol=0.15)
    np.testing.assert_allclose(np.mean(means, axis=0), MEANS + 3 * SCALES, rtol=0.05)


def test_folds_of_the_same_rows_are_those_of_one_release() -> None:
    data = table(1000)
    plain = release(data, columns(), 30.0)
    parts = [release(part, columns(), 30.0) for part in np.split(data, 10)]
    folded = replace(plain, folds=tuple(Fold(each.raw, 100.0) for each in parts))
    noisy = release(data, columns(1.0), 30.0, 1e-5)
    both, _ = pooled([noisy, folded], same_rows=True)
    average = np.mean([fold.moment for fold in both.folds], axis=0)
    np.testing.assert_allclose(average, both.raw, atol=1e-14)
    estimated = jackknife(both, partial(mean_of, units_of(both)))
    assert estimated is not None
    np.testing.assert_allclose(estimated.standard_error, SCALES / np.sqrt(1000), rtol=0.6)


def test_noisy_divisors_are_independent() -> None:
    data = table(500)
    pair = [
        replace(release(data, columns(), 8.0, 1e-4, seed=k), divisor="noisy", rows_sd=10.0)
        for k in range(2)
    ]
    both, _ = pooled(pair, same_rows=True)
    assert both.divisor == "noisy"
    assert both.rows_sd == pytest.approx(10.0 / np.sqrt(2))


def test_families_and_degrees_of_freedom_of_a_sum() -> None:
    data = table(500)
    one = release(data, columns(), 8.0)
    wishart = NoiseLaw(
        family="wishart", sd_diagonal=1e-3 * np.sqrt(2), sd_off_diagonal=1e-3, dof=10.0
    )
    both, _ = pooled([replace(one, law=wishart), replace(one, law=wishart)], same_rows=True)
    assert both.law.family == "wishart"
    assert both.law.dof == pytest.approx(20)
    gaussian = NoiseLaw(family="gaussian-iid", sd_diagonal=1e-3, sd_off_diagonal=1e-3)
    both, _ = pooled([replace(one, law=wishart), replace(one, law=gaussian)], same_rows=True)
    assert both.law.family == "wishart"
    assert len(both.terms) == 2
    none, weights = pooled([replace(one, law=NoiseLaw.none()), one], same_rows=True)
    np.testing.assert_array_equal(weights, [1.0, 0.0])
    assert none.deviations.max() < 1e-12


def test_releases_that_do_not_agree_are_refused() -> None:
    data = table(200)
    one = release(data, columns())

    def refuse(other: Evidence, first: Evidence = one) -> None:
        check_agreement(["a", "b"], [first, other])

    with raises(families.POOL, columns=("(intercept)",)):
        refuse(release(data, columns(), intercept=False))
    levels = LevelsFacts(name="c2", levels=("x",))
    with raises(families.POOL, columns=("c2",)):
        refuse(replace(one, columns=(*one.columns[:3], levels)))
    unit = release(data, columns(), None)
    with raises(families.POOL, first="a", other="b"):
        refuse(unit)
    with raises(families.POOL, columns=("c0", "c1", "c2")):
        refuse(release(data, columns(1.0), None), unit)
    plain = release(data, columns(), intercept=False)
    refuse(release(data, columns(0.0, 2.0), intercept=False), plain)
    with raises(families.POOL):
        refuse(release(data, columns(1.0), intercept=False), plain)
    rows = NoiseLaw(family="noisy-rows", sd_diagonal=1.0, sd_off_diagonal=1.0, cell_variance=0.1)
    with raises(families.POOL, release="b"):
        refuse(replace(one, law=rows))
    with raises(families.POOL, columns=("c1",)):
        refuse(replace(one, present=(1.0, 1.0, 0.0, 1.0)))


def test_unit_rows_and_rows_without_intercept_can_be_pooled() -> None:
    data = table(300)
    for pair in (
        [release(data, columns(), None, 1e-3, seed=k) for k in range(2)],
        [release(data, columns(0.0, f), 60.0, 1e-7, intercept=False) for f in (1.0, 2.0)],
    ):
        check_agreement(["a", "b"], pair)
        both, weights = pooled(pair, same_rows=True)
        assert weights.sum() == pytest.approx(1)
        assert both.unit == pair[0].unit
        exact = release(data, columns(), both.radius, intercept=not both.radius)
        np.testing.assert_allclose(both.raw, exact.raw, atol=0.005 if both.unit else 1e-6)


@pytest.mark.parametrize("same_rows", [True, False])
def test_columns_that_do_not_vary_set_no_weights(same_rows: bool) -> None:
    """Of two like releases with other scales of a constant column, and levels that add up to 1."""
    pair = []
    for seed, scale in enumerate((1.0, 0.1)):
        source = np.random.default_rng(0 if same_rows else seed)
        cells = source.normal(size=(2000, 2))
        levels = np.eye(3)[source.integers(0, 3, 2000)]
        data = np.column_stack([cells, cells.sum(axis=1), levels, np.full(2000, 3.0)])
        facts = [
            ColumnFacts(name=f"c{j}", lower=-1e3, upper=1e3, centre=0.0, scale=1.0)
            for j in range(6)
        ]
        constant = ColumnFacts(name="c6", lower=-1e3, upper=1e3, centre=3.0, scale=scale)
        each = released(data, [*facts, constant], 6.0, 1e-3, seed=seed)
        pair.append(replace(each, names=("(intercept)", *[f"c{j}" for j in range(7)])))
    for ordered in (pair, pair[::-1]):
        _, weights = pooled(ordered, same_rows=same_rows)
        np.testing.assert_allclose(weights, 0.5, atol=0.05)
