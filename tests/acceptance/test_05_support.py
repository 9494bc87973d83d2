"""One-sided noise moves its support with the data, so it is never pure."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy import mechanisms
from gramercy.common.home import Home
from gramercy.mechanisms.mechanism import Mechanism
from gramercy.schemas.errors import GuaranteeRefused, RequestError
from tests.support.black_box.audit import count_impossible
from tests.support.black_box.outputs import Pair, single_outputs, worst_pair
from tests.support.conformance import FLOATING, PAIRS, calibrated
from tests.support.factories import read_plan, write_request

DRAWS = 100


def asked(name: str, **more: Any) -> dict[str, Any]:
    return {
        "mechanism": {"name": name, "calibration": "published", "epsilon": 1.0, **FLOATING, **more},
        "estimates": [],
    }


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_wishart_noise_claimed_as_pure_is_refused(
    neighbours: str, epsilon: float, tmp_path: Path
) -> None:
    """The error states its delta at every epsilon, 1 - e^(-eps/3), instead of 0."""
    request = write_request(
        tmp_path, request=asked("wishart", epsilon=epsilon, delta=0.0), neighbours=neighbours
    )
    with pytest.raises(GuaranteeRefused) as refused:
        read_plan(request)
    words = str(refused.value)
    assert f"asked for epsilon {epsilon:g} at delta 0;" in words
    assert f"delta {-math.expm1(-epsilon / 3):.4g} at that epsilon" in words
    assert not Home.default().ledger.exists()


@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_published_output_noise_is_refused(delta: float, tmp_path: Path) -> None:
    """Nothing is proven about it: its delta is 1."""
    request = write_request(tmp_path, request=asked("output", penalty=0.5, delta=delta))
    with pytest.raises(GuaranteeRefused) as refused:
        read_plan(request)
    words = str(refused.value)
    assert f"asked for epsilon 1 at delta {delta:g};" in words
    assert "delta 1 at that epsilon" in words


def test_exact_calibration_needs_a_delta(tmp_path: Path) -> None:
    mechanism = {"name": "wishart", "epsilon": 1.0, "delta": 0.0, **FLOATING}
    with pytest.raises(RequestError, match="never pure"):
        read_plan(write_request(tmp_path, request={"mechanism": mechanism}))


def impossible_outputs(mechanism: Mechanism, pair: Pair) -> int:
    """Count outputs of either neighbour that are impossible for the other, in 100 draws each."""
    slack = mechanism.setting.p if pair.one.dtype.kind == "i" else 1e-9
    given = [(pair.one, pair.rows[0]), (pair.other, pair.rows[1])]
    drawn = [single_outputs(mechanism, *each, DRAWS).values for each in given]
    return count_impossible(drawn[0], pair.one, pair.other, slack) + count_impossible(
        drawn[1], pair.other, pair.one, slack
    )


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("p", [1, 2, 5, 20])
def test_impossible_outputs_of_wishart_noise_are_detected(p: int, neighbours: str) -> None:
    """Each happens with probability 1 - e^(-1/3) = .28: none in 100 has probability 3e-15."""
    mechanism = mechanisms.registry["wishart"].published(
        p=p, n=1000, neighbours=neighbours, epsilon=1.0, delta=0.0, mean="kept"
    )
    assert 5 < impossible_outputs(mechanism, worst_pair(mechanism)) <= 2 * DRAWS


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
    more = {"mean": "kept"} if name == "wishart" else {}
    mechanism = calibrated(name, p=2, neighbours=neighbours, **more)
    assert impossible_outputs(mechanism, worst_pair(mechanism)) == 0
