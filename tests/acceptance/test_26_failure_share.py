"""Adaptive choices of mu and delta0 never exceed the budget, and many charges fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from gramercy.ledger import Ledger
from gramercy.mechanisms import registry
from gramercy.mechanisms.accounting.composition import NO_CHARGES, Filter, Total
from gramercy.mechanisms.accounting.gdp import gdp_mu, satisfies_dp
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import Mechanism
from gramercy.schemas import families
from tests.support.factories import at_scale
from tests.support.ledgers import contract
from tests.support.problems import raises

EPSILON, DELTA = 1.0, 1e-6
SPLITS = np.arange(1, 10) / 10
Array = Any


def hockey_stick(mu: float, delta0: float, epsilon: Array) -> Array:
    """Hockey-stick divergence of the worst mechanism with mu and delta0, at any epsilon."""
    if mu == 0:
        gaussian = np.maximum(0, -np.expm1(epsilon))
    else:
        middle = -epsilon / mu
        gaussian = ndtr(middle + mu / 2) - np.exp(epsilon + log_ndtr(middle - mu / 2))
    return np.minimum(1, gaussian + delta0)


@dataclass(frozen=True)
class SharedDelta:
    """A rule that takes each delta0 from delta when it is spent, not from a fixed share."""

    epsilon: float
    delta: float

    def admits(self, total: Guarantee) -> bool:
        return satisfies_dp(total.mu, self.epsilon, self.delta - total.delta0)


def largest_mu(rule: Filter | SharedDelta, before: Total, delta0: float) -> float | None:
    """The largest mu that is admitted with a delta0 after other charges, or None."""

    def fits(mu: float) -> bool:
        return rule.admits(before.plus(Guarantee(mu, delta0)).guarantee)

    low, high = 0.0, 1.0
    if not fits(low):
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def adaptive_delta(rule: Filter | SharedDelta, split: float) -> float:
    """The delta of the best adaptive analyst: a Gaussian release, then the best second one."""
    first = split * gdp_mu(EPSILON, DELTA * 0.9)
    before = NO_CHARGES.plus(Guarantee(first))
    y = np.linspace(-12, 14, at_scale(40_001, 400_001))
    loss = first * y - first**2 / 2
    density = np.exp(-((y - first) ** 2) / 2) / np.sqrt(2 * np.pi)
    best = np.zeros_like(y)
    for part in (0.0, 0.03, 0.1, 0.3, 0.6, 0.9, 0.99, 0.999999):
        mu = largest_mu(rule, before, part * DELTA)
        if mu is not None:
            best = np.maximum(best, hockey_stick(mu, part * DELTA, EPSILON - loss))
    return float(np.sum(density * best) * (y[1] - y[0]))


@pytest.mark.parametrize("split", SPLITS)
def test_trading_mu_against_delta0_never_exceeds_delta(split: float) -> None:
    assert adaptive_delta(Filter(EPSILON, DELTA, DELTA / 10), split) <= DELTA * (1 + 1e-6)


def test_a_rule_without_a_fixed_share_is_exceeded() -> None:
    """The same analyst detects its flaw."""
    reached = [
        adaptive_delta(SharedDelta(EPSILON, DELTA), float(split))
        for split in SPLITS[:: at_scale(4, 1)]
    ]
    assert max(reached) > 1.5 * DELTA


def failing(p: int, relation: str, failures: float) -> list[Mechanism]:
    """Every mechanism whose guarantee may fail."""
    cases: list[tuple[str, dict[str, Any]]] = [
        ("wishart", {"delta": 1e-7, "mean": "kept"}),
        ("wishart", {"delta": 1e-7, "mean": "removed"}),
        ("k-norm", {}),
    ]
    mechanisms: list[Mechanism] = []
    for name, keys in cases:
        kind: Any = registry[name]
        mechanism = kind.calibrated(
            p=p, n=10_000, neighbours=relation, epsilon=0.1, failure_share=failures, **keys
        )
        mechanisms.append(mechanism)
    return [each for each in mechanisms if each.guarantee.delta0 > 0]


@pytest.mark.parametrize("delta", [1e-6, 1e-10])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_thousand_releases_fit_the_failure_share(relation: str, delta: float) -> None:
    mechanisms = failing(20, relation, delta / 10)
    assert {mechanism.name for mechanism in mechanisms} == {"wishart", "k-norm"}
    for mechanism in mechanisms:
        total = NO_CHARGES.plus(mechanism.guarantee, 1000).guarantee
        assert 0 < total.delta0 <= delta / 10


def test_fifty_wishart_releases_with_mean_fit_the_budget(tmp_path: Path) -> None:
    """They would not fit if each reserved 0.3 delta for its delta0."""
    terms = contract(rows=10_000, budget={"epsilon": 2.0, "delta": 1e-6})
    wishart: Any = registry["wishart"]
    mechanism = wishart.calibrated(
        p=20,
        n=10_000,
        neighbours="replace-one",
        epsilon=0.1,
        delta=1e-6,
        mean="kept",
        failure_share=terms.budget.failure_share,
    )
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for turn in range(50):
        ledger.charge(terms, f"v{turn}", f"request {turn}", mechanism.guarantee, "")
    assert ledger.statement("toy").spent < 2.0
    assert ledger.find_inconsistencies() == []


def test_exhausted_failure_share_still_admits_a_gaussian(tmp_path: Path) -> None:
    terms = contract(budget={"epsilon": 3.0, "delta": 1e-5})
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.charge(terms, "v1", "one", Guarantee(0.1, 0.9e-6), "")
    with raises(families.EXCEEDED, budget="toy", needed=0.2e-6, spent=0.9e-6):
        ledger.charge(terms, "v2", "two", Guarantee(0.1, 0.2e-6), "")
    ledger.charge(terms, "v2", "two", Guarantee(0.1), "")
    facts = ledger.statement("toy").facts()
    assert facts["failures"] == pytest.approx(1e-6)
    assert facts["spent_failures"] == 0.9e-6
