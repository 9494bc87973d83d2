"""The theorems of the five papers, a line each, in the setting that they assume.

Rows have length one, as every paper assumes: correlated normal columns in pairs, divided by the
length of the row. Then the second moment of the population is known, and exactly sparse: it has
one entry off the diagonal per row. Delta is fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.graphs.releases import DELTA, scale
from benchmarks.graphs.truths import of_unit_rows
from benchmarks.papers import thresholding
from benchmarks.papers.experiment import Figures
from benchmarks.papers.rates import Theorem
from benchmarks.papers.whx import noise as whx
from benchmarks.utility.matrices import triangle
from gramercy.estimators.ridge import ridge_precision
from gramercy.estimators.solvers.glasso import graphical_lasso
from gramercy.schemas.errors import RequestError

CORRELATION = 0.5
CHUNK = 200_000  # rows drawn at a time
L = math.log(1 / DELTA)
Norm = Callable[[Array], float]


@lru_cache
def population(p: int, correlation: float = CORRELATION) -> tuple[Array, Array]:
    """The second moment of the rows, and the root of the covariance before normalisation."""
    pairs = np.equal.outer(np.arange(p) // 2, np.arange(p) // 2)
    covariance = correlation * pairs + (1 - correlation) * np.eye(p)
    moment = of_unit_rows(covariance)
    root = np.asarray(np.linalg.cholesky(covariance), np.float64)
    return np.where(pairs, moment, 0.0), root


def drawn(n: int, p: int, rng: Rng, correlation: float = CORRELATION) -> Array:
    """The second moment of n drawn rows."""
    root, result = population(p, correlation)[1], np.zeros((p, p))
    for start in range(0, n, CHUNK):
        rows = rng.standard_normal((min(CHUNK, n - start), p)) @ root.T
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        result += rows.T @ rows
    return result / n


def spectral(matrix: Array) -> float:
    return float(np.abs(np.linalg.eigvalsh(matrix)).max())


def frobenius(matrix: Array) -> float:
    return float(np.linalg.norm(matrix))


def per_root(matrix: Array) -> float:
    return frobenius(matrix) / math.sqrt(len(matrix))


def _classical(epsilon: float, variance: float = 2) -> float:
    """The published deviation on the sum of the rows."""
    return math.sqrt(variance * math.log(1.25 / DELTA)) / epsilon


def _thresholded(
    rng: Rng, n: int, p: int, epsilon: float, *,
    constant: float, norm: Norm, variance: float = 2, local: bool = False, relative: bool = False,
) -> Figures:  # fmt: skip
    """Threshold with the constant that the proofs ask for, over p: the scale of a cell squared."""
    truth, sample = population(p)[0], drawn(n, p, rng)
    size = norm(truth) if relative else 1.0
    figures: Figures = {}
    for name, deviation in (
        ("sound", scale("gaussian-iid", p, epsilon)),
        ("published", _classical(epsilon, variance)),
    ):
        sd = deviation / (math.sqrt(n) if local else n)
        noisy = sample + thresholding.noise(p, sd, rng)
        made = thresholding.estimate(noisy, thresholding.threshold(constant / p, n, p, sd))
        off = made - np.diag(np.diagonal(made))
        figures |= {name: norm(made - truth) / size, f"{name} empty": not off.any()}
    return figures


def _estimated(make: Callable[[], Array], wanted: Array) -> float:
    """Frobenius error; NaN if the estimate does not exist."""
    try:
        return frobenius(make() - wanted)
    except RequestError:
        return math.nan


def _lasso(matrix: Array, penalty: float) -> Array:
    return graphical_lasso(matrix, penalty, penalize_diagonal=True).precision


def _precision(
    rng: Rng, n: int, p: int, epsilon: float, *,
    correlation: float = CORRELATION, ridge: bool = False,
) -> Figures:  # fmt: skip
    """Error of both algorithms of [SGZ] against the inverse of the population's moment."""
    wanted = np.asarray(np.linalg.inv(population(p, correlation)[0]), np.float64)
    sample = drawn(n, p, rng, correlation)
    figures: Figures = {}
    for name, deviation in (
        ("sound", scale("gaussian-iid", p, epsilon)),
        ("published", _classical(epsilon, 4)),
    ):
        noisy = sample + thresholding.noise(p, deviation / n, rng)
        make = (
            partial(ridge_precision, noisy, 1 / n)
            if ridge
            else partial(_lasso, noisy, lasso_penalty(n, p, epsilon))
        )
        figures |= {name: _estimated(make, wanted), f"{name} empty": 0.0}
    return figures


