"""Reliability of a sum of items: Cronbach's alpha and McDonald's omega, with intervals.

With C the covariance of the k items, of which the sum is the scale,

alpha = k / (k - 1) (1 - tr C / 1^T C 1),   omega = (1^T l)^2 / ((1^T l)^2 + tr U)

for C = l l^T + U by maximum likelihood with one factor (see `estimators.factors`). Errors contain
noise and sampling; intervals are symmetric for log(1 - alpha), log(1 - omega), and Fisher's z of
the correlations of items with the sum of the others.

Cronbach (1951), "Coefficient alpha and the internal structure of tests"; McDonald (1999), "Test
theory: a unified treatment"; Bonett (2002), "Sample size requirements for testing and estimating
coefficient alpha" (the logarithm).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BeforeValidator

from gramercy.estimators.clipped_moments import Z95
from gramercy.estimators.components import check_names, names_of_columns, wanted_columns
from gramercy.estimators.estimator import Estimate, Estimator, names_of
from gramercy.estimators.factors import LEAST_CONGRUENCE, fit_with_ridge
from gramercy.estimators.intervals import Level
from gramercy.estimators.known_correlations import KnownCorrelations
from gramercy.estimators.solvers.factor_model import matched
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.jackknife import describe_sampling
from gramercy.estimators.uncertainty.table_entries import table_deviations
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.manifest import ReleaseSpec

Array = NDArray[np.float64]
Scale = tuple[Callable[[Array], Array], Callable[[Array], Array]]

_LEAST_ITEMS = 3  # which one factor needs
_NEAR = 0.999  # of correlations
_INSIDE = 0.95  # of simulated coefficients, which set the error: a few may be impossible, above 1
_MOST_ERROR = 1.0  # of log(1 - alpha): above, noise hides it
_BONETT: Scale = (lambda x: np.log(np.maximum(1 - x, 1e-9)), lambda y: 1 - np.exp(y))
_FISHER: Scale = (lambda x: np.arctanh(np.clip(x, -_NEAR, _NEAR)), np.tanh)


def cronbach(covariance: Array) -> float:
    """Cronbach's alpha of the items; NaN if their sum has no positive variance."""
    k, total = len(covariance), float(covariance.sum())
    return k / (k - 1) * (1 - float(np.trace(covariance)) / total) if total > 0 else np.nan


class Reliability(Estimator):
    """``reliability``: Cronbach's alpha and McDonald's omega of a sum of items, with intervals.

    Parameters
    ----------
    columns
        Names of the items, at least three: a list, or a text with commas. Default: all numeric
        columns, or all columns if there are none.
    reverse
        Those of them that are keyed in reverse: the sum has their negatives.
    level
        Confidence level of the intervals.

    Notes
    -----
    Tables, with NaN where noise hides a number: ``coefficients`` (``alpha``, ``standardised alpha``
    and ``omega``); and ``items``, each with its correlation with the sum of the others
    (``item_rest``), ``alpha_if_dropped``, and its ``loading``, with its sign.

    Coverage of 95 % intervals in simulations: docs/analyses/factors.md.
    """

    name: Literal["reliability"] = "reliability"
    columns: Annotated[tuple[str, ...], BeforeValidator(names_of)] | None = None
    reverse: Annotated[tuple[str, ...], BeforeValidator(names_of)] = ()
    level: Level = 0.95

    def check(self, spec: ReleaseSpec) -> None:
        if spec.normalisation.unit_rows or not spec.intercept:
            raise wordings.analysis_needs_means(self.name)
        check_names(self.columns, tuple(column.name for column in spec.columns))

    def fit(self, evidence: Evidence) -> Estimate:
        """Raises RequestError if the release does not suit these settings.

        So it is with fewer than three items, or if noise hides the variance of one.
        """
        units = table_units(evidence)
        if units is None:
            raise wordings.analysis_needs_means(self.name)
        known = KnownCorrelations.of(evidence, wanted_columns(evidence, self.columns))
        all_names = names_of_columns(evidence)
        names = [all_names[k] for k in known.used]
        if len(known.lost):
            raise families.ANALYSIS(
                "Noise hides the variance of items: {hidden}.",
                "Name the other ones by 'columns': {known}.",
                known=tuple(names),
                hidden=tuple(all_names[k] for k in known.lost),
            )
        if len(names) < _LEAST_ITEMS:
            raise families.ANALYSIS(
                "Reliability needs at least {least} items.",
                "Items: {known}.",
                least=_LEAST_ITEMS,
                known=tuple(names),
            )
        if unknown := tuple(name for name in self.reverse if name not in names):
            raise families.ANALYSIS(
                "'reverse' names columns that are not among the items: {unknown}.",
                "Items: {known}.",
                unknown=unknown,
                known=tuple(names),
            )
        turned = np.isin(names, self.reverse)
        deviation = (
            np.where(turned, -1.0, 1.0) * table_deviations(evidence, units).estimate[known.used]
        )
        coefficients, items = _Scale(known, deviation).tables(names, self.level)
        coefficients["law"] = describe_sampling(evidence)
        items["reversed"] = np.where(turned, "yes", "no")
        tables = {
            name: frame.rename_axis(index).reset_index()
            for name, index, frame in (
                ("coefficients", "coefficient", coefficients),
                ("items", "column", items),
            )
        }
        return Estimate("reliability", {}, {"level": self.level}, tables)


