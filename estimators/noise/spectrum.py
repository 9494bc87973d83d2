"""Eigenvalues of a release, compared with those of its noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.denoise import SIMULATED_UP_TO
from gramercy.estimators.noise.draws import draw, draw_row_noise, equivalent_rows, stream
from gramercy.schemas.noise import Family, NoiseLaw

Array = NDArray[np.float64]

_TRACY_WIDOM_99 = 2.0234
_MOST_DRAWS, _FEWEST_DRAWS, _ENOUGH = 2000, 30, 1000
_LARGE_DRAWS = 4  # number of draws above `SIMULATED_UP_TO` columns
_UNIT_DIAGONAL: tuple[Family, ...] = ("gaussian-iid", "laplace")


@dataclass(frozen=True)
class NoiseSpectrum:
    """Eigenvalues of noise alone."""

    values: Array  # expected eigenvalues, largest first; shape (p,)
    # all eigenvalues are within these bounds with probability 99 %
    lower: float
    upper: float

    def scaled(self, factor: float) -> NoiseSpectrum:
        """Eigenvalues of the noise times a number."""
        return NoiseSpectrum(self.values * factor, self.lower * factor, self.upper * factor)


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of a release, before and after denoising, and of its noise."""

    # eigenvalues before and after denoising, largest first; shape (p,)
    released: Array
    repaired: Array
    noise: Array  # expected eigenvalues of the noise alone, largest first; shape (p,)
    # eigenvalues of the noise alone are within these bounds with probability 99 %
    lower: float
    upper: float

    @property
    def above_noise(self) -> int:
        """Number of eigenvalues above the noise."""
        return int((self.released > self.upper).sum())


def spectrum(raw: Array, repaired: Array, law: NoiseLaw, rows: float | None = None) -> Spectrum:
    """Eigenvalues of a released matrix, of its denoised form, and of its noise.

    `raw`, `repaired`: shape (p, p), symmetric. `law`: noise law of `raw`. `rows`: number of rows.
    Noise on rows depends on the rows, and is simulated for `repaired`; if `rows` is None, its
    nominal standard deviations are used.

    A p x p GOE matrix (``gaussian-isotropic``) with deviation s off the diagonal has a spectrum
    on [-2 s sqrt(p), 2 s sqrt(p)] by Wigner's semicircle law; `noise` has its quantiles. The
    largest eigenvalue exceeds the edge by s p^(-1/6) times a Tracy-Widom variable (beta = 1), whose
    99 % quantile is 2.02; for small p this is conservative (simulated: exceeded in 0.2 % to 0.7 %
    of draws, p = 1 to 100).

    Other laws are simulated, up to 300 columns; above, the edges are known, plus a Tracy-Widom
    variable. Independent entries and ``k-norm``: semicircle. A centred Wishart matrix of m degrees
    of freedom: s (p ± 2 sqrt(m p)) / sqrt(m), with the corrections of Johnstone (2001); with few
    degrees of freedom the lower edge is -s sqrt(m), where the matrix would be singular.
    ``matrix-laplace``: the free difference of two Marchenko-Pastur laws of ratio 1, with the R
    transform 2 z / (1 - z^2), whose edge is 3.330 p s / sqrt(2 (p + 1)). Noise on rows: the mean
    extremes of a few draws, and a margin of 4.5 of their standard deviations in the case that one
    column has all the variance: E_00 / 2 ± |E_0|, with 3/8 of the variance of E_00. In other cases
    they vary by about as much with few rows, and less with many.
    """
    p = raw.shape[0]
    variance = law.cell_variance
    if law.family == "noisy-rows" and variance is not None and rows is not None:
        noise = _row_noise_spectrum(repaired, variance, max(1, round(rows)))
    elif law.family in {"gaussian-isotropic", "noisy-rows"}:
        noise = _semicircle(p).scaled(law.sd_off_diagonal)
    else:
        noise = _unit_spectrum(law.family, p, law.dof).scaled(law.sd_off_diagonal)
    released, shrunk = (np.linalg.eigvalsh(m)[::-1].astype(np.float64) for m in (raw, repaired))
    return Spectrum(released, shrunk, noise.values, noise.lower, noise.upper)


