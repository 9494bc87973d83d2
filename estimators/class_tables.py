"""What a release tells of classes, as tables in the units of the table's own columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]
Places = list[int]


def shares(evidence: Evidence, facts: LevelsFacts, places: Places, used: Places) -> pd.DataFrame:
    """Of every class, among those in use; with the deviation of the noise, to first order."""
    kept = np.isin(places, used)
    weight = np.where(kept, np.diag(evidence.raw)[places], 0.0)
    variance = np.where(kept, np.diag(evidence.deviations)[places] ** 2, 0.0)
    share = weight / weight.sum()
    # Of w_k / sum w: to first order (e_k - share_k sum e) / sum w
    spread = (1 - 2 * share) * variance + share**2 * variance.sum()
    return pd.DataFrame(
        {
            "class": list(facts.levels),
            "status": np.where(kept, "used", "lost in noise"),
            "share": np.where(kept, share, np.nan),
            "share_sd": np.where(kept, np.sqrt(spread) / weight.sum(), np.nan),
        }
    )


@dataclass(frozen=True)
class Units:
    """What leads from scaled columns back to the table's."""

    names: list[str]
    centre: Array
    scale: Array

    @classmethod
    def of(cls, evidence: Evidence, x: Places) -> Units:
        """Of some columns of the matrix; zeros and ones of levels have no units."""
        facts = [evidence.columns[i] for i in x]
        pairs = [(f.centre, f.scale) if isinstance(f, ColumnFacts) else (0.0, 1.0) for f in facts]
        centre, scale = np.array(pairs).T
        return cls([evidence.names[i] if evidence.names else f"x{i}" for i in x], centre, scale)

    def columns(self, *first: str) -> list[str]:
        """Headings, the features' last; a feature that is called like another heading yields."""
        return [*first, *(f"{name} (column)" if name in first else name for name in self.names)]

    def coefficients(
        self, labels: list[str | float], constants: Array, slopes: Array
    ) -> pd.DataFrame:
        """A row for each class: its constant, and a coefficient for each feature."""
        slopes = slopes / self.scale
        body = np.column_stack([constants - slopes @ self.centre, slopes])
        table = pd.DataFrame(body, columns=self.columns("class", "constant")[1:])
        table.insert(0, "class", labels)
        return table

    def means(
        self, evidence: Evidence, labels: list[str | float], x: Places, used: Places
    ) -> pd.DataFrame:
        """Of noisy rows with deviations that are no smaller than they should be.

        Their S_kx and S_kk go up and down together, which is left out here.
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
        """A precision matrix with the names of its rows."""
        body = matrix / np.outer(self.scale, self.scale)
        table = pd.DataFrame(body, columns=self.columns("feature")[1:])
        table.insert(0, "feature", self.names)
        return table
