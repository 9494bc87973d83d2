"""Denoising beats projection on the reference tables, for every noise law."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from gramercy.estimators.noise.denoise import (
    denoise,
    estimate_trace,
    number_of_draws,
    project,
    project_spectrum,
    repair_name,
)
from gramercy.estimators.noise.draws import draw, draw_row_noise, equivalent_rows
from gramercy.mechanisms import registry
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.schemas.noise import Family, NoiseLaw
from tests.support.factories import at_scale
from tests.support.noisy_matrices import family_law, gaussian_law, goe

Array = np.ndarray


def nearest(matrix: Array) -> Array:
    """The nearest positive semidefinite matrix with trace at most 1, computed independently."""
    values, vectors = np.linalg.eigh(matrix)
    kept = np.maximum(values, 0)
    excess = (np.cumsum(kept[::-1]) - 1) / np.arange(1, kept.size + 1)
    if kept.sum() > 1:
        kept = np.maximum(kept - excess[np.flatnonzero(kept[::-1] > excess)[-1]], 0)
    found: Array = (vectors * kept) @ vectors.T
    return found


def errors(truth: Array, sd: float, repetitions: int) -> tuple[float, float, float]:
    """Mean Frobenius errors of the raw, projected and denoised matrix under Gaussian noise."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(repetitions):
        noisy = truth + goe(rng, len(truth), sd)
        forms = [noisy, nearest(noisy), denoise(noisy, gaussian_law(sd))]
        found.append([np.linalg.norm(form - truth) for form in forms])
    raw, projected, denoised = np.mean(found, axis=0)
    return float(raw), float(projected), float(denoised)


def unit(rows: Array) -> Array:
    found: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return found


