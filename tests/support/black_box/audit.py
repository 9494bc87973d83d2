"""Lower bounds on the privacy loss, proven by outputs for two neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from gramercy.mechanisms.accounting.guarantee import Guarantee
from tests.support.black_box.likelihood_ratios import log_likelihood_ratio
from tests.support.black_box.outputs import Pair, batched_outputs, single_outputs
from tests.support.black_box.replay import Array

EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0)
DOUBT = 0.01


@dataclass(frozen=True)
class Audit:
    """Bounds that outputs prove. All hold simultaneously with the requested confidence.

    Parameters
    ----------
    mu, epsilon
        Lower bounds on mu of Gaussian differential privacy, and on a pure epsilon.
    delta
        Lower bounds on delta at `EPSILONS`.
    events
        For each attack, an upper bound on its false positive rate and a lower bound on its true
        positive rate.
    """

    mu: float
    epsilon: float
    delta: dict[float, float]
    events: list[tuple[float, float]]

    def alarms(self, claim: Guarantee) -> list[str]:
        """Descriptions of the bounds that disprove a claim."""
        violations = []
        if self.mu > claim.mu and claim.delta0 == 0:
            violations.append(f"mu {self.mu:.4f} > {claim.mu:.4f}")
        if self.epsilon > claim.pure:
            violations.append(f"epsilon {self.epsilon:.4f} > {claim.pure:.4f}")
        violations += [
            f"delta({e:g}) {bound:.3g} > {claim.delta(e):.3g}"
            for e, bound in self.delta.items()
            if bound > claim.delta(e)
        ]
        violations += [
            f"{true_positives:.4f} true positives at {false_positives:.4f} false positives"
            for false_positives, true_positives in self.events
            if true_positives > ndtr(ndtri(false_positives) + claim.mu) + claim.delta0
        ]
        return violations


def audit_statistics(null: Array, shifted: Array, confidence: float = 1 - 1e-6) -> Audit:
    """Lower bounds from a statistic of outputs of two neighbours.

    A fifth of the outputs selects the thresholds. The others give Clopper-Pearson bounds at these
    thresholds, which share the allowed error probability. The selection uses pessimistic counts:
    otherwise the best of some 200 thresholds is too often in an empty tail.
    """
    held_out = len(null) // 5
    levels = np.concatenate([np.geomspace(0.5 / held_out, 0.02, 60), np.linspace(0.02, 0.98, 97)])
    levels = np.concatenate([levels, 1 - levels[:60]])
    pooled = np.concatenate([null[:held_out], shifted[:held_out]])
    thresholds = np.unique(np.quantile(pooled, levels, method="closest_observation"))
    risk = (1 - confidence) / (2 * (2 + len(EPSILONS)))
    counts = [_beyond(each[:held_out], thresholds) for each in (null, shifted)]
    size = len(null) - held_out
    pessimistic = _bounds(counts[0], counts[1], held_out, DOUBT)
    rates = _bounds(pessimistic[0] * size, pessimistic[1] * size, size, risk)
    chosen = [int(_mu(*rates).argmax()), int(_epsilon(*rates).argmax())]
    chosen += [int(_delta(*rates, e).argmax()) for e in EPSILONS]
    remaining_counts = [_beyond(each[held_out:], thresholds[chosen]) for each in (null, shifted)]
    false_positives, true_positives = _bounds(remaining_counts[0], remaining_counts[1], size, risk)
    deltas = {
        e: float(_delta(false_positives[i], true_positives[i], e))
        for i, e in enumerate(EPSILONS, start=2)
    }
    return Audit(
        float(_mu(false_positives[0], true_positives[0])),
        float(_epsilon(false_positives[1], true_positives[1])),
        deltas,
        list(zip(false_positives.tolist(), true_positives.tolist(), strict=True)),
    )


def audit(mechanism: Any, pair: Pair, draws: int, *, compared: int = 5) -> Audit:
    """Audit a mechanism of the registry, on `draws` outputs of each neighbour."""
    first, second = (
        log_likelihood_ratio(
            mechanism, pair, batched_outputs(mechanism, table, rows, draws, compared=compared)
        )
        for table, rows in zip((pair.first, pair.second), pair.rows, strict=True)
    )
    return audit_statistics(first, second)


def _beyond(statistic: Array, thresholds: Array) -> Array:
    return len(statistic) - np.searchsorted(np.sort(statistic), thresholds, side="left")


def _bounds(
    false_positives: Array, true_positives: Array, size: int, risk: float
) -> tuple[Array, Array]:
    """An upper bound of the false-positive rate, and a lower bound of the true-positive rate."""
    upper = np.where(
        false_positives < size,
        betaincinv(false_positives + 1, np.maximum(size - false_positives, 1), 1 - risk),
        1,
    )
    lower = np.where(
        true_positives > 0,
        betaincinv(np.maximum(true_positives, 1), size - true_positives + 1, risk),
        0,
    )
    return upper, lower


def _mu(false_positives: Array, true_positives: Array) -> Array:
    return np.asarray(ndtri(np.clip(true_positives, 0, 1)) - ndtri(false_positives))


def _epsilon(false_positives: Array, true_positives: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio, log_ratio_of_negatives = (
            np.log(true_positives / false_positives),
            np.log((1 - false_positives) / (1 - true_positives)),
        )
    return np.asarray(np.maximum(log_ratio, log_ratio_of_negatives))


def _delta(false_positives: Array, true_positives: Array, epsilon: float) -> Array:
    factor = math.exp(epsilon)
    return np.asarray(
        np.maximum(
            true_positives - factor * false_positives,
            1 - false_positives - factor * (1 - true_positives),
        )
    )


def count_impossible(
    outputs: Array, own_value: Array, neighbour_value: Array, slack: float = 0.0
) -> int:
    """Count the outputs of one table that are impossible for its neighbour under one-sided noise.

    Parameters
    ----------
    outputs
        Outputs, shape (draws, p, p).
    own_value, neighbour_value
        The exact value of the table, and of its neighbour.
    slack
        Largest change of an eigenvalue by rounding.

    Returns
    -------
    int
        0 unless all noise is positive semidefinite, which never happens with full support.
    """
    if (np.linalg.eigvalsh(outputs - own_value)[:, 0] < -slack).any():
        return 0
    return int((np.linalg.eigvalsh(outputs - neighbour_value)[:, 0] < -slack).sum())


def impossible_outputs(mechanism: Any, pair: Pair, draws: int = 100) -> int:
    """Count outputs of either neighbour that are impossible for the other, of `draws` each."""
    slack = mechanism.parameters.p if pair.first.dtype.kind == "i" else 1e-9
    first, second = (
        single_outputs(mechanism, table, rows, draws).values
        for table, rows in zip((pair.first, pair.second), pair.rows, strict=True)
    )
    return count_impossible(first, pair.first, pair.second, slack) + count_impossible(
        second, pair.second, pair.first, slack
    )


def draws_differ(mechanism: Any, pair: Pair) -> bool:
    """Whether every number differs between two runs on the same data, and within each run.

    Integers are often equal twice, but never ten times.
    """
    first, second = (
        single_outputs(mechanism, pair.first, pair.rows[0], 10).values for _ in range(2)
    )
    return not ((first == second).all(axis=0).any() or (first[1:] == first[0]).all(axis=0).any())
