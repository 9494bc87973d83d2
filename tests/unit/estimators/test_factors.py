"""Factor analysis and reliability: equal to others without noise; coverage; what is unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import FactorAnalysis

from gramercy.api.analyses import ReleaseAnalyses
from gramercy.api.factors import FactorAnalysisResult, ReliabilityResult
from gramercy.estimators import Estimate, registry
from gramercy.estimators.solvers.factor_model import ROTATIONS, fit_factors, most_factors
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from tests.support.problems import raises
from tests.support.simulated_release import declared_columns, released

Array = np.ndarray[Any, Any]
TRUTH = np.zeros((8, 2))
TRUTH[:4, 0], TRUTH[4:, 1] = (0.8, 0.7, 0.6, 0.75), (0.7, 0.55, 0.8, 0.6)
ITEMS = np.array([[0.8], [0.7], [0.6], [0.75], [0.7], [0.5]])
NAMES = [f"q{j + 1}" for j in range(8)]


class Release(ReleaseAnalyses):
    """A release of this evidence alone."""

    def __init__(self, evidence: Evidence) -> None:
        super().__init__("toy/1")
        self._evidence = evidence

    @property
    def evidence(self) -> Evidence:
        return self._evidence

    @property
    def _manifests(self) -> tuple[()]:
        return ()


def rows_of(loadings: Array, rows: int, seed: int, factors: Array | None = None) -> Array:
    rng, (p, m) = np.random.default_rng(seed), loadings.shape
    root = np.linalg.cholesky(np.eye(m) if factors is None else factors)
    common = rng.normal(size=(rows, m)) @ root.T @ loadings.T
    unique = 1 - ((loadings @ root) ** 2).sum(axis=1)
    return np.asarray(common + rng.normal(size=(rows, p)) * np.sqrt(unique))


def evidence_of(table: Array, sd: float = 0.0, seed: int = 0, bound: float = 9.0) -> Evidence:
    """A release that clips no row; `sd` is the noise off the diagonal in squared units."""
    columns = [
        each.model_copy(update={"name": name, "scale": 1.0})
        for each, name in zip(
            declared_columns([(-bound, bound)] * table.shape[1]), NAMES, strict=False
        )
    ]
    evidence = released(table, columns, 100.0, sd / 1e4 + 1e-15, seed=seed)
    return replace(evidence, names=("(intercept)", *(each.name for each in columns)))


def analysed(evidence: Evidence, **settings: Any) -> Estimate:
    return registry["factors"](name="factors", **settings).fit(evidence)


@pytest.mark.slow
def test_without_noise_it_is_the_maximum_of_the_likelihood() -> None:
    """scikit-learn finds the same by expectation and maximisation."""
    table = rows_of(TRUTH, 3000, 1)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    found = Release(evidence_of(table)).factor_analysis(2, rotation=None)
    peer = FactorAnalysis(2, tol=1e-10, max_iter=5000, svd_method="lapack").fit(table)
    np.testing.assert_allclose(found.uniquenesses, peer.noise_variance_, atol=1e-4)
    ours, theirs = found.loadings.to_numpy(), peer.components_.T
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-4)
    scores, others = found.scores(pd.DataFrame(table, columns=NAMES)), peer.transform(table)
    for name in scores:
        same = max(abs(np.corrcoef(scores[name], each)[0, 1]) for each in others.T)
        assert same > 0.999


def test_rotations_minimise_their_criteria() -> None:
    rng = np.random.default_rng(3)
    loadings, _ = fit_factors(np.corrcoef(rows_of(TRUTH, 4000, 2).T), 2)

    def turned(angles: Array) -> Array:
        axes = np.array([np.cos(angles), np.sin(angles)])
        return np.asarray(loadings @ np.linalg.inv(axes).T)

    def upright(angle: Array) -> Array:
        return turned(np.array([angle[0], angle[0] + np.pi / 2]))

    lengths = np.linalg.norm(loadings, axis=1, keepdims=True)  # by which rows are normalised

    def criterion(turned: Array, upright: bool) -> float:
        squares = (turned / lengths) ** 2
        if upright:
            return -float(squares.var(axis=0).sum())
        return float((squares * squares[:, ::-1]).sum())

    for rotation, way, size in (("varimax", upright, 1), ("oblimin", turned, 2)):
        found, factors = ROTATIONS[rotation](loadings)
        np.testing.assert_allclose(found @ factors @ found.T, loadings @ loadings.T, atol=1e-9)
        others = [criterion(way(rng.uniform(0, 3, size)), size == 1) for _ in range(3000)]
        assert criterion(found, size == 1) <= min(others) + 1e-9


@pytest.mark.slow
def test_oblique_factors_are_recovered() -> None:
    correlated = np.array([[1.0, 0.4], [0.4, 1.0]])
    evidence = evidence_of(rows_of(TRUTH, 20_000, 4, correlated), 0.002)
    for rotation in ("promax", "oblimin"):
        found = Release(evidence).factor_analysis(2, rotation=rotation)  # type: ignore[arg-type]
        assert found.factor_correlations.loc["F1", "F2"] == pytest.approx(0.4, abs=0.06)
        both = found.loadings.abs().to_numpy()
        assert np.abs(np.sort(both, axis=1)[:, 1] - TRUTH.max(axis=1)).max() < 0.06
        assert found.variance["cumulative"].iloc[-1] * 8 == pytest.approx(found.communalities.sum())


@pytest.mark.slow
def test_intervals_cover() -> None:
    covered, communalities = [], []
    for seed in range(20):
        evidence = evidence_of(rows_of(TRUTH, 4000, seed), 0.02, seed)
        found = FactorAnalysisResult(analysed(evidence, n_factors=2), evidence, "toy/1")
        lower, upper = (each.to_numpy() for each in found.conf_int())
        swap = found.loadings["F1"].iloc[0] < 0.4
        truth = TRUTH[:, ::-1] if swap else TRUTH
        covered.append((lower <= truth) & (truth <= upper))
        own = (TRUTH**2).sum(axis=1)
        communalities.append((found.columns["lower"] <= own) & (own <= found.columns["upper"]))
    assert 0.9 <= np.mean(covered) <= 0.99
    assert 0.9 <= np.mean(communalities) <= 0.99


@pytest.mark.slow
def test_number_of_factors_and_unknown_ones() -> None:
    evidence = evidence_of(rows_of(TRUTH, 5000, 7), 0.02)
    found = Release(evidence).factor_analysis()
    assert (found.n_factors, found.n_above_noise, found.unknown) == (2, 2, [])
    more = Release(evidence).factor_analysis(4)
    assert more.unknown == ["F3", "F4"]
    assert more.loadings[more.unknown].isna().all(axis=None)
    assert list(more.scores(pd.DataFrame(np.zeros((1, 8)), columns=NAMES))) == [
        each for each in more.loadings if each not in more.unknown
    ]
    independent = Release(evidence_of(rows_of(TRUTH[:6] * 0, 5000, 8), 0.02)).factor_analysis()
    assert independent.loadings.shape == (6, 0)
    assert "0 factors" in independent.summary()


def test_too_many_factors_are_refused() -> None:
    assert [most_factors(p) for p in (1, 2, 3, 5, 6, 8)] == [0, 0, 1, 2, 3, 4]
    evidence = evidence_of(rows_of(TRUTH, 500, 7))
    with raises(families.ANALYSIS, factors=5, most=4):
        analysed(evidence, n_factors=5)
    with raises(families.ANALYSIS, unknown=("q9",)):
        analysed(evidence, columns=("q9", "q1"))


@pytest.mark.slow
def test_heywood_cases_are_said() -> None:
    table = rows_of(TRUTH, 2000, 9)
    table[:, 0] = table[:, 1]
    found = Release(evidence_of(table)).factor_analysis(2)
    assert set(found.heywood) & {"q1", "q2"}
    assert "Heywood" in found.summary()
    assert found.columns.loc[found.heywood, "upper"].isna().all()
    assert found.conf_int()[0].loc[found.heywood].isna().all(axis=None)
    assert found.communalities.notna().all()


def exact_alpha(table: Array) -> float:
    k, own = table.shape[1], table.var(axis=0).sum()
    return float(k / (k - 1) * (1 - own / table.sum(axis=1).var()))


@pytest.mark.slow
def test_reliability_without_noise_is_that_of_the_table() -> None:
    table = rows_of(ITEMS[:5], 3000, 10) * (1.0, 1.2, 0.8, 1.0, 1.1)
    release = Release(evidence_of(table))
    found = release.reliability(NAMES[:5])
    assert found.alpha == pytest.approx(exact_alpha(table), abs=1e-6)
    standard = (table - table.mean(axis=0)) / table.std(axis=0)
    assert found.standardised_alpha == pytest.approx(exact_alpha(standard), abs=1e-6)
    peer = FactorAnalysis(1, tol=1e-10, max_iter=5000, svd_method="lapack").fit(table)
    common = peer.components_.sum() ** 2
    assert found.omega == pytest.approx(common / (common + peer.noise_variance_.sum()), abs=1e-4)
    for j, name in enumerate(NAMES[:5]):
        rest = np.delete(table, j, axis=1)
        line = found.items.loc[name]
        expected = np.corrcoef(table[:, j], rest.sum(axis=1))[0, 1]
        assert line["item_rest"] == pytest.approx(expected, abs=1e-6)
        assert line["alpha_if_dropped"] == pytest.approx(exact_alpha(rest), abs=1e-6)
    assert found.negative == []
    turned = evidence_of(table * (1, 1, -1, 1, 1))
    assert Release(turned).reliability(NAMES[:5]).negative == ["q3"]
    again = Release(turned).reliability(NAMES[:5], reverse=["q3"])
    assert again.alpha == pytest.approx(found.alpha, abs=1e-9)
    assert again.omega == pytest.approx(found.omega, abs=1e-6)
    assert again.negative == []
    with raises(families.ANALYSIS, unknown=("q8",)):
        release.reliability(NAMES[:5], reverse=["q8"])
    with raises(families.ANALYSIS, least=3, known=("q1", "q2")):
        release.reliability(NAMES[:2])


@pytest.mark.slow
def test_intervals_of_reliability_cover_answers_of_five_levels() -> None:
    def answers(rows: int, seed: int) -> Array:
        return np.clip(np.round(rows_of(ITEMS, rows, seed)), -2, 2)

    truth, covered = exact_alpha(answers(400_000, 99)), []
    for seed in range(20):
        evidence = evidence_of(answers(4000, seed), 0.02, seed)
        found = Release(evidence).reliability(NAMES[:6]).conf_int().loc["alpha"]
        covered.append(found["lower"] <= truth <= found["upper"])
    assert np.mean(covered) >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_few_impossible_draws_do_not_hide_alpha(seed: int) -> None:
    """Of items that are nearly one, a few simulated alphas are above 1."""
    loadings = np.array([[0.96], [0.95], [0.94], [0.96], [0.95], [0.93]])
    table = rows_of(loadings, 2000, seed)
    truth = Release(evidence_of(table)).reliability(NAMES[:6]).alpha
    found = Release(evidence_of(table, 0.1, seed)).reliability(NAMES[:6]).conf_int().loc["alpha"]
    assert 0.9 < found.iloc[0] < truth < found.iloc[1] < 1


@pytest.mark.slow
def test_what_noise_hides_has_no_reliability() -> None:
    table = rows_of(TRUTH[:4] * 0.2, 300, 11)
    found = Release(evidence_of(table, 0.1)).reliability(NAMES[:4])
    assert np.isnan(found.omega)
    assert isinstance(found, ReliabilityResult)
    with raises(families.ANALYSIS, known=(), hidden=tuple(NAMES[:4])):
        Release(evidence_of(table, 5.0)).reliability(NAMES[:4])


@pytest.mark.slow
def test_results_are_shown() -> None:
    mpl.use("agg")
    release = Release(evidence_of(rows_of(TRUTH, 3000, 12), 0.08))
    found = release.factor_analysis(2, rotation="promax")
    assert "Correlations of the factors" in found.summary()
    assert "communality" in found._repr_html_()
    assert len(found.plot().texts) == 16
    assert "omega" in release.reliability(NAMES[:4]).summary()
    assert "alpha" in release.reliability(NAMES[:4])._repr_html_()
    for bad in (0, 1.5, 9):
        with raises(families.ANALYSIS, given=bad):
            release.pca(n_components=bad)  # type: ignore[arg-type]
    three = release.pca(n_components=8)
    assert three.n_components == 8 > three.n_above_noise
    assert three.components.iloc[-1].isna().all()
    assert np.isnan(three.explained_variance_ratio_[-1])
    assert three.components_.shape == (8, 8)
    assert three.explained_variance_.shape == (8,)
    assert "Nothing is known" in three.summary()
    assert three.plot_loadings().get_title()
    exact = Release(
        evidence_of(rows_of(TRUTH, 3000, 12) @ np.diag(np.arange(1.0, 9.0)), bound=90.0)
    )
    rows = pd.DataFrame(rows_of(TRUTH, 5, 13) * np.arange(1.0, 9.0), columns=NAMES)
    whole = exact.pca(scale="covariance")
    assert (whole.n_components, whole.components.notna().all(axis=None)) == (8, True)
    back = whole.inverse_transform(whole.transform(rows))
    np.testing.assert_allclose(back, rows, atol=1e-6)
