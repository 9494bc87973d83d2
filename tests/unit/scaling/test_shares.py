"""Shares of the budget, from public facts."""

from __future__ import annotations

import math

import pytest

from gramercy.scaling.shares import LEAST_STRENGTH, shares

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
