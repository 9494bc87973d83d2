"""Numeric columns as functions of a standard normal variable."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Marginal(Protocol):
    """The distribution of a numeric column."""

    def values(self, latent: Array) -> Array:
        """Cells for standard normal values, nondecreasing; same shape."""
        ...
