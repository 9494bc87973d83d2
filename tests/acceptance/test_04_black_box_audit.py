"""The lower bounds of a black-box audit never exceed the claim, and come close to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

from gramercy import mechanisms
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import Mechanism, PublicParameters, SensitivityBounds
from gramercy.mechanisms.rows import IntegerRows, Rows
from tests.support.black_box.audit import audit, audit_statistics
from tests.support.black_box.likelihood_ratios import log_density, log_likelihood_ratio
from tests.support.black_box.outputs import (
    Pair,
    batched_outputs,
    integers,
    single_outputs,
    worst_pair,
)
from tests.support.conformance import ALL_PAIRS, CASES, PAIRS, calibrated
from tests.support.factories import FULL, at_scale

DRAWS = at_scale(20_000, 400_000)
Factory = Callable[[], Mechanism]


def two_columns(name: str, neighbours: str, **options: Any) -> Factory:
    return lambda: calibrated(name, **{"p": 2, "neighbours": neighbours, **options})


def published(name: str, neighbours: str, delta: float | None = None, **keys: Any) -> Factory:
    """A mechanism with a paper's scale; its exact guarantee is the claim."""
    kind = mechanisms.registry[name]
    return lambda: kind.published(
        p=2, n=1000, epsilon=1.0, neighbours=neighbours, delta=delta, **keys
    )


def bounded_rows(kind: type[Rows], **options: Any) -> Factory:
    """Rows of two cells from 0 to 3 and 0 to 1, protected per row or per cell."""
    unit = options.pop("privacy_unit", "row")
    bounds = SensitivityBounds(squared_row=9 + 1, squared_cell=9, squared_norm=10)
    if kind is Rows:
        bounds = SensitivityBounds(squared_row=10 << 28, squared_cell=9 << 28, squared_norm=1 << 32)
    parameters = PublicParameters(
        p=2, n=1000, neighbours="replace-one", privacy_unit=unit, sensitivity_bounds=bounds
    )
    spec = {"name": kind.name, "epsilon": 1.0, "delta": 1e-6, **options}
    return lambda: kind.from_spec(kind.spec.model_validate(spec), parameters)


AUDITED: dict[str, Factory] = {
    **{f"{name}, {relation}": two_columns(name, relation) for name, relation in ALL_PAIRS},
    **{
        f"{name}, {relation}, p = {p}": two_columns(name, relation, p=p)
        for name, relation in PAIRS
        for p in (1, 3)
        if name == "matrix-laplace"
    },
    **{
        f"{name}, counted": two_columns(name, "add-remove", publishes_noisy_count=True)
        for name, relation in PAIRS
        if relation == "add-remove" and name != "wishart"
    },
    "gaussian, epsilon 8": two_columns("gaussian", "replace-one", epsilon=8.0),
    "wishart, published pure": published("wishart", "add-remove", 0.0),
    "wishart, published pure, replace-one": published("wishart", "replace-one", 0.0),
    "gaussian-iid, WX": published("gaussian-iid", "replace-one", 1e-6, paper="WX"),
    "local, published": published("local", "replace-one", 1e-6),
    "rows, per cell": bounded_rows(Rows, privacy_unit="cell"),
    "integer-rows, bounds": bounded_rows(IntegerRows),
    "integer-rows, published": bounded_rows(IntegerRows, calibration="published"),
}
if FULL:  # their profiles take seconds
    AUDITED |= {
        "wishart, mean kept": two_columns("wishart", "add-remove", mean="kept"),
        "wishart, mean kept, replace-one": two_columns("wishart", "replace-one", mean="kept"),
        "wishart, published": published("wishart", "add-remove", 1e-6),
    }

# The share of the claim that 400,000 outputs of each neighbour prove at confidence 1 - 1e-6: of
# mu = 0.24 (five standard deviations of the bound below the observed one), and of a pure epsilon,
# which is attained only in the tails. Other mechanisms need not prove anything.
PROVEN = dict.fromkeys(
    ("gaussian", "gaussian-iid", "rows", "integer-rows", "output", "marginals"), 0.7
)
PROVEN_PURE = {"laplace": 0.8, "k-norm": 0.6, "matrix-laplace": 0.5}


