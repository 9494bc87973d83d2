"""The stated epsilon: what was asked for, if it holds and only rounding tells them apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.plan.calibration import guarantee_facts
from tests.support.factories import read_plan, write_request

DELTA = 1e-6
ASKED = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)


def test_calibrated_noise_states_the_epsilon_that_was_asked_for() -> None:
    exact = [Guarantee(gdp_mu(epsilon, DELTA)) for epsilon in ASKED]
    assert any(each.epsilon(DELTA) != asked for each, asked in zip(exact, ASKED, strict=True))
    for each, asked in zip(exact, ASKED, strict=True):
        assert guarantee_facts(each, DELTA, asked).epsilon == asked
        assert each.delta(asked) <= DELTA


def test_an_epsilon_that_does_not_hold_is_not_stated() -> None:
    asked = 4.0
    weaker = Guarantee(gdp_mu(asked, DELTA) * (1 + 1e-13))
    assert weaker.delta(asked) > DELTA
    assert guarantee_facts(weaker, DELTA, asked).epsilon > asked


def test_more_noise_than_asked_for_states_its_own_epsilon() -> None:
    stronger = Guarantee(gdp_mu(4.0, DELTA) * (1 - 1e-6))
    assert guarantee_facts(stronger, DELTA, 4.0).epsilon == stronger.epsilon(DELTA) < 4.0


@pytest.mark.parametrize("request_keys", [{}, {"scaling": "private"}], ids=["declared", "private"])
def test_plans_state_the_epsilon_that_was_asked_for(
    request_keys: dict[str, Any], tmp_path: Path
) -> None:
    mechanism = {"name": "gaussian", "epsilon": 16.0, "delta": DELTA}
    normalisation = {"kind": "clip"} if request_keys else {"kind": "unit"}
    keys = {"mechanism": mechanism, "normalisation": normalisation, **request_keys}
    plan = read_plan(write_request(tmp_path, request=keys, intercept=True, rows=9_000))
    assert plan.guarantee.epsilon(DELTA) < 16.0
    assert plan.facts()["epsilon"] == 16.0
