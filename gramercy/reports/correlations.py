"""Released correlations, which of them are within the noise, and the largest entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle
from gramercy.common.kept_results import kept
from gramercy.estimators.clipped_moments import ClippedMoments
from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.table_units import TableUnits, table_units, weight_lost
from gramercy.estimators.uncertainty.entries import correlation, covariance
from gramercy.estimators.uncertainty.moment_errors import centred_moment
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_MOST_ENTRIES = 25  # that a page lists; the files have all
NOISE_BAND = 2.0  # standard deviations; an entry within them is indistinguishable from noise
LEVEL = 0.95  # of the intervals on pages


@dataclass(frozen=True)
class Correlations:
    """Released correlations."""

    # Names of the columns, without the intercept if correlations are about the means
    names: list[str]
    matrix: Array  # Shape (p, p); NaN where a column's own variance is within the noise
    # Whether an entry is within the noise, or is NaN in `matrix`; shape (p, p)
    hidden: NDArray[np.bool_]
    centred: bool  # Whether correlations are about the means rather than the public centres
    corrected: bool = False  # Whether they are corrected for published shares of missing cells


@kept
def correlations(bundle: ReleaseBundle) -> Correlations:
    """Correlations as released, about the means if the matrix has an intercept.

    Those of noisy rows are always about the public centres (`uncertainty.moment_errors`).
    """
    facts = bundle.manifest
    names, matrix = facts.names, bundle.unbiased
    clipped = clipped_moments(bundle.evidence)
    if clipped is not None:
        return _with_clipping(bundle.evidence, clipped)
    sd = bundle.deviations
    if not facts.publication.is_moment:
        scaled = _scaled(_with_partial_signs(matrix), sd)
        return Correlations(names, scaled, _hidden(matrix, sd, scaled), False)
    units = units_of(bundle)
    if units is not None:
        scaled = np.clip(units.moments(matrix).correlation, -1, 1)
        scaled[units.unknown(matrix, sd)] = np.nan
        hidden = _hidden(
            units.moments(matrix).covariance, units.noise(matrix, sd).covariance, scaled
        )
        return Correlations(names[1:], scaled, hidden, True, bool(bundle.evidence.present))
    about_means = centred_moment(bundle.evidence) if facts.intercept and len(names) > 1 else None
    if about_means is not None:
        names, matrix, sd = names[1:], about_means.matrix, about_means.sd
    scaled = _scaled(matrix, sd)
    return Correlations(names, scaled, _hidden(matrix, sd, scaled), about_means is not None)


def units_of(bundle: ReleaseBundle) -> TableUnits | None:
    """The columns' own units, if the weight of all rows is known.

    None also for noisy rows, as in `correlations`.
    """
    facts = bundle.manifest
    if (
        not facts.publication.is_moment
        or facts.noise.family == "noisy-rows"
        or len(facts.names) < 2
    ):
        return None
    return None if weight_lost(bundle.unbiased, bundle.deviations) else table_units(bundle.evidence)


def _with_clipping(evidence: Evidence, clipped: ClippedMoments) -> Correlations:
    """Correlations that contain what clipping took away, as all interfaces have them.

    Those whose interval for the table itself contains zero are within the noise.
    """
    found = correlation(evidence)
    lower, upper = found.interval(LEVEL, "table")
    known = found.estimable.copy()
    np.fill_diagonal(known, clipped.known)
    return Correlations(
        list(evidence.names[1:]),
        np.where(known, found.estimate, np.nan),
        ~known | ((lower <= 0) & (upper >= 0)),
        centred=True,
        corrected=bool(evidence.present),
    )


def _hidden(matrix: Array, sd: Array, scaled: Array) -> NDArray[np.bool_]:
    hidden: NDArray[np.bool_] = (np.abs(matrix) <= NOISE_BAND * sd) | np.isnan(scaled)
    return hidden


def _with_partial_signs(precision: Array) -> Array:
    """A precision matrix with the signs of its partial correlations off the diagonal."""
    signed: Array = 2 * np.diag(np.diag(precision)) - precision
    return signed


def _scaled(matrix: Array, sd: Array) -> Array:
    diagonal = np.diag(matrix)
    variances = np.where(diagonal > NOISE_BAND * np.diag(sd), diagonal, np.nan)
    scaled: Array = np.clip(matrix / np.sqrt(np.outer(variances, variances)), -1, 1)
    return scaled


@dataclass(frozen=True)
class EffectiveRows:
    """Number of rows without noise that would give covariances of the same precision."""

    # Median, 10 % and 90 % quantile over the pairs of columns
    median: float
    low: float
    high: float
    share: float  # The median divided by the number of rows


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


@dataclass(frozen=True)
class Entry:
    """One entry of the matrix, for a table; the correlation is NaN if it is unknown."""

    row: str
    col: str
    value: float
    sd: float
    correlation: float

    @property
    def deviations(self) -> float:
        """Absolute value in standard deviations of the noise."""
        return abs(self.value) / self.sd


def largest_entries(release: ReleaseBundle, found: Correlations) -> list[Entry]:
    """The largest off-diagonal entries, largest first, with the released correlations."""
    names, sd = release.manifest.names, release.deviations
    correlation = np.full((len(names), len(names)), np.nan)
    first = len(names) - len(found.names)
    correlation[first:, first:] = found.matrix
    rows, cols = np.triu_indices(len(names), 1)
    size = -np.abs(release.unbiased[rows, cols])
    largest = (
        np.argpartition(size, min(_MOST_ENTRIES, size.size) - 1)[:_MOST_ENTRIES]
        if size.size
        else rows
    )
    matrices, places = (release.unbiased, sd, correlation), [(rows[k], cols[k]) for k in largest]
    places.sort(key=lambda at: -abs(float(release.unbiased[at])))
    return [
        Entry(names[i], names[j], *(float(matrix[i, j]) for matrix in matrices)) for i, j in places
    ]
