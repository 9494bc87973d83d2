"""Each mechanism asks the sampler for the law that it states, and adds it as it states."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gramercy import mechanisms
from gramercy.mechanisms.accounting.gdp import zcdp_delta
from gramercy.mechanisms.histograms import HistogramNoise
from gramercy.mechanisms.local import Local
from gramercy.mechanisms.mechanism import PublicParameters, SensitivityBounds
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.rows import IntegerRows
from gramercy.mechanisms.sampling.rounding import rounded_variance
from gramercy.mechanisms.sampling.sampler import MAX_DISCRETE_SIGMA, discrete_gaussian_variance
from gramercy.schemas import families
from tests.support.black_box.replay import Tape, patched_sampler
from tests.support.conformance import calibrated
from tests.support.problems import raises

INTEGERS = np.arange(-6, 6).reshape(3, 4)
CLASSICAL = math.sqrt(2 * math.log(1.25 / 1e-6))  # the published scale at epsilon = 1


def integer_rows(squared_sensitivity: int = 25, **changes: Any) -> IntegerRows:
    """The published variant of three columns, at epsilon = 1 and delta = 1e-6."""
    bounds = SensitivityBounds(squared_sensitivity, squared_sensitivity, 100)
    public = PublicParameters(3, 10, "replace-one", sensitivity_bounds=bounds, **changes)
    keys = {"name": "integer-rows", "epsilon": 1.0, "delta": 1e-6, "calibration": "published"}
    return IntegerRows.from_spec(IntegerRows.spec.model_validate(keys), public)


def test_integer_rows_draw_the_law_that_their_guarantee_is_for() -> None:
    for made, law in (
        (integer_rows(), "discrete_gaussian"),
        (calibrated("integer-rows", p=3), "rounded_gaussian"),
    ):
        assert isinstance(made, IntegerRows)
        tape = Tape([])
        with patched_sampler(tape):
            noisy = made.randomize(INTEGERS)
        assert tape.requests == [(law, (made.scale,), 12)]
        noise = Tape([])(law, (made.scale,), 12)
        assert (noisy - INTEGERS).ravel().tolist() == noise.tolist()


def test_variance_of_integer_rows_is_that_of_their_law() -> None:
    """The discrete Gaussian has less than the rounded one."""
    discrete, rounded = integer_rows(), calibrated("integer-rows", p=3)
    assert isinstance(rounded, IntegerRows)
    assert discrete.law.cell_variance == discrete_gaussian_variance(discrete.scale)
    assert rounded.law.cell_variance == rounded_variance(rounded.scale)


@pytest.mark.slow
def test_discrete_gaussian_is_charged_by_its_zcdp() -> None:
    made = integer_rows()
    rho = 25 / (2 * made.scale**2)
    for epsilon in (0.0, 0.7, 2.0):
        assert made.guarantee.delta(epsilon) == pytest.approx(zcdp_delta(rho, epsilon), rel=1e-9)
    assert made.guarantee.delta0 == pytest.approx(1e-7, rel=1e-6)
    shared = integer_rows(failure_share=1024e-9)
    assert shared.guarantee.delta0 == pytest.approx(1e-9, rel=1e-6)


def test_widest_discrete_gaussian() -> None:
    at_one = integer_rows(1).scale
    widest = math.floor((MAX_DISCRETE_SIGMA / at_one) ** 2)
    assert integer_rows(widest).scale == pytest.approx(MAX_DISCRETE_SIGMA, rel=1e-7)
    with raises(families.NOISE_RANGE):
        integer_rows(widest + 1)


def local_reports(**keys: Any) -> Local:
    made = calibrated("local", p=3, **keys)
    assert isinstance(made, Local)
    return made


@pytest.mark.parametrize("published", [False, True])
def test_local_reports_have_noise_on_every_product(published: bool) -> None:
    """White in svec coordinates; as published, of one scale on the upper triangle."""
    made = local_reports()
    if published:
        kind = mechanisms.registry["local"]
        made = kind.published(p=3, n=1000, neighbours="replace-one", epsilon=1.0, delta=1e-6)
        assert made.scale == pytest.approx(CLASSICAL, rel=1e-12)
    units = 1 << 24  # lattice units of a product of two cells
    diagonal = made.scale * units
    off_diagonal = diagonal if published else diagonal / math.sqrt(2)
    tape = Tape([])
    with patched_sampler(tape):
        reports = made.randomize(INTEGERS)
    assert [(law, size) for law, _, size in tape.requests] == [("rounded_gaussian", 12)] * 2
    scales = [scale for _, (scale,), _ in tape.requests]
    assert scales == pytest.approx([diagonal, off_diagonal], rel=1e-12)
    replay = Tape([])
    noise = [replay(*request).reshape(3, 4) for request in tape.requests]
    on, off = iter(noise[0]), iter(noise[1])
    for report, (i, j) in zip(reports, zip(*np.triu_indices(3), strict=True), strict=True):
        expected = INTEGERS[i] * INTEGERS[j] + next(on if i == j else off)
        assert report.tolist() == expected.tolist()
    root = math.sqrt(1000) * made.step
    assert made.law.family == ("gaussian-iid" if published else "gaussian-isotropic")
    stated = (made.law.sd_diagonal, made.law.sd_off_diagonal)
    assert stated == pytest.approx((diagonal * root, off_diagonal * root), rel=1e-12)
    assert made.constants() == {"scale": made.scale, "sensitivity": math.sqrt(2)}


def test_matrix_of_local_reports_is_their_sum() -> None:
    reports = np.arange(12.0).reshape(6, 2)
    a, b, c, d, e, f = reports.sum(axis=1)
    assert local_reports().gram(reports).tolist() == [[a, b, c], [b, d, e], [c, e, f]]


def test_longest_report() -> None:
    """5,000 products of two columns: 4,950 of 99 columns are fewer, 5,050 of 100 are more."""
    assert calibrated("local", p=99).parameters.p == 99
    with raises(families.NOISE_RANGE, entries=5050):
        calibrated("local", p=100)


def test_least_and_largest_scale_of_histograms() -> None:
    """From 1/16 to 2^45, both exclusive."""
    assert HistogramNoise.with_mu(1, "add-remove", 15.99).scale < 0.0626
    assert HistogramNoise.with_mu(1, "add-remove", 2.0**-44.99).scale > 2.0**44.98
    for mu, problem in ((16.01, families.NOISE_RANGE), (2.0**-45.01, families.NOISE_RANGE)):
        with raises(problem, mechanism="histograms"):
            HistogramNoise.with_mu(1, "add-remove", mu)


def test_delta_of_zcdp_is_a_probability_and_never_zero() -> None:
    assert zcdp_delta(1e-6, 100.0) == 5e-324
    assert zcdp_delta(50.0, 0.0) == 1.0


def test_least_penalty_and_largest_tolerance_of_the_solver() -> None:
    """The penalty is at least 0.01, and p times 1e-4 from 100 columns on."""
    for p, least in ((5, 0.01), (50, 0.01), (200, 0.02)):
        assert calibrated("output", p=p, penalty=least * 1.01).parameters.p == p
        with raises(families.NOISE_RANGE):
            calibrated("output", p=p, penalty=least * 0.99)
    few_rows, many_rows = (calibrated("output", penalty=0.5, n=n) for n in (100, 10**9))
    assert isinstance(few_rows, Output)
    assert isinstance(many_rows, Output)
    assert few_rows.tolerance == pytest.approx(math.sqrt(2) / 100 * 10**2 / 1024, rel=1e-12)
    assert many_rows.tolerance >= 10 * math.sqrt(2 * 5e-10)  # p / penalty sqrt(2 gap)
