"""Output perturbation's solver reaches its tolerance for every table, or refuses the request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from mpmath import mp
from numpy.typing import NDArray
from sklearn import datasets

from gramercy import mechanisms
from gramercy.estimators.solvers import certified
from gramercy.estimators.solvers.certified import (
    certified_gap,
    distance_bound,
    iteration_limit,
    solve_within,
)
from gramercy.schemas import families
from tests.support.factories import at_scale
from tests.support.problems import raises

Array = NDArray[np.float64]

LEAST = 1e-2
REAL = [datasets.load_wine().data, datasets.load_breast_cancer().data, datasets.load_digits().data]


def second_moment(rows: Array) -> Array:
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    return rows.T @ rows / len(rows)


def within(S: Array) -> Array:
    return S / max(1.0, float(np.trace(S)))


def hard_second_moments(p: int, rng: np.random.Generator) -> Iterator[Array]:
    """Second moments of trace at most 1 that are hard for a solver."""
    v, m = rng.normal(size=p), int(rng.integers(2, 4 * p + 3))
    v /= np.linalg.norm(v)
    little = 10.0 ** rng.uniform(-8, -0.5)
    turn = np.linalg.qr(rng.normal(size=(p, p)))[0]
    first = np.zeros((p, p))
    first[0, 0] = 1.0
    apart = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    groups = rng.integers(0, max(1, p // 3) + 1, size=p)
    low = rng.normal(size=(int(rng.integers(1, p + 1)), p))
    copied = rng.normal(size=(m, p // 3 + 2))[:, groups]
    yield from (np.zeros((p, p)), np.eye(p) / p, np.ones((p, p)) / p, first)
    yield from (np.outer(v, v), within(0.99 * first + 0.01 * np.outer(v, v)))
    yield from (low.T @ low / np.linalg.norm(low) ** 2, second_moment(copied))
    yield second_moment(copied + little * rng.normal(size=copied.shape))
    yield second_moment(1 + little * rng.normal(size=(m, p)))
    yield second_moment(1 + 0.1 * rng.normal(size=(400, p)))
    yield second_moment(np.sign(v) + little * rng.normal(size=(m, p)))
    for least in (300, 6):
        spread = 10.0 ** -rng.uniform(0, least, size=p)
        yield from (within((turn * spread) @ turn.T), within(np.diag(spread)))
    yield from ((1 - little) ** apart / p, within(1.0 / (1 + np.add.outer(*2 * [np.arange(p)]))))
    yield np.equal.outer(groups, groups) / p
    yield second_moment(rng.normal(size=(m, p)) * 10.0 ** -rng.uniform(0, 5, size=p))
    yield second_moment(rng.normal(size=(m, p)).cumsum(0))
    yield second_moment(rng.normal(size=(m, 1)) * v + little * rng.normal(size=(m, p)))
    yield second_moment(rng.standard_cauchy(size=(m, p)))
    yield second_moment((rng.random((m, p)) < rng.uniform(0.02, 0.98)).astype(float))
    for table in REAL:
        if table.shape[1] >= p:
            yield second_moment(table[:, rng.choice(table.shape[1], p, replace=False)])


def charged(p: int, penalty: float, n: int = 10**9) -> float:
    keys: Any = {"mu": 1.0, "delta": 1e-6, "penalty": penalty}
    made: Any = mechanisms.registry["output"].calibrated(p=p, n=n, neighbours="replace-one", **keys)
    return float(made.tolerance)


SIZES = [(1, 500), (2, 60), (3, 30), (6, 12), (10, 6), (30, 1), (60, 1), (100, 1)]


@pytest.mark.slow
@pytest.mark.parametrize(("p", "rounds"), SIZES)
def test_solver_reaches_charged_distance_for_every_table(p: int, rounds: int) -> None:
    rng = np.random.default_rng(p)
    for _ in range(at_scale(1, rounds)):
        # The full scale with the smallest accepted penalty is the hardest case.
        for S in hard_second_moments(p, rng):
            penalty = LEAST if p < at_scale(10, 101) else 0.02
            solve_within(S, penalty, charged(p, penalty))


@pytest.mark.parametrize("p", [1, 2, 3, 6, 10])
def test_plain_solver_suffices_without_acceleration(
    p: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certified, "_accelerated", lambda *_: None)
    rng = np.random.default_rng(p)
    penalty = at_scale(10, 1) * LEAST
    for _ in range(at_scale(1, 10)):
        for S in hard_second_moments(p, rng):
            solve_within(S, penalty, charged(p, penalty))


def test_nearly_collinear_rows_are_solved() -> None:
    """About one in four of these nearly collinear tables once raised LinAlgError."""
    for seed in range(at_scale(6, 300)):
        rows = 1 + 0.1 * np.random.default_rng(seed).normal(size=(1000, 6))
        solve_within(second_moment(rows), LEAST, charged(6, LEAST, n=10**6))


@pytest.mark.parametrize("penalty", [LEAST, 0.03, 1.0, 100.0])
def test_charged_tolerance_covers_the_solver_error(penalty: float) -> None:
    """The reference has a certified gap 1e4 times smaller; its own error is added."""
    for p in (2, 4):
        tolerance, rng = charged(p, penalty), np.random.default_rng(p)
        for _ in range(at_scale(1, 20)):
            for S in hard_second_moments(p, rng):
                fine = max(
                    tolerance / 100, distance_bound(p, penalty, 40.0 * p**3 * 2.0**-53) * 1.1
                )
                off = np.linalg.norm(
                    solve_within(S, penalty, tolerance) - solve_within(S, penalty, fine)
                )
                assert off <= tolerance + fine


def exact_gap(S: Array, penalty: float, Z: Array, dual: Array) -> Any:
    """Compute the duality gap of Z and `dual`, clipped to its box, with 60 digits."""
    p = len(S)
    with mp.workdps(60):
        least = mp.mpf(0)
        W = mp.matrix(p, p)
        for i in range(p):
            for j in range(p):
                s, u = mp.mpf(S[i, j]), mp.mpf(dual[i, j]) - mp.mpf(S[i, j])
                box = mp.mpf(penalty)
                W[i, j] = s + (box if i == j else min(max(u, -box), box))
                least += s * mp.mpf(Z[i, j]) + box * abs(mp.mpf(Z[i, j]))
        return least - mp.log(mp.det(mp.matrix(Z.tolist()))) - mp.log(mp.det(W)) - p


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 3, at_scale(4, 12)])
def test_certified_gap_is_not_understated(p: int) -> None:
    """Test points near the minimiser, where cancellation loses digits, and far from it."""
    rng = np.random.default_rng(p)
    for penalty in (LEAST, 0.1):
        for S in list(hard_second_moments(p, rng))[: at_scale(12, 100)]:
            for digits in (3, 7, 16)[:: at_scale(2, 1)]:
                Z = solve_within(S, penalty, charged(p, penalty))
                Z = Z * (1 + 10.0**-digits)
                dual = np.linalg.inv(Z)
                dual = (dual + dual.T) / 2
                stated = certified_gap(S, penalty, Z, dual)
                # Rounding S changes the gap; the charge accounts for that separately.
                moved = 2.0**-53 * (4 + p * penalty) * p / penalty
                least = exact_gap(S, penalty, Z, dual)
                edge = exact_gap(S, penalty, Z, np.where(Z == 0, dual, S + np.sign(Z) * penalty))
                assert stated >= min(least, edge) - moved


def test_too_small_penalty_is_refused_from_public_facts() -> None:
    with raises(families.NOISE_RANGE, columns=6, least=0.01):
        charged(6, 0.9e-2)
    with raises(families.NOISE_RANGE, columns=200, least=0.02):
        charged(200, 1.9e-2)
    assert charged(200, 2e-2) < np.inf


def test_missing_certificate_fails_the_step() -> None:
    messages = set()
    for S, penalty, distance in (
        (np.eye(3) / 3, 0.1, 0.0),
        (np.full((3, 3), np.nan), 0.1, 1.0),
        (-np.eye(3), 0.1, 1.0),
        (np.ones((2, 2)) / 2, 0.1, 1e-13),
    ):
        with raises(families.NOT_CERTIFIED) as caught:
            solve_within(S, penalty, distance)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_iteration_limit_depends_on_public_facts() -> None:
    assert iteration_limit(100, LEAST) == 40_000
    assert certified_gap(np.eye(2) / 2, 0.1, -np.eye(2), np.eye(2)) == np.inf
