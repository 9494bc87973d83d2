"""A table of the inverse tail: |floor(s X + 1/2)| fast, with an error bound that certifies it.

The tail probabilities from 2^-24 up to 1/2 are divided into pieces, 128 per octave. Each piece has
a node x, of at most 20 bits, and the Taylor series of the inverse around Q(x): with
d = (Q(x) - U) / density(x), the X that belongs to U is x + d + c_2 d^2 + c_3 d^3 + ... The step
from the node is below 2^-7, so its rounding errors leave 56 bits of X after the point.

The error of the computed y + 1/2 against the true s X + 1/2 is at most the sum of

- the width of U, half a unit of 2^-64 to either side of its midpoint, and the rounding of Q(x) to
  such a unit: together one unit times 1 / density, which varies by 1 % within a piece;
- the omitted terms. All c_n are positive, so at |d| they are at most (|d| / r)^8 times the step
  that belongs to r, for any r; the r for which U is a tenth of Q(x) makes this 2^-59;
- roundings: of d, of the polynomial and of their product with s, together below 2^-49 of the
  step; of three sums, below 2^-50 (|y - integer part of the node| + 2).

s is split so that its products with the node are exact. So j = floor(y + 1/2) is proven if its
fractional part, and the distance of that part to 1, exceed this bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from mpmath import MPContext
from numpy.typing import NDArray

from gramercy.common.machine import compiled
from gramercy.mechanisms.sampling.rounding import Law
from gramercy.schemas import families

Array = NDArray[np.float64]

_OCTAVES = 23  # from tail probability 2^-24 to 1/2
_PIECE_BITS = 7
_PER_OCTAVE = 1 << _PIECE_BITS  # pieces per octave
_FIRST_EXPONENT = 63 - _OCTAVES  # the first octave starts at this power of 2, in units of 2^-64
_PIECES = _OCTAVES * _PER_OCTAVE
_EXPONENT_OF_ONE = 1023  # the exponent that a double of 1 stores
_NODE_BITS = 16  # after the point
_SCALE_BITS = 26  # of the upper part of a scale
_PRECISION = 128  # bits of tabulated numbers before they are rounded
_LOW_63 = (1 << 63) - 1
_CHECKED = 1000  # draws of each sign
_COMPILE_FROM = 1 << 14  # draws in a process; loading compiled code takes half a second


@dataclass(eq=False)
class InverseCdfTable:
    """The tabulated inverse of one law's tail."""

    tails: NDArray[np.int64]  # q at the nodes, in units of 2^-64; shape (pieces,)
    series: Array  # the node x, 2^-64 / density(x), and c_2 to c_7; shape (pieces, 8)
    draws: int = 0  # number of draws so far

    def resolve_certified(
        self, scale: float, bits: NDArray[np.int64], drawn: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Write floor(scale X + 1/2) wherever it is certified.

        `scale`: scale in lattice units. `bits`: the sign of X, and 63 bits k with U in [k, k+1]
        2^-64; shape (size,). `drawn`: array for the results, of the same shape.
        """
        left = np.empty(bits.size, np.int64)
        pieces, parts = _pieces(bits), _split_scale(scale)
        self.draws += bits.size
        if self.draws >= _COMPILE_FROM:
            self._check_compiled_code()
            loop = compiled(resolve_certified)
            count = loop(bits, pieces, self.tails, self.series, *parts, drawn, left)
        else:
            lists = bits.tolist(), pieces.tolist(), *self._lists
            count = resolve_certified(*lists, *parts, drawn, left)
        return left[:count]

    @cached_property
    def _lists(self) -> tuple[list[int], list[list[float]]]:
        return self.tails.tolist(), self.series.tolist()

    @cache  # noqa: B019  there is one instance per law
    def _check_compiled_code(self) -> None:
        """Compare the compiled loop with the Python loop, once per process."""
        bits = np.arange(-_CHECKED, _CHECKED) * (_LOW_63 // _CHECKED) + 12345
        expected, actual = np.zeros((2, 2, bits.size), np.int64)  # results, and indices left
        pieces, scale = _pieces(bits), _split_scale(3.0e9)
        resolve_certified(bits.tolist(), pieces.tolist(), *self._lists, *scale, *expected)
        compiled(resolve_certified)(bits, pieces, self.tails, self.series, *scale, *actual)
        if not np.array_equal(expected, actual):
            raise families.SAMPLER(
                "The noise sampler's compiled code and its Python code disagree.",
                "Delete __pycache__ in the folder of gramercy/mechanisms, and install the pinned "
                "versions of requirements.lock.",
            )


def resolve_certified(
    bits: Sequence[int] | NDArray[np.int64],
    pieces: Sequence[int] | NDArray[np.int64],
    tails: Sequence[int] | NDArray[np.int64],
    series: Sequence[Sequence[float]] | Array,
    high: float,
    low: float,
    drawn: NDArray[np.int64],
    left: NDArray[np.int64],
) -> int:
    """The loop of `InverseCdfTable.resolve_certified`; returns the number of draws left.

    It is compiled for many draws. Few draws run in Python, on lists of Python's own numbers, which
    are faster there than numpy's.
    """
    scale, count = high + low, 0
    for i in range(len(bits)):
        k, piece = bits[i] & _LOW_63, pieces[i]
        if piece < 0:
            left[count] = i
            count += 1
            continue
        row = series[piece]
        x, unit = row[0], row[1]
        d = (tails[piece] - k - 0.5) * unit
        step = row[7]
        for n in range(6, 1, -1):
            step = row[n] + d * step
        step = scale * (d * (1.0 + d * step))
        node = high * x
        integer_part = math.floor(node)
        rest = (node - integer_part) + (low * x + step) + 0.5
        j = math.floor(rest)
        fraction = rest - j
        bound = scale * (unit * 1.03 + 2.0**-59)
        bound += abs(step) * 2.0**-49 + (abs(rest) + 2.0) * 2.0**-50
        if node < 2.0**52 and min(fraction, 1.0 - fraction) > bound:
            sign = bits[i] >> 63  # 0 or -1; a branch would be mispredicted half of the time
            drawn[i] = ((integer_part + j) ^ sign) - sign
        else:
            left[count] = i
            count += 1
    return count


def _pieces(bits: NDArray[np.int64]) -> NDArray[np.int64]:
    """The piece of every draw: exponent and first bits of k as a double; negative below 2^-24."""
    leading = (bits & _LOW_63).astype(np.float64).view(np.int64) >> (52 - _PIECE_BITS)
    first = (_EXPONENT_OF_ONE + _FIRST_EXPONENT) << _PIECE_BITS
    pieces: NDArray[np.int64] = np.minimum(leading - first, _PIECES - 1)  # 2^63 - 1 becomes 2^63
    return pieces


@cache
def inverse_cdf_table(law: Law) -> InverseCdfTable:
    """The table of a law's inverse; takes 0.1 seconds, once per process."""
    mp = MPContext()
    mp.prec = _PRECISION
    octave, place = np.divmod(np.arange(_PIECES), _PER_OCTAVE)
    midpoints = np.ldexp(1 + (place + 0.5) / _PER_OCTAVE, octave + _FIRST_EXPONENT - 64)
    nodes = np.ldexp(np.rint(np.ldexp(law.quantile(midpoints), _NODE_BITS)), -_NODE_BITS)
    tails, units = [], []
    for x in map(mp.mpf, nodes.tolist()):
        tails.append(int(mp.nint(mp.ldexp(law.upper(mp, x), 64))))
        units.append(float(mp.ldexp(1 / law.density(mp, x), -64)))
    series = np.stack([nodes, np.array(units), *law.series(nodes)], axis=1)
    return InverseCdfTable(np.array(tails, dtype=np.int64), series)


def _split_scale(scale: float) -> tuple[float, float]:
    """Two summands of at most 26 and 27 bits."""
    mantissa, exponent = math.frexp(scale)
    high = math.ldexp(math.floor(math.ldexp(mantissa, _SCALE_BITS)), exponent - _SCALE_BITS)
    return high, scale - high
