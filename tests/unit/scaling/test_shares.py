"""Shares of the budget, from public facts."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gramercy.scaling.shares import (
    LEAST_STRENGTH,
    LEAST_WHITENED,
    follow_a_share,
    shares,
    shares_of_known_constants,
    whitening_pays,
)

MU = 0.25


def rows(strength: float, p: int) -> int:
    return math.ceil(strength * math.sqrt(p) / MU)


@pytest.mark.parametrize("p", [1, 20, 1000])
def test_few_rows_do_not_pay(p: int) -> None:
    assert shares(rows(LEAST_STRENGTH, p) - 1, p, MU) is None
    assert shares(rows(LEAST_STRENGTH, p), p, MU) is not None


def test_the_share_falls_with_the_number_of_rows() -> None:
    totals = []
    for strength in (50, 100, 200, 1000, 10_000, 1e6, 1e9):
        chosen = shares(rows(strength, 20), 20, MU)
        assert chosen is not None
        totals.append(sum(chosen.stages) + chosen.lengths)
    assert totals == sorted(totals, reverse=True)
    assert totals[0] == pytest.approx(0.5)
    assert totals[-1] == pytest.approx(0.05)


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_a_declared_share_is_used(share: float) -> None:
    for n in (10, 10**9):
        chosen = shares(n, 20, MU, share)
        assert chosen is not None
        assert sum(chosen.stages) + chosen.lengths == pytest.approx(share)
        assert min(*chosen.stages, chosen.lengths) > 0
        assert chosen.lost == pytest.approx(0.06 * (1 - share))
        assert chosen.left == pytest.approx(0.94 * (1 - share))


@pytest.mark.parametrize("p", [2, 20, 1000])
def test_a_pilot_pays_from_a_strength_on(p: int) -> None:
    assert not whitening_pays(rows(LEAST_WHITENED, p) - 1, p, MU)
    assert whitening_pays(rows(LEAST_WHITENED, p), p, MU)


def test_a_pilot_takes_its_share_from_the_matrix_alone() -> None:
    alone = shares(10_000, 20, MU)
    assert alone is not None
    assert alone.pilot == alone.turned == 0
    both = alone.with_pilot
    assert (both.stages, both.lengths, both.lost) == (alone.stages, alone.lengths, alone.lost)
    assert both.left + both.pilot + both.turned == pytest.approx(alone.left)
    assert math.fsum(both.all) + both.left == pytest.approx(1)
    assert both.left > 0.8 * alone.left


def test_shares_that_no_rule_gives_are_seen() -> None:
    alone = shares(10_000, 20, MU)
    assert alone is not None
    for chosen in (alone, alone.with_pilot):
        assert follow_a_share(chosen)
        for changed in ("lengths", "lost"):
            twice = {changed: 2 * getattr(chosen, changed)}
            assert not follow_a_share(replace(chosen, **twice))
    assert not follow_a_share(replace(alone, pilot=0.1))
    assert not follow_a_share(replace(alone.with_pilot, turned=0.0))
    assert not follow_a_share(replace(alone, stages=alone.stages[:2]))


def test_known_constants_cost_their_row_lengths_alone() -> None:
    own = shares_of_known_constants(10_000, 20, MU)
    alone = shares(10_000, 20, MU)
    assert alone is not None
    assert own.stages == ()
    assert own.lengths == pytest.approx(alone.lengths)
    assert own.left > alone.left