def lasso_penalty(n: int, p: int, epsilon: float) -> float:
    """The penalty of Theorem 4.5, with the constant 1."""
    return p**2 * math.sqrt(L) / (epsilon * n) + math.sqrt(math.log(p) / n)


PENALTY = 0.002  # rho of [WHX]
Draw = Callable[[Rng, int, int, float], Array]


def _laplace(rng: Rng, n: int, p: int, epsilon: float) -> Array:
    return triangle(lambda of: rng.laplace(0, 2 * p / (n * epsilon), of), p)


def _laplace_exact(rng: Rng, n: int, p: int, epsilon: float) -> Array:
    return triangle(lambda of: rng.laplace(0, whx.scale("laplace", p, epsilon) / n, of), p)


def _gaussian(rng: Rng, n: int, p: int, epsilon: float) -> Array:
    return thresholding.noise(p, _classical(epsilon) / n, rng)


def _gaussian_exact(rng: Rng, n: int, p: int, epsilon: float) -> Array:
    return thresholding.noise(p, scale("gaussian-iid", p, epsilon) / n, rng)


def _wishart(rng: Rng, n: int, p: int, epsilon: float) -> Array:
    return whx.wishart(rng, p, p + 1, 1.5 / (n * epsilon))


def _wishart_approximate(rng: Rng, n: int, p: int, epsilon: float) -> Array:
    return whx.wishart(rng, p, round(p + 14 / epsilon**2 * math.log(4 / DELTA)), 1 / n)


def _output(rng: Rng, n: int, p: int, epsilon: float) -> Array:
    return whx.wishart(rng, p, p + 1, p**2.5 / (n * epsilon * PENALTY**2))


def _perturbed(
    rng: Rng, n: int, p: int, epsilon: float, *,
    published: Draw, sound: Draw | None = None, output: bool = False,
) -> Figures:  # fmt: skip
    """Distance of the private minimiser from the other, in the units of [WHX]'s theorems."""
    sample = drawn(n, p, rng)
    wanted = _lasso(sample, PENALTY)
    figures: Figures = {}
    for name, draw in (("sound", sound), ("published", published)):
        if draw is None:
            continue
        added = draw(rng, n, p, epsilon)
        error = frobenius(added) if output else math.nan
        if not output:
            try:
                made = _lasso(sample + added, PENALTY)
                error = frobenius(made - wanted) / max(spectral(made), spectral(wanted)) ** 2
            except RequestError:
                pass
        figures |= {name: error, f"{name} empty": 0.0}
    return figures


def _noisy_rows(rng: Rng, n: int, p: int, epsilon: float) -> Figures:
    """Distance of [GPP]'s minimiser on noisy rows from that on the rows."""
    sd, root = scale("rows", p, epsilon), population(p)[1]
    moments = np.zeros((2, p, p))
    for start in range(0, n, CHUNK):
        rows = rng.standard_normal((min(CHUNK, n - start), p)) @ root.T
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        noisy = rows + sd * rng.standard_normal(rows.shape)
        moments += np.stack([rows.T @ rows, noisy.T @ noisy])
    exact, noisy = moments / n
    debiased = noisy - sd**2 * np.eye(p)
    error = _estimated(partial(_lasso, debiased, PENALTY), _lasso(exact, PENALTY))
    return {"sound": error, "sound empty": 0.0}


_ROWS = (1_000, 4_000, 16_000, 64_000, 256_000)
_MANY = (4_000, 16_000, 64_000, 256_000, 1_024_000)
_MOST = (256_000, 1_024_000, 4_096_000, 16_384_000)
_COLUMNS = (8, 16, 32, 64)
_EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
_CENTRAL = {"n": _ROWS, "p": _COLUMNS, "epsilon": _EPSILONS}
_LOCAL = {"n": (50_000, 200_000, 800_000, 3_200_000), "p": (4, 8, 12), "epsilon": _EPSILONS}
_AT_LOCAL = {"n": 3_200_000, "p": 4, "epsilon": 1.0}
_AT_MANY = {"n": 1_024_000, "p": 8, "epsilon": 1.0}
_WX = 4.0  # gamma: Lemma 2 of the paper holds with equality
_LW = 4 * math.sqrt(2) / 3 * 2 * math.sqrt(3)  # theta: eta = 2, K = 3, M = 1
_VOID = (
    "Rows of length one have eigenvalues of about 1 / p. So the assumption that eigenvalues stay "
    "in [k, 1 / k] ends at p = 1 / k, and says nothing about more columns."
)

