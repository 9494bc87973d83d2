"""Calibrated scales are never below the exact scale, and exceed it by rounding only.

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
from scipy import optimize, special, stats

from gramercy import mechanisms
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import Mechanism, PublicParameters, SensitivityBounds
from gramercy.schemas import families
from gramercy.schemas.errors import RequestError
from tests.support.conformance import CASES, PAIRS
from tests.support.factories import FULL, at_scale
from tests.support.problems import raises

RANGES = SensitivityBounds(squared_row=275, squared_cell=100, squared_norm=900)
PURE = ("laplace", "k-norm", "matrix-laplace")
GAUSSIANS = [pair for pair in PAIRS if pair[0] not in {*PURE, "wishart"}]


def test_every_mechanism_has_a_case() -> None:
    assert CASES.keys() == mechanisms.registry.keys()


def from_request(name: str, relation: str, p: int = 5, n: int = 1000, **keys: Any) -> Mechanism:
    """Calibrate from a request, with sensitivity bounds for integer rows."""
    case, kind = CASES[name], mechanisms.registry[name]
    if keys.get("delta") is not None:
        keys["delta"] = case.delta(keys["delta"])
    spec = kind.spec.model_validate({"name": name, **case.keys, **keys})
    bounds = RANGES if name == "integer-rows" else None
    return kind.from_spec(spec, PublicParameters(p, n, relation, sensitivity_bounds=bounds))  # type: ignore[arg-type]


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
    rank_one = relation == "add-remove" or p == 1
    if name == "laplace":
        if relation == "add-remove":
            return (p + 1) / 2
        return math.sqrt((p * p + 3 * p) / 2) if p > 1 else 1.0
    return {
        "matrix-laplace": 0.5 if rank_one else 1.0,
        "rows": 2.0,
        "integer-rows": math.sqrt(275),
        "output": (1.0 if rank_one else math.sqrt(2)) * (p / 0.5) ** 2 / 1000,
    }.get(name, 1.0 if rank_one else math.sqrt(2))


def largest_scale(name: str, p: int, mu: float, exact: float) -> float:
    """The largest acceptable scale; for `output` it includes the solver's tolerance."""
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
        mechanism: Any = from_request(name, relation, p, epsilon=epsilon, delta=delta)
        sigma, largest_change = exact_sigma(epsilon, delta), sensitivity(name, relation, p)
        exact = largest_change * sigma
        assert exact * (1 - 1e-9) <= mechanism.scale <= largest_scale(name, p, 1 / sigma, exact)
        guarantee: Guarantee = mechanism.guarantee
        assert guarantee.mu >= largest_change / mechanism.scale * (1 - 1e-15)
        assert guarantee.epsilon(delta) <= epsilon
        assert guarantee.delta(epsilon) <= delta
        if name != "output":
            assert guarantee.mu == pytest.approx(largest_change / mechanism.scale, rel=1e-15)
            assert guarantee.epsilon(delta) >= epsilon * (1 - 1e-6)
        assert (guarantee.pure, guarantee.delta0) == (math.inf, 0.0)


@pytest.mark.parametrize("p", [1, 5])
@pytest.mark.parametrize(("name", "relation"), [pair for pair in PAIRS if pair[0] in PURE])
def test_pure_scale_is_exact(name: str, relation: str, p: int) -> None:
    # The guarantee must not exceed the request, not even by one bit at round numbers.
    epsilons = [
        *np.geomspace(0.01, 20, at_scale(10, 400)),
        *(i / 10 for i in range(1, 100, at_scale(2, 1))),
    ]
    for epsilon in map(float, epsilons):
        mechanism: Any = from_request(name, relation, p, epsilon=epsilon)
        exact = sensitivity(name, relation, p) / epsilon
        assert exact * (1 - 1e-9) <= mechanism.scale <= exact * (1 + 1e-6)
        guarantee: Guarantee = mechanism.guarantee
        assert exact * epsilon / mechanism.scale * (1 - 1e-15) <= guarantee.pure <= epsilon
        assert guarantee.pure >= epsilon * (1 - 1e-12)
        assert guarantee.epsilon(0.0) <= epsilon
        assert guarantee.delta(epsilon) == 0.0
        by_pure = -2 * special.ndtri(special.expit(-epsilon))
        if name == "laplace":  # composition charges the smaller mu
            by_gdp = math.sqrt(math.pi / 2) * sensitivity("gaussian", relation, p) / mechanism.scale
            assert guarantee.mu == pytest.approx(min(by_pure, by_gdp), rel=1e-9)
        assert guarantee.mu <= by_pure * (1 + 1e-9)


