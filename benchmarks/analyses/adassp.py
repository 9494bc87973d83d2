"""AdaSSP: ridge regression from noisy sufficient statistics, with a private penalty.

Wang (2018), "Revisiting differentially private linear regression: optimal and adaptive prediction
& estimation in unbounded domain", algorithm 2. Its three queries share mu equally, and their noise
has the exact size of the Gaussian mechanism under replace-one, where X^T X and X^T y change by up
to sqrt(2) and 2 times as much as by one row more or less. Published is noise of
sqrt(log(6 / delta)) / (epsilon / 3) per unit of sensitivity, which is larger.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.statistics.correlations import noisy

Array = NDArray[np.float64]
_FAILURE = 0.05  # rho: the probability that the penalty is too small
_DELTA = 1e-6


def adassp(
    x: Array, y: Array, longest: float, largest: float, mu: float, rng: np.random.Generator
) -> Array:
    """Coefficients, shape (d,).

    Parameters
    ----------
    x, y
        Shapes (n, d) and (n,); rows are clipped at the length `longest`, and outcomes at `largest`.
    longest, largest
        Public bounds on the lengths of rows, and on outcomes.
    mu
        Mu of the Gaussian guarantee of the whole, under replace-one.
    rng
        Of the noise.
    """
    d, each = x.shape[1], mu / math.sqrt(3)
    lengths = np.maximum(np.linalg.norm(x, axis=1), 1e-300)
    x, y = x * np.minimum(1, longest / lengths)[:, None], np.clip(y, -largest, largest)
    gram, sd = x.T @ x, longest**2 / each
    smallest = float(np.linalg.eigvalsh(gram)[0]) + sd * rng.normal()
    smallest = max(0.0, smallest - sd * math.sqrt(math.log(6 / _DELTA)))
    penalty = max(0.0, sd * math.sqrt(d * math.log(2 * d**2 / _FAILURE)) - smallest)
    cross = x.T @ y + rng.normal(size=d) * (2 * longest * largest / each)
    return np.linalg.solve(noisy(gram, sd, rng) + penalty * np.eye(d), cross).astype(np.float64)
