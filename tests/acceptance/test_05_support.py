"""The support of one-sided noise depends on the data, so it has no pure epsilon."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy import mechanisms
from gramercy.common.home import Home
from gramercy.schemas import families
from tests.support.black_box.audit import impossible_outputs
from tests.support.black_box.outputs import Pair, worst_pair
from tests.support.conformance import FLOATING, PAIRS, calibrated
from tests.support.factories import read_plan, write_request
from tests.support.problems import raises


def published_request(name: str, **keys: Any) -> dict[str, Any]:
    return {
        "mechanism": {"name": name, "calibration": "published", "epsilon": 1.0, **FLOATING, **keys},
        "estimates": [],
    }


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_wishart_noise_claimed_as_pure_is_refused(
    neighbours: str, epsilon: float, tmp_path: Path
) -> None:
    """The error states its delta at every epsilon, 1 - e^(-eps/3), instead of 0."""
    facts = published_request("wishart", epsilon=epsilon, delta=0.0)
    request = write_request(tmp_path, request=facts, neighbours=neighbours)
    with raises(families.GUARANTEE, epsilon=epsilon, delta=0.0) as refused:
        read_plan(request)
    exact = -math.expm1(-epsilon / 3)
    assert refused.value.facts["exact_delta"] == pytest.approx(exact, rel=1e-6)
    assert not Home.default().ledger.exists()


@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_published_output_noise_is_refused(delta: float, tmp_path: Path) -> None:
    """No bound is proven for it, so its delta is 1."""
    facts = published_request("output", penalty=0.5, delta=delta)
    request = write_request(tmp_path, request=facts)
    with raises(families.GUARANTEE, epsilon=1.0, delta=delta, exact_delta=1.0):
        read_plan(request)


def test_exact_calibration_needs_a_delta(tmp_path: Path) -> None:
    mechanism = {"name": "wishart", "epsilon": 1.0, "delta": 0.0, **FLOATING}
    with raises(families.VALUE):
        read_plan(write_request(tmp_path, request={"mechanism": mechanism}))


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("p", [1, 2, 5, 20])
def test_impossible_outputs_of_wishart_noise_are_detected(p: int, neighbours: str) -> None:
    """Each occurs with probability 1 - e^(-1/3) = 0.28; a hundred draws miss it with 3e-15."""
    mechanism = mechanisms.registry["wishart"].published(
        p=p, n=1000, neighbours=neighbours, epsilon=1.0, delta=0.0, mean="kept"
    )
    assert 5 < impossible_outputs(mechanism, worst_pair(mechanism)) <= 200


def test_impossible_outputs_of_published_output_noise_are_detected() -> None:
    """One column: the solution is 1 / (S + penalty), the noise chi-squared."""
    n, penalty = 10, 4.0
    mechanism = mechanisms.registry["output"].published(
        p=1, n=n, neighbours="replace-one", epsilon=1.0, delta=0.0, penalty=penalty
    )
    solutions = [np.array([[1 / (moment + penalty)]]) for moment in (1.0, 1 - 1 / n)]
    assert impossible_outputs(mechanism, Pair(*solutions)) > 5


@pytest.mark.parametrize(
    ("name", "neighbours"),
    [each for each in PAIRS if each[0] not in {"rows", "integer-rows", "local"}],
)
def test_calibrated_mechanisms_have_no_impossible_outputs(name: str, neighbours: str) -> None:
    """Wishart noise has some with a probability below delta."""
    keys = {"mean": "kept"} if name == "wishart" else {}
    mechanism = calibrated(name, p=2, neighbours=neighbours, **keys)
    assert impossible_outputs(mechanism, worst_pair(mechanism)) == 0