def semicircle_quantiles(p: int) -> Array:
    """Quantiles (k - 1/2)/p of the semicircle law on [-1, 1], largest first; shape (p,)."""
    x = np.sin(np.linspace(-math.pi / 2, math.pi / 2, 4001))
    below = 0.5 + (x * np.sqrt(1 - x * x) + np.arcsin(x)) / math.pi
    return np.interp((np.arange(p, 0, -1) - 0.5) / p, below, x)


def _semicircle(p: int) -> NoiseSpectrum:
    """Spectrum of a GOE matrix with unit standard deviation off the diagonal."""
    edge = 2 * math.sqrt(p) + _TRACY_WIDOM_99 * p ** (-1 / 6)
    return NoiseSpectrum(2 * math.sqrt(p) * semicircle_quantiles(p), -edge, edge)


@lru_cache(maxsize=64)
def _unit_spectrum(family: Family, p: int, dof: float | None) -> NoiseSpectrum:
    """Spectrum of a law that does not depend on the data, with unit scale off the diagonal."""
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
        return NoiseSpectrum(_stretched_quantiles(law, p), -edge, edge)
    return NoiseSpectrum(_stretched_quantiles(law, p), *_wishart_edges(p, dof))


def _wishart_edges(p: int, dof: float) -> tuple[float, float]:
    """Edges of a centred Wishart matrix with unit standard deviation off the diagonal."""

    def edge(sign: int) -> float:
        root = math.sqrt(dof - 1) + sign * math.sqrt(p)
        width = root * math.cbrt(1 / math.sqrt(p) + sign / math.sqrt(dof - 1))
        return (root**2 + sign * _TRACY_WIDOM_99 * width - dof) / math.sqrt(dof)

    return edge(-1) if dof > 2 * p else -math.sqrt(dof), edge(1)


def _stretched_quantiles(law: NoiseLaw, p: int) -> Array:
    """Eigenvalues of a Wishart law for many columns: those for fewer columns, stretched."""
    few, source = SIMULATED_UP_TO, stream()
    smaller = law.model_copy(update={"dof": (law.dof or math.nan) * few / p})
    simulated = np.mean(
        [np.linalg.eigvalsh(draw(source, few, smaller)) for _ in range(_LARGE_DRAWS)], axis=0
    )
    wanted, levels = (np.arange(p) + 0.5) / p, (np.arange(few) + 0.5) / few
    return np.interp(wanted, levels, simulated)[::-1] * math.sqrt(p / few)


def _row_noise_spectrum(moment: Array, variance: float, rows: int) -> NoiseSpectrum:
    p, source, like = len(moment), stream(), equivalent_rows(moment, rows)

    def draw_one() -> Array:
        return draw_row_noise(source, like, variance, rows)

    if p <= SIMULATED_UP_TO:
        return _simulated(draw_one, _draws(p), False)
    mean = np.mean([np.linalg.eigvalsh(draw_one()) for _ in range(_LARGE_DRAWS)], axis=0)
    power = float(np.diag(moment).max())
    noisiest = (4 * power * variance + 2 * variance**2) / rows  # variance of a diagonal entry
    margin = 4.5 * math.sqrt(3 / 8 * noisiest)
    return NoiseSpectrum(mean[::-1], float(mean[0]) - margin, float(mean[-1]) + margin)


def _draws(p: int) -> int:
    """Number of matrices to draw in about a second."""
    return min(_MOST_DRAWS, max(_FEWEST_DRAWS, int(_MOST_DRAWS * (30 / p) ** 1.8)))


def _simulated(draw_one: Callable[[], Array], draws: int, symmetric: bool) -> NoiseSpectrum:
    """Spectrum from draws; `symmetric` if the noise and its negative have the same law."""
    values = np.array([np.linalg.eigvalsh(draw_one()) for _ in range(draws)])
    if symmetric:
        values = np.concatenate([values, -values[:, ::-1]])
    lower, upper = -_upper_bound(-values[:, 0], draws), _upper_bound(values[:, -1], draws)
    return NoiseSpectrum(values.mean(axis=0)[::-1], lower, upper)


def _upper_bound(extremes: Iterable[float], draws: int) -> float:
    """The 99.5 % quantile; from few draws, the mean plus 3.3 standard deviations."""
    sample = np.asarray(extremes)
    if draws >= _ENOUGH:
        return float(np.quantile(sample, 0.995))
    return float(sample.mean() + 3.3 * sample.std())
