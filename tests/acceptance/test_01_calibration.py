"""Calibrated scales are exact: never below the exact scale, and hardly above it.

The exact scales are computed independently of the mechanisms.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import integrate, optimize, special, stats

from gramercy import mechanisms
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import Mechanism, Reach, Setting
from gramercy.schemas.errors import RequestError
from tests.support.conformance import CASES, PAIRS
from tests.support.factories import at_scale
from tests.unit.mechanisms.test_wishart_profile import quadrature

RANGES = Reach(row=275, cell=100, longest=900)  # what an integer row may move by, squared
PURE = ("laplace", "k-norm", "matrix-laplace")
GAUSSIANS = [pair for pair in PAIRS if pair[0] not in {*PURE, "wishart"}]


def test_every_mechanism_has_a_case() -> None:
    assert CASES.keys() == mechanisms.registry.keys()


def built(name: str, relation: str, p: int = 5, n: int = 1000, **asked: Any) -> Mechanism:
    """Calibrate from a request; integer rows have ranges."""
    case, known = CASES[name], mechanisms.registry[name]
    if asked.get("delta") is not None:
        asked["delta"] = case.delta(asked["delta"])
    spec = known.spec.model_validate({"name": name, **case.keys, **asked})
    reach = RANGES if name == "integer-rows" else None
    return known.of(spec, Setting(p, n, relation, reach=reach))  # type: ignore[arg-type]


@lru_cache(maxsize=4096)
def exact_sigma(epsilon: float, delta: float) -> float:
    """Sensitivity-1 Gaussian scale, by an independent evaluation in log space."""

    def log_delta(log_sigma: float) -> float:
        mu = math.exp(-log_sigma)
        a, b = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
        # e^eps Phi(b) / Phi(a), through scaled complementary error functions: no overflow.
        ratio = special.erfcx(-b / math.sqrt(2)) / special.erfcx(-a / math.sqrt(2))
        return float(special.log_ndtr(a) + math.log1p(-ratio)) - math.log(delta)

    return math.exp(optimize.brentq(log_delta, -6, 14, xtol=1e-15, rtol=1e-15))


def sensitivity(name: str, relation: str, p: int) -> float:
    """Sensitivity of the statistic, in l2, or in l1 for Laplace."""
    one = relation == "add-remove" or p == 1
    if name == "laplace":
        if relation == "add-remove":
            return (p + 1) / 2
        return math.sqrt((p * p + 3 * p) / 2) if p > 1 else 1.0
    return {
        "matrix-laplace": 0.5 if one else 1.0,
        "rows": 2.0,
        "integer-rows": math.sqrt(275),
        "output": (1.0 if one else math.sqrt(2)) * (p / 0.5) ** 2 / 1000,
    }.get(name, 1.0 if one else math.sqrt(2))


def at_most(name: str, p: int, mu: float, exact: float) -> float:
    """The largest acceptable scale; the solver's tolerance costs a stated share."""
    if name != "output":
        return exact * (1 + 1e-6)
    tol = max(2.0**-10 * exact * mu, 1.05 * p / 0.5 * math.sqrt(2 * p * 1e-10))
    return (exact + 2 * tol / mu) / (1 - p / (2.0**20 * mu)) * (1 + 1e-6)


GRID = [
    (float(epsilon), float(delta))
    for epsilon in np.geomspace(0.01, 20, at_scale(3, 25))
    for delta in np.geomspace(1e-12, 1e-2, at_scale(3, 25))
]


@pytest.mark.parametrize("p", [1, 5])
@pytest.mark.parametrize(("name", "relation"), GAUSSIANS)
def test_gaussian_scale_is_exact(name: str, relation: str, p: int) -> None:
    for epsilon, delta in GRID if p > 1 else GRID[::4]:
        made: Any = built(name, relation, p, epsilon=epsilon, delta=delta)
        sigma, moved = exact_sigma(epsilon, delta), sensitivity(name, relation, p)
        exact = moved * sigma
        assert exact * (1 - 1e-9) <= made.scale <= at_most(name, p, 1 / sigma, exact)
        costs: Guarantee = made.guarantee
        assert costs.mu >= moved / made.scale * (1 - 1e-15)
        assert costs.epsilon(delta) <= epsilon
        assert costs.delta(epsilon) <= delta
        if name != "output":
            assert costs.mu == pytest.approx(moved / made.scale, rel=1e-15)
            assert costs.epsilon(delta) >= epsilon * (1 - 1e-6)
        assert (costs.pure, costs.delta0) == (math.inf, 0.0)


