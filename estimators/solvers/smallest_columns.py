"""Columns of the smallest l1 norm that solve linear equations up to a bound, by homotopy.

minimise sum |b_i| subject to |S b - c|_inf <= bound

The dual of this linear programme is: maximise c^T y - bound sum |y_i| subject to |S y|_inf <= 1.
At bound |c|_inf both are solved by zero. From there the bound decreases, and the solution is linear
in it between steps: it solves S[active, support] b = c - bound sign on as many active constraints
as it has nonzero entries. Where a constraint becomes active or an entry reaches zero, the dual
solution moves until an entry joins the support or a constraint is released. This is the parametric
simplex method on a matrix of the size of the support (Vanderbei 2014, "Linear programming", chapter
7; Asif and Romberg 2010, "Dynamic updating for l1 minimization").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas import families

Array = NDArray[np.float64]

_TIES = 1e-11  # relative size of the perturbation that makes all steps differ
_TOLERANCE = 1e-8  # of the certificate
_LIMIT = 60  # steps per column of S
_STILL = 1e-13  # speeds below it are rounding


@dataclass(frozen=True)
class SmallestColumn:
    """A solution with a proven accuracy.

    For every b with |S b - c|_inf <= bound, sum |b_i| is at least 1 - `gap` times that of this one.
    """

    b: Array  # with exact zeros; shape (p,)
    gap: float  # relative to the l1 norm
    excess: float  # by which |S b - c|_inf exceeds the bound


def smallest_column(S: Array, c: Array, bound: float) -> SmallestColumn:
    """The solution of the smallest l1 norm.

    `S`: symmetric, positive definite, with a unit diagonal; shape (p, p). `c`: shape (p,). `bound`:
    positive. Raises RequestError if the duality gap or the excess is above 1e-8: S is nearly
    singular, and the bound is small.
    """
    path, b, y = _Homotopy(S, c), np.zeros(len(S)), np.zeros(len(S))
    path.follow(bound)
    if path.support:
        signs = np.array(path.signs)
        basis = S[np.ix_(path.active, path.support)]
        values = np.linalg.solve(basis, c[path.active] - bound * np.array(path.sides))
        b[path.support] = np.where(values * signs > 0, values, 0.0)
        y[path.active] = np.linalg.solve(basis.T, signs)
    y /= max(1.0, float(np.abs(S @ y).max()))
    size = float(np.abs(b).sum())
    gap = (size - float(c @ y) + bound * float(np.abs(y).sum())) / max(size, 1.0)
    excess = max(float(np.abs(S @ b - c).max()) - bound, 0.0)
    if not max(gap, excess) <= _TOLERANCE:
        raise families.NOT_CONVERGED(
            "The linear programme of a column was not solved: the matrix is nearly singular.",
            "Use a larger penalty.",
        )
    return SmallestColumn(b, gap, excess)


class _Homotopy:
    """The solution while the bound decreases.

    Costs and bounds of the rows are perturbed, so that no two steps are tied. The support and the
    active constraints that result are optimal without the perturbation, too.
    """

    def __init__(self, S: Array, c: Array) -> None:
        apart = np.sqrt(np.arange(2, 2 + 2 * len(S))).reshape(2, -1) % 1
        self.S, (self.cost, self.width) = S, 1 + _TIES * apart
        self.support, self.signs = list[int](), list[float]()  # of b
        self.active, self.sides = list[int](), list[float]()  # signs of c - S b at its bound
        self.b, self.y, self.slope = (np.zeros(len(S)) for _ in range(3))  # slope: S y
        self.residual = c.astype(float)
        self.bound = float((np.abs(c) / self.width).max())
        self.entering = int((np.abs(c) / self.width).argmax())  # the constraint that is now active
        self.leaving = -1  # or the place in the support of the entry that is now zero

    def follow(self, bound: float) -> None:
        """Decrease the bound to `bound`."""
        for _ in range(_LIMIT * len(self.S)):
            if self.bound <= bound:
                return
            self._move_dual()
            self._decrease(bound)

    def _move_dual(self) -> None:
        """Move y until an entry joins the support or a constraint is released."""
        S, side, gone, left = self.S, 0.0, -1, 0.0
        basis = S[np.ix_(self.active, self.support)]
        if self.leaving < 0:
            side = float(np.sign(self.residual[self.entering]))
            moved = np.linalg.solve(basis.T, -side * S[self.support, self.entering])
            direction = S[:, self.active] @ moved + side * S[:, self.entering]
        else:
            unit = np.zeros(len(self.support))
            unit[self.leaving] = -self.signs[self.leaving]
            moved = np.linalg.solve(basis.T, unit)
            direction = S[:, self.active] @ moved
            gone, left = self.support.pop(self.leaving), self.signs.pop(self.leaving)
        ahead = np.maximum(self.cost - np.sign(direction) * self.slope, 0.0)
        ahead[self.support] = np.inf
        if gone >= 0 and direction[gone] * left < 0:
            ahead[gone] = 2 * self.cost[gone]
        joins, first = _first(ahead, np.abs(direction))
        releases, second = _first(np.abs(self.y[self.active]), -moved * np.array(self.sides))
        step = min(first, second)
        self.y[self.active] += step * moved
        self.slope += step * direction
        if side:
            self.y[self.entering] = step * side
            self.active.append(self.entering)
            self.sides.append(side)
        if first <= second:
            self.support.append(joins)
            self.signs.append(float(np.sign(direction[joins])))
        else:
            self.y[self.active.pop(releases)] = 0.0
            self.sides.pop(releases)

    def _decrease(self, least: float) -> None:
        """Decrease the bound until a constraint becomes active or an entry of b reaches zero."""
        basis = self.S[np.ix_(self.active, self.support)]
        change = np.linalg.solve(basis, np.array(self.sides) * self.width[self.active])
        faster = self.S[:, self.support] @ change
        distances = []
        for sign in (1, -1):
            distance = np.maximum(self.bound * self.width - sign * self.residual, 0.0)
            distance[self.active] = np.inf
            distances.append(_first(distance, self.width - sign * faster))
        enters, first = min(distances, key=lambda found: found[1])
        zero, second = _first(np.abs(self.b[self.support]), -change * np.array(self.signs))
        step = min(first, second, self.bound - least)
        self.bound = least if step == self.bound - least else self.bound - step
        self.b[self.support] += step * change
        self.residual -= step * faster
        self.entering, self.leaving = enters, -1
        if second < first:
            self.leaving = zero
            self.b[self.support[zero]] = 0.0


def _first(distance: Array, speed: Array) -> tuple[int, float]:
    """Which of the distances is covered first at these speeds, and when; infinity if none is."""
    times = np.divide(distance, speed, out=np.full(len(distance), np.inf), where=speed > _STILL)
    if not len(times):
        return -1, np.inf
    k = int(times.argmin())
    return k, float(times[k])