@pytest.mark.parametrize("case", AUDITED)
def test_audit_never_exceeds_the_claim(case: str) -> None:
    mechanism = AUDITED[case]()
    # Large noise on reports needs the sampler's exact path once in 3,000 numbers: use fewer draws.
    draws = min(DRAWS, 40_000) if mechanism.name == "local" else DRAWS
    bounds = audit(mechanism, worst_pair(mechanism), draws, compared=at_scale(20, 200))
    claim = mechanism.guarantee
    assert bounds.alarms(claim) == []
    if FULL and "published" not in case:
        assert bounds.mu >= PROVEN.get(mechanism.name, -1.0) * claim.mu
        if claim.pure < math.inf:
            assert bounds.epsilon >= PROVEN_PURE[mechanism.name] * claim.pure


def test_audit_proves_most_of_a_larger_claim() -> None:
    mechanism = calibrated("gaussian", p=2, mu=1.0, epsilon=None)
    bounds = audit(mechanism, worst_pair(mechanism), DRAWS)
    assert at_scale(75, 94) / 100 < bounds.mu <= 1.0


@pytest.mark.parametrize(("name", "neighbours"), ALL_PAIRS)
def test_batched_outputs_have_the_law_of_single_calls(name: str, neighbours: str) -> None:
    """The sampler draws once or in batches. `batched_outputs` checks equality for equal draws."""
    mechanism = two_columns(name, neighbours)()
    pair, draws = worst_pair(mechanism), at_scale(200, 2000)
    batched = batched_outputs(mechanism, pair.second, pair.rows[1], 20_000, compared=5)
    single = single_outputs(mechanism, pair.second, pair.rows[1], draws)
    statistics = [log_likelihood_ratio(mechanism, pair, each) for each in (batched, single)]
    assert ks_2samp(*statistics).pvalue > 1e-6


class TooLittleNoise:
    """Noise for a sensitivity of 1/n instead of sqrt2/n, with the same claim."""

    def __init__(self) -> None:
        honest = calibrated("gaussian", p=2)
        self.claim = honest.guarantee
        self.mechanism = replace(honest, scale=honest.scale / math.sqrt(2))


def test_wrong_sensitivity_is_detected_with_60_000_draws() -> None:
    flaw = TooLittleNoise()
    pair = worst_pair(flaw.mechanism)
    detected = [
        bool(audit(flaw.mechanism, pair, 60_000).alarms(flaw.claim)) for _ in range(at_scale(2, 20))
    ]
    assert sum(detected) >= at_scale(1, 19)  # an audit misses it once in several thousand


def test_audit_raises_no_false_alarms() -> None:
    """400 audits at confidence 1 - 1e-6."""
    calibrated_mechanisms = [
        two_columns(name, relation)() for name, relation in PAIRS if name != "local"
    ]
    for i in range(at_scale(40, 400)):
        mechanism = calibrated_mechanisms[i % len(calibrated_mechanisms)]
        bounds = audit(mechanism, worst_pair(mechanism), 4000, compared=1)
        assert bounds.alarms(mechanism.guarantee) == [], mechanism.name


def test_audit_bounds_have_the_stated_confidence() -> None:
    """At confidence 1/2, bounds above the truth are rare enough, and do occur."""
    rng = np.random.default_rng(5)
    audits, alarms = at_scale(200, 2000), 0
    for _ in range(audits):
        bounds = audit_statistics(rng.normal(size=500), rng.normal(size=500) + 1.0, confidence=0.5)
        alarms += bool(bounds.alarms(Guarantee(1.0)))
    assert alarms < 0.5 * audits
    assert alarms > 0  # not so conservative that no violation could be detected


# Matrix Laplace noise and its proof are new in Gramercy, so they are audited more closely.


@pytest.mark.parametrize("p", [2, 3])
@pytest.mark.parametrize("angle", [0.0, 0.3, 1.0, math.pi / 2, 3.0])
def test_matrix_laplace_audit_at_other_angles(p: int, angle: float) -> None:
    """Closer rows are harder to tell apart, by the nuclear norm of their difference."""
    mechanism = calibrated("matrix-laplace", p=p)
    claim = Guarantee.from_pure(math.sin(angle) * 1.001 + 1e-3)
    bounds = audit(mechanism, worst_pair(mechanism, angle), at_scale(10_000, 100_000))
    assert bounds.alarms(claim) == []


