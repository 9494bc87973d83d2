"""Noisy numbers that add up to a known total and are not negative, by weighted least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_UNKNOWN = 1e-10  # weight of a number that was not observed, by that of others


@dataclass(frozen=True)
class Partition:
    """Numbers that add up to a total; arrays of shape (parts,)."""

    weight: Array
    unbiased: Array
    value: Array  # the closest ones that are not negative

    @classmethod
    def of(cls, observed: Array, weight: Array, total: float = 1.0) -> Partition:
        """The fit to observations with inverse variances `weight`."""
        weight = np.maximum(weight, _UNKNOWN * weight.max())
        size, kept = 1 / weight, np.ones(len(weight), dtype=bool)
        value = unbiased = observed + size * (total - observed.sum()) / size.sum()
        while (value[kept] < 0).any():
            kept &= value >= 0
            rest = (total - observed[kept].sum()) / size[kept].sum()
            value = np.where(kept, observed + size * rest, 0.0)
        return cls(weight, unbiased, value)

    def pulled(self, moved: Array) -> Array:
        """How errors of the observations move `unbiased`; `moved` are errors times weights."""
        size = 1 / self.weight
        own = size * moved
        result: Array = own - size * (own.sum() / size.sum())
        return result

    def covariance(self, moved: Array) -> Array:
        """Covariance of the errors of `unbiased`; `moved` are variances times squared weights."""
        size = 1 / self.weight
        linear = np.diag(size) - np.outer(size, size) / size.sum()
        result: Array = (linear * moved) @ linear.T
        return result
