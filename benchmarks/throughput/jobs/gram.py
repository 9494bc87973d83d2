"""In memory: the exact Gram matrix against matrix products in double precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.arrays import Array
from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import inputs
from gramercy.common.lattice import Lattice
from gramercy.schemas.normalisation import Unit
from gramercy.tables.batches import thread_count, worker_pool
from gramercy.tables.sums.exact_sums import ONE_PART, WIDE, ExactGram, SummingWorker, row_slices
from gramercy.tables.sums.row_transform import NormaliseKernel, Repairs, RowTransform, is_large


class Adding:
    """Accumulator of integer rows in one thread."""

    def __init__(self, lattice: Lattice) -> None:
        self._lattice, self.gram = lattice, ExactGram(lattice)

    def add(self, q: Array) -> None:
        for each in row_slices(self._lattice, q.shape[1]):
            self.gram.add(q[:, each])


@contextmanager
def job(cell: Cell, _: Path) -> Iterator[dict[str, Contender]]:
    cells = inputs.table(cell.rows, cell.columns)
    rows, lattice = np.ascontiguousarray(cells.T), inputs.lattice(cell.columns)
    frame = pd.DataFrame(rows)
    terms = inputs.contract("table.csv", cell.rows, cell.columns)
    columns = tuple(terms.columns.values())
    kernel = NormaliseKernel.of(columns, terms.intercept, Unit(), lattice)
    recipe = RowTransform(columns, terms.intercept, Unit(), lattice)
    compiled = replace(recipe, kernel=kernel)
    whole = np.hstack(
        [recipe.integers(part, Repairs.zeros(cell.columns)) for part in inputs.batches(cells)]
    )

    def gram() -> Any:
        workers = _side_by_side(lambda: Adding(lattice), whole)
        return reduce(add, (each.gram.matrix() for each in workers))

    def everything(transform: RowTransform) -> Any:
        workers = _side_by_side(lambda: SummingWorker(transform, ONE_PART), cells)
        return reduce(add, (each.sums()[0] for each in workers))

    def normalised() -> Array:
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        gram: Array = unit.T @ unit
        return gram

    large = is_large(cell.rows, cell.columns)  # else compiled only where it is loaded
    ours = {
        "Gramercy: repair, normalisation, Gram": compiled if large else recipe,
        **({} if large else {"Gramercy: the same, compiled": compiled}),
    }
    yield {
        **{name: Contender(partial(everything, each)) for name, each in ours.items()},
        "Gramercy: Gram of integer rows": Contender(gram),
        "numpy: X.T @ X": Contender(lambda: rows.T @ rows),
        "numpy: normalisation, X.T @ X": Contender(normalised),
        "pandas: .cov()": Contender(frame.cov),
        **_opendp(rows),
    }


def _side_by_side(make: Callable[[], Any], cells: Array) -> list[Any]:
    workers = [make() for _ in range(1 if len(cells) >= WIDE else thread_count())]
    with worker_pool(workers) as hand_on:
        for each in inputs.batches(cells):
            hand_on(each)
    return workers


def _opendp(rows: Array) -> dict[str, Contender]:
    """OpenDP, if installed: clamp rows to the unit ball and sum them in double precision."""
    try:
        import opendp.prelude as dp
        from opendp.extras.numpy import then_np_clamp
        from opendp.extras.numpy._make_np_sscp import then_np_sscp
    except ImportError:
        return {}
    dp.enable_features("contrib", "idealized-numerics")
    space = dp.numpy.array2_domain(num_columns=rows.shape[1], T=float, nan=False)
    made = (space, dp.symmetric_distance()) >> then_np_clamp(norm=1.0, p=2) >> then_np_sscp()
    return {"OpenDP: clamp, make_np_sscp": Contender(lambda: made(rows))}