@cache
def table(name: str) -> tuple[Array, int]:
    """Return the second moment of a table's unit rows, and their number."""
    rows = load_digits().data if name == "digits" else load_breast_cancer().data
    if name == "breast cancer":
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    if name == "slow":
        # Gaussian rows of 200 columns; column k has variance k^(-1/2). Rotations do not matter.
        rng = np.random.default_rng(1)
        rows = rng.standard_normal((50_000, 200)) * np.arange(1, 201) ** -0.25
    rows = unit(rows)
    return rows.T @ rows / len(rows), len(rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "epsilon", "repetitions", "raw", "projected", "most"),
    [
        ("digits", 1.0, (4, 30), 0.152, 0.074, 0.065),
        ("digits", 0.2, (4, 30), 0.681, 0.203, 0.150),
        ("breast cancer", 1.0, (20, 200), 0.226, 0.142, 0.134),
        ("slow", 0.2, (1, 10), 0.076, 0.061, 0.036),
    ],
)
def test_denoising_errors_on_reference_tables(
    name: str,
    epsilon: float,
    repetitions: tuple[int, int],
    raw: float,
    projected: float,
    most: float,
) -> None:
    """Errors with the default mechanism on unit rows: replace-one, delta 1e-6."""
    moment, n = table(name)
    made = Gaussian.calibrated(
        p=len(moment), n=n, neighbours="replace-one", epsilon=epsilon, delta=1e-6
    )
    found = errors(moment, made.scale / math.sqrt(2) / n, at_scale(*repetitions))
    assert found[0] == pytest.approx(raw, rel=0.05)
    assert found[1] == pytest.approx(projected, rel=0.05)
    assert found[2] <= most


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The method for many columns, whose limit is 300, already from 60 on: in a hundredth."""
    for module in ("denoise", "spectrum"):
        monkeypatch.setattr(f"gramercy.estimators.noise.{module}.SIMULATED_UP_TO", 60)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("p", [40, 80])
def test_flat_spectrum_is_recovered(p: int) -> None:
    """With noise above the signal, shrinkage finds the flat spectrum and projection cannot."""
    raw, projected, denoised = errors(np.eye(p) / p, 2 / p**1.5, 2)
    assert 50 * denoised < projected < 0.7 * raw


def best(noisy: Array, truth: Array) -> Array:
    """The best second moment with the eigenvectors of `noisy`."""
    vectors = np.linalg.eigh(noisy)[1]
    values = project_spectrum(((truth @ vectors) * vectors).sum(axis=0), 1.0)
    found: Array = (vectors * values) @ vectors.T
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "epsilon"), [("gaussian", 0.2), ("gaussian", 4.0), ("matrix-laplace", 1.0)]
)
def test_error_with_many_columns_is_close_to_the_best(mechanism: str, epsilon: float) -> None:
    """2000 unit rows of 400 columns: within 3 % of the best matrix with the same eigenvectors."""
    n, p = 2000, 400
    rng = np.random.default_rng(6)
    rows = unit(rng.standard_normal((n, p)) * np.arange(1, p + 1) ** -0.25)
    truth = rows.T @ rows / n
    delta = 1e-6 if mechanism == "gaussian" else None
    made = registry[mechanism].calibrated(
        p=p, n=n, neighbours="replace-one", epsilon=epsilon, delta=delta
    )
    noise = made.law.divided_by(n)
    noisy = truth + draw(np.random.RandomState(7), p, noise)
    error = np.linalg.norm(denoise(noisy, noise) - truth)
    assert error <= 1.03 * np.linalg.norm(best(noisy, truth) - truth)


def test_unit_rows_keep_their_trace() -> None:
    """The trace of unit rows is public, also where noise makes the released trace negative."""
    p = 20
    noise = gaussian_law(1.0)
    noisy = np.eye(p) / p + goe(np.random.default_rng(1), p, 1.0)
    noisy -= np.eye(p) * (np.trace(noisy) + 5) / p
    assert np.trace(noisy) == pytest.approx(-5)
    assert np.trace(denoise(noisy, noise)) == pytest.approx(1.0)
    assert 0 < np.trace(denoise(noisy, noise, unit=False)) < 0.6
    # Where the released trace is precise, it counts: a tenth of the rows could not be read.
    short = denoise(
        0.9 * np.eye(p) / p + goe(np.random.default_rng(1), p, 1e-3), gaussian_law(1e-3)
    )
    assert np.trace(short) == pytest.approx(0.9, abs=0.02)


def test_number_of_draws_falls_above_the_simulated_sizes() -> None:
    assert [number_of_draws(16, p) for p in (2, 300, 400, 750, 2000)] == [16, 16, 7, 2, 2]
    assert [number_of_draws(60, p) for p in (300, 400, 750, 2000)] == [60, 25, 4, 2]


FAMILIES: list[Family] = [
    "gaussian-isotropic",
    "gaussian-iid",
    "laplace",
    "k-norm",
    "matrix-laplace",
    "wishart",
    "noisy-rows",
]
SPECTRA = {
    "flat": np.ones(12),
    "zipf": 1 / np.arange(1.0, 13),
    "spiked": np.r_[12.0, np.ones(11)],
    "short": 0.05 / np.arange(1.0, 13),  # rows that are much shorter than the bound
}


def ratio(family: Family, spectrum: Array, basis: Array, size: float, repetitions: int) -> float:
    """Error of denoising over that of projection; `size` in units of the average eigenvalue."""
    p, source = spectrum.size, np.random.RandomState(11)
    scale = max(spectrum.sum(), 1.0)
    truth = (basis * (spectrum / scale)) @ basis.T
    sd, rows, found = size / p**1.5, 30 * p, []
    noise = family_law(family, sd, p)
    if family == "noisy-rows":  # nominal deviation sd, for rows with uniform directions
        cell = -1 / p + math.sqrt(1 / p**2 + rows * sd**2)
        noise = noise.model_copy(update={"cell_variance": cell})
        like = equivalent_rows(truth, rows)
    for _ in range(repetitions):
        added = (
            draw_row_noise(source, like, noise.cell_variance or 0.0, rows)
            if family == "noisy-rows"
            else draw(source, p, noise)
        )
        forms = denoise(truth + added, noise, 1.0, rows), project(truth + added)
        found.append([np.linalg.norm(form - truth) for form in forms])
    denoised, projected = np.mean(found, axis=0)
    return float(denoised / projected)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_denoising_beats_projection_for_every_law(family: Family) -> None:
    """Shrinkage is at least as good, whether or not the truth is aligned with the noise's axes."""
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(12, 12)))[0]
    repetitions = at_scale(6, 30)
    for name, spectrum in SPECTRA.items():
        for basis in (np.eye(12), turn)[: at_scale(1, 2)]:
            shares = [
                ratio(family, spectrum, basis, size, repetitions) for size in (0.1, 1.0, 10.0)
            ]
            assert max(shares) <= 1.05, (name, shares)
            if name in {"flat", "short"}:
                assert shares[1] <= 0.6, (name, shares)