@pytest.mark.parametrize("p", [1, 5])
@pytest.mark.parametrize(("name", "relation"), [pair for pair in PAIRS if pair[0] in PURE])
def test_pure_scale_is_exact(name: str, relation: str, p: int) -> None:
    # Round numbers as well: what people ask for must fit what they get, to the last bit.
    asked = [
        *np.geomspace(0.01, 20, at_scale(10, 400)),
        *(i / 10 for i in range(1, 100, at_scale(2, 1))),
    ]
    for epsilon in map(float, asked):
        made: Any = built(name, relation, p, epsilon=epsilon)
        exact = sensitivity(name, relation, p) / epsilon
        assert exact * (1 - 1e-9) <= made.scale <= exact * (1 + 1e-6)
        costs: Guarantee = made.guarantee
        assert exact * epsilon / made.scale * (1 - 1e-15) <= costs.pure <= epsilon
        assert costs.pure >= epsilon * (1 - 1e-12)
        assert costs.epsilon(0.0) <= epsilon
        assert costs.delta(epsilon) == 0.0
        by_pure = -2 * special.ndtri(special.expit(-epsilon))
        if name == "laplace":  # composition charges the smaller of two
            by_gdp = math.sqrt(math.pi / 2) * sensitivity("gaussian", relation, p) / made.scale
            assert costs.mu == pytest.approx(min(by_pure, by_gdp), rel=1e-9)
        assert costs.mu <= by_pure * (1 + 1e-9)


@pytest.mark.parametrize("p", [1, 5, 64])
@pytest.mark.parametrize(("name", "relation"), [pair for pair in PAIRS if pair[0] != "wishart"])
def test_scale_from_mu(name: str, relation: str, p: int) -> None:
    for mu in map(float, np.geomspace(1e-2, 20, at_scale(5 if p < 64 else 3, 60))):
        made: Any = built(name, relation, p, mu=mu, delta=1e-6)
        assert mu * (1 - 1e-6) <= made.guarantee.mu <= mu
        if name in PURE:
            continue
        exact = sensitivity(name, relation, p) / mu
        assert exact * (1 - 1e-9) <= made.scale <= at_most(name, p, mu, exact)


def tail_delta(k: float, variance: float, epsilon: float, removal: bool = False) -> Any:
    """The formulas of the design, with 90 digits; an epsilon may be negative.

    delta_add, the larger of the two where epsilon >= 0, or delta_remove.
    """
    with mpmath.workdps(90):
        half, shift = mpmath.mpf(k) / 2, 1 / (2 * mpmath.mpf(variance))
        if removal and epsilon >= shift:
            return mpmath.mpf(0)
        level = epsilon - shift if removal else -epsilon - shift
        x = shift / -mpmath.expm1(level / (half - 1)) if k > 2 else shift
        near, far = (x - shift, x) if removal else (x, x - shift)
        one, two = (
            mpmath.gammainc(half, *((y, mpmath.inf) if removal else (0, y)), regularized=True)
            for y in (near, far)
        )
        return one - mpmath.exp(epsilon) * two


def wishart_delta(relation: str, k: float, variance: float, epsilon: float) -> float:
    """For a replaced row, the least of delta_add(a) + e^a delta_remove(epsilon - a)."""
    if relation == "add-remove":
        return float(tail_delta(k, variance, epsilon))

    def split(a: float) -> float:
        one, two = tail_delta(k, variance, a), tail_delta(k, variance, epsilon - a, removal=True)
        return float(mpmath.log(one + mpmath.exp(a) * two))

    ends = max(-0.5 / variance, -0.2 * epsilon) * (1 - 1e-12), epsilon
    found = optimize.minimize_scalar(
        split, bounds=ends, method="bounded", options={"xatol": 1e-6 * epsilon}
    )
    return math.exp(float(found.fun))


