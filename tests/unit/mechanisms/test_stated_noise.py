"""The stated noise and guarantee, of matrices and rows, against moments and exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from gramercy.mechanisms.accounting.wishart_profile import add_remove_profile, replace_one_bound
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.matrix_laplace import one_row_score_bound, two_row_score_bound
from gramercy.mechanisms.mechanism import (
    Additive,
    PublicParameters,
    nominal_deviations,
)
from gramercy.mechanisms.output_perturbation import solver_tolerance
from gramercy.mechanisms.rows import Rows
from gramercy.mechanisms.sampling.rounding import rounded_variance
from gramercy.mechanisms.wishart import Wishart
from gramercy.schemas import families
from gramercy.schemas.neighbours import Neighbours
from tests.support.black_box.replay import patched_sampler
from tests.support.conformance import BOTH, CASES, calibrated
from tests.support.problems import raises

DRAWS = 1500
WITH_COUNT: dict[str, Any] = {"neighbours": "add-remove", "publishes_noisy_count": True}


def seeded(seed: int) -> Callable[[str, tuple[float, ...], int], np.ndarray[Any, Any]]:
    """The laws of the sampler, from a seeded generator."""
    rng = np.random.default_rng(seed)

    def draw(law: str, parameters: tuple[float, ...], size: int) -> np.ndarray[Any, Any]:
        if law == "gaussian":
            return rng.normal(size=size)
        if law == "gamma":
            return rng.gamma(parameters[0], size=size)
        noise = {"rounded_gaussian": rng.normal, "rounded_laplace": rng.laplace}[law](size=size)
        return np.rint(parameters[0] * noise).astype(np.int64)

    return draw


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        *((name, {}) for name in ("gaussian", "gaussian-iid", "laplace", "k-norm")),
        *((name, WITH_COUNT) for name in ("laplace", "k-norm", "matrix-laplace")),
        ("matrix-laplace", {}),
        ("wishart", {"mean": "kept", "epsilon": 8.0, "delta": 0.1}),
        ("wishart", {"mean": "removed"}),
    ],
)
def test_drawn_noise_has_the_stated_moments(name: str, keys: dict[str, Any]) -> None:
    """Five standard errors of 1,500 draws; a wrong degree of freedom is 12 % or more."""
    p = 3
    made = calibrated(name, p=p, **keys)
    assert isinstance(made, Additive)
    with patched_sampler(seeded(5)):
        drawn = [made.perturb(np.zeros((p, p), dtype=np.int64), 0) for _ in range(DRAWS)]
    noise = np.array([each.gram for each in drawn]) / made.lattice.divisor
    assert (noise == noise.transpose(0, 2, 1)).all()
    on = noise[:, np.arange(p), np.arange(p)]
    off = noise[:, *np.triu_indices(p, 1)]
    law = made.law
    assert on.std() == pytest.approx(law.sd_diagonal, rel=0.06)
    assert off.std() == pytest.approx(law.sd_off_diagonal, rel=0.06)
    assert on.mean() == pytest.approx(law.mean, abs=0.09 * law.sd_diagonal)
    assert off.mean() == pytest.approx(0.0, abs=0.09 * law.sd_off_diagonal)
    if made.sd_rows is None:
        assert all(each.rows is None for each in drawn)
    else:
        assert np.std([each.rows for each in drawn]) == pytest.approx(made.sd_rows, rel=0.1)


def levels(key: str) -> list[dict[str, float]]:
    return [{key: float(level)} for level in np.geomspace(0.01, 15, 25)]


def squared_sensitivity(name: str, neighbours: Neighbours, p: int, count: bool) -> Fraction:
    """The squared change in the norm of the mechanism, exactly; counts weigh 1/4, or 1/10."""
    if neighbours == "replace-one":
        return {"laplace": Fraction(p * p + 3 * p, 2), "matrix-laplace": Fraction(1)}.get(
            name, Fraction(2)
        )
    if name == "laplace":
        return (Fraction(p + 1, 2) + Fraction(count, 4)) ** 2
    if name == "matrix-laplace":
        return (Fraction(1, 2) + count * Fraction(0.1) / 2) ** 2
    return 1 + Fraction(count, 16)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "k-norm", "matrix-laplace"])
@pytest.mark.parametrize(
    ("neighbours", "count"),
    [
        pytest.param(BOTH[0], False, marks=pytest.mark.slow),
        pytest.param(BOTH[1], False, marks=pytest.mark.slow),
        (BOTH[1], True),
    ],
)
def test_pure_epsilon_is_rounded_up(name: str, neighbours: Neighbours, count: bool) -> None:
    """By rational arithmetic: no guarantee is better than the noise by a single bit."""
    for p in (2, 5):
        squared = squared_sensitivity(name, neighbours, p, count)
        public = {"p": p, "neighbours": neighbours, "publishes_noisy_count": count}
        for level in (*levels("epsilon"), *levels("mu")):
            made: Any = calibrated(name, **public, **{"epsilon": None} | level)
            guarantee = made.guarantee
            assert (Fraction(guarantee.pure) * Fraction(made.scale)) ** 2 >= squared
            assert guarantee.pure <= level.get("epsilon", math.inf)
            assert guarantee.mu <= level.get("mu", math.inf)


@pytest.mark.parametrize("neighbours", BOTH)
def test_mu_of_scores_is_rounded_up(neighbours: Neighbours) -> None:
    """Many columns, where it is smaller than what follows from the pure epsilon."""
    with mpmath.workdps(40):
        half_pi = mpmath.sqrt(mpmath.pi / 2)
        for level in levels("epsilon"):
            laplace: Any = calibrated("laplace", p=64, neighbours=neighbours, **level)
            change = mpmath.sqrt(2) if neighbours == "replace-one" else 1
            exact = half_pi * change / mpmath.mpf(laplace.scale)
            assert exact <= laplace.guarantee.mu <= exact * (1 + 1e-14)
        for level in levels("epsilon"):
            made: Any = calibrated("matrix-laplace", p=64, **WITH_COUNT, **level)
            weight = mpmath.mpf(0.1)
            score = mpmath.sqrt(mpmath.mpf("1.7") / mpmath.mpf("63.5"))
            exact = mpmath.hypot(score, weight * half_pi) / (2 * mpmath.mpf(made.scale))
            assert exact <= made.guarantee.mu <= exact * (1 + 1e-13)


def test_score_bounds_of_one_and_two_rows() -> None:
    root = math.sqrt(math.pi / 2)
    assert one_row_score_bound(1) == two_row_score_bound(1) == pytest.approx(root, rel=1e-14)
    assert one_row_score_bound(2) == pytest.approx(math.sqrt(1.7 / 1.5), rel=1e-14)
    assert one_row_score_bound(5000) == pytest.approx(1 / 22, rel=1e-14)
    assert two_row_score_bound(2) == pytest.approx(root, rel=1e-8)  # 1 / E |N(0, 1)|
    assert two_row_score_bound(3) == pytest.approx(1 / root, rel=1e-8)
    assert two_row_score_bound(5000) == one_row_score_bound(5000) / 2


def wishart(p: int = 3, neighbours: Neighbours = "replace-one", **keys: Any) -> Wishart:
    share = keys.pop("failure_share", None)
    spec = Wishart.spec.model_validate({"name": "wishart", **CASES["wishart"].keys, **keys})
    return Wishart.from_spec(spec, PublicParameters(p, 100, neighbours, failure_share=share))


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", BOTH)
def test_wishart_guarantee_is_that_of_its_neighbours(neighbours: Neighbours) -> None:
    made = wishart(neighbours=neighbours, epsilon=1.0, delta=1e-6, calibration="published")
    profile = {"replace-one": replace_one_bound, "add-remove": add_remove_profile}[neighbours]
    for epsilon in (0.0, 0.1, 0.5):
        exact = profile(made.dof - 2, made.scale, epsilon)
        assert made.guarantee.delta(epsilon) == pytest.approx(exact, rel=1e-9)
    assert made.constants()["degrees_of_freedom"] == made.dof
    assert made.sensitivity == 1.0


def test_published_degrees_of_freedom() -> None:
    def published(epsilon: float, delta: float, **keys: Any) -> Wishart:
        return wishart(epsilon=epsilon, delta=delta, calibration="published", **keys)

    assert published(0.5, 1e-6).dof == pytest.approx(3 + 56 * math.log(4e6), rel=1e-12)
    assert published(20.0, 0.5).dof == 4  # never fewer than p + 1
    assert published(2.0, 0.0).dof == 4
    assert published(2.0, 0.0).scale == 0.75
    most = math.sqrt(14 / 1e9 * math.log(4e6))
    assert published(most * (1 + 1e-9), 1e-6, p=500).dof == pytest.approx(1e9, rel=1e-5)
    with raises(families.NOISE_RANGE):
        published(most * (1 - 1e-9), 1e-6, p=500)


@pytest.mark.parametrize("calibration", ["exact", "published"])
def test_failure_probability_of_wishart_noise(calibration: str) -> None:
    """A thousandth of the budget's failure share, or else a share of the request's delta."""
    keys = {"epsilon": 1.0, "delta": 1e-3, "calibration": calibration}
    assert wishart(**keys).target_delta0 == pytest.approx(1e-5, rel=1e-15)
    assert wishart(**keys, mean="kept").target_delta0 == pytest.approx(3e-4, rel=1e-15)
    assert wishart(**keys, failure_share=1e-6).target_delta0 == 1e-6 / 1024
    pure = wishart(epsilon=1.0, delta=0.0, calibration="published")
    assert pure.target_delta0 == 1e-12


def test_wishart_noise_has_no_noisy_count() -> None:
    for calibration in ("exact", "published"):
        with raises(families.UNSUPPORTED):
            calibrated("wishart", **WITH_COUNT, calibration=calibration)


@pytest.mark.parametrize(("p", "penalty"), [(2, 0.02), (50, 0.5), (2000, 0.2), (2000, 1.0)])
@pytest.mark.parametrize("n", [100, 10**9])
def test_tolerance_covers_the_gap_and_rounding(p: int, penalty: float, n: int) -> None:
    """In rational arithmetic: few rows let the solver's share decide, many the gap it reaches."""
    parameters = PublicParameters(p, n, "replace-one")
    largest, ulp = Fraction(p) / Fraction(penalty), Fraction(1, 2**53)
    gap = p * Fraction(1e-10) + 16 * p**3 * ulp
    rounding = ulp * ((4 + p * Fraction(penalty)) * largest**2 + 4 * (p + 1) * largest)
    allowed = float(rounding) + float(largest) * math.sqrt(2 * gap)
    share = math.sqrt(2) / n * float(largest) ** 2 / 1024
    tolerance = solver_tolerance(parameters, penalty)
    assert tolerance >= max(allowed, share)
    assert tolerance <= max(1.0157 * allowed, share * (1 + 1e-12))


