"""The exact Gram matrix does not depend on row order, batch size or threads."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from gramercy.common.lattice import Lattice
from gramercy.schemas.normalisation import Unit
from gramercy.tables.sums.exact_sums import ExactGram
from gramercy.tables.sums.row_transform import integer_rows, normalise
from tests.support.factories import at_scale

P, ROWS = 30, at_scale(20_000, 200_000)


@pytest.mark.parametrize("bits", [10, 14, 20])
def test_gram_is_identical_for_any_order_batch_and_threads(bits: int) -> None:
    rng = np.random.default_rng(5)
    lattice = Lattice(P, bits)
    q = integer_rows(normalise(rng.standard_t(3, size=(P, ROWS)), Unit()), lattice)
    units = q.astype(np.int64)
    true = np.zeros((P, P), dtype=np.int64)
    for start in range(0, ROWS, 5000):  # integer products, no BLAS
        part = units[:, start : start + 5000]
        true += part @ part.T
    for turn in range(10):
        order, batch = rng.permutation(ROWS), int(rng.integers(1, ROWS))
        with threadpool_limits(1 + turn % 4):
            gram = ExactGram(lattice)
            for start in range(0, ROWS, batch):
                gram.add(q[:, order[start : start + batch]])
        assert (gram.matrix() == true).all()
        assert gram.rows == ROWS


def test_gram_beyond_64_bits() -> None:
    """A sum beyond int64 is carried, not wrapped."""
    lattice = Lattice(1, 20)
    gram = ExactGram(lattice)
    rows = np.full((1, 1 << 20), 2.0**20)
    for _ in range(9):
        gram.add(rows)
    assert int(gram.matrix()[0, 0]) == 9 << 60 > 1 << 63
