"""An audit of outputs alone never exceeds the claim, and comes near it."""

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
from gramercy.mechanisms.gaussian_rows import Rows
from gramercy.mechanisms.integer_rows import IntegerRows
from gramercy.mechanisms.mechanism import Mechanism, Reach, Setting
from tests.support.black_box.audit import audit, audit_statistics
from tests.support.black_box.likelihood_ratios import log_density, log_likelihood_ratio
from tests.support.black_box.outputs import (
    Pair,
    batched_outputs,
    integers,
    single_outputs,
    worst_pair,
)
from tests.support.conformance import CASES, PAIRS, calibrated
from tests.support.factories import FULL, at_scale

DRAWS = at_scale(20_000, 400_000)
Made = Callable[[], Mechanism]


def two(name: str, neighbours: str, **asked: Any) -> Made:
    return lambda: calibrated(name, **{"p": 2, "neighbours": neighbours, **asked})


def published(name: str, neighbours: str, delta: float | None = None, **keys: Any) -> Made:
    """A mechanism with a paper's scale; its exact guarantee is the claim."""
    known = mechanisms.registry[name]
    return lambda: known.published(
        p=2, n=1000, epsilon=1.0, neighbours=neighbours, delta=delta, **keys
    )


def of_rows(known: type[Rows], **asked: Any) -> Made:
    """Rows of two cells from 0 to 3 and 0 to 1, protected per row or per cell."""
    unit = asked.pop("unit", "row")
    most = Reach(row=9 + 1, cell=9, longest=10)
    if known is Rows:
        most = Reach(row=10 << 28, cell=9 << 28, longest=1 << 32)
    setting = Setting(p=2, n=1000, neighbours="replace-one", unit=unit, reach=most)
    spec = {"name": known.name, "epsilon": 1.0, "delta": 1e-6, **asked}
    return lambda: known.of(known.spec.model_validate(spec), setting)


AUDITED: dict[str, Made] = {
    **{f"{name}, {relation}": two(name, relation) for name, relation in PAIRS},
    **{
        f"{name}, {relation}, p = {p}": two(name, relation, p=p)
        for name, relation in PAIRS
        for p in (1, 3)
        if name == "matrix-laplace"
    },
    **{
        f"{name}, counted": two(name, "add-remove", counted=True)
        for name, relation in PAIRS
        if relation == "add-remove" and name != "wishart"
    },
    "gaussian, epsilon 8": two("gaussian", "replace-one", epsilon=8.0),
    "wishart, published pure": published("wishart", "add-remove", 0.0),
    "wishart, published pure, replace-one": published("wishart", "replace-one", 0.0),
    "gaussian-iid, WX": published("gaussian-iid", "replace-one", 1e-6, paper="WX"),
    "local, published": published("local", "replace-one", 1e-6),
    "rows, by the cell": of_rows(Rows, unit="cell"),
    "integer-rows, bounds": of_rows(IntegerRows),
    "integer-rows, published": of_rows(IntegerRows, calibration="published"),
}
if FULL:  # their profiles take seconds
    AUDITED |= {
        "wishart, kept": two("wishart", "add-remove", mean="kept"),
        "wishart, kept, replace-one": two("wishart", "replace-one", mean="kept"),
        "wishart, published": published("wishart", "add-remove", 1e-6),
    }

# The share of the claim that 400,000 outputs of each neighbour prove at confidence 1 - 1e-6: of
# mu = .24 (five standard deviations of the bound below what was seen), and of a pure epsilon, which
# is reached in the tails alone. Nothing is asked of those that are not here.
PROVEN = dict.fromkeys(("gaussian", "gaussian-iid", "rows", "integer-rows", "output"), 0.7)
PROVEN_PURE = {"laplace": 0.8, "k-norm": 0.6, "matrix-laplace": 0.5}


@pytest.mark.parametrize("which", AUDITED)
def test_audit_never_exceeds_the_claim(which: str) -> None:
    mechanism = AUDITED[which]()
    # Wide noise on reports leaves the sampler's fast path once in 3,000 numbers: fewer of them.
    draws = min(DRAWS, 40_000) if mechanism.name == "local" else DRAWS
    found = audit(mechanism, worst_pair(mechanism), draws, compared=at_scale(20, 200))
    claim = mechanism.guarantee
    assert found.alarms(claim) == []
    if FULL and "published" not in which:
        assert found.mu >= PROVEN.get(mechanism.name, -1.0) * claim.mu
        if claim.pure < math.inf:
            assert found.epsilon >= PROVEN_PURE[mechanism.name] * claim.pure


def test_audit_proves_most_of_a_larger_claim() -> None:
    mechanism = calibrated("gaussian", p=2, mu=1.0, epsilon=None)
    found = audit(mechanism, worst_pair(mechanism), DRAWS)
    assert at_scale(75, 94) / 100 < found.mu <= 1.0


@pytest.mark.parametrize(("name", "neighbours"), PAIRS)
def test_batched_outputs_have_the_law_of_single_calls(name: str, neighbours: str) -> None:
    """In law, besides the equality that `batched_outputs` checks: the sampler draws one or many."""
    mechanism = two(name, neighbours)()
    pair, draws = worst_pair(mechanism), at_scale(200, 2000)
    together = batched_outputs(mechanism, pair.other, pair.rows[1], 20_000, compared=5)
    single = single_outputs(mechanism, pair.other, pair.rows[1], draws)
    told = [log_likelihood_ratio(mechanism, pair, each) for each in (together, single)]
    assert ks_2samp(*told).pvalue > 1e-6