@pytest.mark.parametrize("scale", [0.1, 0.5, 3.0, 9.99, 10.0, 10.01, 60.0])
def test_variance_of_rounded_noise_is_that_of_its_cells(scale: float) -> None:
    edges = np.arange(-1500, 1502) - 0.5
    tails = stats.norm.sf(np.abs(edges) / scale)  # differences of small numbers, not of ones
    cells = np.abs(np.diff(tails))
    cells[1500] = 1 - 2 * stats.norm.sf(0.5 / scale)
    exact = float((np.arange(-1500, 1501) ** 2 * cells).sum())
    assert rounded_variance(scale) == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize(("mean_squared_norm", "variance"), [(1.0, 0.3), (7.0, 0.3), (1.0, 4.0)])
def test_deviations_are_those_of_products_of_noisy_cells(
    mean_squared_norm: float, variance: float
) -> None:
    """By Gauss-Hermite quadrature, which is exact for polynomials of this degree."""
    p, n = 5, 30
    public = PublicParameters(p, n, "replace-one", mean_squared_norm=mean_squared_norm)
    x = math.sqrt(mean_squared_norm / p)
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    weights = weights / weights.sum()
    y = x + math.sqrt(variance) * nodes
    on = weights @ y**4 - (weights @ y**2) ** 2
    off = (weights @ y**2) ** 2 - (weights @ y) ** 4
    expected = (math.sqrt(n * on), math.sqrt(n * off))
    assert nominal_deviations(public, variance) == pytest.approx(expected, rel=1e-12)


