"""The proof of docs/privacy.md, "Cumulative releases", from first principles.

Everything is computed from the formulas of that section: the weights, how far the integers of
all steps move, and the noise of what is decoded. Of the mechanism only the integers that it adds
noise to, and the noise that it asks the sampler for, are used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from gramercy.common.prefix_sums import UNIT, PrefixSums
from gramercy.ledger.series import SeriesAccount
from gramercy.mechanisms.accounting.gdp import gdp_delta
from gramercy.mechanisms.gaussian import Gaussian, GaussianIid
from gramercy.mechanisms.mechanism import PublicParameters
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.neighbours import Neighbours
from tests.proofs.adaptive_draws import Array, Policy, delta
from tests.support.black_box.audit import audit_statistics
from tests.support.black_box.chain import Draw, Replayed, recorded
from tests.support.factories import at_scale

RELATIONS = list(Neighbours)


def mechanism_of(
    steps: int,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    *,
    kind: type[Gaussian] = Gaussian,
    p: int = 2,
    mu: float = 1.0,
    counts: bool | None = None,
    grouped: bool = False,
) -> Gaussian:
    """The mechanism of a series; it publishes a number of rows where one is private."""
    if counts is None:
        counts = neighbours is Neighbours.ADD_REMOVE or grouped
    public = PublicParameters(
        p, 10_000, neighbours, counts, grouped=grouped, series=PrefixSums(steps)
    )
    spec = kind.spec.model_validate({"name": kind.name, "mu": mu, "delta": 1e-6})
    return kind.from_spec(spec, public)


# --- Weights ------------------------------------------------------------------------------------


def exact_weights(steps: int) -> list[list[int]]:
    """W in units of 2^-12, each root rounded exactly, from binomial coefficients."""
    c = [Fraction(math.comb(2 * k, k), 4**k) for k in range(steps)]
    h = [Fraction(0), *itertools.accumulate(each * each for each in c)]

    def rounded(t: int, s: int) -> int:
        doubled = 4 * UNIT**2 * c[t - s] ** 2 * h[steps] / h[steps - s]
        return (math.isqrt(doubled.numerator // doubled.denominator) + 1) // 2

    return [[rounded(t, s) if s <= t else 0 for s in range(steps)] for t in range(steps)]


@pytest.mark.parametrize("steps", [1, 2, 8, 14, 54])
def test_weights_are_those_of_the_formula(steps: int) -> None:
    assert PrefixSums(steps).weights.tolist() == exact_weights(steps)


# --- How far the integers of all steps move -----------------------------------------------------


def integer_rows(mechanism: Gaussian, turns: int) -> Array:
    """Integer rows in many directions, of several lengths, and zeros; shape (rows, p)."""
    lattice, angles = mechanism.lattice, np.pi * np.arange(turns) / turns
    directions = np.array([np.cos(angles), np.sin(angles)])[: lattice.p]
    lengths = np.array([1.0, 0.6])[:, None, None]
    rows = (lengths * directions).transpose(0, 2, 1).reshape(-1, lattice.p)
    q = np.rint(lattice.unit_length * np.vstack([rows, np.zeros(lattice.p)]))
    assert (q * q).sum(axis=1).max() <= lattice.squared_radius
    return q


def features(mechanism: Gaussian, turns: int = 12) -> Array:
    """What a row adds to the integers of a sum, in units of the noise of one step.

    With groups, of every row in either of two groups. Shape (rows, integers).
    """
    replayed = Replayed()
    with recorded(replayed, ()):
        for q in integer_rows(mechanism, turns).astype(int).astype(object):
            mechanism.perturb(np.outer(q, q), 1)
    one = np.array([(draw.exact / draw.scales).astype(float) for draw in replayed.draws])
    if not mechanism.parameters.grouped:
        return one
    nothing = np.zeros_like(one)
    return np.block([[one, nothing], [nothing, one]])


def largest_change(
    rows: Array, weights: Array, neighbours: Neighbours, draws: Sequence[int] = ()
) -> float:
    """The largest squared change of all integers, over all steps of a row and of its replacement.

    What is in the rows may differ from reading to reading, so every reading has its own largest
    change. In units of the noise; `weights`: whole numbers, shape (T, T).
    """
    steps = len(weights)
    squares = (rows * rows).sum(axis=1)
    times = np.array(draws or [1] * steps, float)
    if neighbours is Neighbours.ADD_REMOVE:
        return float((times @ weights**2).max() * squares.max())
    products = rows @ rows.T
    largest = 0.0
    for s, other in itertools.combinations_with_replacement(range(steps), 2):
        total = 0.0
        for t in range(steps):
            a, b = weights[t, s], weights[t, other]
            change = a * a * squares[:, None] + b * b * squares - 2 * a * b * products
            total += times[t] * change.max()
        largest = max(largest, total)
    return largest


@pytest.mark.parametrize("steps", [1, 2, 8])
@pytest.mark.parametrize("grouped", [False, True], ids=["", "groups"])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("kind", [Gaussian, GaussianIid])
def test_guarantee_is_the_largest_change_of_all_steps(
    kind: type[Gaussian], neighbours: Neighbours, p: int, grouped: bool, steps: int
) -> None:
    """A row that is replaced may leave its step and its group, also if there is one column."""
    mechanism = mechanism_of(steps, neighbours, kind=kind, p=p, grouped=grouped)
    weights = np.array(exact_weights(steps), float)
    change = largest_change(features(mechanism), weights, neighbours)
    share = math.sqrt(change) / mechanism.guarantee.mu
    # With one column, only rows of different steps are orthogonal, of which there are few.
    is_loose = p == 1 and not grouped and neighbours is Neighbours.REPLACE_ONE
    assert ({1: 0.7, 2: 0.94}.get(steps, 0.99) if is_loose else 0.99) < share <= 1


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_guarantee_of_a_year_of_weeks(neighbours: Neighbours) -> None:
    mechanism = mechanism_of(52, neighbours)
    weights = np.array(exact_weights(52), float)
    rows = features(mechanism, turns=4)
    assert 0.99 < math.sqrt(largest_change(rows, weights, neighbours)) <= mechanism.guarantee.mu


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("draws", [(2, 1, 1, 1), (1, 3, 1, 1), (1, 1, 1, 2), (2, 1, 4, 2)])
def test_steps_that_are_drawn_again_move_by_their_weight_each_time(
    draws: tuple[int, ...], neighbours: Neighbours
) -> None:
    """The guarantee of what was drawn, and the charges of all draws, which add up to it."""
    planned = mechanism_of(4, neighbours)
    stated = planned.guarantee_of_draws(draws).mu
    weights = np.array(exact_weights(4), float)
    change = largest_change(features(planned), weights, neighbours, draws)
    assert 0.99 < math.sqrt(change) / stated <= 1
    account, charged = SeriesAccount(planned.guarantee, (1, 1, 1, 1)), planned.guarantee.mu**2
    for step, times in enumerate(draws, 1):
        for _ in range(times - 1):
            charged += account.price(step).mu ** 2
            again = [n + (t == step) for t, n in enumerate(account.draws, 1)]
            account = SeriesAccount(planned.guarantee, tuple(again))
    assert math.sqrt(charged) == pytest.approx(stated, rel=1e-12)


def test_integers_of_every_step_have_the_weights_of_the_formula() -> None:
    """Noise is added to the weighted sum of all steps so far: two rows, corrected in between."""
    steps, mechanism, replayed = 5, mechanism_of(5), Replayed()
    rng, weights, expected = np.random.default_rng(1), exact_weights(5), []
    with recorded(replayed, ()):
        for t in range(steps):
            rows = rng.integers(-1000, 1000, (t + 1, 2)).astype(object)
            grams = [np.outer(q, q) for q in rows]
            count = PrefixSums(steps).encode([np.array(1)] * (t + 1))
            mechanism.perturb(PrefixSums(steps).encode(grams), int(count))
            own = sum(w * g for w, g in zip(weights[t], grams, strict=False))
            expected.append([own[0, 1], own[0, 0], own[1, 1], sum(weights[t])])
    assert [draw.exact.tolist() for draw in replayed.draws] == expected


# --- Courses of a table that depend on what is published ----------------------------------------

W3 = np.array(exact_weights(3), float)
UNIT_NOISE = 1 / math.sqrt((W3**2).sum(axis=0).max())  # mu of the series is 1


def mu_squared(t: int, s: int) -> float:
    """Of step t (from 1), for a row of step s that is in the table."""
    return float((UNIT_NOISE * W3[t - 1, s - 1]) ** 2)


def either(condition: Array, first: float, second: float) -> Array:
    return np.where(condition, first, second)


# The mu of the first step, and the squared mu of the later ones by what was published before.
COURSES: dict[str, tuple[float, Policy]] = {
    "there from its step on": (
        math.sqrt(mu_squared(1, 1)),
        (lambda y: 0 * y + mu_squared(2, 1), lambda y, _, __: 0 * y + mu_squared(3, 1)),
    ),
    "deleted because of what was published": (
        math.sqrt(mu_squared(1, 1)),
        (
            lambda y: either(y > 0.3, mu_squared(2, 1), 0.0),
            lambda y, z, _: either((y > 0.3) & (z < 1), mu_squared(3, 1), 0.0),
        ),
    ),
    "added in a step that what was published decides": (
        0.0,
        (
            lambda y: either(y > 0, mu_squared(2, 2), mu_squared(2, 1)),
            lambda y, _, __: either(y > 0, mu_squared(3, 2), mu_squared(3, 1)),
        ),
    ),
    "added late, or in the last step": (
        0.0,
        (
            lambda y: either(y > 0, mu_squared(2, 1), 0.0),
            lambda y, _, __: either(y > 0, mu_squared(3, 1), mu_squared(3, 3)),
        ),
    ),
    "moved to another step": (
        math.sqrt(mu_squared(1, 1)),
        (
            lambda y: either(y > 0, mu_squared(2, 2), mu_squared(2, 1)),
            lambda y, _, __: either(y > 0, mu_squared(3, 3), mu_squared(3, 1)),
        ),
    ),
}


@pytest.mark.parametrize("name", COURSES)
def test_courses_that_depend_on_what_is_published_have_the_guarantee(name: str) -> None:
    """By quadrature; a row that moves to other steps has it no longer."""
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        exact, claimed = delta(*COURSES[name], epsilon), float(gdp_delta(1.0, epsilon))
        if "moved" in name:
            assert exact > 1.05 * claimed
        else:
            assert 0 < exact < claimed * (1 + 1e-3)


# --- Rows that move to another step -------------------------------------------------------------


@pytest.mark.parametrize("steps", [2, 8, 52])
def test_one_move_costs_at_most_the_root_of_two(steps: int) -> None:
    weights, norm = PrefixSums(steps).weights.astype(float), PrefixSums(steps).squared_norm()
    so_far = np.vstack([np.zeros(steps), np.cumsum(weights**2, axis=0)])
    after = so_far[-1] - so_far
    # By the first reading with the new date: the old step before it, the new one from then on.
    moved = (so_far[:, :, None] + after[:, None, :]) / norm
    assert moved.max() <= 2
    assert steps < 52 or moved.max() > 1.99  # from the first step to the last, at the end


@pytest.mark.parametrize(("steps", "factor"), [(8, 2.37), (12, 2.80), (52, 5.15), (365, 11.90)])
def test_a_date_that_is_updated_at_every_step_costs_as_stated(steps: int, factor: float) -> None:
    """The row is in the current step each time, where its weight is the largest."""
    sums = PrefixSums(steps)
    weights = sums.weights
    assert (weights.max(axis=1) == np.diag(weights)).all()
    squared = float((np.diag(weights) ** 2).sum() / sums.squared_norm())
    h = np.cumsum([float(Fraction(math.comb(2 * k, k), 4**k)) ** 2 for k in range(steps)])
    assert squared == pytest.approx((1 / h).sum(), rel=1e-3)
    assert math.sqrt(squared) == pytest.approx(factor, rel=2e-3)


# --- An auditor ---------------------------------------------------------------------------------

STEPS = 8


def audited(
    mechanism: Gaussian, first: Sequence[Any], second: Sequence[Any], runs: int
) -> tuple[Array, Array]:
    """The logarithm of the likelihood ratio of what all steps publish, in runs on two histories.

    `first`, `second`: for every step, the exact sum and number of rows of each step so far.
    """
    draws: list[list[Draw]] = []
    for history in (first, second):
        replayed = Replayed()
        with recorded(replayed, ()):
            for sums in history:
                grams, counts = zip(*sums, strict=True)
                count = PrefixSums(STEPS).encode([np.array(each) for each in counts])
                mechanism.perturb(PrefixSums(STEPS).encode(grams), int(count))
        draws.append(replayed.draws)
    totals = np.zeros((2, runs))
    for one, two in zip(*draws, strict=True):
        change = ((two.exact - one.exact) / one.scales).astype(float)
        for h in (0, 1):
            noise = [
                sampler.rounded_gaussian(parameters[0], size * runs).reshape(size, runs)
                for _, parameters, size in one.requests
            ]
            white = np.vstack(noise) / one.scales[:, None]
            totals[h] += change @ (white + (h - 0.5) * change[:, None])
    return totals[0], totals[1]


def histories(mechanism: Gaussian, rows: Sequence[Any]) -> list[list[tuple[Any, int]]]:
    """All steps of a table with one row in the third step; `rows`: at each reading, or None."""
    nothing = np.zeros((2, 2), dtype=object)
    found = []
    for t, row in enumerate(rows, 1):
        sums = [(nothing, 0)] * t
        if t >= 3 and row is not None:
            q = np.rint(mechanism.lattice.unit_length * np.array(row)).astype(int).astype(object)
            sums[2] = np.outer(q, q), 1
        found.append(sums)
    return found


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_auditor_proves_most_of_the_stated_mu_and_no_more(neighbours: Neighbours) -> None:
    """The best statistic of all published integers, with noise of the sampler."""
    mechanism, runs = mechanism_of(STEPS, neighbours), at_scale(20_000, 200_000)
    replaced = neighbours is Neighbours.REPLACE_ONE
    rows = [(1.0, 0.0)] * STEPS
    others = [(0.0, 1.0) if replaced else None] * STEPS
    null, shifted = audited(
        mechanism, histories(mechanism, rows), histories(mechanism, others), runs
    )
    bounds = audit_statistics(null, shifted)
    assert bounds.alarms(mechanism.guarantee) == []
    assert bounds.mu > 0.85
    # The statistic is normal: its means differ by mu standard deviations.
    found = (shifted.mean() - null.mean()) / null.std()
    assert found == pytest.approx(1.0, abs=6 * math.sqrt(2 / runs))


def test_auditor_finds_noise_for_a_smaller_norm() -> None:
    """The noise of the decoded sum, divided by its spread, is not that of the weights."""
    mechanism = mechanism_of(STEPS)
    sums = PrefixSums(STEPS)
    ratio = sums.spread(STEPS) * UNIT / (math.sqrt(sums.squared_norm()) / UNIT)
    too_small = Gaussian(mechanism.parameters, mechanism.scale * ratio)
    rows, others = [(1.0, 0.0)] * STEPS, [None] * STEPS
    found = audited(too_small, histories(mechanism, rows), histories(mechanism, others), 20_000)
    assert audit_statistics(*found).alarms(mechanism.guarantee) != []


# --- Noise of what is decoded -------------------------------------------------------------------


series = lru_cache(PrefixSums)


def noise_of(steps: int, last: int, width: int | None = None) -> float:
    """The noise of the sum over some steps, relative to that of one release at the same mu."""
    sums = series(steps)
    return sums.spread(last, width) * math.sqrt(sums.squared_norm())


def test_noise_of_decoded_sums_is_as_stated() -> None:
    """Simulated through the decoding: the sum so far, the last 13 weeks and each week."""
    sums, runs = PrefixSums(52), 20_000
    scale = math.sqrt(sums.squared_norm())  # of a step, where one release would have 1
    noise = scale * np.random.default_rng(52).standard_normal((52, runs))
    weeks = np.array(sums.decode(list(noise)))
    for last in (1, 13, 26, 39, 52):
        for width in {None, min(13, last), 1}:
            first = 0 if width is None else last - width
            found = float(weeks[first:last].sum(axis=0).std())
            assert found == pytest.approx(noise_of(52, last, width), rel=0.02)
    every = np.sqrt((weeks**2).mean(axis=1))
    assert np.allclose(every, [noise_of(52, t, 1) for t in range(1, 53)], rtol=0.02)
    assert np.sqrt((every**2).mean()) == pytest.approx(1.598, rel=0.005)


def covariance(weights: Array) -> Array:
    """Of the sums of single steps, by exact inversion of the recursion, for noise of size one."""
    steps = len(weights)
    decoding = np.zeros((steps, steps))
    for t in range(steps):
        own = np.eye(steps)[t]
        decoding[t] = (own - weights[t, :t] @ decoding[:t]) / weights[t, t]
    return np.asarray(decoding @ decoding.T)


@pytest.mark.parametrize(
    ("steps", "year", "prefixes", "quarter", "first", "last", "week"),
    [
        (52, 1.946, 2.064, 2.407, 1.524, 1.129, 1.598),
        (365, 2.392, 2.668, 2.757, 1.716, 1.128, 1.829),
    ],
)
def test_figures_of_the_documentation(
    steps: int,
    year: float,
    prefixes: float,
    quarter: float,
    first: float,
    last: float,
    week: float,
) -> None:
    """From the covariance of the decoded steps; averages are root mean squares."""
    weights = PrefixSums(steps).weights.astype(float)
    exact = covariance(weights) * PrefixSums(steps).squared_norm()
    sums = np.array([exact[:t, :t].sum() for t in range(1, steps + 1)])
    of_13 = [exact[t - 13 : t, t - 13 : t].sum() for t in range(13, steps + 1)]
    alone = np.diag(exact)
    found = [sums[-1], sums.mean(), np.mean(of_13), alone[0], alone[-1], alone.mean()]
    assert np.sqrt(found) == pytest.approx([year, prefixes, quarter, first, last, week], abs=6e-4)
    assert np.sqrt(sums) == pytest.approx([noise_of(steps, t) for t in range(1, steps + 1)])
    assert np.sqrt(alone) == pytest.approx([noise_of(steps, t, 1) for t in range(1, steps + 1)])


def least_mean_square(steps: int) -> float:
    """The least root mean square of the noise of all prefixes, over all factorisations.

    With X = W^T W of unit diagonal, tr(A X^-1 A^T) is least where the diagonal of
    (D^1/2 A^T A D^1/2)^1/2 is that of D: Denisov et al. (2022), Theorem 3.2.
    """
    sums = np.tril(np.ones((steps, steps)))
    dual = np.ones(steps)
    for _ in range(1000):
        root = np.sqrt(dual)
        values, vectors = np.linalg.eigh(root[:, None] * (sums.T @ sums) * root)
        squared = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        moved = float(np.abs(np.diag(squared) / dual - 1).max())
        dual = np.diag(squared)
        if moved < 1e-10:
            break
    return math.sqrt(dual.sum() / steps)


@pytest.mark.parametrize("steps", [8, 13, 52, 100])
def test_prefixes_are_near_the_optimum_and_better_than_plain_roots(steps: int) -> None:
    found = [noise_of(steps, t) for t in range(1, steps + 1)]
    optimum = least_mean_square(steps)
    assert optimum <= math.sqrt(np.mean(np.square(found))) < 1.014 * optimum
    c = [math.comb(2 * k, k) / 4**k for k in range(steps)]
    plain = np.array([[c[t - s] if s <= t else 0.0 for s in range(steps)] for t in range(steps)])
    exact = covariance(plain) * np.square(c).sum()
    for width in (1, 4, 13, steps):
        for last in range(width, steps + 1):
            window = slice(last - width, last)
            of_plain = math.sqrt(exact[window, window].sum())
            assert noise_of(steps, last, width) <= of_plain * (1 + 2e-4)  # weights are rounded
        assert noise_of(steps, last, width) < of_plain
