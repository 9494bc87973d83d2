"""Factor analysis by maximum likelihood, from noisy correlations.

With R the correlations of the release (those of `known_correlations`), the model is R = L F L^T + U
(see `solvers.factor_model`). Noise makes R indefinite, where the likelihood has no maximum. So the
model is fitted to R + t I, where t is what noise alone adds to eigenvalues (without noise, zero):
loadings stay the same, and uniquenesses are larger by t, which is subtracted again.

Errors are those of loadings from correlations that are simulated with the fitted model as the
truth, by the law of the noise and of sampling, each turned towards the estimate before it is
rotated. A factor is unknown if these are not alike: the median of their congruences is below .95;
and the smallest ones are, if more are asked for than eigenvalues are above the noise.

Yuan and Chan (2008), "Structural equation modeling with near singular covariance matrices" (t);
Horn (1965), "A rationale and test for the number of factors in factor analysis" (their number).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from gramercy.estimators.components import check_names, names_of_columns, wanted_columns
from gramercy.estimators.estimator import Estimate, Estimator, names_of
from gramercy.estimators.intervals import Level
from gramercy.estimators.known_correlations import KnownCorrelations
from gramercy.estimators.solvers.factor_model import (
    LEAST_UNIQUENESS,
    ROTATIONS,
    fit_factors,
    matched,
    most_factors,
    nearest_turn,
    ordered,
    varimax,
)
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.jackknife import describe_sampling
from gramercy.estimators.uncertainty.table_entries import table_deviations, table_means
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.manifest import ReleaseSpec

Array = NDArray[np.float64]
Rotation = Literal["varimax", "promax", "oblimin", "none"]

LEAST_CONGRUENCE = 0.95  # of known factors; see the module
_ROUGH = 1e-5  # precision of the fits of simulated correlations
_EDGE = 0.95
_ABOVE_BOUND = 1 + 1e-6  # of Heywood cases, relative


@dataclass(frozen=True)
class Factors:
    """m rotated factors of q columns, with the errors of simulated releases."""

    loadings: Array  # shape (q, m)
    correlations: Array  # of the factors, shape (m, m)
    uniqueness: Array  # shape (q,)
    loading_errors: Array
    correlation_errors: Array
    communality_errors: Array
    congruence: Array  # median of each factor, shape (m,)
    above: int  # number of eigenvalues above those of independent columns

    @property
    def communality(self) -> Array:
        """Share of each column's variance that the factors explain, shape (q,)."""
        found: Array = ((self.loadings @ self.correlations) * self.loadings).sum(axis=1)
        return found

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether each factor is separated from the others and from noise, shape (m,)."""
        known: NDArray[np.bool_] = self.congruence >= LEAST_CONGRUENCE
        return known & (np.arange(len(known)) < self.above)

    @property
    def weights(self) -> Array:
        """Weights of standardised columns in regression scores, shape (q, m)."""
        common = self.loadings @ self.correlations
        model = common @ self.loadings.T + np.diag(self.uniqueness)
        return np.asarray(np.linalg.solve(model, common), dtype=np.float64)


def fit_with_ridge(
    matrix: Array, number: int, ridge: float, start: Array | None = None
) -> tuple[Array, Array]:
    """Loadings and uniquenesses of R + t I, without t; `start`: uniquenesses, for a rough fit."""
    scale = 1 + ridge
    loadings, raised = fit_factors(
        (matrix + ridge * np.eye(len(matrix))) / scale,
        number,
        (LEAST_UNIQUENESS + ridge) / scale,
        *(() if start is None else ((start + ridge) / scale, _ROUGH)),
    )
    return loadings * np.sqrt(scale), raised * scale - ridge


def factors(known: KnownCorrelations, number: int, rotation: Rotation, above: int) -> Factors:
    """Factors of the columns in use; `number`: m, at least one; `above`: see `Factors`."""
    rotate, ridge = ROTATIONS[rotation], known.ridge
    unrotated, uniqueness = fit_with_ridge(known.matrix, number, ridge)
    target = unrotated if rotation == "none" else varimax(unrotated)[0]
    found = ordered(*rotate(target))
    model = unrotated @ unrotated.T
    np.fill_diagonal(model, 1.0)
    squares: list[Array] = [np.zeros_like(each) for each in (*found, uniqueness)]
    congruences = []
    for error, _ in known.errors(model):
        drawn, _ = fit_with_ridge(model + error, number, ridge, uniqueness)
        turned = drawn if rotation == "none" else nearest_turn(drawn, target)
        *again, congruence = matched(*rotate(turned), found[0])
        communality = (drawn**2).sum(axis=1) - (unrotated**2).sum(axis=1)
        differences = (again[0] - found[0], again[1] - found[1], communality)
        squares = [a + b**2 for a, b in zip(squares, differences, strict=True)]
        congruences.append(congruence)
    at_bound = uniqueness <= LEAST_UNIQUENESS * _ABOVE_BOUND  # their errors are not those of draws
    of_loadings, of_pairs, of_columns = (np.sqrt(each / len(congruences)) for each in squares)
    return Factors(
        *found,
        uniqueness,
        np.where(at_bound[:, None], np.nan, of_loadings),
        of_pairs,
        np.where(at_bound, np.nan, of_columns),
        np.median(congruences, axis=0),
        above,
    )


def parallel_analysis(known: KnownCorrelations) -> tuple[Array, Array]:
    """Eigenvalues, largest first, and those of 95 % of releases of independent columns."""
    values = np.asarray(np.linalg.eigvalsh(known.matrix)[::-1], dtype=np.float64)
    null = np.eye(len(values))
    drawn = [np.linalg.eigvalsh(null + error)[::-1] for error, _ in known.errors(null)]
    return values, np.asarray(np.quantile(drawn, _EDGE, axis=0), dtype=np.float64)


class FactorAnalysis(Estimator):
    """``factors``: factor analysis by maximum likelihood, with intervals of the loadings.

    Parameters
    ----------
    n_factors
        Number of factors. Default: as many as there are eigenvalues above those of independent
        columns with the same noise (parallel analysis).
    rotation
        ``varimax`` keeps factors uncorrelated; ``promax`` and ``oblimin`` do not; or ``none``.
    columns
        Names of columns of the table: a list, or a text with commas. Default: all numeric columns,
        or all columns if there are none.
    level
        Confidence level of the intervals.

    Notes
    -----
    Tables: ``loadings`` with intervals, and the ``weight`` of each standardised column in the
    scores, unknown (NaN) for factors that noise or sampling mixes with others; ``columns``, with
    communalities and uniquenesses, and whether the uniqueness is at its lower bound (a Heywood
    case, whose intervals are unknown); ``variance`` of each factor; ``factor_correlations``;
    ``eigenvalues``, with those of independent columns.

    Coverage of 95 % intervals in simulations: docs/analyses/factors.md.
    """

    name: Literal["factors"] = "factors"
    n_factors: Annotated[int, Field(strict=True, ge=1)] | None = None
    rotation: Rotation = "varimax"
    columns: Annotated[tuple[str, ...], BeforeValidator(names_of)] | None = None
    level: Level = 0.95

    def check(self, spec: ReleaseSpec) -> None:
        check_names(self.columns, tuple(column.name for column in spec.columns))

    def fit(self, evidence: Evidence) -> Estimate:
        """Raises RequestError if a column is unknown, or `n_factors` is too large for them."""
        known = KnownCorrelations.of(evidence, wanted_columns(evidence, self.columns))
        q = len(known.used)
        if self.n_factors is not None and self.n_factors > most_factors(q):
            raise families.ANALYSIS(
                "{columns} columns with a variance above the noise do not determine {factors} "
                "factors.",
                "Ask for at most {most}.",
                columns=q,
                factors=self.n_factors,
                most=most_factors(q),
            )
        values, edges = parallel_analysis(known) if q > 1 else (np.ones(q), np.ones(q))
        above = int(np.argmin(np.append(values > edges, False)))
        number = min(above, most_factors(q)) if self.n_factors is None else self.n_factors
        if number:
            found = factors(known, number, self.rotation, above)
        else:
            none, one = np.empty((q, 0)), np.ones(q)
            zero = np.empty((0, 0))
            found = Factors(none, zero, one, none, zero, 0 * one, np.empty(0), above)
        residual = known.matrix - found.loadings @ found.correlations @ found.loadings.T
        pairs = residual[np.triu_indices(q, 1)]
        tables = _Tables(evidence, known, found, known.quantile(self.level))
        return Estimate(
            "factors",
            {},
            {
                "level": self.level,
                "factors": float(number),
                "above_noise": float(above),
                "ridge": known.ridge,
                "residual": float(np.sqrt(np.mean(pairs**2))) if pairs.size else 0.0,
                "left_out": float(len(known.lost)),
            },
            {
                "eigenvalues": pd.DataFrame(
                    {
                        "number": np.arange(1, q + 1),
                        "eigenvalue": values,
                        "independent": edges,
                        "above_noise": _yes(np.arange(q) < above),
                    }
                ),
                "variance": tables.variance(),
                "loadings": tables.loadings(),
                "factor_correlations": tables.factor_correlations(),
                "columns": tables.columns(),
            },
        )


@dataclass(frozen=True)
class _Tables:
    evidence: Evidence
    known: KnownCorrelations
    found: Factors
    quantile: float

    @property
    def names(self) -> Array:
        return np.array(names_of_columns(self.evidence), dtype=object)

    def variance(self) -> pd.DataFrame:
        found = self.found
        sums = np.diag(found.correlations @ found.loadings.T @ found.loadings)
        sums = np.where(found.known, sums, np.nan)
        shares = sums / max(len(self.known.used), 1)
        return pd.DataFrame(
            {
                "factor": np.arange(1, len(sums) + 1),
                "ss_loadings": sums,
                "proportion": shares,
                "cumulative": np.cumsum(shares),
                "congruence": found.congruence,
            }
        )

    def loadings(self) -> pd.DataFrame:
        found, (q, m) = self.found, self.found.loadings.shape
        values, errors, weights = (
            np.where(found.known, each, np.nan).T.ravel()
            for each in (found.loadings, found.loading_errors, found.weights)
        )
        return pd.DataFrame(
            {
                "factor": np.repeat(np.arange(1, m + 1), q),
                "column": pd.Series(list(self.names[self.known.used]) * m, dtype="str"),
                "loading": values,
                "standard_error": errors,
                "lower": values - self.quantile * errors,
                "upper": values + self.quantile * errors,
                "weight": weights,
                "law": pd.Series([describe_sampling(self.evidence)] * (q * m), dtype="str"),
            }
        )

    def factor_correlations(self) -> pd.DataFrame:
        found = self.found
        i, j = np.triu_indices(len(found.correlations), 1)
        known = found.known[i] & found.known[j]
        value, error = (
            np.where(known, each[i, j], np.nan)
            for each in (found.correlations, found.correlation_errors)
        )
        reach = self.quantile * error
        return pd.DataFrame(
            {
                "factor": i + 1,
                "other": j + 1,
                "correlation": value,
                "standard_error": error,
                "lower": np.maximum(value - reach, -1.0),
                "upper": np.minimum(value + reach, 1.0),
            }
        )

    def columns(self) -> pd.DataFrame:
        """The columns in use, then those that were left out."""
        found, used, lost = self.found, self.known.used, self.known.lost
        chosen, rest = np.concatenate([used, lost]), np.full(len(lost), np.nan)
        units, mean, deviation = table_units(self.evidence), *np.full((2, len(self.names)), np.nan)
        if units is not None:
            mean = table_means(self.evidence, units).estimate
            deviation = table_deviations(self.evidence, units).estimate
        errors = found.communality_errors
        numbers = {
            "communality": found.communality,
            "uniqueness": found.uniqueness,
            "standard_error": errors,
            "lower": np.maximum(found.communality - self.quantile * errors, 0.0),
            "upper": np.minimum(found.communality + self.quantile * errors, 1.0),
        }
        at_bound = found.uniqueness <= LEAST_UNIQUENESS * _ABOVE_BOUND
        return pd.DataFrame(
            {
                "column": pd.Series(list(self.names[chosen]), dtype="str"),
                "used": _yes(np.arange(len(chosen)) < len(used)),
                "mean": mean[chosen],
                "standard_deviation": deviation[chosen],
                **{name: np.concatenate([each, rest]) for name, each in numbers.items()},
                "heywood": _yes(np.concatenate([at_bound, np.zeros(len(lost), dtype=bool)])),
            }
        )


def _yes(which: NDArray[np.bool_]) -> pd.Series:
    return pd.Series(np.where(which, "yes", "no"), dtype="str")