@pytest.mark.parametrize("mean", ["removed", "kept"])
@pytest.mark.parametrize("relation", CASES["wishart"].neighbours)
def test_wishart_scale_is_exact(relation: str, mean: str) -> None:
    corners = [(1.0, 1e-6), (20.0, 1e-2), (0.01, 1e-12), *GRID[::29]]
    grid = corners[: at_scale(2, 30)]
    for epsilon, delta in grid:
        made: Any = built("wishart", relation, epsilon=epsilon, delta=delta, mean=mean)
        k = made.dof - 4
        assert wishart_delta(relation, k, made.scale, epsilon) <= delta * (1 + 1e-9)
        # Never more than a millionth above the exact scale.
        assert wishart_delta(relation, k, made.scale * (1 - 1e-6), epsilon) > delta
    quick = [(0.01, 1e-2), (0.01, 1e-12), (1.0, 1e-6)][: at_scale(1, 3)]
    for epsilon, delta in quick:
        costs = built("wishart", relation, epsilon=epsilon, delta=delta, mean=mean).guarantee
        assert costs.delta(epsilon) <= delta
        assert epsilon * (1 - 1e-6) <= costs.epsilon(delta) <= epsilon


def test_wishart_is_never_pure() -> None:
    with pytest.raises(ValueError, match="never pure"):
        built("wishart", "add-remove", epsilon=1.0, delta=0.0)


# Corners that are real: noise narrower, or wider, than what can be drawn.


def test_undrawable_noise_scales_are_refused() -> None:
    for decibels in (-290.0, 290.0):
        with pytest.raises(RequestError, match="cannot be drawn"):
            built("rows", "replace-one", snr=decibels, delta=1e-6)
    for squared in (1, 10**24):
        reach = Reach(squared, squared, squared)
        known = mechanisms.registry["integer-rows"]
        spec = known.spec.model_validate({"name": "integer-rows", "mu": 20.0, "delta": 1e-6})
        if squared == 1:
            spec = spec.model_copy(update={"mu": 200.0})
        else:
            spec = spec.model_copy(update={"mu": 1e-3})
        with pytest.raises(RequestError, match="cannot be drawn"):
            known.of(spec, Setting(3, 10, "replace-one", reach=reach))


@pytest.mark.parametrize(("p", "mu"), [(5, 1e-6), (2000, 1e-3)])
def test_output_scale_is_positive_within_the_claim(p: int, mu: float) -> None:
    """Also where rounding moves the matrix by more than the noise allows."""
    try:
        made: Any = built("output", "replace-one", p, mu=mu, delta=1e-6)
    except RequestError:
        return
    assert made.scale > 0
    assert made.guarantee.mu <= mu


# What the papers publish, and what it is worth.


def classical(epsilon: float, delta: float) -> float:
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


PAPERS = [(0.3, 1e-6), (1.0, 1e-5), (2.0, 1e-3)]


def published(name: str, relation: str, **asked: Any) -> Any:
    return built(name, relation, calibration="published", **asked)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("epsilon", "delta"), PAPERS)
def test_published_gaussian_scales(relation: str, epsilon: float, delta: float) -> None:
    """M1, M2, M3."""
    for paper, factor in (("SGZ", math.sqrt(2)), ("WX", 1.0), ("LW", math.sqrt(2))):
        made = published("gaussian-iid", relation, epsilon=epsilon, delta=delta, paper=paper)
        assert made.scale == pytest.approx(factor * classical(epsilon, delta), rel=1e-12)
        moved = sensitivity("gaussian-iid", relation, 5)
        assert made.guarantee.mu == pytest.approx(moved / made.scale, rel=1e-15)
        honest = relation == "add-remove" or paper != "WX"
        if honest and epsilon <= 1:
            assert made.guarantee.epsilon(delta) <= epsilon
    wx, sgz = (
        published("gaussian-iid", relation, epsilon=epsilon, delta=delta, paper=paper)
        for paper in ("WX", "SGZ")
    )
    assert wx.guarantee.mu == pytest.approx(math.sqrt(2) * sgz.guarantee.mu, rel=1e-15)
    made = published("gaussian", relation, epsilon=epsilon, delta=delta)
    moved = sensitivity("gaussian", relation, 5)
    assert made.scale == pytest.approx(moved * classical(epsilon, delta), rel=1e-12)


