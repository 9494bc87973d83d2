"""Where the indicators of a row's missing cells are cut off, from published shares."""

from __future__ import annotations

import math

import pytest

from gramercy.scaling.clipping_radius import missing_cut

ROWS = 20_000


@pytest.mark.parametrize("present", [(), (1.0, 1.0), (0.4, 1.0, 1.0)])
def test_cells_that_are_missing_alone_need_no_cut(present: tuple[float, ...]) -> None:
    assert missing_cut(present, ROWS, 1.0) is None


def test_little_noise_cuts_nothing() -> None:
    present = (0.9, 0.95, 0.99, 1.0, 0.7)
    assert missing_cut(present, ROWS, 1.0) == 4.0


def test_much_noise_cuts_rows_with_unusually_many() -> None:
    present = (0.9,) * 10
    assert missing_cut(present, ROWS, 1e6) == pytest.approx(3.0)
    assert missing_cut((0.1,) * 10, ROWS, 1e6) == 10.0  # nearly all are missing


def test_noise_of_a_share_stays_below_its_limit() -> None:
    present, cuts = (0.97,) * 30, []
    for noise in (1.0, 4.0, 8.0, 20.0, 100.0):
        cut = missing_cut(present, ROWS, noise)
        assert cut is not None
        cuts.append(cut)
        at_least = 0.9 + 2 * math.sqrt(0.9)
        assert 2 * cut * noise / ROWS <= 0.00501 or cut == pytest.approx(at_least, rel=0.01)
    assert cuts == sorted(cuts, reverse=True)
    assert cuts[0] == 30.0
