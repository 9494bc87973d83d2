"""|floor(s X + 1/2)| from the first bits of a tail probability, quickly, and where it is proven.

The tail probabilities from 2^-21 up to 1/2 are cut into pieces, 128 to an octave. Each has a node
x, of at most 20 bits, and the Taylor series of the inverse around Q(x): with d = (Q(x) - U) /
density(x), the X that belongs to U is x + d + c_2 d^2 + c_3 d^3 + ... The step from the node is
below 2^-7, so that what is lost of it in double precision leaves 56 bits of X after the point.

What separates the computed y + 1/2 from the true s X + 1/2 is at most the sum of

- the width of U, half a unit of 2^-64 to either side of its middle, and the rounding of Q(x) to
  such a unit: one unit together, times 1 / density, which changes by a hundredth in a piece;
- the terms left out. All c_n are positive, so that at |d| they are at most (|d| / r)^8 times the
  step that r leads to, for any r; the r for which U is a tenth of Q(x) makes that 2^-59;
- roundings: of d, of the polynomial and of their product with s, together below 2^-49 of the
  step; of three sums, below 2^-50 (|y - the node's whole part| + 2).

s is split so that its products with the node are exact. So j = floor(y + 1/2) is proven wherever
its fraction, and its distance to 1, exceed that bound.
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
from gramercy.schemas.errors import SamplerError

Array = NDArray[np.float64]

_OCTAVES, _FINE = 20, 128  # of tail probabilities, from 2^-21 up to 1/2; pieces of each
_LOWEST = 63 - _OCTAVES  # the first octave begins with this power of two, in units of 2^-64
_COUNT = _OCTAVES * _FINE
_NODE_BITS = 16  # after the point
_SCALE_BITS = 26  # of the upper part of a scale
_PRECISION = 128  # of what is tabulated, before it is rounded
_LOW_63 = (1 << 63) - 1
_TRIED = 1000
_MANY = 1 << 14  # draws of a process, for which it is worth half a second to load machine code


@dataclass(eq=False)
class Pieces:
    """The inverse of one law's tail.

    Parameters
    ----------
    tails
        Q at the nodes, in units of 2^-64; shape (pieces,).
    series
        The node x, 2^-64 / density(x), and c_2 to c_7; shape (pieces, 8).
    asked
        How many draws it was asked for so far.
    """

    tails: NDArray[np.int64]
    series: Array
    asked: int = 0

    def settle(
        self, scale: float, bits: NDArray[np.int64], drawn: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Write floor(scale X + 1/2) wherever it is proven.

        Parameters
        ----------
        scale
            In lattice units.
        bits
            The sign of X, and 63 bits k, with U in [k, k+1] 2^-64; shape (size,).
        drawn
            What is written, of the same shape.

        Returns
        -------
        ndarray of int64
            The places that are left.
        """
        left = np.empty(bits.size, np.int64)
        self.asked += bits.size
        if self.asked >= _MANY:
            self._check_machine_code()
            count = compiled(settle)(bits, self.tails, self.series, *_split(scale), drawn, left)
        else:
            count = settle(bits.tolist(), *self._lists, *_split(scale), drawn, left)
        return left[:count]

    @cached_property
    def _lists(self) -> tuple[list[int], list[list[float]]]:
        return self.tails.tolist(), self.series.tolist()

    @cache  # noqa: B019  there are as many of these as laws
    def _check_machine_code(self) -> None:
        """Compare the loop with what became of it on this machine, once a process.

        Raises
        ------
        SamplerError
            If they differ.
        """
        bits = np.arange(-_TRIED, _TRIED) * (_LOW_63 // _TRIED) + 12345
        plain, machine = np.zeros((2, 2, bits.size), np.int64)  # what is drawn, and what is left
        scale = _split(3.0e9)
        settle(bits.tolist(), *self._lists, *scale, *plain)
        compiled(settle)(bits, self.tails, self.series, *scale, *machine)
        if not np.array_equal(plain, machine):
            raise SamplerError(
                "The noise sampler's machine code does not do what it should.",
                "Delete __pycache__ beside mechanisms/, and install the pinned versions of "
                "requirements.lock.",
            )


def settle(
    bits: Sequence[int] | NDArray[np.int64],
    tails: Sequence[int] | NDArray[np.int64],
    series: Sequence[Sequence[float]] | Array,
    high: float,
    low: float,
    drawn: NDArray[np.int64],
    left: NDArray[np.int64],
) -> int:
    """The loop of `Pieces.settle`, compiled where there is much to draw; returns how many are left.

    A plain function of numbers, which Python's own are faster for than numpy's.
    """
    scale, count = high + low, 0
    for i in range(len(bits)):
        k = bits[i] & _LOW_63
        mantissa, exponent = math.frexp(float(k))
        piece = (exponent - 1 - _LOWEST) * _FINE + int((mantissa - 0.5) * (2 * _FINE))
        if piece < 0:
            left[count] = i
            count += 1
            continue
        piece = min(piece, _COUNT - 1)  # 2^63 - 1 is 2^63 as a double
        row = series[piece]
        x, unit = row[0], row[1]
        d = (tails[piece] - k - 0.5) * unit
        step = row[7]
        for n in range(6, 1, -1):
            step = row[n] + d * step
        step = scale * (d * (1.0 + d * step))
        node = high * x
        whole = math.floor(node)
        rest = (node - whole) + (low * x + step) + 0.5
        j = math.floor(rest)
        fraction = rest - j
        bound = scale * (unit * 1.03 + 2.0**-59)
        bound += abs(step) * 2.0**-49 + (abs(rest) + 2.0) * 2.0**-50
        if node < 2.0**52 and min(fraction, 1.0 - fraction) > bound:
            sign = bits[i] >> 63  # 0 or -1; a branch would be guessed wrong every other time
            drawn[i] = ((whole + j) ^ sign) - sign
        else:
            left[count] = i
            count += 1
    return count


@cache
def pieces(law: Law) -> Pieces:
    """Tabulate a law's inverse; a tenth of a second, once a process."""
    mp = MPContext()
    mp.prec = _PRECISION
    octave, place = np.divmod(np.arange(_COUNT), _FINE)
    middles = np.ldexp(1 + (place + 0.5) / _FINE, octave + _LOWEST - 64)
    nodes = np.ldexp(np.rint(np.ldexp(law.quantile(middles), _NODE_BITS)), -_NODE_BITS)
    tails, units = [], []
    for x in map(mp.mpf, nodes.tolist()):
        tails.append(int(mp.nint(mp.ldexp(law.upper(mp, x), 64))))
        units.append(float(mp.ldexp(1 / law.density(mp, x), -64)))
    series = np.stack([nodes, np.array(units), *law.series(nodes)], axis=1)
    return Pieces(np.array(tails, dtype=np.int64), series)


def _split(scale: float) -> tuple[float, float]:
    """Two parts of at most 26 and 27 bits."""
    mantissa, exponent = math.frexp(scale)
    high = math.ldexp(math.floor(math.ldexp(mantissa, _SCALE_BITS)), exponent - _SCALE_BITS)
    return high, scale - high
