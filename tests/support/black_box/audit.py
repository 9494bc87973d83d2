"""Lower bounds of the privacy loss, proven from outputs of two neighbours alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from gramercy.mechanisms.accounting.guarantee import Guarantee
from tests.support.black_box.likelihood_ratios import log_likelihood_ratio
from tests.support.black_box.outputs import Pair, batched_outputs, single_outputs
from tests.support.black_box.tape import Array

EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0)
DOUBT = 0.01


@dataclass(frozen=True)
class Audit:
    """What outputs prove, all of it together with the requested confidence.

    Parameters
    ----------
    mu, epsilon
        Lower bounds: of Gaussian differential privacy, and of a pure epsilon.
    delta
        Lower bounds at `EPSILONS`.
    events
        Of the attackers behind them: an upper bound of false positives, a lower bound of true ones.
    """

    mu: float
    epsilon: float
    delta: dict[float, float]
    events: list[tuple[float, float]]

    def alarms(self, claim: Guarantee) -> list[str]:
        """The bounds that disprove a claim."""
        found = []
        if self.mu > claim.mu and claim.delta0 == 0:
            found.append(f"mu {self.mu:.4f} > {claim.mu:.4f}")
        if self.epsilon > claim.pure:
            found.append(f"epsilon {self.epsilon:.4f} > {claim.pure:.4f}")
        found += [
            f"delta({e:g}) {least:.3g} > {claim.delta(e):.3g}"
            for e, least in self.delta.items()
            if least > claim.delta(e)
        ]
        found += [
            f"{caught:.4f} true positives at {alarms:.4f} false positives"
            for alarms, caught in self.events
            if caught > ndtr(ndtri(alarms) + claim.mu) + claim.delta0
        ]
        return found


def audit_statistics(null: Array, other: Array, confidence: float = 1 - 1e-6) -> Audit:
    """Lower bounds from a statistic of outputs of `one` and of `other`.

    Thresholds are chosen on a fifth of the outputs. The others are counted beyond them, with
    Clopper-Pearson bounds that share the allowed error probability. The choice uses pessimistic
    counts: of some 200 thresholds the best-looking one is otherwise too often in an empty tail.
    """
    hold = len(null) // 5
    levels = np.concatenate([np.geomspace(0.5 / hold, 0.02, 60), np.linspace(0.02, 0.98, 97)])
    levels = np.concatenate([levels, 1 - levels[:60]])
    pooled = np.concatenate([null[:hold], other[:hold]])
    thresholds = np.unique(np.quantile(pooled, levels, method="closest_observation"))
    risk = (1 - confidence) / (2 * (2 + len(EPSILONS)))
    seen = [_beyond(each[:hold], thresholds) for each in (null, other)]
    size = len(null) - hold
    likely = _bounds(seen[0], seen[1], hold, DOUBT)
    guess = _bounds(likely[0] * size, likely[1] * size, size, risk)
    chosen = [int(_mu(*guess).argmax()), int(_epsilon(*guess).argmax())]
    chosen += [int(_delta(*guess, e).argmax()) for e in EPSILONS]
    left = [_beyond(each[hold:], thresholds[chosen]) for each in (null, other)]
    alarms, caught = _bounds(left[0], left[1], size, risk)
    deltas = {e: float(_delta(alarms[i], caught[i], e)) for i, e in enumerate(EPSILONS, start=2)}
    return Audit(
        float(_mu(alarms[0], caught[0])),
        float(_epsilon(alarms[1], caught[1])),
        deltas,
        list(zip(alarms.tolist(), caught.tolist(), strict=True)),
    )


def audit(mechanism: Any, pair: Pair, draws: int, *, compared: int = 5) -> Audit:
    """Audit a mechanism of the registry, on `draws` outputs of each neighbour."""
    one, other = (
        log_likelihood_ratio(
            mechanism, pair, batched_outputs(mechanism, given, rows, draws, compared=compared)
        )
        for given, rows in zip((pair.one, pair.other), pair.rows, strict=True)
    )
    return audit_statistics(one, other)


def _beyond(statistic: Array, thresholds: Array) -> Array:
    return len(statistic) - np.searchsorted(np.sort(statistic), thresholds, side="left")


def _bounds(alarms: Array, caught: Array, size: int, risk: float) -> tuple[Array, Array]:
    """An upper bound of the false-positive rate, and a lower bound of the true-positive rate."""
    most = np.where(
        alarms < size, betaincinv(alarms + 1, np.maximum(size - alarms, 1), 1 - risk), 1
    )
    least = np.where(caught > 0, betaincinv(np.maximum(caught, 1), size - caught + 1, risk), 0)
    return most, least


def _mu(alarms: Array, caught: Array) -> Array:
    return np.asarray(ndtri(np.clip(caught, 0, 1)) - ndtri(alarms))


def _epsilon(alarms: Array, caught: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        forth, back = np.log(caught / alarms), np.log((1 - alarms) / (1 - caught))
    return np.asarray(np.maximum(forth, back))


def _delta(alarms: Array, caught: Array, epsilon: float) -> Array:
    grows = math.exp(epsilon)
    return np.asarray(np.maximum(caught - grows * alarms, 1 - alarms - grows * (1 - caught)))


def count_impossible(one: Array, own: Array, neighbours: Array, slack: float = 0.0) -> int:
    """Count the outputs of one table that are impossible for its neighbour under one-sided noise.

    Parameters
    ----------
    one
        Outputs, shape (draws, p, p).
    own, neighbours
        The exact value of the table, and of its neighbour.
    slack
        How much rounding may change an eigenvalue.

    Returns
    -------
    int
        0 unless all noise is positive semidefinite, which never happens with full support.
    """
    if (np.linalg.eigvalsh(one - own)[:, 0] < -slack).any():
        return 0
    return int((np.linalg.eigvalsh(one - neighbours)[:, 0] < -slack).sum())


def draws_differ(mechanism: Any, pair: Pair) -> bool:
    """Whether every number differs between two runs on the same data, and within each run.

    Integers are often equal twice, but never ten times.
    """
    one, other = (single_outputs(mechanism, pair.one, pair.rows[0], 10).values for _ in range(2))
    return not ((one == other).all(axis=0).any() or (one[1:] == one[0]).all(axis=0).any())
