"""Projections of a sequence of eigenvalues onto those that a second moment may have."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]


def project_spectrum(values: Array, trace: float) -> Array:
    """The nearest increasing, non-negative sequence with sum at most `trace`; shape (p,)."""
    increasing: Array = scipy.optimize.isotonic_regression(values).x
    clipped: Array = np.maximum(increasing, 0.0)
    return clipped if clipped.sum() <= trace else _shifted(increasing, trace)


def project_to_trace(values: Array, trace: float) -> Array:
    """The nearest increasing, non-negative sequence with sum `trace`; shape (p,).

    Parameters
    ----------
    values
        Shape (p,), finite.
    trace
        Not negative, finite.
    """
    return _shifted(scipy.optimize.isotonic_regression(values).x, trace)


def _shifted(increasing: Array, trace: float) -> Array:
    """An increasing sequence plus the constant for which its positive part has this sum."""
    decreasing = increasing[::-1]
    excess = (np.cumsum(decreasing) - trace) / np.arange(1, decreasing.size + 1)
    last = np.flatnonzero(decreasing >= excess)[-1]
    shifted: Array = np.maximum(increasing - excess[last], 0.0)
    return shifted
