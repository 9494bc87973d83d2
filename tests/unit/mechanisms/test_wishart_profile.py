"""The exact guarantee of Wishart noise, against quadrature, high precision and samples.

M5 and M6 are published scales: see docs/mechanisms/README.md.
"""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, optimize, special

from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.accounting.wishart_profile import (
    MAX_SHAPE,
    add_remove_profile,
    best_shape,
    replace_one_bound,
    smallest_variance,
)
from gramercy.schemas import families
from gramercy.schemas.neighbours import Neighbours
from tests.support.problems import raises

TABLE = [
    (k, variance, epsilon)
    for k in (2.0, 2.01, 7.5, 100.0, 3e4)
    for variance in (0.05, 0.7, 300.0)
    for epsilon in (0.0, 0.05, 1.0, 6.0)
]
# k, variance, epsilon: the corners of the range, delta from 1 down to 1e-300.
CORNERS = [
    (2.001, 1e-3, 0.0),
    (2 + 1e-9, 1e9, 3.0),
    (50.0, 1e-3, 1000.0),
    (1000.0, 0.02, 50.0),
    (20.0, 1.0, 1000.0),
    (300.0, 1e9, 0.0),
    (300.0, 0.2, 5.0),
    (1e6, 1e-3, 2.0),
    (1e6, 3e-3, 1.0),
    (1e6, 1e9, 0.0),
]


def quadrature(k: float, variance: float, epsilon: float, removal: bool) -> float:
    """The hockey-stick divergence of Gamma(k/2) + L and Gamma(k/2), in units of 2 s^2."""
    shift, a = 0.5 / variance, k / 2 - 1

    def loss(x: float) -> float:  # log of density without the row over density with it
        if x <= shift:
            return math.inf if a > 0 or x < shift else -shift
        return -shift - a * math.log1p(-shift / x)

    def density(x: float, moved: float) -> float:
        y = x - moved
        return math.exp(special.xlogy(a, y) - y - special.gammaln(k / 2)) if y > 0 else 0.0

    def excess(x: float) -> float:
        if removal:
            return density(x, 0.0) * max(0.0, -math.expm1(min(700.0, epsilon - loss(x))))
        return density(x, shift) * max(0.0, -math.expm1(min(700.0, epsilon + loss(x))))

    level = epsilon if removal else -epsilon
    width = math.sqrt(k) + 5
    far = shift + k / 2 + 12 * width + 60
    if loss(far) > level:
        crossing = far
    elif a == 0:
        crossing = shift
    else:
        crossing = optimize.brentq(lambda x: max(-1e3, min(1e3, loss(x) - level)), shift, 2 * far)
    start, end = (0.0, crossing) if removal else (crossing, crossing + far)
    marks = [shift, *(crossing + width * np.array([-30, -12, -5, -2, -1, -0.3, 0.3, 1, 2, 5, 12]))]
    marks += [shift + k / 2 + 5, shift + k / 2 + 5 * width]
    inner = sorted(x for x in marks if start < x < end)
    return math.fsum(
        integrate.quad(excess, low, high, epsabs=0, epsrel=1e-11, limit=400)[0]
        for low, high in itertools.pairwise([start, *inner, end])
    )


@pytest.mark.filterwarnings(
    "ignore::scipy.integrate.IntegrationWarning"
)  # warns of roundoff near 1e-11
@pytest.mark.parametrize(("k", "variance", "epsilon"), TABLE)
def test_profile_is_the_hockey_stick_integral(k: float, variance: float, epsilon: float) -> None:
    delta = add_remove_profile(k, variance, epsilon)
    assert delta == pytest.approx(quadrature(k, variance, epsilon, True), rel=1e-9, abs=1e-300)
    assert delta >= quadrature(k, variance, epsilon, False) * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "variance", "epsilon"), TABLE[12:] + CORNERS)
def test_profile_is_a_tight_upper_bound(k: float, variance: float, epsilon: float) -> None:
    delta = add_remove_profile(k, variance, epsilon)
    with mpmath.workdps(400):  # the subtraction cancels most digits
        half, shift = mpmath.mpf(k) / 2, 1 / (2 * mpmath.mpf(variance))
        x = shift / -mpmath.expm1(-(epsilon + shift) / (half - 1))
        exact = mpmath.gammainc(half, 0, x, regularized=True)
        exact -= mpmath.exp(epsilon) * mpmath.gammainc(half, 0, x - shift, regularized=True)
        assert 0 < exact <= delta
        assert delta <= max(exact * (1 + mpmath.mpf("1e-10")), mpmath.mpf("5e-324"))