@pytest.mark.slow
def test_loss_to_projection_is_bounded_at_low_rank() -> None:
    """In the worst case, projection finds the exact boundary; the loss to it is bounded."""
    for p, rank, size, most in ((3, 1, 1.0, 1.6), (12, 2, 5.0, 1.2), (12, 2, 0.3, 1.0)):
        spectrum = np.where(np.arange(p) < rank, 1.0, 0.0) / rank
        share = ratio("gaussian-isotropic", spectrum, np.eye(p), size, at_scale(30, 150))
        assert share <= most, (p, share)


def test_denoised_matrix_is_a_valid_second_moment() -> None:
    rng = np.random.default_rng(2)
    for sd in (1e-6, 0.01, 1.0, 1e3):
        for p in (1, 2, 3):
            out = denoise(np.diag(np.full(p, 1 / p)) + goe(rng, p, sd), gaussian_law(sd))
            assert (out == out.T).all()
            assert np.linalg.eigvalsh(out).min() >= -1e-12
            assert np.trace(out) <= 1 + 1e-12
    again = np.diag([0.6, 0.3, 0.1])
    np.testing.assert_allclose(denoise(again, gaussian_law(1e-9)), again, atol=1e-6)
    assert (denoise(again, gaussian_law(0.1)) == denoise(again, gaussian_law(0.1))).all()
    hopeless = denoise(-again, gaussian_law(1e-9))  # not a second moment plus noise of this size
    np.testing.assert_allclose(hopeless, np.zeros((3, 3)), atol=1e-12)


def test_denoising_is_stable_to_rounding() -> None:
    """Eigenvalues on another machine differ in the last digits; the result differs by no more."""
    rng = np.random.default_rng(8)
    matrix = np.eye(6) / 6 + goe(rng, 6, 0.1)
    noise = gaussian_law(0.1).model_copy(update={"family": "noisy-rows", "cell_variance": 0.4})
    for one in (gaussian_law(0.1), noise):
        near = denoise(matrix + goe(rng, 6, 1e-13), one, 1.0, 40)
        np.testing.assert_allclose(near, denoise(matrix, one, 1.0, 40), atol=1e-10)


@pytest.mark.usefixtures("few_are_many")
def test_denoising_many_columns_is_stable_to_rounding() -> None:
    rng, p = np.random.default_rng(8), 80
    matrix = np.diag(np.arange(1.0, p + 1) ** -0.5 / 35) + goe(rng, p, 1e-4)
    near = denoise(matrix + goe(rng, p, 1e-17), gaussian_law(1e-4))
    np.testing.assert_allclose(near, denoise(matrix, gaussian_law(1e-4)), atol=1e-13)


def test_denoising_is_rotation_equivariant() -> None:
    rng = np.random.default_rng(3)
    matrix = np.diag([0.5, 0.3, 0.2, 0.0]) + goe(rng, 4, 0.05)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    turned = denoise(turn @ matrix @ turn.T, gaussian_law(0.05))
    np.testing.assert_allclose(
        turned, turn @ denoise(matrix, gaussian_law(0.05)) @ turn.T, atol=1e-10
    )


