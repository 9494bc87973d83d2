"""Post-processing: denoising beats projection, and ridge equals its definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer

from estimators import Evidence
from estimators.denoise import SIMULATED_UP_TO, denoise
from estimators.noise import draw, of_rows, rows_like
from estimators.ridge import Ridge, auto_penalty, ridge_precision
from estimators.spectrum import spectrum
from mechanisms.gaussian import Gaussian
from mechanisms.rows import Rows
from schemas.noise import Family, NoiseLaw
from tests.making import at_scale


def goe(rng: np.random.Generator, p: int, sd: float) -> np.ndarray:
    half = rng.normal(size=(p, p)) * sd / math.sqrt(2)
    return half + half.T


def project(matrix: np.ndarray) -> np.ndarray:
    """The nearest matrix that is positive semidefinite with trace at most 1."""
    values, vectors = np.linalg.eigh(matrix)
    kept = np.maximum(values, 0)
    excess = (np.cumsum(kept[::-1]) - 1) / np.arange(1, kept.size + 1)
    if kept.sum() > 1:
        kept = np.maximum(kept - excess[np.flatnonzero(kept[::-1] > excess)[-1]], 0)
    return (vectors * kept) @ vectors.T


def law(sd: float) -> NoiseLaw:
    return NoiseLaw(family="gaussian-isotropic", sd_diagonal=sd * math.sqrt(2), sd_off_diagonal=sd)


def errors(truth: np.ndarray, sd: float, turns: int) -> tuple[float, float, float]:
    """Mean Frobenius error of raw, projected, denoised."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(turns):
        noisy = truth + goe(rng, len(truth), sd)
        found.append([noisy, project(noisy), denoise(noisy, law(sd))])
    raw, projected, denoised = (
        float(np.mean([np.linalg.norm(each[i] - truth) for each in found])) for i in range(3)
    )
    return raw, projected, denoised


def test_denoising_breast_cancer() -> None:
    """Unit rows of the raw table at epsilon 1, delta 1e-6, replace-one."""
    table = load_breast_cancer().data
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    n, p = table.shape
    made = Gaussian.calibrated(p=p, n=n, neighbours="replace-one", epsilon=1.0, delta=1e-6)
    raw, projected, denoised = errors(
        table.T @ table / n, made.scale / math.sqrt(2) / n, at_scale(5, 30)
    )
    assert raw == pytest.approx(0.226, rel=0.03)
    assert denoised < projected < raw
    assert denoised <= 0.140


@pytest.mark.parametrize("p", [40, SIMULATED_UP_TO + 20])
def test_denoising_a_flat_spectrum(p: int) -> None:
    """Nothing to see but noise: shrinkage finds the flat spectrum, projection cannot."""
    raw, projected, denoised = errors(np.eye(p) / p, 2 / p**1.5, 2)
    assert denoised < 0.6 * projected < 0.6 * raw


def test_denoised_is_a_second_moment() -> None:
    rng = np.random.default_rng(2)
    for sd in (1e-6, 0.01, 1.0):
        out = denoise(np.diag([0.6, 0.3, 0.1]) + goe(rng, 3, sd), law(sd))
        assert (out == out.T).all()
        assert np.linalg.eigvalsh(out).min() >= -1e-12
        assert np.trace(out) <= 1 + 1e-12
    again = np.diag([0.6, 0.3, 0.1])
    np.testing.assert_allclose(denoise(again, law(1e-9)), again, atol=1e-6)
    assert (denoise(again, law(0.1)) == denoise(again, law(0.1))).all()


def test_denoising_rotates_with_the_matrix() -> None:
    rng = np.random.default_rng(3)
    matrix = np.diag([0.5, 0.3, 0.2, 0.0]) + goe(rng, 4, 0.05)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    turned = denoise(turn @ matrix @ turn.T, law(0.05))
    np.testing.assert_allclose(turned, turn @ denoise(matrix, law(0.05)) @ turn.T, atol=1e-10)


@pytest.mark.parametrize("phi", [-1e3, -1.0, -1e-8, 0.0, 1e-8, 1.0, 1e3])
@pytest.mark.parametrize("penalty", [1e-8, 1e-3, 1.0, 1e3])
def test_ridge_has_no_cancellation(phi: float, penalty: float) -> None:
    from mpmath import MPContext

    mp = MPContext()
    mp.dps = 60
    exact = 2 / (mp.mpf(phi) + mp.sqrt(mp.mpf(phi) ** 2 + 8 * mp.mpf(penalty)))
    found = ridge_precision(np.array([[phi]]), penalty)[0, 0]
    assert found == pytest.approx(float(exact), rel=1e-12)