@pytest.mark.parametrize("epsilon", [0.1, 5.0])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_matrix_laplace_audit_at_other_epsilons(p: int, epsilon: float) -> None:
    mechanism = calibrated("matrix-laplace", p=p, epsilon=epsilon)
    bounds = audit(mechanism, worst_pair(mechanism), at_scale(10_000, 100_000))
    assert bounds.alarms(mechanism.guarantee) == []


def test_matrix_laplace_audit_with_short_rows() -> None:
    """Short rows, and a direction in which every entry changes."""
    mechanism = calibrated("matrix-laplace", p=3)
    first, second = integers(mechanism, np.ones(3), [1.0, -2.0, 0.5]).T
    for x, y in ((first, second), (first // 2, second), (first, first // 3)):
        pair = Pair(np.outer(x, x), np.outer(y, y))
        bounds = audit(mechanism, pair, at_scale(10_000, 100_000))
        assert bounds.alarms(mechanism.guarantee) == []


def point(middle: Any, first: Any, second: Any) -> Any:
    """[[middle + first, second], [second, middle - first]], for arrays of each."""
    return np.moveaxis(np.array([[middle + first, second], [second, middle - first]]), -1, 0)


def test_matrix_laplace_density_is_correct() -> None:
    """Half its trace is a difference of two Gamma(3), of density e^-t (3 + 3 t + t^2) / 16."""

    nodes, weights = np.polynomial.legendre.leggauss(200)

    def marginal(middle: float) -> float:
        total = 0.0
        for start, end in ((0.0, middle), (middle, middle + 8), (middle + 8, middle + 50)):
            half = start + (end - start) / 2 * (1 + nodes)
            density = log_density(point(middle + 0 * half, half, 0 * half), 64)
            total += float(((end - start) * weights * half * np.exp(density)).sum())
        return total

    ratios = [marginal(t) / (math.exp(-t) * (3 + 3 * t + t * t)) for t in (0.0, 0.3, 1.0, 3.0, 8.0)]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-7)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("lengths", [(1.0, 1.0), (1.0, 0.5), (1.0, 0.0)])
def test_matrix_laplace_density_ratio_is_bounded(
    epsilon: float, lengths: tuple[float, float]
) -> None:
    """With exact densities far into the tails, e^epsilon is approached and never exceeded."""
    scale = 1 / epsilon
    rng = np.random.default_rng(11)
    count, worst = at_scale(4000, 40_000), 0.0
    for angle in (math.pi / 2, 1.0, 0.2):
        x = lengths[0] * np.array([1.0, 0.0])
        y = lengths[1] * np.array([math.cos(angle), math.sin(angle)])
        change = (np.outer(x, x) - np.outer(y, y)) / scale
        points = rng.normal(size=(3, count)) * 10.0 ** rng.uniform(-2, 2.6, size=count)
        noise = point(*points)
        # Also along the change, where the ratio is largest, but never exactly on it.
        along = 10.0 ** rng.uniform(-1, 2.8, size=count) * rng.choice([-1, 1], size=count)
        noise[::2] = 0.01 * noise[::2] + (along[:, None, None] * change / epsilon)[::2]
        log_ratios = np.abs(log_density(noise + change, 80) - log_density(noise, 80))
        nuclear = float(np.abs(np.linalg.eigvalsh(change)).sum()) / 2
        claim = (lengths[0] ** 2 + lengths[1] ** 2) / 2 * epsilon
        assert log_ratios.max() <= nuclear * (1 + 1e-9) + 1e-9
        assert nuclear <= claim * (1 + 1e-12)
        worst = max(worst, float(log_ratios.max() / claim))
    assert 0.98 < worst <= 1 + 1e-9  # at orthogonal rows the claim is attained


def test_every_mechanism_is_audited() -> None:
    assert {case.split(",")[0] for case in AUDITED} == set(CASES)