@pytest.mark.parametrize("p", [1, 5, 64])
@pytest.mark.parametrize(("name", "relation"), [pair for pair in PAIRS if pair[0] != "wishart"])
def test_scale_from_mu(name: str, relation: str, p: int) -> None:
    for mu in map(float, np.geomspace(1e-2, 20, at_scale(5 if p < 64 else 3, 60))):
        mechanism: Any = from_request(name, relation, p, mu=mu, delta=1e-6)
        assert mu * (1 - 1e-6) <= mechanism.guarantee.mu <= mu
        if name in PURE:
            continue
        exact = sensitivity(name, relation, p) / mu
        assert exact * (1 - 1e-9) <= mechanism.scale <= largest_scale(name, p, mu, exact)


def tail_delta(k: float, variance: float, epsilon: float, removal: bool = False) -> Any:
    """delta_add or delta_remove of docs/mechanisms/wishart.md, in 90 digits, at any epsilon."""
    with mpmath.workdps(90):
        half, shift = mpmath.mpf(k) / 2, 1 / (2 * mpmath.mpf(variance))
        if removal and epsilon >= shift:
            return mpmath.mpf(0)
        level = epsilon - shift if removal else -epsilon - shift
        x = shift / -mpmath.expm1(level / (half - 1)) if k > 2 else shift
        near_end, far_end = (x - shift, x) if removal else (x, x - shift)
        near_mass, far_mass = (
            mpmath.gammainc(half, *((y, mpmath.inf) if removal else (0, y)), regularized=True)
            for y in (near_end, far_end)
        )
        return near_mass - mpmath.exp(epsilon) * far_mass


def wishart_delta(relation: str, k: float, variance: float, epsilon: float) -> float:
    """delta_add; for replace-one, the minimum of delta_add(a) + e^a delta_remove(epsilon - a)."""
    if relation == "add-remove":
        return float(tail_delta(k, variance, epsilon))

    def split(a: float) -> float:
        delta_add, delta_remove = (
            tail_delta(k, variance, a),
            tail_delta(k, variance, epsilon - a, removal=True),
        )
        return float(mpmath.log(delta_add + mpmath.exp(a) * delta_remove))

    ends = max(-0.5 / variance, -0.2 * epsilon) * (1 - 1e-12), epsilon
    minimum = optimize.minimize_scalar(
        split, bounds=ends, method="bounded", options={"xatol": 1e-6 * epsilon}
    )
    return math.exp(float(minimum.fun))


@pytest.mark.parametrize("mean", ["removed", "kept"])
@pytest.mark.parametrize("relation", CASES["wishart"].neighbours)
def test_wishart_scale_is_exact(relation: str, mean: str) -> None:
    corners = [(1.0, 1e-6), (20.0, 1e-2), (0.01, 1e-12), *GRID[::29]]
    grid = corners[: at_scale(2, 30)]
    for epsilon, delta in grid:
        mechanism: Any = from_request("wishart", relation, epsilon=epsilon, delta=delta, mean=mean)
        k = mechanism.dof - 4
        assert wishart_delta(relation, k, mechanism.scale, epsilon) <= delta * (1 + 1e-9)
        # Never more than a millionth above the exact scale.
        assert wishart_delta(relation, k, mechanism.scale * (1 - 1e-6), epsilon) > delta
    quick = [(0.01, 1e-2), (0.01, 1e-12), (1.0, 1e-6)][: at_scale(1, 3)]
    for epsilon, delta in quick:
        guarantee = from_request(
            "wishart", relation, epsilon=epsilon, delta=delta, mean=mean
        ).guarantee
        assert guarantee.delta(epsilon) <= delta
        assert epsilon * (1 - 1e-6) <= guarantee.epsilon(delta) <= epsilon


def test_wishart_is_never_pure() -> None:
    with raises(families.VALUE):
        from_request("wishart", "add-remove", epsilon=1.0, delta=0.0)