def test_ridge_is_the_minimiser() -> None:
    rng = np.random.default_rng(6)
    matrix = goe(rng, 3, 0.5)  # indefinite, as released matrices are
    found = ridge_precision(matrix, 0.3)
    gradient = -np.linalg.inv(found) + matrix + 2 * 0.3 * found
    assert np.abs(gradient).max() < 1e-12

    def objective(flat: np.ndarray) -> float:
        root = np.zeros((3, 3))
        root[np.tril_indices(3)] = flat
        theta = root @ root.T
        log_det = 2 * np.log(np.abs(np.diag(root))).sum()
        return float(-log_det + np.trace(matrix @ theta) + 0.3 * (theta**2).sum())

    start = np.linalg.cholesky(found + 0.1 * np.eye(3))[np.tril_indices(3)]
    best = minimize(objective, start, method="BFGS", options={"gtol": 1e-9})
    at = objective(np.linalg.cholesky(found)[np.tril_indices(3)])
    assert at == pytest.approx(best.fun, abs=1e-8)
    assert at <= best.fun + 1e-12


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_ridge_refuses_nonsense(bad: float) -> None:
    with pytest.raises(ValueError, match="penalty"):
        ridge_precision(np.eye(2), bad)
    with pytest.raises(ValueError, match="penalty"):
        Ridge.model_validate({"penalty": bad})


def evidence(n: float, sd: float) -> Evidence:
    truth = np.diag([0.5, 0.3, 0.2])
    noisy = truth + goe(np.random.default_rng(1), 3, sd)
    return Evidence(noisy, denoise(noisy, law(sd)), law(sd), n)


def test_auto_penalty_follows_what_is_unknown() -> None:
    def penalty(n: float, sd: float) -> float:
        return auto_penalty(evidence(n, sd), "denoised")

    assert penalty(100, 0.1) > penalty(100, 0.01) > penalty(10_000, 0.01)
    assert auto_penalty(evidence(100, 0.1), "raw") > penalty(100, 0.1)
    assert 0 < penalty(1, 1e3) < math.inf
    nothing = Evidence(np.zeros((3, 3)), np.zeros((3, 3)), law(0.1), 100.0)
    assert np.linalg.eigvalsh(Ridge().fit(nothing).matrix).min() > 0


def test_auto_penalty_is_near_the_best() -> None:
    """Stein loss against the population, for AR(1) rows divided by their norm."""
    p, n, rng = 30, 2000, np.random.default_rng(9)
    root = np.linalg.cholesky(0.6 ** np.abs(np.subtract.outer(range(p), range(p))))
    many = rng.normal(size=(60_000, p)) @ root.T
    many /= np.linalg.norm(many, axis=1, keepdims=True)
    population, sample = many.T @ many / len(many), many[:n].T @ many[:n] / n
    made = Gaussian.calibrated(p=p, n=n, neighbours="replace-one", epsilon=1.0, delta=1e-6)
    sd = made.scale / math.sqrt(2) / n
    noisy = sample + goe(rng, p, sd)
    seen = Evidence(noisy, denoise(noisy, law(sd)), law(sd), n)

    def loss(penalty: float, matrix: np.ndarray) -> float:
        product = population @ ridge_precision(matrix, penalty)
        return float(np.trace(product) - np.linalg.slogdet(product)[1] - p)

    grid = np.geomspace(1e-8, 1, 60)
    for source, matrix, slack in (("denoised", seen.denoised, 1.1), ("raw", seen.raw, 1.5)):
        chosen = loss(auto_penalty(seen, source), matrix)
        assert chosen <= slack * min(loss(penalty, matrix) for penalty in grid)


def test_ridge_settings_name_the_estimate() -> None:
    names: set[Any] = {
        Ridge(penalty=penalty, input=source).id
        for penalty in ("auto", 0.1, 0.2)
        for source in ("denoised", "raw")
    }
    assert len(names) == 6
    assert Ridge().id == Ridge.model_validate({"name": "ridge", "penalty": "auto"}).id
    seen = evidence(100, 0.05)
    assert np.linalg.eigvalsh(Ridge(input="raw").fit(seen).matrix).min() > 0
    assert Ridge(penalty=0.7).fit(seen).penalty == 0.7


def family_law(family: Family, p: int, dof: float | None = None) -> NoiseLaw:
    diagonal = 1.0 if family in {"gaussian-iid", "laplace"} else math.sqrt(2)
    return NoiseLaw(family=family, sd_diagonal=diagonal, sd_off_diagonal=1.0, dof=dof)


SIMULATED: list[tuple[Family, float | None]] = [
    ("gaussian-iid", None),
    ("laplace", None),
    ("k-norm", None),
    ("matrix-laplace", 1.0),  # degrees of freedom beyond the columns
    ("wishart", 1.0),
    ("wishart", 40.0),
]