class TooLittle:
    """A sensitivity of 1/n, where it is sqrt2/n: the scale of noise, under the same claim."""

    def __init__(self) -> None:
        honest = calibrated("gaussian", p=2)
        self.claim = honest.guarantee
        self.mechanism = replace(honest, scale=honest.scale / math.sqrt(2))


def test_wrong_sensitivity_is_caught_by_60_000_draws() -> None:
    flaw = TooLittle()
    pair = worst_pair(flaw.mechanism)
    caught = [
        bool(audit(flaw.mechanism, pair, 60_000).alarms(flaw.claim)) for _ in range(at_scale(2, 20))
    ]
    assert sum(caught) >= at_scale(1, 19)  # each is missed once in several thousand


def test_audit_raises_no_false_alarms() -> None:
    """400 audits at confidence 1 - 1e-6: no false alarm."""
    known = [two(name, relation)() for name, relation in PAIRS if name != "local"]
    for i in range(at_scale(40, 400)):
        mechanism = known[i % len(known)]
        found = audit(mechanism, worst_pair(mechanism), 4000, compared=1)
        assert found.alarms(mechanism.guarantee) == [], mechanism.name


def test_audit_bounds_have_their_confidence() -> None:
    """At confidence 1/2, bounds above the truth are rare enough, and do occur."""
    made_up = np.random.default_rng(5)
    times, wrong = at_scale(200, 2000), 0
    for _ in range(times):
        found = audit_statistics(
            made_up.normal(size=500), made_up.normal(size=500) + 1.0, confidence=0.5
        )
        wrong += bool(found.alarms(Guarantee(1.0)))
    assert wrong < 0.5 * times
    assert wrong > 0  # nor is it so careful that nothing could ever be found


# Matrix Laplace noise is Gramercy's own, and so is the proof.


@pytest.mark.parametrize("p", [2, 3])
@pytest.mark.parametrize("angle", [0.0, 0.3, 1.0, math.pi / 2, 3.0])
def test_matrix_laplace_audit_at_other_angles(p: int, angle: float) -> None:
    """Closer rows are harder to tell apart, by the nuclear norm of their difference."""
    mechanism = calibrated("matrix-laplace", p=p)
    apart = Guarantee.of_pure(math.sin(angle) * 1.001 + 1e-3)
    found = audit(mechanism, worst_pair(mechanism, angle), at_scale(10_000, 100_000))
    assert found.alarms(apart) == []


@pytest.mark.parametrize("epsilon", [0.1, 5.0])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_matrix_laplace_audit_at_other_epsilons(p: int, epsilon: float) -> None:
    mechanism = calibrated("matrix-laplace", p=p, epsilon=epsilon)
    found = audit(mechanism, worst_pair(mechanism), at_scale(10_000, 100_000))
    assert found.alarms(mechanism.guarantee) == []


def test_matrix_laplace_audit_with_short_rows() -> None:
    """Short rows, and a direction in which every entry moves."""
    mechanism = calibrated("matrix-laplace", p=3)
    whole = integers(mechanism, np.ones(3), [1.0, -2.0, 0.5])
    first, second = whole.T
    for x, y in ((first, second), (first // 2, second), (first, first // 3)):
        pair = Pair(np.outer(x, x), np.outer(y, y))
        found = audit(mechanism, pair, at_scale(10_000, 100_000))
        assert found.alarms(mechanism.guarantee) == []


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
    """Exact densities, far into the tails: e^epsilon is approached, and nowhere exceeded."""
    scale = 1 / epsilon
    made_up = np.random.default_rng(11)
    tried, worst = at_scale(4000, 40_000), 0.0
    for angle in (math.pi / 2, 1.0, 0.2):
        x = lengths[0] * np.array([1.0, 0.0])
        y = lengths[1] * np.array([math.cos(angle), math.sin(angle)])
        change = (np.outer(x, x) - np.outer(y, y)) / scale
        far = made_up.normal(size=(3, tried)) * 10.0 ** made_up.uniform(-2, 2.6, size=tried)
        noise = point(*far)
        # Along the change as well, where it matters most, and never exactly on it.
        along = 10.0 ** made_up.uniform(-1, 2.8, size=tried) * made_up.choice([-1, 1], size=tried)
        noise[::2] = 0.01 * noise[::2] + (along[:, None, None] * change / epsilon)[::2]
        fell = np.abs(log_density(noise + change, 80) - log_density(noise, 80))
        nuclear = float(np.abs(np.linalg.eigvalsh(change)).sum()) / 2
        claim = (lengths[0] ** 2 + lengths[1] ** 2) / 2 * epsilon
        assert fell.max() <= nuclear * (1 + 1e-9) + 1e-9
        assert nuclear <= claim * (1 + 1e-12)
        worst = max(worst, float(fell.max() / claim))
    assert 0.98 < worst <= 1 + 1e-9  # at orthogonal rows: none of the claim is slack


def test_every_mechanism_is_audited() -> None:
    assert {which.split(",")[0] for which in AUDITED} == set(CASES)