WX = {
    "Theorem 2": Theorem(
        "Theorem 2: E ||S+ - Sigma||_2^2 = O(s^2 log p log(1/delta) / (n epsilon^2)).",
        partial(_thresholded, constant=_WX, norm=spectral),
        _CENTRAL,
        bound=lambda n, p, epsilon: (math.sqrt(math.log(p) * L / n) / epsilon,),
        remark=(
            "The bound holds, but is not tight, which the paper leaves open: noise on one matrix "
            "falls like 1 / n, and from some n on epsilon does not matter, so the sample is not "
            "reduced from n to n epsilon^2. The published noise has no such guarantee under "
            "replace-one; it is too small by sqrt2."
        ),
    ),
    "claim on p": Theorem(
        "Claim of section 5: p affects the relative error only slightly, as sqrt(log p) does.",
        partial(_thresholded, constant=_WX, norm=spectral, relative=True),
        {"p": _COLUMNS},
        bound=lambda n, p, epsilon: (math.sqrt(math.log(p)),),
        remark=(
            "Errors relative to the norm of Sigma, as in the figures. That norm is about 1 / p for "
            "rows of length one, which the theorem hides: its bound is on the absolute error, "
            "which the zero matrix meets as well."
        ),
    ),
    "Theorem 3": Theorem(
        "Theorem 3, local: the same bound.",
        partial(_thresholded, constant=_WX, norm=spectral, local=True),
        _LOCAL,
        at=_AT_LOCAL,
        bound=lambda n, p, epsilon: (math.sqrt(math.log(p) * L / n) / epsilon,),
        remark=(
            "Where the threshold exceeds the entries off the diagonal, none is left, and the "
            "theorem is void: the error there is constant."
        ),
    ),
}


def _lw_bound(n: int, p: int, epsilon: float) -> tuple[float, ...]:
    return math.sqrt(math.log(p) / n), math.sqrt(L * math.log(p)) / (n * epsilon)


def _lw_local_bound(n: int, p: int, epsilon: float) -> tuple[float, ...]:
    return (math.sqrt(L * math.log(p) / n) / epsilon,)