def test_undrawable_noise_scales_are_refused() -> None:
    for decibels, problem in ((-290.0, families.NOISE_RANGE), (290.0, families.NOISE_RANGE)):
        with raises(problem, mechanism="rows"):
            from_request("rows", "replace-one", snr=decibels, delta=1e-6)
    for squared in (1, 10**24):
        bounds = SensitivityBounds(squared, squared, squared)
        kind = mechanisms.registry["integer-rows"]
        spec = kind.spec.model_validate({"name": "integer-rows", "mu": 20.0, "delta": 1e-6})
        if squared == 1:
            spec = spec.model_copy(update={"mu": 200.0})
        else:
            spec = spec.model_copy(update={"mu": 1e-3})
        with raises(families.NOISE_RANGE):
            kind.from_spec(spec, PublicParameters(3, 10, "replace-one", sensitivity_bounds=bounds))


@pytest.mark.parametrize(("p", "mu"), [(5, 1e-6), (2000, 1e-3)])
def test_output_scale_is_positive_within_the_claim(p: int, mu: float) -> None:
    """Even if rounding changes the matrix by more than the noise allows."""
    try:
        mechanism: Any = from_request("output", "replace-one", p, mu=mu, delta=1e-6)
    except RequestError:
        return
    assert mechanism.scale > 0
    assert mechanism.guarantee.mu <= mu


# Published scales and their exact guarantees.


def classical_scale(epsilon: float, delta: float) -> float:
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


PAPERS = [(0.3, 1e-6), (1.0, 1e-5), (2.0, 1e-3)]


def published(name: str, relation: str, **keys: Any) -> Any:
    return from_request(name, relation, calibration="published", **keys)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("epsilon", "delta"), PAPERS)
def test_published_gaussian_scales(relation: str, epsilon: float, delta: float) -> None:
    """Classical Gaussian scales of three papers, with their exact mu."""
    for paper, factor in (("SGZ", math.sqrt(2)), ("WX", 1.0), ("LW", math.sqrt(2))):
        mechanism = published("gaussian-iid", relation, epsilon=epsilon, delta=delta, paper=paper)
        assert mechanism.scale == pytest.approx(factor * classical_scale(epsilon, delta), rel=1e-12)
        largest_change = sensitivity("gaussian-iid", relation, 5)
        assert mechanism.guarantee.mu == pytest.approx(largest_change / mechanism.scale, rel=1e-15)
        honest = relation == "add-remove" or paper != "WX"
        if honest and epsilon <= 1:
            assert mechanism.guarantee.epsilon(delta) <= epsilon
    wx, sgz = (
        published("gaussian-iid", relation, epsilon=epsilon, delta=delta, paper=paper)
        for paper in ("WX", "SGZ")
    )
    assert wx.guarantee.mu == pytest.approx(math.sqrt(2) * sgz.guarantee.mu, rel=1e-15)
    mechanism = published("gaussian", relation, epsilon=epsilon, delta=delta)
    largest_change = sensitivity("gaussian", relation, 5)
    assert mechanism.scale == pytest.approx(
        largest_change * classical_scale(epsilon, delta), rel=1e-12
    )


def test_published_scales_with_false_claims() -> None:
    wx = published("gaussian-iid", "replace-one", epsilon=1.0, delta=1e-5, paper="WX")
    assert wx.guarantee.epsilon(1e-5) > 1.05
    local = published("local", "replace-one", epsilon=1.0, delta=1e-5)
    assert local.guarantee.epsilon(1e-5) > 1.05
    # The classical scale fails at a large epsilon.
    sgz = published("gaussian-iid", "replace-one", epsilon=30.0, delta=1e-5)
    assert sgz.guarantee.epsilon(1e-5) > 30


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("p", [1, 5, 64])
def test_published_laplace_scale(relation: str, p: int) -> None:
    """Its claim is valid, with about 2.8 times more noise than necessary."""
    mechanism = published("laplace", relation, p=p, epsilon=0.7)
    assert mechanism.scale == pytest.approx(2 * p / 0.7, rel=1e-12)
    claim = sensitivity("laplace", relation, p) * 0.7 / (2 * p)
    assert mechanism.guarantee.pure == pytest.approx(claim, rel=1e-12)
    assert mechanism.guarantee.epsilon(0.0) <= 0.7