def test_published_scales_with_false_claims() -> None:
    wx = published("gaussian-iid", "replace-one", epsilon=1.0, delta=1e-5, paper="WX")
    assert wx.guarantee.epsilon(1e-5) > 1.05
    local = published("local", "replace-one", epsilon=1.0, delta=1e-5)
    assert local.guarantee.epsilon(1e-5) > 1.05
    # The classical scale is eventually false.
    sgz = published("gaussian-iid", "replace-one", epsilon=30.0, delta=1e-5)
    assert sgz.guarantee.epsilon(1e-5) > 30


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("p", [1, 5, 64])
def test_published_laplace_scale(relation: str, p: int) -> None:
    """M4: sound, with about 2.8 times more noise than necessary."""
    made = published("laplace", relation, p=p, epsilon=0.7)
    assert made.scale == pytest.approx(2 * p / 0.7, rel=1e-12)
    claim = sensitivity("laplace", relation, p) * 0.7 / (2 * p)
    assert made.guarantee.pure == pytest.approx(claim, rel=1e-12)
    assert made.guarantee.epsilon(0.0) <= 0.7


@pytest.mark.parametrize("name", ["k-norm", "matrix-laplace"])
def test_published_scales_equal_to_exact_ones(name: str) -> None:
    for relation in CASES[name].neighbours:
        made, exact = (published(name, relation, epsilon=0.7), built(name, relation, epsilon=0.7))
        assert made == exact


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.1535), (1.0, 0.2835), (2.0, 0.4866)])
def test_published_wishart_is_not_pure(epsilon: float, delta: float) -> None:
    """M5: exactly (0, 1 - e^(-eps/3)); no larger epsilon lowers the delta."""
    made = published("wishart", "add-remove", epsilon=epsilon, delta=0.0)
    assert made.scale == pytest.approx(1.5 / epsilon, rel=1e-15)
    assert made.dof == 6
    costs = made.guarantee
    exact = -math.expm1(-epsilon / 3)
    for at in (0.0, epsilon, 100.0):
        assert exact <= costs.delta(at) * (1 + 1e-15)
        assert costs.delta(at) == pytest.approx(exact, rel=1e-9)
        assert costs.delta(at) == pytest.approx(delta, abs=5e-5)
    assert costs.pure == math.inf
    assert costs.delta0 >= exact * (1 - 1e-15)
    # Below that delta there is no epsilon at all.
    for at in (0.0, 1e-6, exact * (1 - 1e-9)):
        assert costs.epsilon(at) == math.inf
    twice = published("wishart", "replace-one", epsilon=epsilon, delta=0.0).guarantee
    assert twice.delta(epsilon) == pytest.approx(exact, rel=1e-9)
    assert twice.epsilon(1e-6) == math.inf


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_published_approximate_wishart_scale(relation: str) -> None:
    """M6: sound, and far too noisy."""
    made = published("wishart", relation, epsilon=1.0, delta=1e-5)
    assert made.scale == 1.0
    assert made.dof == pytest.approx(5 + 14 * math.log(4 / 1e-5), rel=1e-12)
    exact = wishart_delta(relation, made.dof - 4, 1.0, 1.0)
    assert exact < 1e-14
    assert relation == "replace-one" or 1e-21 < exact < 1e-19
    quick = published("wishart", relation, epsilon=0.3, delta=1e-3)
    exact = wishart_delta(relation, quick.dof - 4, 1.0, 0.3)
    assert exact * (1 - 1e-9) <= quick.guarantee.delta(0.3) <= exact * (1 + 1e-6)


def test_published_output_scale_guarantees_nothing() -> None:
    """M7."""
    made = published("output", "replace-one", epsilon=1.0, delta=1e-6)
    assert made.scale == pytest.approx(5**2.5 / (1000 * 0.25), rel=1e-12)
    costs = made.guarantee
    assert (costs.mu, costs.delta0, costs.pure) == (math.inf, 1.0, math.inf)
    assert costs.epsilon(0.5) == math.inf
    assert costs.delta(100.0) == 1.0