def test_denoising_is_scale_equivariant() -> None:
    matrix = np.diag([0.5, 0.3, 0.2]) + goe(np.random.default_rng(5), 3, 0.05)
    np.testing.assert_allclose(
        denoise(7 * matrix, gaussian_law(0.35), 7.0),
        7 * denoise(matrix, gaussian_law(0.05)),
        atol=1e-10,
    )
    assert np.isfinite(denoise(matrix, gaussian_law(0.05), math.inf)).all()


def test_matrix_without_known_noise_is_projected() -> None:
    matrix = np.diag([0.9, 0.3, -0.2])
    rows = gaussian_law(0.1).model_copy(update={"family": "noisy-rows", "cell_variance": 0.4})
    for noise in (NoiseLaw.none(), rows):
        assert repair_name(noise) == "projected"
        assert (denoise(matrix, noise) == project(matrix)).all()
        np.testing.assert_allclose(project(matrix), nearest(matrix), atol=1e-15)


@pytest.mark.usefixtures("few_are_many")
def test_denoising_noisy_rows_with_many_columns() -> None:
    """Noise on rows depends on the estimated spectrum, also for short rows."""
    p = 80
    spectrum = np.arange(1.0, p + 1) ** -0.5
    for length, size, most in ((1.0, 0.1, 1.0), (0.05, 2.0, 0.3)):
        spectrum = spectrum / spectrum.sum() * length
        assert ratio("noisy-rows", spectrum, np.eye(p), size, 1) <= most


def test_denoising_method_by_noise_law() -> None:
    for family in FAMILIES:
        near = family in {"gaussian-iid", "laplace"}
        assert repair_name(family_law(family, 0.1, 3), 10) == ("shrunk" if near else "denoised")


# The trace of a second moment, from a released trace and public bounds.


def posterior_mean(released: float, sd: float, bound: float) -> float:
    smallest = sd if math.isinf(bound) else bound / 16
    t = np.linspace(0.0, min(bound, max(released, 0.0) + 15 * sd), 400_001)
    t = (t[1:] + t[:-1]) / 2
    density = np.exp(-(((t - released) / sd) ** 2) / 2 + (min(released, 0) / sd) ** 2 / 2)
    density /= t + smallest
    return float((t * density).sum() / density.sum())


@pytest.mark.parametrize("bound", [1.0, 8.0, math.inf])
@pytest.mark.parametrize("sd", [0.01, 0.5, 20.0])
def test_general_estimate_is_the_posterior_mean(sd: float, bound: float) -> None:
    for released in (-3 * sd, 0.0, 0.4, 1.0, 1 + 2 * sd):
        expected = posterior_mean(released, sd, bound)
        assert estimate_trace(released, sd, bound, False) == pytest.approx(expected, rel=1e-4)


def test_estimates_are_possible_traces() -> None:
    for unit in (False, True):
        for sd in (1e-9, 1e-3, 1.0, 1e6):
            for released in (-1e3, -1.0, 0.0, 1.0, 2.0, 1e3):
                assert 0 < estimate_trace(released, sd, 1.0, unit) <= 1.0
    assert estimate_trace(-1.0, 0.0, 1.0, False) == 0.0
    assert estimate_trace(0.4, 0.0, 1.0, True) == 0.4


def test_unit_rows_have_the_bound_as_trace_unless_contradicted() -> None:
    assert estimate_trace(-5.0, 4.0, 1.0, True) == 1.0
    assert estimate_trace(0.81, 0.1, 1.0, True) == 1.0
    assert estimate_trace(0.5, 0.1, 1.0, True) == estimate_trace(0.5, 0.1, 1.0, False)
    assert estimate_trace(0.5, 0.1, math.inf, True) == estimate_trace(0.5, 0.1, math.inf, False)
    steps = np.array([estimate_trace(t, 0.1, 1.0, True) for t in np.linspace(0, 1, 1001)])
    assert (np.diff(steps) >= 0).all()
    assert np.diff(steps).max() < 0.004