def test_profile_is_constant_at_two_degrees_of_freedom() -> None:
    """Scale M5 (claimed to be pure) is exactly (0, 1 - e^(-eps/3)) at any epsilon."""
    for epsilon, delta in ((0.5, 0.1535), (1.0, 0.2835), (2.0, 0.4866)):
        for at in (0.0, epsilon, 700.0):
            computed = add_remove_profile(2, 3 / (2 * epsilon), at)
            assert computed == pytest.approx(-math.expm1(-epsilon / 3), rel=1e-12)
            assert computed == pytest.approx(delta, abs=5e-5)
    assert add_remove_profile(2 + 1e-12, 1.5, 1) == pytest.approx(
        add_remove_profile(2, 1.5, 1), rel=1e-9
    )


def test_matrix_noise_has_the_scalar_profile() -> None:
    """The profile of W_3(m, s^2 I) with and without x x^T is computed from the matrix densities."""
    rng = np.random.default_rng(5)
    p, m, variance, draws = 3, 6.5, 0.4, 100_000
    x = np.array([0.6, 0.0, 0.8])
    factor = np.zeros((draws, p, p))
    for i in range(p):
        factor[:, i, i] = np.sqrt(rng.chisquare(m - i, draws))
        factor[:, i, :i] = rng.standard_normal((draws, i))
    without = variance * factor @ factor.transpose(0, 2, 1)
    inside = 1 - x @ np.linalg.inv(without) @ x  # |Y - x x^T| / |Y|; positive iff PSD
    ratio = np.maximum(inside, 0.0) ** ((m - p - 1) / 2) * math.exp(0.5 / variance)
    for epsilon in (0.0, 0.5, 2.0):
        lost = np.maximum(0.0, 1 - math.exp(epsilon) * ratio)
        error = lost.std() / math.sqrt(draws)
        assert abs(lost.mean() - add_remove_profile(m - p + 1, variance, epsilon)) < 5 * error


@pytest.mark.slow
@pytest.mark.parametrize("k", [2.0, 2.6, 5.0, 40.0])
def test_replace_one_bound_covers_sampled_neighbours(k: float) -> None:
    """W_2(k + 1, s^2 I) + x x^T against + y y^T, at several angles, with shorter and zero rows."""
    rng = np.random.default_rng(6)
    draws, variance = 200_000, 2.0 / math.sqrt(k)
    one, two = np.sqrt(rng.chisquare(k + 1, draws)), np.sqrt(rng.chisquare(k, draws))
    cross = rng.standard_normal(draws)
    w_11, w_12, w_22 = variance * np.array([one**2, one * cross, cross**2 + two**2])
    least = math.inf
    for angle, old, new in itertools.product((0.5, 0.3, 0.05), (1.0, 0.6, 0.0), (1.0, 0.5, 0.0)):
        y = new * math.cos(math.pi * angle), new * math.sin(math.pi * angle)
        a, b, c = w_11 + old**2 - y[0] ** 2, w_12 - y[0] * y[1], w_22 - y[1] ** 2
        inside = np.where(a + c > 0, np.maximum(0.0, a * c - b * b), 0.0)
        ratio = (inside / (w_11 * w_22 - w_12**2)) ** ((k - 2) / 2) * (inside > 0)
        ratio *= math.exp((new**2 - old**2) / (2 * variance))
        for epsilon in (0.0, 0.3, 1.0):
            lost = np.maximum(0.0, 1 - math.exp(epsilon) * ratio)
            error = 5 * lost.std() / math.sqrt(draws)
            slack = replace_one_bound(k, variance, epsilon) - lost.mean()
            assert slack > -error - 1e-12
            least = min(least, slack - error)
    assert k > 2 or least < 0  # it is attained; for k = 2 no smaller bound holds