def noisy_rows(**level: Any) -> Rows:
    return Rows.calibrated(p=3, n=1000, neighbours="replace-one", delta=1e-6, **level)


def test_gram_of_noisy_rows_has_the_noise_removed_from_its_diagonal() -> None:
    rows = noisy_rows(mu=1.0)
    noisy = np.arange(12.0).reshape(3, 4)
    difference = noisy @ noisy.T - rows.gram(noisy)
    assert rows.law.cell_variance is not None
    assert difference == pytest.approx(4 * rows.law.cell_variance * np.eye(3), rel=1e-12)


def test_variance_of_a_cell_is_in_the_units_of_published_rows() -> None:
    rows = noisy_rows(mu=1.0)
    units = rows.lattice.squared_radius * rows.scale**2 + 1 / 12  # scales of rows are large
    assert rows.law.cell_variance == pytest.approx(units * rows.step**2, rel=1e-12)


@pytest.mark.parametrize("snr", [-20.0, 0.0, 6.0])
def test_signal_to_noise_ratio_is_that_of_a_cell(snr: float) -> None:
    rows = noisy_rows(snr=snr)
    assert rows.scale**2 == pytest.approx(10 ** (-snr / 10) / 3, rel=1e-12)
    assert rows.constants()["snr_db"] == pytest.approx(snr, abs=1e-9)
    assert rows.guarantee.mu == pytest.approx(2 / rows.scale, rel=1e-9)


def test_noisy_count_is_one_coordinate_of_weight_a_quarter() -> None:
    """The weight cancels from the guarantee, and decides between matrix and count."""
    facts: dict[str, Any] = {
        "p": 3,
        "n": 1000,
        "neighbours": "add-remove",
        "mu": 0.5,
        "delta": 1e-6,
    }
    alone, counted = (
        Gaussian.calibrated(**facts, publishes_noisy_count=count) for count in (False, True)
    )
    assert alone.sd_rows is None
    assert counted.sd_rows == 4 * counted.sd_diagonal
    assert counted.sd_diagonal / alone.sd_diagonal == pytest.approx(math.sqrt(17 / 16), rel=1e-12)
    assert alone.sd_diagonal == pytest.approx(2.0, rel=1e-12)
