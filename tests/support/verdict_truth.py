"""What a release says of its correlations, against those of its table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.estimators.accuracy.clipped_accuracy import ClippedAccuracy, traceless_rows
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from tests.support.private_release import Scaled

Array = NDArray[np.float64]

WRONG, FINE = 0.1, 0.05  # errors of a correlation
_CELLS = 5.0  # standard deviations of a count: so many cells leave no trace
_FEW = 20  # rows with both cells that a true correlation needs


@dataclass(frozen=True)
class VerdictTruth:
    """A verdict, and the largest errors of the correlations that it is about.

    Parameters
    ----------
    level
        ``good`` (green), ``warning`` or ``danger``.
    excepted
        Number of columns that a green verdict sets aside; the others are accurate, it says.
    error
        Root mean square error of all correlations that are not lost.
    largest
        Largest error, of the correlations of the table's own cells, without columns set aside.
    visible
        The smaller of `largest` and the same against the table without the rows farthest out, as
        many as may leave no trace in the release.
    clamped
        Largest error of all correlations of cells within the bounds in use.
    lost
        Share of the pairs that are lost in the noise.
    """

    level: str
    excepted: int
    error: float
    largest: float
    visible: float
    clamped: float
    lost: float

    @property
    def green(self) -> bool:
        return self.level == "good"

    @property
    def false(self) -> bool:
        """Whether it is green over a correlation that is off."""
        return self.green and self.largest > WRONG

    @property
    def fine(self) -> bool:
        """Whether all correlations are accurate, apart from cells beyond the bounds in use."""
        return self.clamped < FINE

    @classmethod
    def of(cls, release: Evidence, scaled: Scaled, cells: Array) -> VerdictTruth:
        """The verdict of a release of these cells, shape (n, p)."""
        accuracy = ClippedAccuracy.of(release)
        if accuracy is None:  # the noise hides all
            return cls("danger", 0, 1.0, 1.0, 1.0, 1.0, 1.0)
        columns = [each for each in scaled.spec.columns if isinstance(each, ColumnFacts)]
        estimate = accuracy.moments.correlation
        errors = np.abs(estimate - correlations(cells))
        lower, upper = (np.array([getattr(c, end) for c in columns]) for end in ("lower", "upper"))
        of_clamped = np.abs(estimate - correlations(np.clip(cells, lower, upper)))
        of_others = np.abs(estimate - correlations(_without_far(release, columns, cells)))
        pairs, finite = accuracy.pairs & np.isfinite(errors), np.isfinite(errors)
        about = accuracy.accurate.pairs & finite if accuracy.level == "good" else pairs
        return cls(
            accuracy.level,
            len(accuracy.excepted) if accuracy.level == "good" else 0,
            float(np.sqrt((errors[pairs] ** 2).mean())) if pairs.any() else 1.0,
            _largest(errors, about),
            min(_largest(errors, about), _largest(of_others, about)),
            _largest(of_clamped, pairs),
            accuracy.lost_share,
        )


def correlations(cells: Array) -> Array:
    """Pearson correlations of the rows in which both cells are present; NaN if they are few."""
    found: Array = pd.DataFrame(cells).corr(min_periods=_FEW).to_numpy(dtype=np.float64)
    return found


def _largest(errors: Array, pairs: NDArray[np.bool_]) -> float:
    """One if there are no pairs: nothing is known."""
    return float(np.nanmax(errors[pairs])) if pairs.any() else 1.0


def _without_far(release: Evidence, columns: list[ColumnFacts], cells: Array) -> Array:
    """The rows without those that may be unlike all others and leave no trace."""
    hidden = max(traceless_rows(release) or 0, round(_CELLS * release.marginals[0].sd))
    centre, scale = (np.array([getattr(c, of) for c in columns]) for of in ("centre", "scale"))
    squares = np.nan_to_num(((cells - centre) / scale) ** 2).sum(axis=1)
    if hidden >= len(cells):
        return cells
    kept: Array = cells[np.argsort(squares, kind="stable")[: len(cells) - hidden]]
    return kept