@pytest.mark.parametrize(("epsilon", "delta"), PAPERS)
def test_published_local_scale(epsilon: float, delta: float) -> None:
    """M8: the sensitivity is sqrt2, not 1."""
    made = published("local", "replace-one", epsilon=epsilon, delta=delta)
    assert made.scale == pytest.approx(classical(epsilon, delta), rel=1e-12)
    assert made.guarantee.mu == pytest.approx(math.sqrt(2) / made.scale, rel=1e-15)


@pytest.mark.parametrize("unit", ["row", "cell"])
def test_published_row_scales(unit: Any) -> None:
    """M9, M10: the range of one cell over mu; a row moves by more."""
    for name, root in (("rows", 2.0**16), ("integer-rows", 1.0)):
        known = mechanisms.registry[name]
        asked = {"name": name, "epsilon": 0.8, "delta": 1e-6, "calibration": "published"}
        reach = Reach(int(275 * root**2), int(100 * root**2), int(900 * root**2))
        made: Any = known.of(
            known.spec.model_validate(asked), Setting(5, 1000, "replace-one", False, unit, reach)
        )
        exact = 10 * exact_sigma(0.8, 1e-6)
        assert exact * (1 - 1e-9) <= made.scale <= exact * (1 + 1e-6)
        moved = 10 if unit == "cell" else math.sqrt(275)
        if name == "rows":
            assert made.guarantee.mu == pytest.approx(moved / made.scale, rel=1e-15)
            continue
        # Zero-concentrated, which is all that is proven of it: a little more than the Gaussian.
        assert made.discrete
        gaussian = Guarantee(moved / made.scale)
        assert gaussian.delta(0.8) < made.guarantee.delta(0.8) < 10 * gaussian.delta(0.8)
    wide = mechanisms.registry["integer-rows"]
    spec = wide.spec.model_validate(asked | {"name": "integer-rows"})
    huge = Reach(10**12, 10**12, 10**12)
    with pytest.raises(RequestError, match="is not drawn this wide"):
        wide.of(spec, Setting(5, 1000, "replace-one", False, unit, huge))