@pytest.mark.parametrize("name", ["k-norm", "matrix-laplace"])
def test_published_scales_equal_to_exact_ones(name: str) -> None:
    for relation in CASES[name].neighbours:
        mechanism, exact = (
            published(name, relation, epsilon=0.7),
            from_request(name, relation, epsilon=0.7),
        )
        assert mechanism == exact


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.1535), (1.0, 0.2835), (2.0, 0.4866)])
def test_published_wishart_is_not_pure(epsilon: float, delta: float) -> None:
    """Its exact guarantee is (0, 1 - e^(-eps/3)); no larger epsilon lowers the delta."""
    mechanism = published("wishart", "add-remove", epsilon=epsilon, delta=0.0)
    assert mechanism.scale == pytest.approx(1.5 / epsilon, rel=1e-15)
    assert mechanism.dof == 6
    guarantee = mechanism.guarantee
    exact = -math.expm1(-epsilon / 3)
    for level in (0.0, epsilon, 100.0):
        assert exact <= guarantee.delta(level) * (1 + 1e-15)
        assert guarantee.delta(level) == pytest.approx(exact, rel=1e-9)
        assert guarantee.delta(level) == pytest.approx(delta, abs=5e-5)
    assert guarantee.pure == math.inf
    assert guarantee.delta0 >= exact * (1 - 1e-15)
    # Below that delta there is no finite epsilon.
    for level in (0.0, 1e-6, exact * (1 - 1e-9)):
        assert guarantee.epsilon(level) == math.inf
    if epsilon != 1.0 and not FULL:  # its bound of the replaced row takes most of the time
        return
    replace_one = published("wishart", "replace-one", epsilon=epsilon, delta=0.0).guarantee
    assert replace_one.delta(epsilon) == pytest.approx(exact, rel=1e-9)
    assert replace_one.epsilon(1e-6) == math.inf


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_published_approximate_wishart_scale(relation: str) -> None:
    """Its claim is valid, with far more noise than necessary."""
    mechanism = published("wishart", relation, epsilon=1.0, delta=1e-5)
    assert mechanism.scale == 1.0
    assert mechanism.dof == pytest.approx(5 + 14 * math.log(4 / 1e-5), rel=1e-12)
    exact = wishart_delta(relation, mechanism.dof - 4, 1.0, 1.0)
    assert exact < 1e-14
    assert relation == "replace-one" or 1e-21 < exact < 1e-19
    quick = published("wishart", relation, epsilon=0.3, delta=1e-3)
    exact = wishart_delta(relation, quick.dof - 4, 1.0, 0.3)
    assert exact * (1 - 1e-9) <= quick.guarantee.delta(0.3) <= exact * (1 + 1e-6)


def test_published_output_scale_guarantees_nothing() -> None:
    mechanism = published("output", "replace-one", epsilon=1.0, delta=1e-6)
    assert mechanism.scale == pytest.approx(5**2.5 / (1000 * 0.25), rel=1e-12)
    guarantee = mechanism.guarantee
    assert (guarantee.mu, guarantee.delta0, guarantee.pure) == (math.inf, 1.0, math.inf)
    assert guarantee.epsilon(0.5) == math.inf
    assert guarantee.delta(100.0) == 1.0


@pytest.mark.parametrize(("epsilon", "delta"), PAPERS)
def test_published_local_scale(epsilon: float, delta: float) -> None:
    """The sensitivity is sqrt2, not 1 as the paper claims."""
    mechanism = published("local", "replace-one", epsilon=epsilon, delta=delta)
    assert mechanism.scale == pytest.approx(classical_scale(epsilon, delta), rel=1e-12)
    assert mechanism.guarantee.mu == pytest.approx(math.sqrt(2) / mechanism.scale, rel=1e-15)


