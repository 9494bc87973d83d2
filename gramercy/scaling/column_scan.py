"""The constants of a column from the noisy counts of all stages.

Most columns have a body, which `column_constants` finds. A column with an atom, a single value that
four fifths of its cells have, such as zero, has not: its scale follows from the few other cells,
which must be seen to count. Where they are not seen, only whether a cell differs from the atom is
published, and nothing else is known of the column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.column_constants import (
    AROUND_ZERO,
    SMALLEST_OCTAVE,
    WINSOR,
    Constants,
    Grid,
    column_constants,
    first_grid,
    merged_grid,
    present_share,
    rounded,
    zoomed_grid,
)
from gramercy.scaling.runs import SEEN, centred, seen_bins
from gramercy.schemas.column import UNBOUNDED

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_ATOM = 0.8  # share of the cells with a value
_INNER_BINS, _ATOM_OCTAVES, _UNBOUNDED_OCTAVES = 128, 20, 70
_SURE = 4.5  # standard deviations of a run that makes a scale
_CORE, _EDGE = 4.2, 3.9
_SIGN_BINS = 8.0
_BEYOND = 2.0
_RADIUS = 2.5  # squared radius by number of columns, for the choice of scales
_LOST = 0.05
_LARGEST_SCALE = 2.0**1020
_MOST = 7  # number of widenings, each by the fourth root of two
_FOURTH_ROOT = math.sqrt(math.sqrt(2.0))


@dataclass(frozen=True)
class Stage:
    """The noisy counts of one stage."""

    counts: Counts  # shape (bins,)
    grid: Grid
    sd: float  # standard deviation of the noise of a count


@dataclass(frozen=True)
class Atom:
    """A value that nearly all cells have, and the bin that contains it."""

    value: float
    lower: float
    upper: float

    @property
    def width(self) -> float:
        """Width of the bin."""
        return 2 * (self.upper / 2 - self.lower / 2)


@dataclass(frozen=True)
class ColumnConstants:
    """Constants of a numeric column after the last stage."""

    centre: float
    scale: float
    # bounds to which cells are clamped before scaling
    lower: float
    upper: float
    present: float  # share of rows with a value, in (0, 1]
    # Whether all that is published is which cells differ from the atom.
    sign: bool = False
    # Largest number of cells that differ from the atom, for a sign column.
    most_others: float = 0.0


@dataclass(frozen=True)
class ColumnScan:
    """A numeric column after some stages."""

    # declared bounds
    lower: float | None
    upper: float | None
    stages: tuple[Stage, ...] = ()
    body: Constants | None = None  # around which the next bins lie, unless there is an atom
    atom: Atom | None = None

    @property
    def grid(self) -> Grid:
        """The bins of the next stage."""
        if self.atom is not None:
            return atom_grid(self.atom, *self.reach, self.narrow)
        if self.body is None:
            return first_grid(self.lower, self.upper)
        return zoomed_grid(self.body, self.lower, self.upper)

    @property
    def reach(self) -> tuple[float, float]:
        """The smallest and the largest value a cell can have."""
        return (
            -UNBOUNDED if self.lower is None else self.lower,
            UNBOUNDED if self.upper is None else self.upper,
        )

    @property
    def narrow(self) -> float:
        """Width of the bins for single values: at the bounds, and on each side of zero."""
        if self.lower is None or self.upper is None:
            return 2.0**SMALLEST_OCTAVE
        return 2 * AROUND_ZERO * (self.upper / 2 - self.lower / 2)

    def after(self, counts: Counts, sd: float, rows: float) -> ColumnScan:
        """The column after one more stage."""
        grid = self.grid
        stages = (*self.stages, Stage(counts, grid, sd))
        body = column_constants(counts, grid, sd, rows, self.body, self.lower, self.upper)
        if self.atom is not None:
            return replace(self, stages=stages, body=body)
        values = centred(counts, rows)
        most = int(np.argmax(values[:-1]))
        atom = None
        if values[most] > _ATOM * rows * body.present:
            atom = self._atom_in(grid, most, found_at=len(stages))
        return ColumnScan(self.lower, self.upper, stages, body, atom)

    def _atom_in(self, grid: Grid, most: int, found_at: int) -> Atom | None:
        """The atom in a bin; None if the bin may be wide only because the bounds are."""
        low, high = float(grid.edges[most]), float(grid.edges[most + 1])
        smallest, largest = self.reach
        narrow = high / 2 - low / 2 <= 1.1 * self.narrow
        if low <= 0 <= high and narrow:
            return Atom(0.0, low, high)
        if narrow and low == smallest:
            return Atom(smallest, low, high)
        if narrow and high == largest:
            return Atom(largest, low, high)
        return Atom(low / 2 + high / 2, low, high) if found_at > 1 else None

    def finished(self, rows: float, noise: float, q: int) -> ColumnConstants:
        """The constants.

        Parameters
        ----------
        noise
            Standard deviation of the noise off the diagonal of the sum of rows' outer products, for
            rows in the unit ball.
        q
            Number of columns of the matrix.
        """
        values, present = self.cells(rows)
        most = int(np.argmax(values.counts))
        if values.counts[most] > _ATOM * values.cells:
            return self._of_atom(values, most, present, noise / rows, q)
        return self._of_body(values, present, noise / rows, q)

    def cells(self, rows: float) -> tuple[NoisyCells, float]:
        """The cells with a value by all stages; and the share of rows that have one."""
        counts, deviations = self._pooled(rows)
        present = present_share(float(counts[-1]), float(deviations[-1]), rows)
        edges, missing = self.stages[-1].grid.edges, present < 1
        return NoisyCells(counts[:-1], deviations[:-1], edges, rows * present, missing), present

    def _pooled(self, rows: float) -> tuple[Array, Array]:
        """Counts over the bins of the last stage, from all stages; and their deviations.

        A bin of the last stage that is a union of bins of another is counted by both.
        """
        edges = self.stages[-1].grid.edges
        total, weight = np.zeros(len(edges)), np.zeros(len(edges))
        for stage in self.stages:
            values = centred(stage.counts, rows)
            places = np.searchsorted(stage.grid.edges, edges)
            same = np.minimum(places, len(stage.grid.edges) - 1)
            shared = stage.grid.edges[same] == edges
            for each in np.flatnonzero(shared[:-1] & shared[1:]):
                first, last = places[each], places[each + 1]
                variance = float(last - first) * stage.sd * stage.sd
                total[each] += math.fsum(values[first:last]) / variance
                weight[each] += 1 / variance
            total[-1] += values[-1] / (stage.sd * stage.sd)
            weight[-1] += 1 / (stage.sd * stage.sd)
        return total / weight, 1 / np.sqrt(weight)

    def _of_atom(
        self, values: NoisyCells, atom: int, present: float, noise: float, q: int
    ) -> ColumnConstants:
        low, high = float(values.edges[atom]), float(values.edges[atom + 1])
        found = self.atom
        if found is None or (found.lower, found.upper) != (low, high):
            found = Atom(low / 2 + high / 2, low, high)
        others, sd = values.others(atom)
        kept = values.seen_around(atom) if others > SEEN * sd else None
        smallest, largest = self.reach
        if kept is None:
            return self._sign(found, others, sd, present, values.cells)
        masses = np.where(kept, np.maximum(values.counts, 0.0), 0.0)
        masses *= others / math.fsum(masses)
        # Distances from the atom by the largest one, which may be near the largest float.
        unit = max(largest / 2 - found.value / 2, found.value / 2 - smallest / 2)
        edges = (values.edges / 2 - found.value / 2) / unit
        middles = (edges[:-1] + edges[1:]) / 2
        centre = math.fsum(masses * middles) / values.cells
        masses[atom] = max(values.cells - others, 0.0)
        middles[atom] = 0.0
        squares = (edges[:-1] ** 2 + edges[:-1] * edges[1:] + edges[1:] ** 2) / 3
        squares[atom] = 0.0
        squares = np.maximum(squares - 2 * centre * middles + centre * centre, 0.0)
        scale = math.sqrt(math.fsum(masses * squares) / values.cells)
        outermost = float(np.maximum(np.abs(edges[:-1]), np.abs(edges[1:]))[kept].max())
        width = max(WINSOR * scale, _BEYOND * outermost)
        chosen = _widened(scale, masses, squares, noise, q)
        return self._constants(
            found.value + 2 * unit * centre, 2 * unit * scale, chosen, width / scale, present
        )

    def _sign(
        self, atom: Atom, others: float, sd: float, present: float, cells: float
    ) -> ColumnConstants:
        """Clamp cells so near the atom that only their side of it remains."""
        smallest, largest = self.reach
        size = min(_SIGN_BINS * atom.width, _LARGEST_SCALE)
        scale = size * math.sqrt(min(max(others, 2 * sd) / cells, 1.0))
        return ColumnConstants(
            atom.value,
            rounded(0.0, scale)[1],
            max(smallest, atom.value - size),
            min(largest, atom.value + size),
            present,
            sign=True,
            most_others=max(others, 0.0) + SEEN * sd,
        )

    def _of_body(self, values: NoisyCells, present: float, noise: float, q: int) -> ColumnConstants:
        body = self.body
        assert body is not None  # noqa: S101
        # Halves, because a distance may exceed the largest float.
        edges = (values.edges / 2 - body.centre / 2) / (body.scale / 2)
        starts, ends = edges[:-1], edges[1:]
        farther = np.maximum(np.abs(starts), np.abs(ends))
        core = farther <= _CORE
        kept, sure = core.copy(), core.copy()
        for side in (
            np.flatnonzero((starts >= _EDGE) & ~core),
            np.flatnonzero((ends <= -_EDGE) & ~core)[::-1],
        ):
            evidence = values.counts[side] / values.deviations[side]
            for bins, least in ((kept, SEEN), (sure, _SURE)):
                bins[side[: seen_bins(evidence, least)]] = True
                # A code is often at a bound, so no gap counts before that bin.
                bins[side[-1:]] |= evidence[-1:] >= _SURE
        masses = np.maximum(values.counts, 0.0)
        squares = (starts * starts + starts * ends + ends * ends) / 3
        outermost = float(farther[kept].max()) if kept.any() else _CORE
        scale, total = 1.0, math.fsum(masses[sure])
        if total > 0:
            spread = math.sqrt(math.fsum(masses[sure] * squares[sure]) / total)
            scale = spread if spread > _BEYOND else scale
        masses = np.where(kept, masses, 0.0)
        width = max(WINSOR, _BEYOND * outermost)
        chosen = _widened(scale, masses, squares, noise, q)
        return self._constants(body.centre, body.scale * scale, chosen, width / scale, present)

    def _constants(
        self, centre: float, scale: float, factor: float, width: float, present: float
    ) -> ColumnConstants:
        """Rounded constants: a scale widened by a factor, and bounds `width` scales away."""
        smallest, largest = self.reach
        exact = min(max(rounded(centre, scale)[0], smallest), largest)
        return ColumnConstants(
            exact,
            rounded(0.0, min(scale * factor, _LARGEST_SCALE))[1],
            max(smallest, exact - min(width * scale, _LARGEST_SCALE)),
            min(largest, exact + min(width * scale, _LARGEST_SCALE)),
            present,
        )


def _widened(scale: float, masses: Array, squares: Array, noise: float, q: int) -> float:
    """The factor of a scale that lets a tail pay its own noise.

    A larger scale shortens the rows of the tail, so that clipping takes less of the column's second
    moment, and makes the noise of the column larger.
    """
    radius = _RADIUS * q
    power = masses * squares
    total = max(math.fsum(power), 1e-300)
    best, least, factor = 1.0, math.inf, 1.0
    for _ in range(_MOST):
        kept = radius / (q - 1 + squares / (scale * factor) ** 2)
        lost = math.fsum(power * np.maximum(1 - kept, 0.0)) / total
        spread = factor * radius * noise
        loss = (_LOST * lost) ** 2 + min(spread**2, 1.0)
        if loss < least:
            best, least = factor, loss
        factor *= _FOURTH_ROOT
    return best


@dataclass(frozen=True)
class NoisyCells:
    """Noisy counts of a column's cells with a value, from all stages."""

    counts: Array  # shape (bins,)
    deviations: Array  # standard deviations of their noise, shape (bins,)
    edges: Array  # shape (bins + 1,)
    cells: float  # number of cells with a value
    missing: bool  # whether some are missing, so that this number is noisy

    def others(self, atom: int) -> tuple[float, float]:
        """Number of cells outside of a bin, and the deviation of its noise."""
        sd = float(self.deviations[atom]) * (math.sqrt(2) if self.missing else 1.0)
        return self.cells - float(self.counts[atom]), sd

    def seen_around(self, atom: int) -> NDArray[np.bool_] | None:
        """The bins in which other cells are seen; None without any."""
        kept = np.zeros(len(self.counts), dtype=bool)
        for side in (np.arange(atom + 1, len(self.counts)), np.arange(atom)[::-1]):
            kept[side[: seen_bins(self.counts[side] / self.deviations[side])]] = True
        return kept if kept.any() else None


def atom_grid(atom: Atom, smallest: float, largest: float, narrow: float) -> Grid:
    """The bins of a stage after the atom was found: its own, and octaves of distance from it."""
    value = atom.value
    reach = 2 * min(max(largest / 2 - value / 2, value / 2 - smallest / 2), _LARGEST_SCALE)
    unbounded = (smallest, largest) == (-UNBOUNDED, UNBOUNDED)
    octaves = np.ldexp(reach, -np.arange(1 + (_UNBOUNDED_OCTAVES if unbounded else _ATOM_OCTAVES)))
    octaves = octaves[octaves > atom.width]
    ends = np.array([smallest, smallest + narrow, largest - narrow, largest])
    inside = np.array([atom.lower, atom.upper])
    if atom.width > 2.2 * narrow:  # wide: look into it
        parts = np.arange(_INNER_BINS + 1) / _INNER_BINS
        inside = atom.lower * (1 - parts) + atom.upper * parts
    around = np.concatenate([value - octaves, value + octaves, ends])
    around = around[(around <= atom.lower) | (around >= atom.upper)]
    return merged_grid([around, inside], smallest, largest)