# The whole curve, delta at every epsilon.

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The hockey-stick divergence of N(mu, 1) and N(0, 1), by quadrature."""

    def excess(x: float) -> float:
        return stats.norm.pdf(x) * -math.expm1(min(0.0, epsilon - mu * x - mu * mu / 2))

    start = epsilon / mu - mu / 2
    found, _ = integrate.quad(excess, start, start + 12, epsabs=0, epsrel=1e-10, limit=200)
    return float(found)


@pytest.mark.parametrize(("name", "relation"), GAUSSIANS)
def test_gaussian_profile(name: str, relation: str) -> None:
    made: Any = built(name, relation, epsilon=1.0, delta=1e-5)
    mu = sensitivity(name, relation, 5) / made.scale
    theirs = pld.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=1e-4, pessimistic_estimate=False
    )
    for epsilon in EPSILONS:
        known = made.guarantee.delta(epsilon)
        assert known >= gaussian_delta(mu, epsilon) * (1 - 1e-9)
        assert known >= theirs.get_delta_for_epsilon(epsilon) * (1 - 1e-6) - 1e-12
        if name != "output":  # what the solver may be off is charged, and may not be used
            assert known == pytest.approx(gaussian_delta(mu, epsilon), rel=1e-8, abs=1e-15)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("p", [1, 2, 5])
def test_laplace_profile(relation: str, p: int) -> None:
    """Against the composition of the entries, each with its own shift."""
    made: Any = built("laplace", relation, p, epsilon=1.5)
    x, y = np.full(p, p**-0.5), np.zeros(p)
    if relation == "replace-one" and p > 1:
        y[0], x[0] = 1.0, 0.0
    shifts = np.abs(np.outer(x, x) - np.outer(y, y))[np.triu_indices(p)]
    theirs: Any = None
    for size, count in zip(
        *np.unique(shifts[shifts > 0].round(12), return_counts=True), strict=True
    ):
        one = pld.from_laplace_mechanism(
            made.scale / size, value_discretization_interval=1e-3, pessimistic_estimate=False
        ).self_compose(int(count))
        theirs = one if theirs is None else theirs.compose(one)
    for epsilon in EPSILONS:
        known = made.guarantee.delta(epsilon)
        # The optimistic estimate is off by its grid, once an entry.
        assert known >= theirs.get_delta_for_epsilon(epsilon + 1e-3 * shifts.size) - 1e-12
        if p == 1:
            assert known >= max(0.0, -math.expm1((epsilon - 1.5) / 2)) * (1 - 1e-12)
    assert made.guarantee.delta(1.5) == 0.0


@pytest.mark.parametrize("p", [1, 2, 4, 12])
def test_k_norm_profile(p: int) -> None:
    """The noise simulated as N(0, W I), and by its length and direction."""
    made: Any = built("k-norm", "replace-one", p, epsilon=2.0)
    moved, dimension = sensitivity("k-norm", "replace-one", p), p * (p + 1) // 2
    rng, draws = np.random.default_rng(p), at_scale(40_000, 400_000)
    z = rng.normal(size=(draws, dimension))
    length = rng.gamma(dimension, made.scale, size=draws)
    noise = z * (length / np.linalg.norm(z, axis=1))[:, None]
    width = rng.gamma((dimension + 1) / 2, 2 * made.scale**2, size=draws)
    mixed = rng.normal(size=(draws, dimension)) * np.sqrt(width)[:, None]
    if dimension == 1:  # then it is Laplace
        assert stats.kstest(noise[:, 0], stats.laplace(scale=made.scale).cdf).pvalue > 1e-4
    for law in (noise, mixed):
        # The law of the length is Gamma, and so is that of the mixture.
        lengths = np.linalg.norm(law, axis=1)
        assert stats.kstest(lengths, stats.gamma(dimension, scale=made.scale).cdf).pvalue > 1e-4
        along = law.copy()
        along[:, 0] += moved
        loss = (np.linalg.norm(along, axis=1) - lengths) / made.scale  # between N and N - shift
        assert loss.max() <= made.guarantee.pure * (1 + 1e-9)
        for epsilon in (0.0, 0.2, 0.5, 1.0, 1.5):
            lost = np.maximum(0.0, -np.expm1(epsilon - loss))
            error = lost.std() / math.sqrt(draws)
            assert made.guarantee.delta(epsilon) >= lost.mean() - 5 * error
    # Given its width the noise is Gaussian, but for a width that is too rarely small to matter.
    if made.guarantee.delta0:
        least = (moved / made.guarantee.mu) ** 2
        rare = stats.gamma((dimension + 1) / 2, scale=2 * made.scale**2).cdf(least)
        assert rare == pytest.approx(made.guarantee.delta0, rel=1e-6)
        assert rare <= made.guarantee.delta0
    else:
        assert made.guarantee.mu == pytest.approx(-2 * special.ndtri(special.expit(-2.0)), rel=1e-9)


def test_k_norm_mixture_bound_with_many_columns() -> None:
    made: Any = built("k-norm", "replace-one", 64, epsilon=1.0)
    assert made.guarantee.delta0 == 1e-12
    assert made.guarantee.mu < 0.03
    least = (math.sqrt(2) / made.guarantee.mu) ** 2
    with mpmath.workdps(40):
        half = mpmath.mpf(64 * 65 // 2 + 1) / 2
        rare = mpmath.gammainc(half, 0, least / (2 * made.scale**2), regularized=True)
    assert 0.999999 * made.guarantee.delta0 < rare <= made.guarantee.delta0


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_matrix_laplace_density(relation: str) -> None:
    """Two columns: f(Z) is e^(tr Z / (2 s)) P[W_2(3, s/2 I) >= Z], up to a constant."""
    epsilon, rng, draws = 1.2, np.random.default_rng(4), at_scale(10_000, 400_000)
    made: Any = built("matrix-laplace", relation, 2, epsilon=epsilon)
    s, normal = made.scale, rng.normal(size=(draws, 2, 3))
    W = s / 2 * normal @ normal.transpose(0, 2, 1)

    def log_density(Z: Any) -> tuple[float, float]:
        D = W - Z
        above = (np.trace(D, axis1=1, axis2=2) > 0) & (np.linalg.det(D) > 0)
        chance = above.mean()
        return np.trace(Z) / (2 * s) + math.log(chance), 5 / math.sqrt(draws * chance)

    worst = 0.0
    for turn in range(at_scale(60, 400)):
        A = rng.normal(size=(2, 2))
        Z = s * rng.choice([0.2, 1.0]) * (A + A.T) - (turn % 3) * 3 * s * np.eye(2)
        x, y = rng.normal(size=(2, 2))
        x /= np.linalg.norm(x)
        y = y / np.linalg.norm(y) if relation == "replace-one" else 0 * y
        if turn % 2 and relation == "replace-one":
            y = np.array([-x[1], x[0]])
        change = (np.outer(x, x) - np.outer(y, y)) * (-1) ** turn
        (one, slack), (other, more) = log_density(Z), log_density(Z + change)
        assert abs(one - other) <= made.guarantee.pure + slack + more
        worst = max(worst, abs(one - other))
    if relation == "add-remove":
        assert worst > 0.95 * epsilon  # attained, far down: there W >= Z is certain


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")  # roundoff: 1e-11 is much
@pytest.mark.parametrize("mean", ["removed", "kept"])
def test_wishart_profile(mean: str) -> None:
    made: Any = built("wishart", "add-remove", epsilon=0.05, delta=1e-3, mean=mean)
    k = made.dof - 4
    for epsilon in (0.0, 0.02, 0.05, 0.08):
        known = made.guarantee.delta(epsilon)
        exact = float(tail_delta(k, made.scale, epsilon))
        assert exact * (1 - 1e-9) <= known <= exact * (1 + 1e-8) + 1e-300
        if k < 1e5:
            for removal in (True, False):
                assert known >= quadrature(k, made.scale, epsilon, removal) * (1 - 1e-8)


@pytest.mark.parametrize(("squared", "epsilon"), [(1, 0.5), (100, 1.0), (10, 3.0)])
def test_discrete_gaussian_profile(squared: int, epsilon: float) -> None:
    """By summation, for one cell that moves by the whole distance."""
    known, delta = mechanisms.registry["integer-rows"], 1e-5
    step = math.isqrt(squared)
    reach = Reach(step * step, step * step, 900)
    asked = {"name": "integer-rows", "epsilon": epsilon, "delta": delta, "calibration": "published"}
    spec = known.spec.model_validate(asked)
    made: Any = known.of(spec, Setting(5, 100, "replace-one", reach=reach))
    j = np.arange(-int(40 * made.scale) - step, int(40 * made.scale) + step + 1)
    log_weight = -(j**2) / (2 * made.scale**2)
    total = special.logsumexp(log_weight)
    other = -((j - step) ** 2) / (2 * made.scale**2)
    for at in (0.0, 0.3, 1.0, 2.0):
        excess = np.maximum(0.0, np.exp(log_weight - total) - np.exp(at + other - total))
        assert excess.sum() * (1 - 1e-9) <= made.guarantee.delta(at)
        assert made.guarantee.delta(at) < 60 * excess.sum() + 1e-12 or at == 0


def test_laplace_noise_satisfies_gdp() -> None:
    """One entry: b-Laplace noise and a shift d are sqrt(pi/2) d / b-GDP at every level."""
    for shift in np.geomspace(1e-5, 50, at_scale(150, 1500)):
        mu = math.sqrt(math.pi / 2) * shift
        level = np.concatenate([np.geomspace(1e-12, 0.5, 400), 1 - np.geomspace(1e-12, 0.5, 400)])
        easy, middle = 1 - np.exp(shift + np.log(level)), np.exp(-shift) / (4 * level)
        hard = np.exp(-shift) * (1 - level)
        laplace = np.where(level < np.exp(-shift) / 2, easy, np.where(level > 0.5, hard, middle))
        gaussian = special.ndtr(special.ndtri(1 - level) - mu)
        assert (laplace >= gaussian - 2e-16 - 1e-12 * laplace).all()
    # No smaller factor would do.
    shift, mu = 1e-3, 0.999 * math.sqrt(math.pi / 2) * 1e-3
    assert 0.5 * math.exp(-shift) < special.ndtr(-mu)
