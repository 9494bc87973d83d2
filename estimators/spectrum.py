"""The eigenvalues of a release beside those of its noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.noise import NoiseLaw

Array = NDArray[np.float64]

_TRACY_WIDOM_99 = 2.0234


@dataclass(frozen=True)
class Spectrum:
    """What the eigenvalues say about signal and noise.

    Parameters
    ----------
    released, repaired
        Eigenvalues, largest first; shape (p,).
    noise
        What pure noise would show, largest first; shape (p,).
    edge
        The eigenvalues of noise alone stay within -edge and edge in 99 releases of 100.
    """

    released: Array
    repaired: Array
    noise: Array
    edge: float

    @property
    def beyond(self) -> int:
        """How many directions stand out of the noise."""
        return int((self.released > self.edge).sum())


def spectrum(raw: Array, repaired: Array, law: NoiseLaw) -> Spectrum:
    """Eigenvalues of a released matrix, its repaired form, and its noise alone.

    Parameters
    ----------
    raw, repaired
        Shape (p, p), symmetric.
    law
        Noise law of `raw`.

    Notes
    -----
    A p x p GOE matrix with deviation s off the diagonal has a spectrum that fills
    [-2 s sqrt(p), 2 s sqrt(p)] by Wigner's semicircle law; `noise` holds its quantiles. The largest
    goes beyond by s p^(-1/6) times a Tracy-Widom variable (beta = 1), whose 99 % quantile is 2.02;
    at small p that is a little too much (simulated: passed in 0.2 % to 0.7 % of draws, p = 1 to
    100). The other laws have nearly the same spectrum, by the deviations off the diagonal.
    """
    p = raw.shape[0]
    bulk = 2 * law.sd_off_diagonal * math.sqrt(p)
    edge = bulk + _TRACY_WIDOM_99 * law.sd_off_diagonal * p ** (-1 / 6)
    released, shrunk = (np.linalg.eigvalsh(m)[::-1].astype(np.float64) for m in (raw, repaired))
    return Spectrum(released, shrunk, bulk * semicircle_quantiles(p), edge)


def semicircle_quantiles(p: int) -> Array:
    """Quantiles (k - 1/2)/p of the semicircle law on [-1, 1], largest first; shape (p,)."""
    x = np.sin(np.linspace(-math.pi / 2, math.pi / 2, 4001))
    below = 0.5 + (x * np.sqrt(1 - x * x) + np.arcsin(x)) / math.pi
    quantiles: Array = np.interp((np.arange(p, 0, -1) - 0.5) / p, below, x)
    return quantiles
