"""How accurate the correlations of a release are: noise and bias, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gramercy.estimators.accuracy.normalisation_bias import LawBias, normalisation_bias
from gramercy.estimators.accuracy.row_simulation import as_correlation
from gramercy.estimators.accuracy.scaled_moments import ScaledMoments
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_LEAST_REACH = 2.0  # standard deviations of the noise


@dataclass(frozen=True)
class CorrelationAccuracy:
    """Errors of the correlations of a release, other than sampling; q columns.

    Parameters
    ----------
    noise
        Standard deviation of the noise in every correlation, to first order; infinite where the
        correlation is lost in it. Shape (q, q), zero on the diagonal.
    bias
        By law of the rows, the correlations after normalisation minus those before, and what
        missing cells may do. Shape (q, q) each, zero where the correlation is lost.
    if_centres_are_off
        The largest absolute change of the correlations if the leading direction is a mean; zero
        with an intercept. Shape (q, q).
    spread
        Standard deviations of the rows relative to those after normalisation: the least over the
        laws, and 1 without an intercept. Shape (q,).
    leading_share
        Share of the largest eigenvalue in the trace.
    """

    noise: Array
    bias: Mapping[str, Array]
    if_centres_are_off: Array
    spread: Array
    leading_share: float

    @property
    def pairs(self) -> NDArray[np.bool_]:
        """Pairs of columns whose correlation is not lost in the noise, each once."""
        known = np.isfinite(self.noise)
        upper: NDArray[np.bool_] = np.triu(known, 1)
        return upper

    @property
    def lost_share(self) -> float:
        """Share of the pairs that are lost in the noise."""
        q = len(self.noise)
        return 1 - self.pairs.sum() / (q * (q - 1) / 2) if q > 1 else 0.0

    @property
    def typical_noise(self) -> float:
        """Root mean square of the noise over the pairs that are not lost."""
        return _root_mean_square(self.noise[self.pairs])

    @property
    def typical_bias(self) -> float:
        """Root mean square over these pairs, for the law under which it is largest."""
        return max((_root_mean_square(each[self.pairs]) for each in self.bias.values()), default=0)

    @property
    def typical_error(self) -> float:
        """Noise and bias together: the root of the sum of their squares."""
        return math.hypot(self.typical_noise, self.typical_bias)

    @property
    def largest_error(self) -> float:
        """Largest sum of bias and noise, over pairs and laws.

        Of the noise, as many standard deviations as one of all pairs exceeds on average, and at
        least two.
        """
        pairs = self.pairs
        number = max(int(pairs.sum()), 1)
        reach = max(_LEAST_REACH, float(-ndtri(0.5 / number))) * self.noise[pairs]
        errors = (np.abs(each[pairs]) + reach for each in self.bias.values())
        return max((float(each.max()) for each in errors if each.size), default=0.0)

    @property
    def error_if_centres_are_off(self) -> float:
        """Root mean square of `if_centres_are_off` over these pairs."""
        return _root_mean_square(self.if_centres_are_off[self.pairs])


def correlation_accuracy(
    evidence: Evidence, rows_per_person: int = 1
) -> CorrelationAccuracy | None:
    """Noise in the correlations of a release, and the bias of its normalisation.

    Parameters
    ----------
    evidence
        A release of a second moment, with its histograms if it has some.
    rows_per_person
        Number of rows that are normalised together.

    Returns
    -------
    CorrelationAccuracy or None
        None if there are fewer than two columns, or if the weight of all rows is lost.
    """
    moments = ScaledMoments.of(evidence)
    if moments is None or len(moments.mean) < 2:
        return None
    noise = moments.correlation_noise()
    q = len(noise)
    known = np.isfinite(np.diag(noise))
    laws: dict[str, LawBias] = {}
    if np.count_nonzero(known) > 1 and (evidence.unit or evidence.radius is not None):
        laws = normalisation_bias(evidence, moments, known, rows_per_person)
    bias = {name: each.correlation for name, each in laws.items()}
    bias["missing"] = moments.jointly_missing() if evidence.present else moments.missing_unknown()
    return CorrelationAccuracy(
        noise,
        {name: np.where(np.isfinite(noise), each, 0.0) for name, each in bias.items()},
        np.zeros((q, q)) if moments.intercept else _change_without_leading(moments.denoised),
        np.min([each.spread for each in laws.values()], axis=0)
        if laws and moments.intercept
        else np.ones(q),
        _leading_share(moments.denoised),
    )


def _change_without_leading(second: Array) -> Array:
    """Change of the correlations without what the first eigenvalue has more than the second."""
    values, vectors = np.linalg.eigh(second)
    if len(values) < 2:
        return np.zeros_like(second)
    leading = np.outer(vectors[:, -1], vectors[:, -1])
    rest = second - (values[-1] - max(values[-2], 0.0)) * leading
    change: Array = np.abs(as_correlation(second) - as_correlation(rest))
    return change


def _leading_share(second: Array) -> float:
    """Share of the largest eigenvalue in the trace; 0 for a matrix of zeros."""
    trace = float(np.trace(second))
    return float(np.linalg.eigvalsh(second)[-1]) / trace if trace > 0 else 0.0


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0
