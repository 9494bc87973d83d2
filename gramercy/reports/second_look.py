"""What a report adds to its estimates: which edges come back, and what privacy costs in rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy import estimators
from gramercy.archive.estimate_bundle import EstimateBundle
from gramercy.archive.release_bundle import ReleaseBundle
from gramercy.estimators.tuning.redraws import comes_back
from gramercy.estimators.uncertainty.entries import covariance

Array = NDArray[np.float64]

_DRAWN_AGAIN = 64  # columns, at most: some seconds


def edges_again(release: ReleaseBundle, estimate: EstimateBundle) -> Array | None:
    """How often each pair is an edge when the release is drawn again; shape (p, p).

    None of an estimate without edges, of one in which all pairs are joined, and of more columns
    than can be drawn again while somebody waits.
    """
    facts, p = estimate.manifest, len(estimate.manifest.names)
    if (
        estimate.edges is None
        or p > _DRAWN_AGAIN
        or np.count_nonzero(estimate.edges) == p * (p - 1)
    ):
        return None
    known = estimators.registry[facts.estimator["name"]].model_validate(facts.estimator)
    return comes_back(release.evidence, known, facts.tuning)


@dataclass(frozen=True)
class Worth:
    """Rows without noise whose covariances would be known as well as these are.

    Parameters
    ----------
    median, low, high
        Of all pairs of columns: the median, and what nine of ten reach, and one of ten.
    share
        The median as a share of the rows there are.
    """

    median: float
    low: float
    high: float
    share: float


def worth(release: ReleaseBundle) -> Worth | None:
    """The effective number of rows: what sampling alone would need for errors of this size.

    n s^2 / (s^2 + v^2) for an entry with sampling error s and noise v. None where there is no
    second moment, or nothing is known of it; and where persons are protected, whose contributions
    are averages of several rows, of which sampling errors of single rows tell nothing.
    """
    facts = release.manifest
    if facts.kind == "precision" or facts.unit == "person" or len(facts.names) < 2:
        return None
    found = covariance(release.evidence)
    pairs = np.triu_indices(len(found.known), 1)
    sampled, noisy = found.sampling[pairs] ** 2, found.noise[pairs] ** 2
    known = found.known[pairs] & (sampled > 0)
    if not known.any():
        return None
    share = sampled[known] / (sampled[known] + noisy[known])
    rows = facts.rows.value
    low, middle, high = (float(np.quantile(share, q)) for q in (0.1, 0.5, 0.9))
    return Worth(rows * middle, rows * low, rows * high, middle)
