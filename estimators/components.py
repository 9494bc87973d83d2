"""Principal components of one released matrix; see `estimators.spectral`."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BeforeValidator

from gramercy.common.similar_names import most_similar_first
from gramercy.estimators.estimator import Estimate, Estimator, names_of
from gramercy.estimators.intervals import Level
from gramercy.estimators.own_units import own_units
from gramercy.estimators.spectral.column_moments import ColumnMoments, Scale, column_moments
from gramercy.estimators.spectral.principal import PrincipalComponents, principal_components
from gramercy.estimators.uncertainty.jackknife import describe_sampling
from gramercy.estimators.uncertainty.moment_errors import has_intercept
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec

Array = NDArray[np.float64]


class Components(Estimator):
    """``pca``: principal components that are above the noise, with intervals of their shares.

    Parameters
    ----------
    scale
        ``correlation``: of columns divided by their standard deviations; or ``covariance``: of
        columns in their own units. The former suits columns in different units.
    columns
        Names of columns of the table: a list, or a text with commas. Default: all numeric columns,
        or all columns if there are none.
    level
        Confidence level of the intervals.

    Notes
    -----
    Tables: ``eigenvalues``, as released and corrected for noise; ``shares`` of the variance, of
    each component or of components that cannot be separated, with intervals; ``loadings``, unknown
    (NaN) where noise or sampling mixes a component with others; ``columns``, with the means and the
    standard deviations by which they are divided. In releases without an intercept, moments are
    about the public centres; of unit rows, components are those of directions.

    Coverage of 95 % intervals of shares in simulations: docs/analyses/components.md.
    """

    name: Literal["pca"] = "pca"
    scale: Scale = "correlation"
    columns: Annotated[tuple[str, ...], BeforeValidator(names_of)] | None = None
    level: Level = 0.95

    def check(self, spec: ReleaseSpec) -> None:
        """See `Estimator.check`."""
        known = tuple(column.name for column in spec.columns)
        _check_names(self.columns, known)

    def fit(self, evidence: Evidence) -> Estimate:
        """See `Estimator.fit`.

        Raises
        ------
        RequestError
            If one of `columns` is not a column of the release.
        """
        wanted = _wanted(evidence, self.columns)
        moments = column_moments(evidence, wanted, self.scale)
        found = principal_components(evidence, moments, self.level)
        names = _names(evidence)
        tables = {
            "eigenvalues": _eigenvalues(found),
            "shares": _shares(found, describe_sampling(evidence)),
            "loadings": _loadings(found, [names[k] for k in moments.used]),
            "columns": _columns(evidence, moments, names),
        }
        tuning = {
            "level": self.level,
            "noise_edge": found.edge,
            "total_variance": found.total,
            "components": float(len(found.resolution)),
            "left_out": float(len(moments.lost)),
        }
        return Estimate("components", {}, tuning, tables)


def _check_names(wanted: tuple[str, ...] | None, known: tuple[str, ...]) -> None:
    unknown = tuple(name for name in wanted or () if name not in known)
    if unknown:
        raise families.ANALYSIS(
            "'columns' names columns that the release does not have: {unknown}.",
            "Its columns, most similar first: {known}.",
            unknown=unknown,
            known=most_similar_first(unknown[0], known),
        )


def _names(evidence: Evidence) -> list[str]:
    """Names of the matrix columns without the intercept."""
    offset = int(has_intercept(evidence))
    names = evidence.names or tuple(f"x{k}" for k in range(len(evidence.raw)))
    return list(names[offset:])


def _wanted(evidence: Evidence, columns: tuple[str, ...] | None) -> list[int]:
    """Indices of the wanted matrix columns, without the intercept."""
    names, facts = _names(evidence), evidence.columns[int(has_intercept(evidence)) :]
    sources = [column.name for column in facts if column is not None] or names
    _check_names(columns, tuple(dict.fromkeys(sources)))
    if columns is not None:
        return [k for k, source in enumerate(sources) if source in columns]
    numeric = [k for k, column in enumerate(facts) if not isinstance(column, LevelsFacts)]
    return numeric or list(range(len(names)))


def _eigenvalues(found: PrincipalComponents) -> pd.DataFrame:
    number, q = len(found.resolution), len(found.eigenvalues)
    resolution = np.concatenate([found.resolution, np.full(q - number, np.nan)])
    above = np.arange(q) < number
    return pd.DataFrame(
        {
            "component": np.arange(1, q + 1),
            "eigenvalue": found.eigenvalues,
            "corrected": found.corrected,
            "above_noise": pd.Series(np.where(above, "yes", "no"), dtype="str"),
            "resolution": resolution,
        }
    )


def _shares(found: PrincipalComponents, law: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "components": pd.Series([_label(g.first, g.size) for g in found.groups], dtype="str"),
            "first": np.array([g.first + 1 for g in found.groups], dtype=np.int64),
            "size": np.array([g.size for g in found.groups], dtype=np.int64),
            "share": np.array([g.share for g in found.groups]),
            "standard_error": np.array([g.standard_error for g in found.groups]),
            "lower": np.array([g.lower for g in found.groups]),
            "upper": np.array([g.upper for g in found.groups]),
            "resolution": np.array([g.resolution for g in found.groups]),
            "law": pd.Series([law] * len(found.groups), dtype="str"),
        }
    )


def _label(first: int, size: int) -> str:
    return str(first + 1) if size == 1 else f"{first + 1} to {first + size}"


def _loadings(found: PrincipalComponents, names: list[str]) -> pd.DataFrame:
    q, number = found.loadings.shape
    return pd.DataFrame(
        {
            "component": np.repeat(np.arange(1, number + 1), q),
            "column": pd.Series(names * number, dtype="str"),
            "loading": found.loadings.T.ravel(),
            "standard_error": found.loading_errors.T.ravel(),
        }
    )


def _columns(evidence: Evidence, moments: ColumnMoments, names: list[str]) -> pd.DataFrame:
    """The columns in use, then those that were left out."""
    units, chosen = own_units(evidence), np.concatenate([moments.used, moments.lost])
    mean = np.full(len(names), np.nan)
    if units is not None:
        mean = units.moments(evidence.raw).mean
    divisor = np.concatenate([moments.divisor, np.full(len(moments.lost), np.nan)])
    used = np.arange(len(chosen)) < len(moments.used)
    return pd.DataFrame(
        {
            "column": pd.Series([names[k] for k in chosen], dtype="str"),
            "mean": mean[chosen],
            "divisor": divisor,
            "used": pd.Series(np.where(used, "yes", "no"), dtype="str"),
        }
    )
