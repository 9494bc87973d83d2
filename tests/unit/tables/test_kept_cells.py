"""Cells that are kept for further passes: the same batches, within the limit, and never pickled."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest

from gramercy.tables.batches import Array, KeptCells, MalformedLines

FORM = (["x", "y"], False)
BATCHES = [np.full((2, 10), 1.0), np.full((2, 5), 2.0)]  # 240 bytes


class Table:
    """Counts how often it is read, and has one malformed line."""

    def __init__(self) -> None:
        self.reads, self.malformed = 0, MalformedLines()

    def read(self, malformed: MalformedLines) -> Iterator[Array]:
        self.reads += 1
        yield from BATCHES
        malformed.dropped += 1

    def passed(self, kept: KeptCells, form: object = FORM) -> list[Array]:
        self.malformed = MalformedLines()
        return list(kept.batches(form, self.malformed, self.read(self.malformed)))


@pytest.mark.parametrize(("limit", "reads"), [(None, 1), (240, 1), (239, 3), (0, 3)])
def test_every_pass_has_the_same_batches(limit: int | None, reads: int) -> None:
    table, kept = Table(), KeptCells(0, limit)
    for _ in range(3):
        found = table.passed(kept)
        assert all(np.array_equal(a, b) for a, b in zip(found, BATCHES, strict=True))
        assert table.malformed == MalformedLines(dropped=1)
    assert table.reads == reads


@pytest.mark.parametrize(("expected", "reads"), [(240, 1), (241, 2)])
def test_a_table_that_will_not_fit_is_not_kept_at_all(expected: int, reads: int) -> None:
    table, kept = Table(), KeptCells(expected, 240)
    for _ in range(2):
        table.passed(kept)
    assert table.reads == reads


def test_another_form_is_read_from_the_table() -> None:
    table, kept = Table(), KeptCells(0)
    for form, reads in ((FORM, 1), ((["x"], False), 2), ((["x"], False), 2), (FORM, 3)):
        table.passed(kept, form)
        assert table.reads == reads


def test_cells_of_one_form_are_forgotten_before_those_of_another_are_kept() -> None:
    table, kept = Table(), KeptCells(0)
    table.passed(kept)
    passing = kept.batches((["x"], False), MalformedLines(), table.read(MalformedLines()))
    next(passing)
    passing.close()
    table.passed(kept)
    assert table.reads == 3


def test_an_interrupted_pass_is_not_kept() -> None:
    table, kept = Table(), KeptCells(0)
    passing = kept.batches(FORM, MalformedLines(), table.read(MalformedLines()))
    next(passing)
    passing.close()
    assert len(table.passed(kept)) == 2
    assert table.reads == 2


def test_nothing_is_left_after_the_last_pass() -> None:
    table, kept = Table(), KeptCells(0)
    table.passed(kept)
    kept.close()
    table.passed(kept)
    assert table.reads == 2


def test_private_cells_are_not_pickled() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(KeptCells(0))