@pytest.mark.parametrize("unit", ["row", "cell"])
def test_published_row_scales(unit: Any) -> None:
    """They are the range of one cell divided by mu; a row may change by more."""
    for name, unit_length in (("rows", 2.0**16), ("integer-rows", 1.0)):
        kind = mechanisms.registry[name]
        keys = {"name": name, "epsilon": 0.8, "delta": 1e-6, "calibration": "published"}
        bounds = SensitivityBounds(
            int(275 * unit_length**2), int(100 * unit_length**2), int(900 * unit_length**2)
        )
        mechanism: Any = kind.from_spec(
            kind.spec.model_validate(keys),
            PublicParameters(5, 1000, "replace-one", False, unit, bounds),
        )
        exact = 10 * exact_sigma(0.8, 1e-6)
        assert exact * (1 - 1e-9) <= mechanism.scale <= exact * (1 + 1e-6)
        largest_change = 10 if unit == "cell" else math.sqrt(275)
        if name == "rows":
            assert mechanism.guarantee.mu == pytest.approx(
                largest_change / mechanism.scale, rel=1e-15
            )
            continue
        # Only zCDP is proven for it, which gives slightly more than the Gaussian delta.
        assert mechanism.discrete
        gaussian = Guarantee(largest_change / mechanism.scale)
        assert gaussian.delta(0.8) < mechanism.guarantee.delta(0.8) < 10 * gaussian.delta(0.8)
    integer_rows = mechanisms.registry["integer-rows"]
    spec = integer_rows.spec.model_validate(keys | {"name": "integer-rows"})
    huge = SensitivityBounds(10**12, 10**12, 10**12)
    with raises(families.NOISE_RANGE, limit=2.0**14):
        integer_rows.from_spec(spec, PublicParameters(5, 1000, "replace-one", False, unit, huge))


# Privacy profiles: delta at every epsilon.

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("p", [1, 2, 5])
def test_laplace_profile(relation: str, p: int) -> None:
    """Against the composition of the entries, each with its own shift."""
    mechanism: Any = from_request("laplace", relation, p, epsilon=1.5)
    x, y = np.full(p, p**-0.5), np.zeros(p)
    if relation == "replace-one" and p > 1:
        y[0], x[0] = 1.0, 0.0
    shifts = np.abs(np.outer(x, x) - np.outer(y, y))[np.triu_indices(p)]
    reference: Any = None
    for size, count in zip(
        *np.unique(shifts[shifts > 0].round(12), return_counts=True), strict=True
    ):
        entries = pld.from_laplace_mechanism(
            mechanism.scale / size, value_discretization_interval=1e-3, pessimistic_estimate=False
        ).self_compose(int(count))
        reference = entries if reference is None else reference.compose(entries)
    for epsilon in EPSILONS:
        claimed = mechanism.guarantee.delta(epsilon)
        # The optimistic estimate has an error of one grid step per entry.
        assert claimed >= reference.get_delta_for_epsilon(epsilon + 1e-3 * shifts.size) - 1e-12
        if p == 1:
            assert claimed >= max(0.0, -math.expm1((epsilon - 1.5) / 2)) * (1 - 1e-12)
    assert mechanism.guarantee.delta(1.5) == 0.0


@pytest.mark.parametrize("p", [1, 2, 4, 12])
def test_k_norm_profile(p: int) -> None:
    """Two simulations of the noise: as N(0, W I), and by length and direction."""
    mechanism: Any = from_request("k-norm", "replace-one", p, epsilon=2.0)
    largest_change, dimension = sensitivity("k-norm", "replace-one", p), p * (p + 1) // 2
    rng, draws = np.random.default_rng(p), at_scale(40_000, 400_000)
    z = rng.normal(size=(draws, dimension))
    length = rng.gamma(dimension, mechanism.scale, size=draws)
    noise = z * (length / np.linalg.norm(z, axis=1))[:, None]
    variance = rng.gamma((dimension + 1) / 2, 2 * mechanism.scale**2, size=draws)
    mixed = rng.normal(size=(draws, dimension)) * np.sqrt(variance)[:, None]
    if dimension == 1:  # then it is Laplace
        assert stats.kstest(noise[:, 0], stats.laplace(scale=mechanism.scale).cdf).pvalue > 1e-4
    for sample in (noise, mixed):
        # The law of the length is Gamma, and so is that of the mixture.
        lengths = np.linalg.norm(sample, axis=1)
        assert (
            stats.kstest(lengths, stats.gamma(dimension, scale=mechanism.scale).cdf).pvalue > 1e-4
        )
        shifted = sample.copy()
        shifted[:, 0] += largest_change
        # The privacy loss between N and N - shift.
        loss = (np.linalg.norm(shifted, axis=1) - lengths) / mechanism.scale
        assert loss.max() <= mechanism.guarantee.pure * (1 + 1e-9)
        for epsilon in (0.0, 0.2, 0.5, 1.0, 1.5):
            lost = np.maximum(0.0, -np.expm1(epsilon - loss))
            error = lost.std() / math.sqrt(draws)
            assert mechanism.guarantee.delta(epsilon) >= lost.mean() - 5 * error
    # Given its variance the noise is Gaussian; the variance is rarely too small.
    if mechanism.guarantee.delta0:
        smallest_variance = (largest_change / mechanism.guarantee.mu) ** 2
        probability = stats.gamma((dimension + 1) / 2, scale=2 * mechanism.scale**2).cdf(
            smallest_variance
        )
        assert probability == pytest.approx(mechanism.guarantee.delta0, rel=1e-6)
        assert probability <= mechanism.guarantee.delta0
    else:
        assert mechanism.guarantee.mu == pytest.approx(
            -2 * special.ndtri(special.expit(-2.0)), rel=1e-9
        )


