"""Linear hypotheses about the coefficients of a regression: from texts, and their joint test.

The joint test of L b = r allows for bias as the single ones do: the estimate d = L b - r may be off
by any vector within the bounds of its parts. With the covariances N of the noise and S of sampling,
the p-value is the least alpha at which no such d' satisfies

d'^T (h S + c N)^-1 d' <= 1,

where c is the quantile 1 - alpha of the square of q noise variables, and h that of q F(q, f) for f
degrees of freedom; with folds, S is estimated entry by entry, and h is that of Hotelling's T^2:
q f / (f - q + 1) times that of F(q, f - q + 1). There c is at least h for q > 1, because with few
folds S may be too small in some direction: with c alone, a size of 0.05 was 0.1. With folds and
q = 1 this is `uncertainty.jackknife.squared_reaches`, so that a single hypothesis has one p-value.

Hotelling (1931), "The generalization of Student's ratio".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import betaincinv

from gramercy.estimators.linear.formula import uncoded
from gramercy.estimators.linear.least_squares import Regression
from gramercy.estimators.uncertainty.tails import squared_length_quantile
from gramercy.schemas import families

Array = NDArray[np.float64]

_LEAST_P, _BISECTIONS = 1e-100, 32  # of p-values; bisections of their logarithm
_NEGLIGIBLE = 1e-12  # eigenvalues below this share of the largest one are zero


class Hypotheses(NamedTuple):
    """Hypotheses L b = r."""

    linear: Array  # L, shape (q, 1 + k)
    values: Array  # r, shape (q,)
    texts: tuple[str, ...]  # as an analyst states them, one each


def read_hypotheses(text: str, terms: Mapping[str, Sequence[str]]) -> Hypotheses:
    """Hypotheses such as ``a = b, c = 0`` or ``2 * a + b = 1``.

    `terms`: the coefficients in order, each with the names that it may have. Raises RequestError
    if it cannot be read, or names another term.
    """
    from formulaic.errors import FormulaicError  # takes half a second to import
    from formulaic.utils.constraints import LinearConstraints

    numbers = {plain_term(name): k for k, names in enumerate(terms.values()) for name in names}
    longest_first = sorted(numbers, key=len, reverse=True)
    names = "|".join(map(re.escape, longest_first))
    pattern = re.compile(rf"`({names})`|(?<![\w.`])({names})(?![\w`])")
    plain = pattern.sub(lambda found: f" t{numbers[found[1] or found[2]]}_ ", plain_term(text))
    parts = [part.strip() for part in plain.split(",")]
    own = [f"t{k}_" for k in range(len(terms))]
    try:
        if any(part.count("=") > 1 for part in parts):
            raise KeyError
        found = LinearConstraints.from_spec(", ".join(parts), variable_names=own)
        linear = np.array(found.constraint_matrix, dtype=np.float64)
        values = np.array(found.constraint_values, dtype=np.float64)
    except (FormulaicError, KeyError, RuntimeError, ValueError, TypeError):
        linear = np.zeros((0, len(terms)))
    if not len(linear) or not linear.any(axis=1).all():
        raise families.ANALYSIS(
            "The hypothesis '{hypothesis}' cannot be read.",
            "Write 'a = b, c = 0', with the terms {terms}.",
            hypothesis=text,
            terms=tuple(terms),
        )
    labels = list(terms)
    shown = (re.sub(r" ?t(\d+)_ ?", lambda m: f" {labels[int(m[1])]} ", part) for part in parts)
    return Hypotheses(linear, values, tuple(" ".join(each.split()) for each in shown))


def names_of_level(column: str, level: str) -> Iterator[str]:
    """What statsmodels calls the term of a level, once `uncoded` has removed ``C()``."""
    yield f"{column}[T.{level}]"
    yield f"`{column}`[T.{level}]"


def plain_term(text: str) -> str:
    """A text without the wrappers that formulas have around names, for comparisons."""
    text = uncoded(text.replace("np.", "")).replace("**", "^")
    return re.sub(r"\s*([\^:])\s*", r"\1", re.sub(r"\bI\(([^()]*)\)", r"\1", text)).strip()


class JointTest(NamedTuple):
    """A joint test of hypotheses, by F; NaN where a combination of coefficients is unknown."""

    statistic: float  # F, which is smaller than usual where coefficients may be biased
    pvalue: float  # of all hypotheses together; it allows for bias
    df_num: int  # number of hypotheses, the rank of L
    df_denom: float  # of the denominator; with folds, of Hotelling's law
    hypotheses: tuple[str, ...] = ()  # what is tested, as text

    @property
    def fvalue(self) -> float:
        """The statistic."""
        return self.statistic

    def __repr__(self) -> str:
        p_value = "< 0.001" if self.pvalue < 0.001 else f"= {self.pvalue:.3g}"
        found = f"F = {self.statistic:.4g}, p {p_value}"
        found = "unknown" if math.isnan(self.pvalue) else found
        return (
            f"F test of {', '.join(self.hypotheses)}: {found}, df_num = {self.df_num}, "
            f"df_denom = {self.df_denom:,.0f}"
        )


def joint_test(result: Regression | None, linear: Array, values: Array) -> JointTest:
    """Test L b = r. `linear`, `values`: L, of shape (q, 1 + k), and r."""
    rank = int(np.linalg.matrix_rank(linear))
    if result is None or rank == 0:
        return JointTest(np.nan, np.nan, rank, np.nan)
    combined = result.transformed(linear)
    freedom = result.freedom - (rank - 1 if result.by_folds else 0)
    if rank < len(linear) or not combined.known.all() or freedom <= 0:
        return JointTest(np.nan, np.nan, rank, max(freedom, 0.0))
    size = np.hypot(combined.noise_error, combined.sampling_error)
    if not (size > 0).all():
        return JointTest(np.nan, np.nan, rank, freedom)
    distance, bias = (combined.coefficients - values) / size, combined.bias / size
    noise, sampling = (
        _semidefinite(each / np.outer(size, size))
        for each in (combined.by_noise, combined.by_sampling)
    )
    shape = float(combined.shape.min())

    def square(of_sampling: float, of_noise: float) -> float:
        return _least_square(distance, bias, of_sampling * sampling + of_noise * noise)

    least, most = math.log(_LEAST_P), 0.0
    for _ in range(_BISECTIONS):
        middle = (least + most) / 2
        alpha = math.exp(middle)
        below = float(betaincinv(freedom / 2, rank / 2, alpha))
        hotelling = result.freedom * (1 / below - 1) if below > 0 else math.inf
        of_noise = squared_length_quantile(alpha, rank, shape)
        if result.by_folds and rank > 1:
            of_noise = max(of_noise, hotelling)
        quantiles = np.array([hotelling, of_noise])
        inside = bool(np.isinf(quantiles).any()) or (
            bool((quantiles > 0).all()) and square(*quantiles) <= 1
        )
        least, most = (middle, most) if inside else (least, middle)
    statistic = square(1.0, 1.0) / rank
    if result.by_folds:
        statistic *= freedom / result.freedom  # of Hotelling's T^2
    return JointTest(statistic, math.exp(most), rank, freedom)


def _semidefinite(matrix: Array) -> Array:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    nearest: Array = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return nearest


def _least_square(distance: Array, bias: Array, covariance: Array) -> float:
    """The least d^T V^-1 d where d is within `bias` of `distance`, elementwise."""
    values, vectors = np.linalg.eigh(covariance)
    roots = np.sqrt(np.maximum(values, _NEGLIGIBLE * values.max()))
    whitened = (vectors / roots).T
    moved = whitened @ distance
    if bias.max() > _NEGLIGIBLE:
        bounds = np.maximum(bias, _NEGLIGIBLE)
        found = scipy.optimize.lsq_linear(whitened, moved, (-bounds, bounds), method="bvls")
        return float(2 * found.cost)
    return float(moved @ moved)
