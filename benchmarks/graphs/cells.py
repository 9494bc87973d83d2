"""The cells (table, number of rows, epsilon, repetition) and their results file."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from benchmarks.graphs import differences, joint, pairs, releases, truths
from benchmarks.graphs.methods import REFERENCE, measured
from benchmarks.graphs.scores import Scores, Target
from benchmarks.graphs.truths import KINDS, truth
from gramercy.estimators.tuning.penalty_rule import edge_mask

COLUMNS = (20, 60)
ROWS = (500, 5000, 50_000)
EPSILONS = (0.5, 1.0, 4.0)
REPETITIONS = 2
_REPEATABLE = 1e-10  # smallest eigenvalue over the largest that inversion requires


@dataclass(frozen=True)
class Cell:
    """The unit of measurement: one repetition of one setting.

    Parameters
    ----------
    source
        Kind of graph, or name of a table.
    pairs
        Whether it compares releases in one stage and in two; see `benchmarks.graphs.pairs`.
    groups
        Number of groups of n rows; 0 without groups. See `benchmarks.graphs.joint`.
    p, n
        Numbers of columns and rows.
    epsilon
        Epsilon at delta = 1e-6, for replace-one neighbours.
    repetition
        Index of the repetition, from 0.
    differences
        Whether it looks for the differences of two graphs; see `benchmarks.graphs.differences`.
    """

    source: str
    p: int
    n: int
    epsilon: float
    repetition: int
    pairs: bool = field(default=False, repr=False)  # the representation seeds the other cells
    differences: bool = field(default=False, repr=False)
    groups: int = field(default=0, repr=False)

    @property
    def synthetic(self) -> bool:
        return self.source in KINDS and not self.pairs


@dataclass(frozen=True)
class Result:
    """The measurements of one cell: scores by method, and seconds."""

    cell: Cell
    seconds: float
    methods: dict[str, Scores]


def plan(quick: bool) -> Iterator[Cell]:
    """Yield all cells, repetition by repetition; about 5 s per cell and 15 minutes in total."""
    if quick:
        yield from (Cell(kind, 20, n, 1.0, 0) for kind in KINDS for n in ROWS[:2])
        yield from (Cell(name, *_shape(name), 1.0, 0) for name in truths.present()[:2])
        yield Cell("autoregressive", pairs.COLUMNS, pairs.ROWS, 1.0, 0, pairs=True)
        yield Cell("hub:few", differences.COLUMNS[0], differences.ROWS[0], 1.0, 0, differences=True)
        return
    graphs = product(differences.KINDS, differences.CHANGES)
    for (kind, change), p, n, epsilon in product(
        graphs, differences.COLUMNS, differences.ROWS, EPSILONS
    ):
        yield Cell(f"{kind}:{change}", p, n, epsilon, 0, differences=True)
    for kind, p in product(differences.KINDS, differences.COLUMNS):
        source = f"{kind}:{differences.GROUPS}"
        yield Cell(source, p, differences.ROWS[-1], 1.0, 0, differences=True)
    for repetition in range(REPETITIONS):
        for kind, p, n, epsilon in product(KINDS, COLUMNS, ROWS, EPSILONS):
            yield Cell(kind, p, n, epsilon, repetition)
        for name, epsilon in product(truths.present(), EPSILONS):
            yield Cell(name, *_shape(name), epsilon, repetition)
        for kind, epsilon in product(pairs.KINDS, EPSILONS):
            yield Cell(kind, pairs.COLUMNS, pairs.ROWS, epsilon, repetition, pairs=True)
        for source, n, groups in product(joint.SOURCES, joint.ROWS, joint.GROUPS):
            if groups > joint.GROUPS[0] and source.endswith(joint.DRIFTING):
                continue
            yield Cell(source, joint.COLUMNS, n, joint.EPSILON, repetition, groups=groups)


def measure(cell: Cell) -> Result:
    """Apply every method to one release of each kind; the seed depends on the cell only."""
    rng = np.random.default_rng(zlib.crc32(repr(cell).encode()))
    started = time.perf_counter()
    if cell.pairs:
        both = dict(pairs.measured(cell.source, cell.n, cell.p, cell.epsilon, rng))
        return Result(cell, round(time.perf_counter() - started, 2), both)
    if cell.differences:
        found = dict(differences.measured(cell.source, cell.n, cell.p, cell.epsilon, rng))
        return Result(cell, round(time.perf_counter() - started, 2), found)
    if cell.groups:
        alone_and_jointly = dict(joint.measured(cell.source, cell.n, cell.groups, rng))
        return Result(cell, round(time.perf_counter() - started, 2), alone_and_jointly)
    if cell.synthetic:
        made = truth(cell.source, cell.p, rng)
        rows = made.rows(cell.n, rng)
        target = Target(made.moment, made.edges, True)
    else:
        rows = truths.load(cell.source)
        known = releases.exact(rows)
        values = np.linalg.eigvalsh(known.raw)
        edges = edge_mask(REFERENCE.fit(known).matrix)
        target = Target(known.raw, edges, bool(values[0] > _REPEATABLE * values[-1]))
    methods = dict(measured(rows, target, cell.epsilon, rng))
    return Result(cell, round(time.perf_counter() - started, 2), methods)


def _shape(name: str) -> tuple[int, int]:
    n, p = truths.load(name).shape
    return p, n
