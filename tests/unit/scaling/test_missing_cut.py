"""Where the indicators of a row's missing cells are cut off, from published shares."""

from __future__ import annotations

import pytest

from gramercy.scaling.clipping_radius import missing_cut


@pytest.mark.parametrize("present", [(), (1.0, 1.0), (0.4, 1.0, 1.0)])
def test_cells_that_are_missing_alone_need_no_cut(present: tuple[float, ...]) -> None:
    assert missing_cut(present) is None


def test_a_row_may_lack_the_cells_of_all_columns_with_missing_ones() -> None:
    assert missing_cut((0.9, 0.95, 0.99, 1.0, 0.7)) == 4.0
