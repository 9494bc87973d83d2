"""From cells to integer rows: repair, normalisation and rounding, with public constants only.

Each row is repaired and normalised by itself, so that the number of rows and the sensitivity hold
for any data; rounded to integers, sums are exact and leak nothing through floating point. The three
steps are here twice: in NumPy, and as one compiled pass, whose results are identical to the last
bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice, UnscaledLattice
from gramercy.common.machine import can_compile, compiled, is_loaded
from gramercy.common.metric import LONGEST, ROW_BITS, Metric
from gramercy.schemas.column import ColumnKind
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Clip, FurtherRows, Lost, Missing, Unit, Whole
from gramercy.tables.batches import cache_slices

_LARGE = 1 << 24  # cells; compiled code takes a third of a second to load: it pays from here on


Factors = NDArray[np.float64] | None
AnyRows = Unit | Clip | Whole | FurtherRows


def is_large(rows: int, columns: int) -> bool:
    """Whether compiled code pays off for a table, and there is a compiler; from public facts."""
    return rows * columns >= _LARGE and can_compile()


@dataclass(frozen=True)
class RowTransform:
    """From cells to integer rows."""

    columns: tuple[ColumnKind, ...]  # the declared columns
    intercept: bool  # whether a column of ones comes first
    normalisation: AnyRows  # normalisation of rows
    lattice: Lattice  # lattice of the integer rows
    # The three steps as one compiled function, for large tables, and where it is loaded. Its
    # results are identical.
    kernel: Kernel | None = None
    metric: Metric | None = None  # in which rows are measured, if it is not that of scaled rows
    # The rows in the metric, compiled: only the few that lose something are then repaired in NumPy.
    measure: MetricRows | None = None

    @classmethod
    def of(
        cls,
        contract: Contract,
        normalisation: AnyRows,
        lattice: Lattice,
        metric: Metric | None = None,
    ) -> RowTransform:
        """The transform of a contract's rows."""
        columns = tuple(contract.columns.values())
        kernel: Kernel | None = None
        is_compiled = is_large(contract.rows, lattice.p) or is_loaded(normalise_kernel)
        rows, measure = (columns, contract.intercept), None
        if is_compiled and isinstance(normalisation, Lost) and metric is not None:
            measure = MetricRows(*rows, metric)
        if is_compiled and not isinstance(normalisation, FurtherRows):
            if metric is None:
                kernel = NormaliseKernel.of(*rows, normalisation, lattice)
            else:
                kernel = MetricKernel(*rows, metric, normalisation, lattice)
        return cls(columns, contract.intercept, normalisation, lattice, kernel, metric, measure)

    def integers(
        self, cells: NDArray[np.float64], repairs: Repairs, factors: Factors = None
    ) -> NDArray[np.float64]:
        """Integer rows, shape (p, rows).

        Parameters
        ----------
        factors
            See `normalise`; with `FurtherRows` only.
        """
        if self.kernel is not None:
            return self.kernel(cells, repairs)
        blocks = list(cache_slices(self.lattice.p, cells.shape[1]))
        if len(blocks) == 1:
            return self._block(cells, repairs, factors)
        made = np.empty((self.lattice.p, cells.shape[1]))
        for rows in blocks:
            own = None if factors is None else factors[rows]
            made[:, rows] = self._block(cells[:, rows], repairs, own)
        return made

    def squares(
        self, cells: NDArray[np.float64], repairs: Repairs, factors: Factors = None
    ) -> NDArray[np.float64]:
        """Sum of squares of every integer row, shape (rows,); see `integers`."""
        if self.kernel is not None:
            return self.kernel.squares(cells, repairs)
        squares = np.empty(cells.shape[1])
        for rows in cache_slices(self.lattice.p, cells.shape[1]):
            own = None if factors is None else factors[rows]
            q = self._block(cells[:, rows], repairs, own)
            squares[rows] = (q * q).sum(axis=0)
        return squares

    def _block(
        self, cells: NDArray[np.float64], repairs: Repairs, factors: Factors = None
    ) -> NDArray[np.float64]:
        if self.measure is not None and isinstance(self.normalisation, Lost):
            measured = self.measure(cells, Repairs.zeros(len(self.columns)))
            clipped = np.flatnonzero(_kept(measured, self.normalisation, factors) < 1.0)
            rows = np.zeros((self.lattice.p, cells.shape[1]))
            own = None if factors is None else factors[clipped]
            rows[:, clipped] = replace(self, measure=None)._block(cells[:, clipped], repairs, own)
            return rows
        scaled = repair(
            cells, self.columns, repairs, intercept=self.intercept, constants=self._constants
        )
        measured = scaled if self.metric is None else self.metric.rows(scaled)
        normalised = normalise(scaled, self.normalisation, factors, cells, measured)
        return integer_rows(normalised, self.lattice)

    @cached_property
    def _constants(self) -> NDArray[np.float64]:
        return repair_constants(self.columns)