def law(k: float, variance: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    return mpmath.mpf(k) / 2, 1 / (2 * mpmath.mpf(variance))


def step(k: float, variance: float, epsilon: float, added: bool) -> mpmath.mpf:
    """delta_add if `added`, else delta_remove, from incomplete gamma functions."""
    half, rate = law(k, variance)
    x = threshold(k, variance, epsilon, added)
    ends = [(0, x), (0, x - rate)] if added else [(x - rate, mpmath.inf), (x, mpmath.inf)]
    near, far = (mpmath.gammainc(half, *between, regularized=True) for between in ends)
    return near - mpmath.exp(epsilon) * far


def threshold(k: float, variance: float, epsilon: float, added: bool) -> mpmath.mpf:
    half, rate = law(k, variance)
    level = epsilon + rate if added else rate - epsilon
    return rate / -mpmath.expm1(-level / (half - 1))


def split(k: float, variance: float, epsilon: float, a: float) -> mpmath.mpf:
    removed = step(k, variance, epsilon - a, False)
    return step(k, variance, a, True) + mpmath.exp(a) * removed


REPLACED = [
    *(case for case in TABLE if 2 < case[0] <= 100),
    (2.2, 1e9, 0.0),
    (2 + 1e-6, 3.0, 0.01),
    (3.0, 1e-3, 5.0),
    (4.0, 1.0, 0.3),  # a whole number of terms
    (6.0, 30.0, 2.0),
    (20.0, 1.0, 40.0),
    (260.0, 0.3, 0.5),
    (5e3, 0.05, 1.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("k", "variance", "epsilon"), REPLACED)
def test_replace_one_bound_uses_the_optimal_split(
    k: float, variance: float, epsilon: float
) -> None:
    """The minimum is found by bisection in 60 digits, over a > eps - L."""
    with mpmath.workdps(60):
        half, rate = law(k, variance)

        def slope(a: mpmath.mpf) -> mpmath.mpf:
            below = threshold(k, variance, a, True) - rate
            above = threshold(k, variance, epsilon - a, False) - rate
            mass = mpmath.gammainc(half, above, mpmath.inf, regularized=True)
            return mass - mpmath.gammainc(half, 0, below, regularized=True)

        low, width = epsilon - rate, mpmath.mpf(1e-30) * rate
        while slope(low + width) < 0:
            width *= 4
        for _ in range(60):
            width /= 2
            low += width if slope(low + width) < 0 else 0
        least = split(k, variance, epsilon, low + width)
        bound = replace_one_bound(k, variance, epsilon)
        assert split(k, variance, epsilon, low + 3 * width) >= least * (1 - mpmath.mpf("1e-12"))
        assert least * (1 - mpmath.mpf("1e-14")) <= bound <= least * (1 + mpmath.mpf("1e-9"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize(
    ("k", "variance", "epsilon"), [(2.01, 0.7, 0.05), (7.5, 0.7, 0.0), (100.0, 0.3, 1.0)]
)
def test_replace_one_bound_is_the_least_on_a_grid(
    k: float, variance: float, epsilon: float
) -> None:
    """Adding a row first, then removing one, is never worse than the reverse (by quadrature)."""

    def delta_of_steps(a: float, add_first: bool) -> float:
        first = quadrature(k, variance, a, add_first)
        return first + math.exp(a) * quadrature(k, variance, epsilon - a, not add_first)

    loss = 0.5 / variance
    least = []
    for add_first in (True, False):  # delta_remove is 0 beyond L
        low, high = (epsilon - loss, epsilon + loss) if add_first else (-epsilon - loss, loss)
        for _ in range(6):
            grid = np.linspace(low, high, 17)
            values = [delta_of_steps(float(a), add_first) for a in grid]
            best = int(np.argmin(values))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, 16)]
        least.append(min(values))
    assert least[0] <= least[1]
    assert least[0] * (1 - 1e-6) <= replace_one_bound(k, variance, epsilon) <= least[0] * (1 + 1e-9)


def test_replace_one_bound_is_exact_at_two_degrees_of_freedom() -> None:
    """It equals the add-remove profile, because a replaced row may become zero."""
    for epsilon in (0.0, 0.2, 1.0, 50.0):
        assert replace_one_bound(2, 1.5, epsilon) == add_remove_profile(2, 1.5, epsilon)
    assert replace_one_bound(2, 1.5, 1.0) == pytest.approx(-math.expm1(-1 / 3), rel=1e-12)
    assert replace_one_bound(2 + 1e-12, 1.5, 1) == pytest.approx(
        replace_one_bound(2, 1.5, 1), rel=1e-9
    )


@pytest.mark.parametrize(("k", "most"), [(3.0, 0.51), (10.0, 0.53), (100.0, 0.73), (1e4, 0.97)])
def test_replace_one_bound_needs_less_noise_than_two_additions(k: float, most: float) -> None:
    """Compared with the least delta_add(a) + e^a delta_add(b), a + b = epsilon, a, b >= 0."""
    epsilon, delta, c = 1.0, 1e-6, k / 2 - 1

    def two_additions(variance: float) -> float:
        rate = 0.5 / variance
        a = c * math.log(2 / (math.exp(rate / c) + math.exp(-(epsilon + rate) / c)))
        a = max(a, 0.0)
        return add_remove_profile(k, variance, a) + math.exp(a) * add_remove_profile(
            k, variance, epsilon - a
        )

    larger_variance = optimize.brentq(lambda v: math.log(two_additions(v) / delta), 1e-2, 1e6)
    assert smallest_variance(k, epsilon, delta, "replace-one") < most * larger_variance


def test_replace_one_bound_is_between_one_and_two_add_remove_steps() -> None:
    """It is between the add-remove profile and two steps; both decrease in every parameter."""
    ks, variances = (2, 2 + 1e-9, 2.5, 9, 400, 1e5), (0.1, 0.3, 2, 50, 1e9)
    epsilons = (0, 1e-9, 0.1, 0.5, 2, 9)
    replaced, added = (
        np.array([[[profile(k, v, e) for e in epsilons] for v in variances] for k in ks])
        for profile in (replace_one_bound, add_remove_profile)
    )
    for axis in range(3):
        assert (np.diff(replaced, axis=axis) <= 1e-10 * np.delete(replaced, 0, axis)).all()
        assert (np.diff(added, axis=axis) <= 1e-11 * np.delete(added, 0, axis)).all()
    assert (added * (1 - 1e-9) <= replaced).all()
    assert (replaced <= (added[..., :1] + added) * (1 + 1e-9)).all()


@pytest.mark.parametrize("k", [2, 2 + 5e-16, 2 + 1e-9, 3, 200, 1e6])
@pytest.mark.parametrize("variance", [1e-3, 1.5, 1e250])
def test_replace_one_bound_holds_at_extreme_parameters(k: float, variance: float) -> None:
    for epsilon in (0, 1e-300, 1e-10, 6, 1e5, 1e300):
        bound = replace_one_bound(k, variance, epsilon)
        assert add_remove_profile(k, variance, epsilon) * (1 - 1e-9) <= bound <= 1


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("k", [2.0, 3.3, 60.0, 1e6])
def test_smallest_variance_is_smallest(k: float, neighbours: Neighbours) -> None:
    profile = replace_one_bound if neighbours == "replace-one" else add_remove_profile
    for epsilon, delta in itertools.product((0.0, 0.1, 1.0, 8.0), (1e-30, 1e-6, 0.3)):
        variance = smallest_variance(k, epsilon, delta, neighbours)
        assert profile(k, variance, epsilon) <= delta < profile(k, variance * (1 - 1e-10), epsilon)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.2, 1e-9), (4.0, 1e-3)])