def test_k_norm_mixture_bound_with_many_columns() -> None:
    mechanism: Any = from_request("k-norm", "replace-one", 64, epsilon=1.0)
    assert mechanism.guarantee.delta0 == 1e-12
    assert mechanism.guarantee.mu < 0.03
    smallest_variance = (math.sqrt(2) / mechanism.guarantee.mu) ** 2
    with mpmath.workdps(40):
        half = mpmath.mpf(64 * 65 // 2 + 1) / 2
        probability = mpmath.gammainc(
            half, 0, smallest_variance / (2 * mechanism.scale**2), regularized=True
        )
    assert 0.999999 * mechanism.guarantee.delta0 < probability <= mechanism.guarantee.delta0


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_matrix_laplace_density(relation: str) -> None:
    """Two columns: f(Z) is e^(tr Z / (2 s)) P[W_2(3, s/2 I) >= Z], up to a constant."""
    epsilon, rng, draws = 1.2, np.random.default_rng(4), at_scale(10_000, 400_000)
    mechanism: Any = from_request("matrix-laplace", relation, 2, epsilon=epsilon)
    s, normal = mechanism.scale, rng.normal(size=(draws, 2, 3))
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
        (density, error), (shifted_density, shifted_error) = log_density(Z), log_density(Z + change)
        assert abs(density - shifted_density) <= mechanism.guarantee.pure + error + shifted_error
        worst = max(worst, abs(density - shifted_density))
    if relation == "add-remove":
        assert worst > 0.95 * epsilon  # attained in the tail, where W >= Z is certain


@pytest.mark.parametrize(("squared", "epsilon"), [(1, 0.5), (100, 1.0), (10, 3.0)])
def test_discrete_gaussian_profile(squared: int, epsilon: float) -> None:
    """Against a sum over integers, for one cell that changes by the full distance."""
    kind, delta = mechanisms.registry["integer-rows"], 1e-5
    step = math.isqrt(squared)
    bounds = SensitivityBounds(step * step, step * step, 900)
    keys = {"name": "integer-rows", "epsilon": epsilon, "delta": delta, "calibration": "published"}
    spec = kind.spec.model_validate(keys)
    mechanism: Any = kind.from_spec(
        spec, PublicParameters(5, 100, "replace-one", sensitivity_bounds=bounds)
    )
    j = np.arange(-int(40 * mechanism.scale) - step, int(40 * mechanism.scale) + step + 1)
    log_weight = -(j**2) / (2 * mechanism.scale**2)
    total = special.logsumexp(log_weight)
    shifted_log_weight = -((j - step) ** 2) / (2 * mechanism.scale**2)
    for level in (0.0, 0.3, 1.0, 2.0):
        excess = np.maximum(
            0.0, np.exp(log_weight - total) - np.exp(level + shifted_log_weight - total)
        )
        assert excess.sum() * (1 - 1e-9) <= mechanism.guarantee.delta(level)
        assert mechanism.guarantee.delta(level) < 60 * excess.sum() + 1e-12 or level == 0


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
    # No smaller factor holds.
    shift, mu = 1e-3, 0.999 * math.sqrt(math.pi / 2) * 1e-3
    assert 0.5 * math.exp(-shift) < special.ndtr(-mu)