@dataclass
class Repairs:
    """Numbers of repaired cells. For the steward only: they are exact functions of private data."""

    # cells that were missing, not finite, not numbers or not levels; shape (columns,)
    filled: NDArray[np.int64]
    clamped: NDArray[np.int64]  # cells outside the bounds in the contract; shape (columns,)

    @classmethod
    def zeros(cls, columns: int) -> Repairs:
        """Zero repairs in every column."""
        return cls(np.zeros(columns, np.int64), np.zeros(columns, np.int64))

    def __add__(self, other: Repairs) -> Repairs:
        return Repairs(self.filled + other.filled, self.clamped + other.clamped)


def repair(
    cells: NDArray[np.float64],
    columns: Sequence[ColumnKind],
    repairs: Repairs,
    *,
    intercept: bool = False,
    constants: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Fill, clamp, centre and scale numbers; spread levels over columns of zeros and ones.

    Parameters
    ----------
    cells
        Shape (columns, rows). NaN where missing; for levels, the index of the level.

    Returns
    -------
    ndarray of float64, shape (p, rows), finite
        (cell - centre) / scale, or zeros and ones for levels.
    """
    present = np.isfinite(cells)
    if not present.all():
        repairs.filled += _counts(~present)
    is_number = np.array([column.categories is None for column in columns])
    constants = repair_constants(columns) if constants is None else constants
    if is_number.all() and not intercept:  # no copies
        numbers, clamped = _repair_numbers(cells, present, constants)
        repairs.clamped += clamped
        return numbers
    numbers, clamped = _repair_numbers(cells[is_number], present[is_number], constants[is_number])
    repairs.clamped[is_number] += clamped
    parts, rows = [np.ones((1, cells.shape[1]))] if intercept else [], iter(numbers)
    for column, row in zip(columns, cells, strict=True):
        if column.categories is not None:
            indices = np.arange(column.width)
            parts.append((row == indices[:, None]).astype(np.float64))
        else:
            parts.append(next(rows)[None])
    return np.concatenate(parts)


def repair_constants(columns: Sequence[ColumnKind]) -> NDArray[np.float64]:
    """Bounds, centre and scale, and the declared bounds of every column, shape (columns, 6).

    Levels, whose cells are indices, have zeros and the scale 1, and are not scaled with them.
    """
    return np.array([column.constants for column in columns])


def _repair_numbers(
    cells: NDArray[np.float64], present: NDArray[np.bool_], constants: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Repaired numbers, shape (columns, rows), and how many are out of their declared bounds."""
    lower, upper, centre, scale, lowest, highest = constants.T.reshape(6, -1, 1)
    values = cells if present.all() else np.where(present, cells, centre)
    repaired = np.clip(values, lower, upper)
    if np.array_equal(lower, lowest) and np.array_equal(upper, highest):
        outside = repaired != values
    else:
        outside = (values < lowest) | (values > highest)
    outside &= present
    repaired -= centre
    repaired /= scale
    return repaired, _counts(outside)


def _counts(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number of chosen cells in each column; several times as fast as NumPy's with an axis."""
    if not chosen.any():
        return np.zeros(len(chosen), np.int64)
    return np.array([np.count_nonzero(column) for column in chosen], dtype=np.int64)


# Exponents k for which 2^-k is finite and not zero in double precision.
MIN_EXPONENT, MAX_EXPONENT = -1021, 1024

# Sums of squares in which no term overflows, and a term that vanishes is below any rounding error.
LEAST, LARGEST = 2.0**-800, 2.0**800


def normalise(
    scaled: NDArray[np.float64],
    normalisation: AnyRows,
    factors: Factors = None,
    cells: NDArray[np.float64] | None = None,
    measured: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Bring every row into the unit ball; with `Whole`, rows stay as they are.

    Parameters
    ----------
    scaled
        Shape (p, rows), finite.
    normalisation
        ``Unit``: x / ||x||, and zero for the zero row. ``Clip`` with radius r:
        x min(1, r/||x||) / r. ``Lost``, ``Missing``: see `lost_rows` and `missing_rows`.
    factors
        By which the clipped rows of every row's person are multiplied, from 0 to 1, shape (rows,).
        Without persons, all are 1. With `FurtherRows` only.
    cells
        The cells of the rows, shape (columns, rows); NaN where missing. With `Missing` only.
    measured
        The rows in the metric in which their lengths are measured, shape (p, rows); by default,
        that of scaled rows. In this metric is the result, too, except for `Lost`.

    Returns
    -------
    ndarray of float64, shape (p, rows)

    Notes
    -----
    A row's result must not depend on its position, so squares are summed in a fixed loop over
    columns: a BLAS or pairwise reduction would depend on position and memory layout. A row that its
    sum of squares shows to be very long or short is first multiplied by the power of two that
    brings its largest entry between 1/2 and 1, so that squares of 1e-170 or 1e200 neither vanish
    nor overflow.
    """
    if normalisation.keeps_rows:
        return scaled
    measured = scaled if measured is None else measured
    if isinstance(normalisation, Lost):
        return lost_rows(scaled, normalisation, factors, measured)
    scaled = measured
    if isinstance(normalisation, Missing) and cells is not None:
        return missing_rows(scaled, cells, normalisation, factors)
    length, power = _lengths(scaled)
    inverse = 1.0 / length
    moderate = scaled if power is None else scaled * power
    radius = normalisation.divisor(np.nan)
    if radius is None:
        unit: NDArray[np.float64] = moderate * inverse
        return unit
    with np.errstate(over="ignore"):
        clipped = np.flatnonzero((length if power is None else length / power) > radius)
        # An overflow must not be reported: the warning would depend on private cells.
        inside: NDArray[np.float64] = scaled / radius
    inside[:, clipped] = moderate[:, clipped] * inverse[clipped]
    return inside


def lost_rows(
    scaled: NDArray[np.float64],
    lost: Lost,
    factors: Factors = None,
    measured: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """What clipping takes away from every row, as a row of the unit ball.

    Parameters
    ----------
    scaled, factors, measured
        See `normalise`.

    Returns
    -------
    ndarray of float64, shape (p, rows)
        Of a row z, sqrt(1 - w) y min(1, R/(sqrt(1 - w) |y|)) / R, with y as in `Lost`, R its
        longest row, and w = f^2 min(1, r^2/|z|^2) for the factor f and the measured length |z|.
        Zero where w = 1.

    Notes
    -----
    The same care as in `normalise`: lengths are products of a moderate number and a power of two.
    """
    kept = _kept(scaled if measured is None else measured, lost, factors)
    clipped = np.flatnonzero(kept < 1.0)
    rows = np.zeros_like(scaled)
    if not clipped.size:
        return rows
    kept = kept[clipped]
    far = scaled[:, clipped]
    power = _lengths(far)[1]
    powers = np.ones(clipped.size) if power is None else power
    y = far * powers
    if lost.intercept:
        y[0] = lost.intercept * powers
    share = np.sqrt((1.0 - kept) * (1.0 + kept))
    of_y = np.sqrt(_sums_of_squares(y))
    with np.errstate(over="ignore"):
        long = np.minimum(share * of_y / powers / lost.longest(np.nan), 1.0)
    rows[:, clipped] = y * (long / np.where(of_y > 0, of_y, 1.0))
    return rows


def _kept(measured: NDArray[np.float64], lost: Lost, factors: Factors) -> NDArray[np.float64]:
    """The root of w of every row; see `lost_rows`."""
    length, power = _lengths(measured)
    with np.errstate(over="ignore"):
        kept: NDArray[np.float64] = np.minimum(
            lost.radius * (1.0 if power is None else power) / length, 1.0
        )
    return kept if factors is None else kept * factors


def missing_rows(
    scaled: NDArray[np.float64],
    cells: NDArray[np.float64],
    missing: Missing,
    factors: Factors = None,
) -> NDArray[np.float64]:
    """Every row as in the released matrix, and the indicators of its missing cells.

    Parameters
    ----------
    scaled, cells, factors
        See `normalise`.

    Returns
    -------
    ndarray of float64, shape (p + columns with missing cells, rows)
        (b x, m) / sqrt(2 k) as in `Missing`: each part has a squared norm of at most 1/2.
    """
    x = normalise(scaled, Clip(radius=missing.radius))
    if factors is not None:
        x *= factors
    absent = (~np.isfinite(cells[list(missing.columns)])).astype(np.float64)
    squares = absent.sum(axis=0) * (missing.indicator * missing.indicator)
    share = np.sqrt(np.minimum(missing.cut / np.maximum(squares, missing.cut), 1.0))
    absent *= share * (missing.indicator / missing.longest(np.nan))
    return np.concatenate([x * math.sqrt(0.5), absent])


def _lengths(
    scaled: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """The length of every row times a power of two, and this power; None if all are one.

    The length of a row of zeros is one, so that it stays zero.
    """
    squares, power = _sums_of_squares(scaled), None
    far = np.flatnonzero(~((squares >= LEAST) & (squares <= LARGEST)))
    if far.size:
        power = np.ones(scaled.shape[1])
        largest = np.abs(scaled[:, far]).max(axis=0)
        exponents = np.frexp(largest)[1]
        power[far] = np.ldexp(1.0, -np.clip(exponents, MIN_EXPONENT, MAX_EXPONENT))
        squares[far] = _sums_of_squares(scaled[:, far] * power[far])
    return np.sqrt(np.where(squares > 0, squares, 1.0)), power


def _sums_of_squares(scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of squares of every row, column after column; infinite where it overflows."""
    sums = np.zeros(scaled.shape[1])
    with np.errstate(over="ignore", under="ignore"):
        for column in scaled * scaled:
            sums += column
    return sums


_MAX_STEPS = 8
_SUM_ERROR = 2.0**-50  # relative, for every term of a sum of squares in doubles: above its bound


def integer_rows(rows: NDArray[np.float64], lattice: Lattice) -> NDArray[np.float64]:
    """Round rows of the unit ball to the lattice: q = round(2^K c x).

    Parameters
    ----------
    rows
        Shape (p, rows), in the unit ball up to rounding.

    Returns
    -------
    ndarray of float64, shape (p, rows)
        On an `UnscaledLattice`, the rounded rows. On any other lattice, integers whose squares sum
        to at most 2^(2K) in every row, for any input: a row that floating point left slightly
        outside the ball loses units from its largest entry, and a row far outside becomes zero.
    """
    if isinstance(lattice, UnscaledLattice):
        return np.rint(rows)
    with np.errstate(invalid="ignore", over="ignore"):
        q = rows * lattice.unit_length
        return clamp_to_ball(np.rint(q, out=q), lattice)


def clamp_to_ball(q: NDArray[np.float64], lattice: Lattice) -> NDArray[np.float64]:
    """Rows in the ball, shape (p, rows), from integers or invalid numbers; see `integer_rows`.

    Doubles show which rows are certainly inside; the others, hardly any, are decided exactly.
    """
    certain = lattice.squared_radius * (1 - len(q) * _SUM_ERROR)
    with np.errstate(invalid="ignore", over="ignore"):
        doubtful = np.flatnonzero(~(np.einsum("ij,ij->j", q, q) <= certain))
    if doubtful.size:
        q[:, doubtful] = _clamp_exactly(q[:, doubtful], lattice)
    return q


def _clamp_exactly(q: NDArray[np.float64], lattice: Lattice) -> NDArray[np.float64]:
    valid = (np.isfinite(q) & (np.abs(q) <= 2.0**lattice.bits)).all(axis=0)
    q = np.where(valid, q, 0.0)
    for _ in range(_MAX_STEPS):
        outside = np.flatnonzero(_squares(q) > lattice.squared_radius)
        if outside.size == 0:
            return q
        largest = np.abs(q[:, outside]).argmax(axis=0)
        q[largest, outside] -= np.sign(q[largest, outside])
    q[:, _squares(q) > lattice.squared_radius] = 0.0
    return q


def _squares(q: NDArray[np.float64]) -> NDArray[np.int64]:
    """Exact sum of squares of each row, at most p 2^(2K) < 2^63."""
    total = np.zeros(q.shape[1], dtype=np.int64)
    for entries in q:
        units = entries.astype(np.int64)
        total += units * units
    return total


Array = NDArray[np.float64]

_BLOCK_ROWS = 256  # rows
_INTERCEPT, _NUMBER = -1, -1
_UNIT, _CLIP, _WHOLE, _BINARY = 0, 1, 2, 3


class NormaliseKernel:
    """The three steps of a `RowTransform` in one compiled pass over blocks that stay in cache.

    The same arithmetic, operation by operation, as `repair`, `normalise` and `integer_rows`.
    """

    def __init__(
        self,
        features: NDArray[np.int64],
        constants: Array,
        normalisation: Unit | Clip | Whole,
        lattice: Lattice,
    ) -> None:
        self._features, self._constants = features, constants
        radius = normalisation.divisor(np.nan)
        self._kind = _UNIT if radius is None else _WHOLE if normalisation.keeps_rows else _CLIP
        self._radius = radius or 1.0
        self._lattice = lattice

    @classmethod
    def of(
        cls,
        columns: Sequence[ColumnKind],
        intercept: bool,
        normalisation: Unit | Clip | Whole,
        lattice: Lattice,
    ) -> NormaliseKernel:
        """The kernel of declared columns."""
        features, constants = _features(columns, intercept), repair_constants(columns)
        return cls(features, constants, normalisation, lattice)

    @property
    def width(self) -> int:
        """Number of matrix columns."""
        return len(self._features)

    def __call__(self, cells: Array, repairs: Repairs) -> Array:
        """Integer rows; see `RowTransform.integers`."""
        q = np.empty((self.width, cells.shape[1]))
        outside = self._is_outside(self._fill(q, cells, repairs))
        if outside.any():
            q[:, outside] = clamp_to_ball(q[:, outside], self._lattice)
        return q

    def squares(self, cells: Array, repairs: Repairs) -> Array:
        """Squares of integer rows; see `RowTransform.squares`."""
        one_block = np.empty((len(self._features), min(_BLOCK_ROWS, cells.shape[1])))
        squares = self._fill(one_block, cells, repairs)
        outside = np.flatnonzero(self._is_outside(squares))
        if outside.size:
            q = self(cells[:, outside], Repairs.zeros(len(cells)))
            squares[outside] = (q * q).sum(axis=0)
        return squares

    def _fill(self, q: Array, cells: Array, repairs: Repairs) -> Array:
        squares: Array = compiled(normalise_kernel)(
            np.ascontiguousarray(cells),
            self._features,
            self._constants,
            self._kind,
            self._radius,
            self._lattice.unit_length,
            q,
            repairs.filled,
            repairs.clamped,
        )
        return squares

    def _is_outside(self, squares: Array) -> NDArray[np.bool_]:
        """Which rows are outside the ball, and must be clamped to it."""
        radius = np.inf if self._kind == _WHOLE else float(self._lattice.squared_radius)
        outside: NDArray[np.bool_] = ~(squares <= radius)
        return outside


class MetricRows:
    """Rows of cells in a metric: a compiled pass before the product; see `Metric.rows`."""

    def __init__(self, columns: Sequence[ColumnKind], intercept: bool, metric: Metric) -> None:
        self._features, self._constants = _features(columns, intercept), repair_constants(columns)
        self._metric = metric

    def __call__(self, cells: Array, repairs: Repairs) -> Array:
        """The rows in the metric, shape (p, rows)."""
        z = np.empty((len(self._features), cells.shape[1]))
        exponents = compiled(normalise_kernel)(
            np.ascontiguousarray(cells),
            self._features,
            self._constants,
            _BINARY,
            1.0,
            1.0,
            z,
            repairs.filled,
            repairs.clamped,
        )
        return self._metric.of_whole(z, exponents.astype(np.int64))


class MetricKernel:
    """The same where rows are measured in another metric: compiled passes before and after it."""

    def __init__(
        self,
        columns: Sequence[ColumnKind],
        intercept: bool,
        metric: Metric,
        normalisation: Unit | Clip | Whole,
        lattice: Lattice,
    ) -> None:
        self._rows, q = MetricRows(columns, intercept, metric), lattice.p
        places = np.column_stack([np.arange(q), np.full(q, _NUMBER)])
        self._after = NormaliseKernel(places, np.tile(_IDENTITY, (q, 1)), normalisation, lattice)

    def __call__(self, cells: Array, repairs: Repairs) -> Array:
        """Integer rows; see `RowTransform.integers`."""
        return self._after(self._rows(cells, repairs), Repairs.zeros(self._after.width))

    def squares(self, cells: Array, repairs: Repairs) -> Array:
        """Squares of integer rows; see `RowTransform.squares`."""
        return self._after.squares(self._rows(cells, repairs), Repairs.zeros(self._after.width))


Kernel = NormaliseKernel | MetricKernel
_IDENTITY = (-np.inf, np.inf, 0.0, 1.0, -np.inf, np.inf)


def _features(columns: Sequence[ColumnKind], intercept: bool) -> NDArray[np.int64]:
    """The column, and the level if it has any, of every matrix column; shape (p, 2)."""
    features = [(_INTERCEPT, _NUMBER)] if intercept else []
    for i, column in enumerate(columns):
        indices = [_NUMBER] if column.categories is None else range(column.width)
        features += [(i, index) for index in indices]
    return np.array(features, dtype=np.int64)


def normalise_kernel(  # noqa: PLR0912, PLR0915  one loop over blocks
    cells: Array,
    features: NDArray[np.int64],
    constants: Array,
    kind: int,
    radius: float,
    unit_length: float,
    q: Array,
    filled: NDArray[np.int64],
    clamped: NDArray[np.int64],
) -> Array:
    """Transform cells to integer rows, a block of rows at a time, column by column; for numba.

    The rows fill q, of shape (p, rows). It may have fewer rows, and is then filled again by each
    block.

    Returns
    -------
    ndarray, shape (rows,)
        Sum of squares of every integer row, so that the caller can clamp those outside the ball.
        Of a binary row, which is rounded relative to its largest entry, the exponent of two.
    """
    p, rows = len(features), cells.shape[1]
    keeps_rows = q.shape[1] == rows
    row_squares = np.zeros(rows)
    squares, power, inverse = np.empty((3, _BLOCK_ROWS))
    unscaled = kind == _WHOLE
    for start in range(0, rows, _BLOCK_ROWS):
        m = min(_BLOCK_ROWS, rows - start)
        first = start if keeps_rows else 0
        squares[:] = 0.0
        for f in range(p):
            i, level = features[f]
            out = q[f, first : first + m]
            if i == _INTERCEPT:
                for k in range(m):
                    out[k] = 1.0
                    squares[k] += 1.0
                continue
            column = cells[i, start : start + m]
            if level != _NUMBER:
                missing = 0
                for k in range(m):
                    out[k] = 1.0 if column[k] == level else 0.0
                    squares[k] += out[k]
                    missing += not math.isfinite(column[k])
                if level == 0:
                    filled[i] += missing
                continue
            lower, upper, centre, scale, lowest, highest = constants[i]
            missing, out_of_bounds = 0, 0
            for k in range(m):
                is_missing = not math.isfinite(column[k])
                value = centre if is_missing else column[k]
                within = min(max(value, lower), upper)
                missing += is_missing
                out_of_bounds += not is_missing and not lowest <= value <= highest
                x = (within - centre) / scale
                out[k] = x
                squares[k] += x * x
            filled[i] += missing
            clamped[i] += out_of_bounds
        if unscaled:
            for f in range(p):
                out = q[f, first : first + m]
                for k in range(m):
                    x = np.rint(out[k])
                    out[k] = x
                    row_squares[start + k] += x * x
            continue
        if kind == _BINARY:
            power[:] = 0.0
            for f in range(p):
                out = q[f, first : first + m]
                for k in range(m):
                    power[k] = max(power[k], abs(out[k]))
            for k in range(m):
                exponent = max(math.frexp(power[k])[1], -LONGEST)
                row_squares[start + k] = exponent
                power[k] = math.ldexp(1.0, ROW_BITS - exponent)
            for f in range(p):
                out = q[f, first : first + m]
                for k in range(m):
                    out[k] = np.rint(out[k] * power[k])
            continue
        for k in range(m):
            power[k] = 1.0
            if LEAST <= squares[k] <= LARGEST:
                continue
            largest = 0.0
            for f in range(p):
                largest = max(largest, abs(q[f, first + k]))
            exponent = min(max(math.frexp(largest)[1], MIN_EXPONENT), MAX_EXPONENT)
            power[k] = math.ldexp(1.0, -exponent)
            squares[k] = 0.0
            for f in range(p):
                x = q[f, first + k] * power[k]
                squares[k] += x * x
        for k in range(m):
            length = math.sqrt(squares[k]) if squares[k] > 0 else 1.0
            inverse[k] = 1.0 / length
            # Zero marks a row within the clipping radius, which keeps its length.
            if kind == _CLIP and not length / power[k] > radius:
                inverse[k] = 0.0
            squares[k] = 0.0
        for f in range(p):
            out = q[f, first : first + m]
            if kind == _UNIT:
                for k in range(m):
                    x = np.rint(out[k] * power[k] * inverse[k] * unit_length)
                    out[k] = x
                    squares[k] += x * x
            else:
                for k in range(m):
                    short = inverse[k] == 0.0
                    unit = out[k] * power[k] * inverse[k]
                    x = np.rint((out[k] / radius if short else unit) * unit_length)
                    out[k] = x
                    squares[k] += x * x
        for k in range(m):
            row_squares[start + k] = squares[k]
    return row_squares