_LW_LOCAL = partial(_thresholded, constant=_LW, local=True)
LW = {
    "Theorem 1 (i)": Theorem(
        "Theorem 1 (i), q = 0: ||S+ - Sigma||_2 <= C s (sqrt(log p / n) + "
        "sqrt(log(1/delta) log p) / (n epsilon)).",
        partial(_thresholded, constant=_LW, variance=4, norm=spectral),
        _CENTRAL,
        bound=_lw_bound,
    ),
    "Theorem 1 (ii)": Theorem(
        "Theorem 1 (ii), q = 0: ||S+ - Sigma||_F / sqrt p, with the same bound up to s.",
        partial(_thresholded, constant=_LW, variance=4, norm=per_root),
        _CENTRAL,
        bound=_lw_bound,
        remark=(
            "The text lost its square roots; read as in Bickel and Levina (2008), which the "
            "paper's case without privacy repeats."
        ),
    ),
    "Theorem 2 (i)": Theorem(
        "Theorem 2 (i), local, q = 0: ||S+ - Sigma||_2 <= C s sqrt(log(1/delta) log p / n) / "
        "epsilon.",
        partial(_LW_LOCAL, norm=spectral),
        _LOCAL,
        at=_AT_LOCAL,
        bound=_lw_local_bound,
    ),
    "Theorem 2 (ii)": Theorem(
        "Theorem 2 (ii), local, q = 0: ||S+ - Sigma||_F / sqrt p, with the same bound up to s.",
        partial(_LW_LOCAL, norm=per_root),
        _LOCAL,
        at=_AT_LOCAL,
        bound=_lw_local_bound,
        remark=(
            "With the threshold for the noise of the average. The one that is printed does not "
            "fall with n, and gives the zero matrix for every n: with it the theorem is false."
        ),
    ),
}
SGZ = {
    "Theorem 4.1": Theorem(
        "Theorem 4.1, ridge: E ||T - Theta||_F^2 converges to 0 for fixed p, if the penalty does.",
        partial(_precision, ridge=True),
        {"n": _MANY},
        at=_AT_MANY,
        promised="below 0",
        remark=(
            "Measured with the penalty 1 / n. For a penalty that falls faster than exp(-c n^2) "
            "the theorem is false: an eigenvalue of the noisy matrix is below -1 with a "
            "probability of at least exp(-c n^2), and the estimate then exceeds 1 / (2 penalty)."
        ),
    ),
    "Theorem 4.5": Theorem(
        "Theorem 4.5, graphical lasso: ||T - Theta||_F = O(p^2 sqrt(s log(1/delta)) / (n epsilon) "
        "+ sqrt(s log p / n)), s nonzero entries off the diagonal.",
        _precision,
        {"n": _MOST, "p": (4, 8, 16, 32), "epsilon": _EPSILONS},
        at=_AT_MANY,
        bound=lambda n, p, epsilon: (
            p**2.5 * math.sqrt(L) / (n * epsilon),
            math.sqrt(p * math.log(p) / n),
        ),
        remark=_VOID,
    ),
    "Theorem 4.5, s = 0": Theorem(
        "Theorem 4.5 with independent columns, s = 0: the bound is 0.",
        partial(_precision, correlation=0.0),
        {"n": _MANY, "p": (4, 8, 16, 32)},
        at=_AT_MANY,
        promised="no error",
        remark=(
            "False as stated: the diagonal has an error, too. Rothman et al. (2008), whose proof "
            "is followed, have p + s where the theorem has s."
        ),
    ),
}
_ON_MATRIX = {"n": _MANY, "p": _COLUMNS, "epsilon": _EPSILONS}
WHX = {
    "Algorithm 1": Theorem(
        "Algorithm 1, output perturbation: ||T' - T||_F <= O(d^4 log(d/delta') / (n epsilon "
        "rho^2)).",
        partial(_perturbed, published=_output, output=True),
        _ON_MATRIX,
        at=_AT_MANY,
        bound=lambda n, p, epsilon: (p**4 * math.log(p / 0.05) / (n * epsilon),),
        remark="The utility of noise without the guarantee that is claimed for it.",
    ),
    "Laplace": Theorem(
        "Laplace: ||T' - T||_F / max ||.||_2^2 <= O(d^2 / (n epsilon)).",
        partial(_perturbed, published=_laplace, sound=_laplace_exact),
        _ON_MATRIX,
        at=_AT_MANY,
        bound=lambda n, p, epsilon: (p**2 / (n * epsilon),),
        remark="Like all that follow, it presumes that the noisy problem has a minimiser.",
    ),
    "Wishart": Theorem(
        "Wishart: the same error <= O(log(d/delta') d^1.5 / (n epsilon)).",
        partial(_perturbed, published=_wishart),
        _ON_MATRIX,
        at=_AT_MANY,
        bound=lambda n, p, epsilon: (p**1.5 * math.log(p / 0.05) / (n * epsilon),),
        remark=(
            "The utility of noise without the guarantee that is claimed for it: no pure epsilon "
            "exists. So it cannot be compared with Laplace noise."
        ),
    ),
    "Wishart with delta": Theorem(
        "Wishart with delta: the same error <= O(log(1/delta) log(1/delta') d^1.5 / "
        "(n epsilon^2)).",
        partial(_perturbed, published=_wishart_approximate),
        _ON_MATRIX,
        at=_AT_MANY,
        bound=lambda n, p, epsilon: (p**1.5 * L / (n * epsilon**2),),
        remark=(
            "The degrees of freedom are d + 14 log(4/delta) / epsilon^2. With few columns, the "
            "second term is the noise, which grows like the root of d; at a large epsilon the "
            "first, which does not depend on epsilon."
        ),
    ),
    "Gaussian": Theorem(
        "Gaussian: the same error <= O(d sqrt(log(1/delta)) / (n epsilon)).",
        partial(_perturbed, published=_gaussian, sound=_gaussian_exact),
        _ON_MATRIX,
        at=_AT_MANY,
        bound=lambda n, p, epsilon: (p * math.sqrt(L) / (n * epsilon),),
        remark="The published noise is too small by sqrt2 under replace-one, which the slides use.",
    ),
}
GPP = {
    "Corollary 1": Theorem(
        "Corollary 1: the minimiser on noisy rows, their noise's variance subtracted, is the "
        "minimiser on the rows.",
        _noisy_rows,
        {"n": _MANY, "p": (4, 8, 16), "epsilon": (2.0, 4.0, 8.0, 16.0)},
        at={"n": 1_024_000, "p": 8, "epsilon": 8.0},
        promised="no error",
        remark=(
            "Theorem 4.3 says that the likelihood on noisy rows is unbiased, which is true: it is "
            "linear in the second moment, and the variance is subtracted. That its maximiser is "
            "the other one does not follow, and is false: two functions with equal means have "
            "different maximisers in every draw. The distance falls with n, as an error of "
            "estimation does. The paper states no other rate."
        ),
    ),
}
THEOREMS: dict[str, dict[str, Theorem]] = {"sgz": SGZ, "wx": WX, "lw": LW, "whx": WHX, "gpp": GPP}