def test_many_degrees_of_freedom_approach_the_isotropic_gaussian(
    epsilon: float, delta: float, neighbours: Neighbours
) -> None:
    steps = 2 if neighbours == "replace-one" else 1
    gaussian = steps / gdp_mu(epsilon, delta) / math.sqrt(2)
    excess = []
    for k in (1e4, 1e5, 1e6):
        variance = smallest_variance(k, epsilon, delta, neighbours)
        excess.append(math.sqrt(k + 29) * variance / gaussian - 1)
    if neighbours == "replace-one":  # first-order terms of the two steps cancel
        assert np.abs(excess).max() < 0.005
        assert abs(excess[2]) < 5e-4
        return
    assert 0.08 > excess[0] > excess[1] > excess[2] > 0
    assert excess[1] < 0.05
    assert excess[2] < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("keeps_mean", [False, True])
@pytest.mark.parametrize("p", [1, 1000])
def test_best_shape_is_at_least_as_good_as_a_grid(p: int, keeps_mean: bool) -> None:
    def error(k: float, variance: float) -> float:
        m = k + p - 1
        return variance * math.sqrt(m * (m + p + 1) if keeps_mean else m)

    cases: list[tuple[float, float, Neighbours]] = [
        (1.0, 1e-6, "add-remove"),
        (0.1, 1e-9, "replace-one"),
    ]
    for epsilon, delta, neighbours in cases:
        k, variance = best_shape(p, epsilon, delta, neighbours, keeps_mean)
        assert (k, variance) == best_shape(p, epsilon, delta, neighbours, keeps_mean)
        assert (k + p - 1) - p + 1 == k
        assert variance == smallest_variance(k, epsilon, delta, neighbours)
        assert (k == MAX_SHAPE) == (not keeps_mean)
        for other in np.geomspace(2, MAX_SHAPE, 12).clip(2, MAX_SHAPE).tolist():
            least = smallest_variance(other, epsilon, delta, neighbours)
            assert error(k, variance) <= error(other, least) * (1 + 1e-6)


def test_out_of_range_parameters_are_refused() -> None:
    for k, variance, epsilon in [
        (1.9, 1.0, 1.0),
        (math.nan, 1.0, 1.0),
        (3.0, 0.0, 1.0),
        (3.0, math.nan, 1.0),
        (3.0, 1.0, -0.1),
        (3.0, 1.0, math.inf),
    ]:
        for profile in (add_remove_profile, replace_one_bound):
            with raises(families.ARGUMENT):
                profile(k, variance, epsilon)
    for delta in (0.0, 1.0, math.nan):
        with raises(families.ARGUMENT, argument="delta"):
            smallest_variance(3.0, 1.0, delta, "add-remove")