class _Scale:
    """A sum of items whose correlations are known; `deviation` has a sign for each item."""

    def __init__(self, known: KnownCorrelations, deviation: Array) -> None:
        self.known, self.deviation, self.ridge = known, deviation, known.ridge
        self.loadings, self.uniqueness = fit_with_ridge(known.matrix, 1, self.ridge)

    def tables(self, names: list[str], level: float) -> tuple[pd.DataFrame, pd.DataFrame]:
        known, k = self.known, len(names)
        one = matched(self.loadings, np.eye(1), np.sign(self.deviation)[:, None])[0]
        found = self.coefficients(known.matrix, self.deviation, one, self.uniqueness)
        drawn, congruences = [], []
        for error, logs in known.errors(known.matrix):
            again = fit_with_ridge(known.matrix + error, 1, self.ridge, self.uniqueness)
            like, _, congruence = matched(again[0], np.eye(1), one)
            congruences.append(congruence[0])
            deviation = self.deviation * np.exp(logs)
            drawn.append(self.coefficients(known.matrix + error, deviation, like, again[1]))
        each = np.array(drawn)
        of_sums = [*range(3), *range(3 + k, 3 + 2 * k)]
        table = pd.DataFrame(np.nan, range(len(found)), ["estimate", "lower", "upper"])
        for at, (way, back) in ((of_sums, _BONETT), (list(range(3, 3 + k)), _FISHER)):
            centre = way(found[at])
            error = np.quantile(np.abs(way(each[:, at]) - centre), _INSIDE, axis=0) / Z95
            reach = known.quantile(level) * error
            ends = np.sort([back(centre - reach), back(centre + reach)], axis=0)
            sure = np.isfinite(error) & (error < _MOST_ERROR)
            table.loc[at] = np.where(sure, [found[at], *ends], np.nan).T
        if np.median(congruences) < LEAST_CONGRUENCE:
            table.loc[2], one = np.nan, one * np.nan
        coefficients = table.iloc[:3].set_index(pd.Index(["alpha", "standardised alpha", "omega"]))
        items = [table.iloc[3 : 3 + k], table.iloc[3 + k :]]
        parts = {
            name if part == "estimate" else f"{name}_{part}": frame[part].to_numpy()
            for name, frame in zip(("item_rest", "alpha_if_dropped"), items, strict=True)
            for part in table.columns
        }
        loading = one[:, 0] * np.sign(self.deviation)
        return coefficients, pd.DataFrame({**parts, "loading": loading}, index=pd.Index(names))

    def coefficients(
        self, matrix: Array, deviation: Array, loadings: Array, uniqueness: Array
    ) -> Array:
        """Alpha, standardised alpha and omega; then of each item both numbers."""
        k, scales = len(matrix), np.outer(deviation, deviation)
        covariance = matrix * scales
        common = float(loadings[:, 0] @ deviation) ** 2
        omega = common / (common + float(uniqueness @ deviation**2))
        rests = [np.delete(np.arange(k), j) for j in range(k)]
        item_rest = []
        for j, rest in enumerate(rests):
            own, total = covariance[j, j], covariance[np.ix_(rest, rest)].sum()
            item_rest.append(
                covariance[j, rest].sum() / np.sqrt(own * total) if total > 0 else np.nan
            )
        dropped = [cronbach(covariance[np.ix_(rest, rest)]) for rest in rests]
        signs = np.sign(scales)
        return np.array(
            [cronbach(covariance), cronbach(matrix * signs), omega, *item_rest, *dropped]
        )
