"""Tables of a discriminant, in the units of the columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]
Indices = list[int]


def class_shares(
    evidence: Evidence, facts: LevelsFacts, indicators: Indices, used: Indices
) -> pd.DataFrame:
    """Share of each class among those in use, with the first-order error of the noise."""
    kept = np.isin(indicators, used)
    weight = np.where(kept, np.diag(evidence.raw)[indicators], 0.0)
    variance = np.where(kept, np.diag(evidence.deviations)[indicators] ** 2, 0.0)
    share = weight / weight.sum()
    # The error of w_k / sum w is (e_k - share_k sum e) / sum w, to first order.
    share_variance = (1 - 2 * share) * variance + share**2 * variance.sum()
    return pd.DataFrame(
        {
            "class": list(facts.levels),
            "status": np.where(kept, "used", "lost in noise"),
            "share": np.where(kept, share, np.nan),
            "share_sd": np.where(kept, np.sqrt(share_variance) / weight.sum(), np.nan),
        }
    )


@dataclass(frozen=True)
class ColumnUnits:
    """Names, centres and scales that convert scaled columns to the table's units."""

    names: list[str]
    centre: Array
    scale: Array

    @classmethod
    def of(cls, evidence: Evidence, x: Indices) -> ColumnUnits:
        """Units of some columns of the matrix; indicators of levels do not have units."""
        facts = [evidence.columns[i] for i in x]
        pairs = [(f.centre, f.scale) if isinstance(f, ColumnFacts) else (0.0, 1.0) for f in facts]
        centre, scale = np.array(pairs).T
        return cls([evidence.names[i] if evidence.names else f"x{i}" for i in x], centre, scale)

    def columns(self, *first: str) -> list[str]:
        """Column names, the features last; a feature with the name of another one is renamed."""
        return [*first, *(f"{name} (column)" if name in first else name for name in self.names)]

    def coefficients(
        self, labels: list[str | float], constants: Array, slopes: Array
    ) -> pd.DataFrame:
        """A row for each class: its constant and the coefficients of the features."""
        slopes = slopes / self.scale
        body = np.column_stack([constants - slopes @ self.centre, slopes])
        table = pd.DataFrame(body, columns=self.columns("class", "constant")[1:])
        table.insert(0, "class", labels)
        return table

    def means(
        self, evidence: Evidence, labels: list[str | float], x: Indices, used: Indices
    ) -> pd.DataFrame:
        """Means of the features in each class, with the standard deviation of their noise.

        For noisy rows it is an upper bound: their S_kx and S_kk are correlated.
        """
        weight, deviation = np.diag(evidence.raw)[used][:, None], evidence.deviations
        mean = evidence.raw[np.ix_(used, x)] / weight
        of_weight = np.diag(deviation)[used][:, None]
        sd = np.hypot(deviation[np.ix_(used, x)], mean * of_weight) / weight
        return pd.DataFrame(
            {
                "class": np.repeat(np.array(labels), len(x)),
                "feature": self.names * len(used),
                "mean": (self.centre + self.scale * mean).ravel(),
                "sd": (self.scale * sd).ravel(),
            }
        )

    def precision(self, matrix: Array) -> pd.DataFrame:
        """A precision matrix with a column of feature names."""
        body = matrix / np.outer(self.scale, self.scale)
        table = pd.DataFrame(body, columns=self.columns("feature")[1:])
        table.insert(0, "feature", self.names)
        return table
