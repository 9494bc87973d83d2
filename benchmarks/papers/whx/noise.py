"""The noise of the slides at the printed scales, and the noise of Gramercy's mechanisms.

Except for output perturbation, the noise is added to the second moment S = G / n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.graphs.releases import isotropic as isotropic_release
from benchmarks.utility.matrices import goe, triangle
from gramercy.estimators.noise.denoise import denoise
from gramercy.mechanisms import registry
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.wishart import Wishart
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.noise import NoiseLaw

PENALTY = 0.005  # rho; the slides do not state it
DELTA = 1e-6  # for the experiments at an exact guarantee


def wishart(rng: Rng, p: int, dof: int, scale: float) -> Array:
    """Draw W_p(dof, scale I)."""
    drawn = rng.standard_normal((p, dof))
    made: Array = scale * drawn @ drawn.T
    return made


def delta_of(n: int) -> float:
    """Delta for n rows: 1 / n, as in [WX] by the same authors; the slides do not state it."""
    return 1 / n


def laplace_scale(n: int, p: int, epsilon: float) -> float:
    return 2 * p / (n * epsilon)


def gaussian_scale(n: int, epsilon: float) -> float:
    return math.sqrt(2 * math.log(1.25 / delta_of(n))) / (n * epsilon)


def freedom(n: int, p: int, epsilon: float) -> float:
    """Degrees of freedom of the Wishart matrix of Table 2."""
    return p + 14 / epsilon**2 * math.log(4 / delta_of(n))


def _pure(rng: Rng, n: int, p: int, epsilon: float) -> Array:
    return wishart(rng, p, p + 1, 1.5 / (n * epsilon))


def _approximate(rng: Rng, n: int, p: int, epsilon: float) -> Array:
    return wishart(rng, p, round(freedom(n, p, epsilon)), 1 / n)


def _laplace(rng: Rng, n: int, p: int, epsilon: float) -> Array:
    return triangle(lambda of: rng.laplace(0, laplace_scale(n, p, epsilon), of), p)


def _gaussian(rng: Rng, n: int, p: int, epsilon: float) -> Array:
    return triangle(lambda of: rng.normal(0, gaussian_scale(n, epsilon), of), p)


def _laplace_exact(rng: Rng, n: int, p: int, epsilon: float) -> Array:
    return triangle(lambda of: rng.laplace(0, scale("laplace", p, epsilon) / n, of), p)


def _gaussian_exact(rng: Rng, n: int, p: int, epsilon: float) -> Array:
    sd = scale("gaussian-iid", p, epsilon, delta_of(n)) / n
    return triangle(lambda of: rng.normal(0, sd, of), p)


Draw = Callable[[Rng, int, int, float], Array]
PUBLISHED: dict[str, Draw] = {
    "wishart": _pure,
    "laplace": _laplace,
    "wishart-approximate": _approximate,
    "gaussian": _gaussian,
}
EXACT: dict[str, Draw] = {"laplace-exact": _laplace_exact, "gaussian-exact": _gaussian_exact}


def output_scale(n: int, p: int, epsilon: float) -> float:
    """Scale of the Wishart matrix that Algorithm 1 adds to the solution."""
    return float(p**2.5 / (n * epsilon * PENALTY**2))


@lru_cache
def scale(name: str, p: int, epsilon: float, delta: float | None = None) -> float:
    """Scale of Gramercy's mechanism on the Gram matrix (replace-one), independent of the rows."""
    made = registry[name].calibrated(
        p=p, n=1000, neighbours=Neighbours.REPLACE_ONE, epsilon=epsilon, delta=delta
    )
    return float(made.constants()["scale"])


