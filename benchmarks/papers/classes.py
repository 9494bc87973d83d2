"""Linear discriminant analysis of two classes, from a release of rows with class indicators."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array
from benchmarks.papers.task import Sample
from gramercy.estimators.discriminant import Discriminant
from gramercy.estimators.noise.denoise import project
from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Labels = NDArray[np.int64]  # 0 or 1


def classified(x: Array, means: Array, shares: Array, precision: Array) -> Labels:
    """Assign each row to the class with the larger score; `means` has shape (2, p)."""
    slopes = means @ precision
    scores = x @ slopes.T - (slopes * means).sum(axis=1) / 2 + np.log(shares)
    result: Labels = scores.argmax(axis=1)
    return result


def with_classes(x: Array, classes: Labels) -> Array:
    """Append two class indicator columns, and scale the rows to length at most one."""
    rows: Array = np.hstack([x, np.eye(2)[classes]]) / np.sqrt(2)
    return rows


@dataclass(frozen=True)
class WithinClasses:
    """Class statistics from the second moment of rows with class indicators, in units of x.

    Parameters
    ----------
    means, shares
        Class means, shape (2, p), and class proportions, shape (2,).
    evidence
        Covariance within classes, with its noise law to first order.
    """

    means: Array
    shares: Array
    evidence: Evidence

    @classmethod
    def of(cls, evidence: Evidence) -> WithinClasses | None:
        """Compute the statistics; None if a class has no positive weight after the noise."""
        raw = evidence.raw
        weights, sums = np.diagonal(raw)[-2:], raw[-2:, :-2]
        if weights.min() <= 0:
            return None
        means, total = sums / weights[:, None], float(weights.sum())
        scatter = (raw[:-2, :-2] - sums.T @ means) / total
        scatter = (scatter + scatter.T) / 2
        law = evidence.law.divided_by(total)
        inner = replace(evidence, raw=scatter, repaired=project(scatter, np.inf), law=law)
        return cls(means, weights / total, inner)

    def errors(self, precision: Array, sample: Sample) -> float:
        """Misclassification rate on the held-out rows, `sample.truth`."""
        x, classes = sample.truth
        return float((classified(x, self.means, self.shares, precision) != classes).mean())


def discriminant(evidence: Evidence, sample: Sample) -> float:
    """Misclassification rate of Gramercy's default discriminant analysis."""
    p = len(evidence.raw) - 2
    numbers = [ColumnFacts(name=f"x{i}", lower=-1, upper=1, centre=0, scale=1) for i in range(p)]
    levels = LevelsFacts(name="class", levels=("0", "1"))
    known = replace(evidence, columns=(*numbers, levels, levels))
    try:
        lines = Discriminant().fit(known).tables["coefficients"]
    except RequestError:  # the weight of a class is not distinguishable from noise
        return smaller(sample)
    x, classes = sample.truth
    scores = x @ lines.iloc[:, 2:].to_numpy(float).T + lines["constant"].to_numpy(float)
    result = lines["class"].to_numpy(int)[scores.argmax(axis=1)]
    return float((result != classes).mean())


def smaller(sample: Sample) -> float:
    """Error rate of always predicting the larger class."""
    _, classes = sample.truth
    return float(np.bincount(classes, minlength=2).min() / classes.size)
