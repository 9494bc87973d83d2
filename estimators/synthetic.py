"""Synthetic rows: a table with the released distributions and correlations.

They are drawn from a Gaussian copula: every numeric column is a function of a normal variable, and
every column of levels of several, and these variables are correlated. The rows hold what the
release has published about single columns and pairs of columns, and nothing else: no real row, no
dependence between three columns at a time, and no curved relation.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from gramercy.estimators.copula.rows import (
    Copula,
    check_numeric,
    compared_correlations,
    compared_marginals,
)
from gramercy.estimators.estimator import Estimate, Estimator, names_of
from gramercy.schemas import wordings
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.manifest import ReleaseSpec

MOST_ROWS = 100_000


class Synthetic(Estimator):
    """``synthetic``: rows with the released distributions and correlations.

    Numeric columns have their published histograms; without histograms they are normal variables
    with the released means and standard deviations, clamped to the bounds. Correlations are those
    of the denoised matrix, about the means and in the columns' own units.

    Parameters
    ----------
    rows
        Number of rows, at most 100,000; `gramercy.api.release.Release.synthesize` draws more.
    missing
        Whether numeric cells are missing with the published shares, independently of all other
        cells. Cells of no declared level are missing in any case.
    integers
        Numeric columns whose cells are rounded to whole numbers: a list, or a text with commas.
    """

    name: Literal["synthetic"] = "synthetic"
    rows: Annotated[int, Field(strict=True, ge=1, le=MOST_ROWS)] = 10_000
    missing: Annotated[bool, Field(strict=True)] = True
    integers: Annotated[tuple[str, ...], BeforeValidator(names_of)] = ()

    def check(self, spec: ReleaseSpec) -> None:
        if spec.normalisation.unit_rows or not spec.intercept:
            raise wordings.analysis_needs_means(self.name)
        numeric = [column.name for column in spec.columns if isinstance(column, ColumnFacts)]
        check_numeric(self.integers, numeric)

    def fit(self, evidence: Evidence) -> Estimate:
        copula = Copula.of(evidence)
        rows = copula.draw(self.rows, self.missing, self.integers)
        correlations = compared_correlations(copula, rows)
        difference = (correlations["synthetic"] - correlations["release"]).dropna().to_numpy()
        error = float(np.sqrt(np.mean(difference**2))) if difference.size else 0.0
        return Estimate(
            "synthetic",
            {},
            {
                "rows": float(self.rows),
                "correlation_error": error,
                "largest_correlation_error": float(np.abs(difference).max(initial=0.0)),
            },
            {
                "rows": rows,
                "marginals": compared_marginals(copula, rows),
                "correlations": correlations,
            },
        )