def matrix_laplace(rows: Array, epsilon: float, rng: Rng) -> Evidence:
    """Release by matrix Laplace noise, W - W' with independent W_p(p + 1, s I): pure epsilon."""
    n, p = rows.shape
    s = scale("matrix-laplace", p, epsilon) / n
    noise = wishart(rng, p, p + 1, s) - wishart(rng, p, p + 1, s)
    sd = s * math.sqrt(2 * (p + 1))
    return _released(
        rows,
        noise,
        NoiseLaw(
            family="matrix-laplace",
            sd_diagonal=math.sqrt(2) * sd,
            sd_off_diagonal=sd,
            dof=p + 1.0,
        ),
    )


def k_norm(rows: Array, epsilon: float, rng: Rng) -> Evidence:
    """Release by K-norm noise, a uniform direction in svec and a Gamma length: pure epsilon."""
    n, p = rows.shape
    s, dimension = scale("k-norm", p, epsilon) / n, p * (p + 1) // 2
    direction = goe(rng, p, 1.0)
    noise = direction * (rng.gamma(dimension, s) / np.linalg.norm(direction))
    sd = s * math.sqrt(dimension + 1)
    law = NoiseLaw(family="k-norm", sd_diagonal=sd, sd_off_diagonal=sd / math.sqrt(2))
    return _released(rows, noise, law)


def isotropic(rows: Array, epsilon: float, rng: Rng, delta: float = DELTA) -> Evidence:
    """Release by Gramercy's default mechanism, white noise in svec."""
    if delta == DELTA:
        return isotropic_release(rows, epsilon, rng)
    return _isotropic(rows, scale("gaussian", rows.shape[1], epsilon, delta), rng)


def isotropic_at(rows: Array, mu: float, rng: Rng) -> Evidence:
    """The same mechanism with exactly this mu."""
    made = Gaussian.calibrated(
        p=rows.shape[1], n=len(rows), neighbours=Neighbours.REPLACE_ONE, mu=mu, delta=DELTA
    )
    return _isotropic(rows, made.scale, rng)


def _isotropic(rows: Array, scale_of_sum: float, rng: Rng) -> Evidence:
    n, p = rows.shape
    sd = scale_of_sum / n
    law = NoiseLaw(family="gaussian-isotropic", sd_diagonal=sd, sd_off_diagonal=sd / math.sqrt(2))
    return _released(rows, goe(rng, p, sd), law)


def wishart_exact(rows: Array, epsilon: float, rng: Rng) -> Evidence:
    """Release by the paper's Wishart noise at the exact (epsilon, delta), without its mean."""
    n, p = rows.shape
    made = _wishart(p, epsilon)
    # Bartlett's decomposition, because the degrees of freedom are many and not an integer.
    factor = np.tril(rng.standard_normal((p, p)), -1)
    np.fill_diagonal(factor, np.sqrt(rng.chisquare(made.dof - np.arange(p))))
    noise = (factor @ factor.T - made.dof * np.eye(p)) * (made.scale / n)
    sd = made.sd_diagonal / n
    law = NoiseLaw(
        family="wishart", sd_diagonal=sd, sd_off_diagonal=sd / math.sqrt(2), dof=made.dof
    )
    return _released(rows, noise, law)


@lru_cache
def _wishart(p: int, epsilon: float) -> Wishart:
    """Return the Wishart mechanism; its scale on the Gram matrix is independent of the rows."""
    return Wishart.calibrated(
        p=p, n=1000, neighbours=Neighbours.REPLACE_ONE, epsilon=epsilon, delta=DELTA
    )


def independent_laplace(rows: Array, b: float, rng: Rng) -> Evidence:
    """Release with Laplace noise of scale b on every entry of the second moment; not repaired."""
    noise = triangle(lambda of: rng.laplace(0, b, of), rows.shape[1])
    sd = math.sqrt(2) * b
    law = NoiseLaw(family="laplace", sd_diagonal=sd, sd_off_diagonal=sd)
    return _released(rows, noise, law)


def _released(rows: Array, noise: Array, law: NoiseLaw) -> Evidence:
    n = len(rows)
    raw = rows.T @ rows / n + noise
    return Evidence(raw, denoise(raw, law, 1.0, float(n)), law, float(n))
