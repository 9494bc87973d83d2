"""The eigenvalues of a release beside those of its noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.denoise import SIMULATED_UP_TO
from gramercy.estimators.noise.draws import draw, of_rows, rows_like, stream
from gramercy.schemas.noise import Family, NoiseLaw

Array = NDArray[np.float64]

_TRACY_WIDOM_99 = 2.0234
_MOST_DRAWS, _FEWEST_DRAWS, _ENOUGH = 2000, 30, 1000
_PURE_DRAWS = 4  # of more columns than are simulated
_UNIT_DIAGONAL: tuple[Family, ...] = ("gaussian-iid", "laplace")


@dataclass(frozen=True)
class Pure:
    """Eigenvalues of noise alone.

    Parameters
    ----------
    values
        What it would show, largest first; shape (p,).
    lower, upper
        It stays within these in 99 releases of 100.
    """

    values: Array
    lower: float
    upper: float

    def times(self, factor: float) -> Pure:
        """Of the noise times a number."""
        return Pure(self.values * factor, self.lower * factor, self.upper * factor)


@dataclass(frozen=True)
class Spectrum:
    """What the eigenvalues say about signal and noise.

    Parameters
    ----------
    released, repaired
        Eigenvalues, largest first; shape (p,).
    noise
        What pure noise would show, largest first; shape (p,).
    lower, upper
        The eigenvalues of noise alone stay within these in 99 releases of 100.
    """

    released: Array
    repaired: Array
    noise: Array
    lower: float
    upper: float

    @property
    def beyond(self) -> int:
        """How many directions stand out of the noise."""
        return int((self.released > self.upper).sum())


def spectrum(raw: Array, repaired: Array, law: NoiseLaw, rows: float | None = None) -> Spectrum:
    """Eigenvalues of a released matrix, its repaired form, and its noise alone.

    Parameters
    ----------
    raw, repaired
        Shape (p, p), symmetric.
    law
        Noise law of `raw`.
    rows
        How many rows stand behind `raw`. Noise on rows depends on the rows themselves, and is
        drawn about `repaired`; without `rows`, by its nominal deviations.

    Notes
    -----
    A p x p GOE matrix (``gaussian-isotropic``) with deviation s off the diagonal has a spectrum
    that fills [-2 s sqrt(p), 2 s sqrt(p)] by Wigner's semicircle law; `noise` holds its quantiles.
    The largest goes beyond by s p^(-1/6) times a Tracy-Widom variable (beta = 1), whose 99 %
    quantile is 2.02; at small p that is a little too much (simulated: passed in 0.2 % to 0.7 % of
    draws, p = 1 to 100).

    Other laws are simulated, up to 300 columns; above, edges are known, with a Tracy-Widom variable
    beyond. Semicircle, for independent entries and ``k-norm``. A centred Wishart matrix of m
    degrees of freedom: s (p ± 2 sqrt(m p)) / sqrt(m), with the corrections of Johnstone (2001); at
    few degrees of freedom, -s sqrt(m) below, where the matrix would be singular.
    ``matrix-laplace``: the free difference of two Marchenko-Pastur laws of ratio 1, that of the R
    transform 2 z / (1 - z^2), whose edge is 3.330 p s / sqrt(2 (p + 1)). Noise on rows:
    the mean extremes of a few draws, and a margin of 4.5 deviations of what they are where one
    column has all power: E_00 / 2 ± |E_0|, with 3/8 of the variance of E_00. Else they vary by
    about as much where rows are few, and less where they are many.
    """
    p = raw.shape[0]
    variance = law.cell_variance
    if law.family == "noisy-rows" and variance is not None and rows is not None:
        pure = _of_noisy_rows(repaired, variance, max(1, round(rows)))
    elif law.family in {"gaussian-isotropic", "noisy-rows"}:
        pure = _semicircle(p).times(law.sd_off_diagonal)
    else:
        pure = _of_family(law.family, p, law.dof).times(law.sd_off_diagonal)
    released, shrunk = (np.linalg.eigvalsh(m)[::-1].astype(np.float64) for m in (raw, repaired))
    return Spectrum(released, shrunk, pure.values, pure.lower, pure.upper)


def semicircle_quantiles(p: int) -> Array:
    """Quantiles (k - 1/2)/p of the semicircle law on [-1, 1], largest first; shape (p,)."""
    x = np.sin(np.linspace(-math.pi / 2, math.pi / 2, 4001))
    below = 0.5 + (x * np.sqrt(1 - x * x) + np.arcsin(x)) / math.pi
    quantiles: Array = np.interp((np.arange(p, 0, -1) - 0.5) / p, below, x)
    return quantiles


def _semicircle(p: int) -> Pure:
    """Of a GOE matrix with unit deviations off the diagonal."""
    edge = 2 * math.sqrt(p) + _TRACY_WIDOM_99 * p ** (-1 / 6)
    return Pure(2 * math.sqrt(p) * semicircle_quantiles(p), -edge, edge)


@lru_cache(maxsize=64)
def _of_family(family: Family, p: int, dof: float | None) -> Pure:
    """Of a law that does not depend on the data, with unit deviations off the diagonal."""
    law = NoiseLaw(
        family=family,
        sd_diagonal=1.0 if family in _UNIT_DIAGONAL else math.sqrt(2),
        sd_off_diagonal=1.0,
        dof=dof,
    )
    symmetric = family != "wishart"
    if p <= SIMULATED_UP_TO:
        source = stream()
        return _simulated(lambda: draw(source, p, law), _draws(p), symmetric)
    if dof is None:
        return _semicircle(p)
    if symmetric:
        edge = (3.3302 * p + _TRACY_WIDOM_99 * 2.508 * p ** (1 / 3)) / math.sqrt(2 * (p + 1))
        return Pure(_shape(law, p), -edge, edge)
    return Pure(_shape(law, p), *_wishart_edges(p, dof))


def _wishart_edges(p: int, dof: float) -> tuple[float, float]:
    """Of a centred Wishart matrix with unit deviations off the diagonal."""

    def edge(sign: int) -> float:
        root = math.sqrt(dof - 1) + sign * math.sqrt(p)
        width = root * math.cbrt(1 / math.sqrt(p) + sign / math.sqrt(dof - 1))
        return (root**2 + sign * _TRACY_WIDOM_99 * width - dof) / math.sqrt(dof)

    return edge(-1) if dof > 2 * p else -math.sqrt(dof), edge(1)


def _shape(law: NoiseLaw, p: int) -> Array:
    """Eigenvalues of a Wishart law for many columns: those of fewer columns, stretched."""
    few, source = SIMULATED_UP_TO, stream()
    smaller = law.model_copy(update={"dof": (law.dof or math.nan) * few / p})
    found = np.mean(
        [np.linalg.eigvalsh(draw(source, few, smaller)) for _ in range(_PURE_DRAWS)], axis=0
    )
    at, known = (np.arange(p) + 0.5) / p, (np.arange(few) + 0.5) / few
    stretched: Array = np.interp(at, known, found)[::-1] * math.sqrt(p / few)
    return stretched


def _of_noisy_rows(moment: Array, variance: float, rows: int) -> Pure:
    p, source, like = len(moment), stream(), rows_like(moment, rows)

    def make() -> Array:
        return of_rows(source, like, variance, rows)

    if p <= SIMULATED_UP_TO:
        return _simulated(make, _draws(p), False)
    found = np.mean([np.linalg.eigvalsh(make()) for _ in range(_PURE_DRAWS)], axis=0)
    power = float(np.diag(moment).max())
    noisiest = (4 * power * variance + 2 * variance**2) / rows  # variance of a diagonal entry
    margin = 4.5 * math.sqrt(3 / 8 * noisiest)
    return Pure(found[::-1], float(found[0]) - margin, float(found[-1]) + margin)


def _draws(p: int) -> int:
    """How many matrices to draw, within a second or so."""
    return min(_MOST_DRAWS, max(_FEWEST_DRAWS, int(_MOST_DRAWS * (30 / p) ** 1.8)))


def _simulated(make: Callable[[], Array], draws: int, symmetric: bool) -> Pure:
    """From draws of the noise; `symmetric` where the noise and its negative have one law."""
    found = np.array([np.linalg.eigvalsh(make()) for _ in range(draws)])
    if symmetric:
        found = np.concatenate([found, -found[:, ::-1]])
    lower, upper = -_high(-found[:, 0], draws), _high(found[:, -1], draws)
    return Pure(found.mean(axis=0)[::-1], lower, upper)


def _high(extremes: Iterable[float], draws: int) -> float:
    """Passed in half a percent; by 3.3 deviations from few draws, which know them badly."""
    seen = np.asarray(extremes)
    if draws >= _ENOUGH:
        return float(np.quantile(seen, 0.995))
    return float(seen.mean() + 3.3 * seen.std())
