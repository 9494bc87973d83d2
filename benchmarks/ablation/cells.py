"""The cells (variant of the rule, kind of table, rows), and their results file.

A release is compared with that of today's rule on the same table with the same noise.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.ablation.kinds import KINDS, declared, table_of
from benchmarks.ablation.variants import TODAY, VARIANTS
from benchmarks.arrays import Array
from benchmarks.intervals.populations import QUANTITIES, Estimated, moment_intervals, moments
from benchmarks.statistics.tables import Table
from tests.support.private_release import Scaled, privately_scaled
from tests.support.verdict_truth import VerdictTruth

EPSILONS = {2000: (0.5, 1.0, 4.0), 20_000: (0.5, 1.0, 4.0), 200_000: (1.0, 4.0)}
TABLES = 1
WHITENED_ROWS = 20_000  # rows of releases with a pilot matrix
_USELESS = 2.0  # errors beyond are equally bad
QUICK = ("beta", "rain")


@dataclass(frozen=True)
class Cell:
    """A variant, a kind of table and a number of rows."""

    variant: str
    kind: str
    n: int


@dataclass(frozen=True)
class Scores:
    """One release against the table's own values.

    Parameters
    ----------
    errors
        Root mean square errors of the known means, by true standard deviations, of the logarithms
        of the known standard deviations, and of the correlations that are not lost.
    widths, coverage
        Of their 95 % intervals: mean width by the same units, and share that holds the truth.
    green, false, fine
        See `VerdictTruth`.
    """

    errors: tuple[float, ...]
    widths: tuple[float, ...]
    coverage: tuple[float, ...]
    green: bool
    false: bool
    fine: bool


@dataclass(frozen=True)
class Result:
    """The number of releases, and today's and the variant's scores of those that differ."""

    cell: Cell
    releases: int
    changed: list[tuple[Scores, Scores]]
    seconds: float


def missing(quick: bool, done: dict[Cell, Result]) -> Iterator[tuple[Cell, int]]:
    """Yield the cells that have not been measured, with their numbers of tables."""
    kinds, sizes = (QUICK, (2000,)) if quick else (tuple(KINDS), tuple(EPSILONS))
    for n, kind, variant in product(sizes, kinds, VARIANTS):  # a table is made once
        cell = Cell(variant, kind, n)
        if cell not in done and (n == WHITENED_ROWS or not VARIANTS[variant].whitened):
            yield cell, TABLES


def measure(cell: Cell, tables: int) -> Result:
    """Measure the releases of so many tables; the seeds depend on the table only."""
    started, releases = time.process_time(), 0
    changed: list[tuple[Scores, Scores]] = []
    for index, epsilon in product(range(tables), EPSILONS[cell.n]):
        variant = VARIANTS[cell.variant]
        whitened = variant.whitened
        today = _today(cell.kind, cell.n, index, epsilon, whitened)
        if today is None:
            continue
        releases += 1
        with ExitStack() as stack:
            for target, value in variant.patches.items():
                stack.enter_context(patch(target, value))
            scaled = _scaled(cell.kind, cell.n, index, epsilon, whitened)
            assert scaled is not None
            same = _published(scaled) == _published(today[0])
            if same and not variant.of_estimates and cell.variant != TODAY:
                continue
            scores = _scores(_truth(cell.kind, cell.n, index), scaled, index)
        if scores != today[1] or cell.variant == TODAY:
            changed.append((today[1], scores))
    return Result(cell, releases, changed, round(time.process_time() - started, 2))


class Streams(np.random.Generator):
    """Normal numbers that depend on how many arrays were drawn before, and not on their sizes."""

    def __init__(self, *seed: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self._seed, self._calls = seed, 0

    def normal(self, *arguments: Any, **options: Any) -> Any:
        self._calls += 1
        return np.random.default_rng([*self._seed, self._calls]).normal(*arguments, **options)


@dataclass(frozen=True)
class Truth:
    """A table and its own moments."""

    table: Table
    moments: dict[str, Array]


@lru_cache(maxsize=TABLES)
def _truth(kind: str, n: int, index: int) -> Truth:
    seed = zlib.crc32(f"ablation {kind} {n} {index}".encode())
    table = table_of(kind, n, np.random.default_rng(seed))
    return Truth(table, moments(table))


@lru_cache(maxsize=6 * TABLES)
def _today(
    kind: str, n: int, index: int, epsilon: float, whitened: bool
) -> tuple[Scaled, Scores] | None:
    scaled = _scaled(kind, n, index, epsilon, whitened)
    if scaled is None:  # too little for private constants
        return None
    return scaled, _scores(_truth(kind, n, index), scaled, index)


def _scaled(kind: str, n: int, index: int, epsilon: float, whitened: bool) -> Scaled | None:
    table, stream, rows = _truth(kind, n, index).table, Streams(index, 1), declared(kind, n)
    return privately_scaled(
        table.cells, table.columns, epsilon, stream, declared=rows, whitened=whitened
    )


def _published(scaled: Scaled) -> list[Any]:
    counts = [each.count.tolist() for each in scaled.histograms]
    return [scaled.spec, counts, [each.lower[:-1].tolist() for each in scaled.histograms]]


def _scores(truth: Truth, scaled: Scaled, index: int) -> Scores:
    release = scaled.release(Streams(index, 2))
    found, verdict = moment_intervals(release), VerdictTruth.of(release, scaled, truth.table.cells)
    spread = truth.moments["standard-deviation"]
    spread = np.where(spread > 0, spread, np.nan)
    units = {"mean": spread, "standard-deviation": spread, "correlation": np.ones(1)}
    each = [_entries(found[of], truth.moments[of], units[of], of) for of in QUANTITIES[:3]]
    errors, widths, coverage = zip(*each, strict=True)
    return Scores(
        (*errors[:2], _short(verdict.error)), widths, coverage,
        verdict.green, verdict.false, verdict.fine,
    )  # fmt: skip


def _entries(found: Estimated, truth: Array, unit: Array, of: str) -> tuple[float, ...]:
    """Error, width and coverage of the known entries; NaN without any."""
    known = found.known & np.isfinite(truth) & np.isfinite(unit + 0 * truth)
    if not known.any():
        return np.nan, np.nan, np.nan
    lower, upper = found.own_lower, found.own_upper
    slack = 1e-9 * np.abs(truth)
    held = (lower <= truth + slack) & (truth - slack <= upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        if of == "standard-deviation":
            errors = np.abs(np.log(np.maximum(found.estimate, 1e-3 * truth) / truth))
        else:
            errors = np.abs(found.estimate - truth) / unit
    errors = np.minimum(errors, _USELESS)
    widths = np.minimum((upper - lower) / unit, 2 * _USELESS)
    return (
        _short(np.sqrt((errors[known] ** 2).mean())),
        _short(widths[known].mean()),
        _short(held[known].mean()),
    )


def _short(value: float) -> float:
    return float(f"{value:.3g}")
