"""The mean weight of a row, which says how much of a table its normalisation removes."""

from __future__ import annotations

import numpy as np

from gramercy.estimators.accuracy.published_marginals import seen
from gramercy.estimators.own_units import mean_weight
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.histogram import Histogram

_NOISE = 2.0  # standard deviations of the noise that a count must exceed to be seen
_BEYOND = 2  # bins beyond the radius that always count
_RATIO = 2**0.25  # of the last, unbounded bin's ends


def row_weight(evidence: Evidence, rows_per_person: int) -> float | None:
    """Mean over rows of min(1, r^2 / |x|^2), as far as is known; None of unit rows.

    By the published lengths of rows, or else by the entry of the intercept. The noise in that entry
    is several times larger, so two of its standard deviations are subtracted: the tails that are
    inferred from a weight shall not be too light.
    """
    radius, lengths = evidence.radius, evidence.lengths
    if radius is None:
        return None
    if lengths is not None and lengths.count.sum() > 0:
        return _by_lengths(lengths, radius)
    weight = mean_weight(evidence)
    if weight is None:
        return None
    sd = radius**2 * float(evidence.deviations[0, 0]) / rows_per_person
    return min(1.0, weight / rows_per_person) - _NOISE * sd


def _by_lengths(lengths: Histogram, radius: float) -> float:
    """The same from a histogram of lengths; of a bin, the geometric mean of its ends."""
    upper = np.where(np.isnan(lengths.upper), lengths.lower * _RATIO, lengths.upper)
    lost = 1 - np.minimum(1.0, radius**2 / (lengths.lower * upper))
    counts = lengths.count.astype(np.float64)
    edges = np.append(lengths.lower, upper[-1])
    visible = np.flatnonzero(seen(edges, counts, _NOISE * lengths.sd, body=0.0))
    beyond = int(np.searchsorted(lengths.lower, radius * (1 - 1e-9))) + _BEYOND
    last = max(beyond, int(visible[-1]) + 1 if visible.size else 0)
    share = float(lost[:last] @ counts[:last]) / float(counts.sum())
    return min(1.0, max(0.0, 1 - share))