@pytest.mark.parametrize(("family", "more"), SIMULATED)
def test_draws_have_their_law(family: Family, more: float | None) -> None:
    p, stream = 4, np.random.RandomState(8)
    law = family_law(family, p, more and p + more).divided_by(5.0)
    draws = np.array([draw(stream, p, law) for _ in range(20_000)])
    assert (draws == draws.transpose(0, 2, 1)).all()
    np.testing.assert_allclose(draws.std(axis=0), law.deviations(p), rtol=0.05)
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=0.01)


@pytest.mark.parametrize("p", [5, 30])
@pytest.mark.parametrize(("family", "more"), SIMULATED)
def test_noise_alone_stays_within_the_band(family: Family, more: float | None, p: int) -> None:
    """In 99 releases of 100, and a band that is a tenth narrower does not hold."""
    law, stream = family_law(family, p, more and p + more), np.random.RandomState(p)
    seen = np.array([np.linalg.eigvalsh(draw(stream, p, law)) for _ in range(3000)])
    found = spectrum(np.eye(p), np.eye(p), law)

    def exceeded(share: float) -> float:
        outside = (seen[:, -1] > share * found.upper) | (seen[:, 0] < share * found.lower)
        return float(outside.mean())

    assert 0.003 <= exceeded(1.0) <= 0.025
    assert exceeded(0.9) > 0.025
    np.testing.assert_allclose(found.noise, seen.mean(axis=0)[::-1], atol=0.02 * found.upper)


@pytest.mark.parametrize(("family", "more"), SIMULATED[1:4:2] + SIMULATED[4:5])
def test_edges_beyond_what_is_simulated(family: Family, more: float | None) -> None:
    """The known edges join those that are simulated."""
    few, many = (
        spectrum(np.eye(p), np.eye(p), family_law(family, p, more and p + more))
        for p in (SIMULATED_UP_TO, SIMULATED_UP_TO + 1)
    )
    assert many.upper == pytest.approx(few.upper, rel=0.04)
    assert many.lower == pytest.approx(few.lower, rel=0.04)
    np.testing.assert_allclose(many.noise[1:], few.noise, atol=0.04 * few.upper)


def rows_of(n: int, p: int, stream: np.random.Generator) -> np.ndarray:
    """Unit rows, nearly all of whose power is the first column's."""
    rows = stream.normal(size=(n, p)) * np.where(np.arange(p) == 0, 20.0, 1.0)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(("n", "p"), [(400, 5), (40, 30), (10, 30)])
def test_the_band_of_noisy_rows(n: int, p: int) -> None:
    stream = np.random.default_rng(n)
    rows, variance = rows_of(n, p, stream), 0.02
    truth, outside, seen = rows.T @ rows / n, [], []
    law = NoiseLaw(
        family="noisy-rows", sd_diagonal=1.0, sd_off_diagonal=1.0, cell_variance=variance
    )
    found = spectrum(truth, truth, law, n)
    for _ in range(600):
        noisy = rows + math.sqrt(variance) * stream.normal(size=(n, p))
        values = np.linalg.eigvalsh(noisy.T @ noisy / n - variance * np.eye(p) - truth)
        outside.append(values[-1] > found.upper or values[0] < found.lower)
        seen.append(values)
    assert 0.001 <= np.mean(outside) <= 0.025
    np.testing.assert_allclose(found.noise, np.mean(seen, axis=0)[::-1], atol=0.03 * found.upper)


def test_deviations_of_noisy_rows() -> None:
    """One column holds nearly all power: its entries are noisier than the nominal ones."""
    n, p, stream = 300, 4, np.random.default_rng(1)
    made = Rows.calibrated(p=p, n=n, neighbours="replace-one", mu=20.0, delta=1e-6)
    rows = rows_of(n, p, stream)
    whole = np.rint(rows / made.step).astype(np.int64)
    rows = whole * made.step
    truth = rows.T @ rows
    errors = [made.gram(made.randomize(whole.T) * made.step) - truth for _ in range(1500)]
    law = made.law.divided_by(n)
    found = law.row_deviations(np.diag(truth) / n, n)
    np.testing.assert_allclose(np.std(errors, axis=0) / n, found, rtol=0.1)
    assert found[0, 0] > 4 * found[1, 1]
    flat = law.row_deviations(np.full(p, 1 / p), n)
    np.testing.assert_allclose(flat, law.deviations(p), rtol=1e-12)
    like = rows_like(truth / n, n)
    drawn = [
        of_rows(np.random.RandomState(k), like, law.cell_variance or 0.0, n) for k in range(1500)
    ]
    np.testing.assert_allclose(np.std(drawn, axis=0), found, rtol=0.1)
