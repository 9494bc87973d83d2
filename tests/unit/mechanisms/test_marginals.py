"""The mechanism `marginals`: calibration, guarantee, refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from gramercy import mechanisms
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.histograms import Marginals
from gramercy.mechanisms.mechanism import PublicParameters
from gramercy.schemas import families
from gramercy.schemas.contract import Neighbours
from tests.support.conformance import BOTH, calibrated
from tests.support.problems import raises

SENSITIVITY = {"replace-one": 2, "add-remove": 1}


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-5)])
def test_guarantee_is_the_requested_one(
    neighbours: Neighbours, epsilon: float, delta: float
) -> None:
    mechanism: Any = calibrated("marginals", neighbours=neighbours, epsilon=epsilon, delta=delta)
    guarantee = mechanism.guarantee
    assert guarantee.delta(epsilon) <= delta
    assert guarantee.epsilon(delta) <= epsilon
    assert guarantee.mu == pytest.approx(gdp_mu(epsilon, delta), rel=1e-12)
    assert (guarantee.delta0, guarantee.pure) == (0.0, math.inf)
    squared = sum(
        (
            Fraction(each.histograms * SENSITIVITY[neighbours]) / Fraction(each.scale) ** 2
            for each in mechanism.noise.draws
        ),
        Fraction(0),
    )
    assert squared <= Fraction(guarantee.mu) ** 2
    assert squared <= Fraction(gdp_mu(epsilon, delta)) ** 2


def test_budget_is_divided_in_the_stated_proportions() -> None:
    spec = Marginals.spec.model_validate({"name": "marginals", "mu": 0.5, "delta": 1e-6})
    shares = (0.08, 0.04, 0.04, 0.04)  # of a release; here they are all of mu
    for columns, p in ((None, 9), (4, 9)):
        parameters = PublicParameters(
            p, 1000, "replace-one", table_columns=columns, histogram_shares=shares
        )
        draws = Marginals.from_spec(spec, parameters).noise.draws
        assert [each.histograms for each in draws] == [columns or p] * 3 + [1]
        mus = [0.5 * math.sqrt(share / 0.2) for share in shares]
        assert [each.mu for each in draws] == pytest.approx(mus, rel=1e-12)


def test_constants_state_the_noise_of_every_draw() -> None:
    mechanism: Any = calibrated("marginals", p=6)
    constants, draws = mechanism.constants(), mechanism.noise.draws
    assert constants["scale"] == constants["scale_stage_3"]
    stated = [constants[f"scale_stage_{k}"] for k in (1, 2, 3)] + [constants["scale_lengths"]]
    assert stated == [each.scale for each in draws]
    assert constants["sensitivity"] == math.sqrt(12)
    assert constants["sensitivity_lengths"] == math.sqrt(2)


def test_counts_are_on_the_lattice_of_ones_and_there_is_no_matrix_noise() -> None:
    mechanism = calibrated("marginals")
    assert (mechanism.lattice.squared_radius, mechanism.lattice.divisor) == (1, 1.0)
    assert not mechanism.law.has_noise
    assert mechanism.description()["publishes"] == "marginals"


def test_unsupported_requests_are_refused() -> None:
    kind = mechanisms.registry["marginals"]
    with raises(families.UNSUPPORTED, mechanism="marginals"):
        kind.published(p=5, n=1000, neighbours="replace-one", epsilon=1.0, delta=1e-6)
    spec = kind.spec.model_validate({"name": "marginals", "epsilon": 1.0, "delta": 1e-6})
    with raises(families.UNSUPPORTED, mechanism="marginals"):
        kind.from_spec(spec, PublicParameters(5, 1000, "replace-one", privacy_unit="cell"))
    person = PublicParameters(5, 1000, "replace-one", privacy_unit="person")
    row = PublicParameters(5, 1000, "replace-one")
    assert kind.from_spec(spec, person).guarantee == kind.from_spec(spec, row).guarantee


def test_page_states_the_noise_of_thirty_columns() -> None:
    page = (Path(__file__).parents[3] / "docs/mechanisms/marginals.md").read_text("utf-8")
    for neighbours in BOTH:
        mechanism: Any = calibrated("marginals", p=30, neighbours=neighbours)
        assert f"{mechanism.noise.stages[-1].sd:.1f} under `{neighbours}`" in page
