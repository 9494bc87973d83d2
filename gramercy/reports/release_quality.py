"""The quality of a release: stability of its edges, and its effective number of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy import estimators
from gramercy.archive.bundles.estimate_bundle import EstimateBundle
from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.estimators.tuning.stability import edge_frequencies
from gramercy.estimators.uncertainty.entries import covariance
from gramercy.reports.correlations import correlations
from gramercy.schemas.column import INTERCEPT

Array = NDArray[np.float64]

_MOST_COLUMNS = 64  # redraws of wider releases would take more than a few seconds


def edge_stability(release: ReleaseBundle, estimate: EstimateBundle) -> Array | None:
    """Share of redraws of the release in which each pair is an edge; shape (p, p).

    None if the estimate has no edges or all edges, or if there are too many columns to redraw in a
    few seconds.
    """
    facts, p = estimate.manifest, len(estimate.manifest.names)
    if estimate.edges is None or p > _MOST_COLUMNS:
        return None
    first = int(facts.names[0] == INTERCEPT)
    q = p - first
    if np.count_nonzero(estimate.edges[first:, first:]) == q * (q - 1):
        return None
    estimator = estimators.registry[facts.estimator["name"]].model_validate(facts.estimator)
    return edge_frequencies(release.evidence, estimator, facts.tuning)


@dataclass(frozen=True)
class EffectiveRows:
    """Number of rows without noise that would give covariances of the same precision.

    Parameters
    ----------
    median, low, high
        Median, 10 % and 90 % quantile over the pairs of columns.
    share
        The median divided by the number of rows.
    """

    median: float
    low: float
    high: float
    share: float


def effective_rows(release: ReleaseBundle) -> EffectiveRows | None:
    """The number of rows at which sampling error alone equals the total error.

    n s^2 / (s^2 + v^2) for an entry with sampling error s and noise v. None for a precision matrix
    or if no sampling error can be estimated; and if persons are protected, because a person's
    contribution combines several rows.
    """
    facts = release.manifest
    if not facts.publication.is_moment or facts.privacy_unit == "person" or len(facts.names) < 2:
        return None
    errors = covariance(release.evidence)
    pairs = np.triu_indices(len(errors.estimable), 1)
    sampling, noise = errors.sampling_error[pairs] ** 2, errors.noise_error[pairs] ** 2
    estimable = errors.estimable[pairs] & (sampling > 0)
    if not estimable.any():
        return None
    share = sampling[estimable] / (sampling[estimable] + noise[estimable])
    rows = facts.rows.value
    low, middle, high = (float(np.quantile(share, q)) for q in (0.1, 0.5, 0.9))
    return EffectiveRows(rows * middle, rows * low, rows * high, middle)


def meaningless_pairs(release: ReleaseBundle) -> NDArray[np.bool_]:
    """Pairs whose edges say nothing about dependence, shape (p, p).

    They are between levels of one column, or with a column whose own variance is within the noise.
    """
    facts = release.manifest
    sources = np.array([each.name if each else INTERCEPT for each in facts.source_columns])
    found = correlations(release)
    own = dict(zip(found.names, np.isnan(np.diag(found.matrix)), strict=True))
    dead = np.array([bool(own.get(name)) for name in facts.names])
    pairs: NDArray[np.bool_] = (sources[:, None] == sources) | dead[:, None] | dead
    return pairs
