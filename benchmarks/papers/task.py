"""A task of a paper at an exactly accounted guarantee: its mechanism and Gramercy's default.

Public constants give the rows length one. Nothing is tuned on the rows: every method sees only the
release. Both mechanisms have the same exact (epsilon, delta) for replace-one neighbours. Gramercy's
method follows one rule for all papers. A matrix is estimated by the paper's estimator with
Gramercy's tuning. A graph is estimated by the partial correlations of the default ridge. Other
choices are reported as variants.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.graphs.releases import exact, independent, isotropic
from benchmarks.papers.experiment import Figures
from benchmarks.papers.scores import relative
from gramercy.estimators.noise.denoise import denoise
from gramercy.schemas.evidence import Evidence

_PRECISE = 0.006  # relative standard error of the ratio of two noises, in one measurement


@dataclass(frozen=True)
class Sample:
    """The data of one repetition of a task.

    Parameters
    ----------
    rows
        Rows of length at most one, shape (n, p).
    truth
        True values that the scores need.
    """

    rows: Array
    truth: Any = None


Method = Callable[[Evidence, Sample], float]
Release = Callable[[Array, float, Rng], Evidence]


@dataclass(frozen=True)
class Variant:
    """An additional method with its own column in the table.

    Parameters
    ----------
    title
        Title of the column.
    method
        Function from a release to a score.
    ours
        Whether it uses Gramercy's release; otherwise the paper's.
    """

    title: str
    method: Method
    ours: bool = True


@dataclass(frozen=True)
class Task:
    """An estimation task of a paper, with methods and scores.

    Parameters
    ----------
    title
        Title in the tables.
    score, how
        Descriptions of the score and of Gramercy's estimator.
    sample
        Draws the rows and the truth.
    paper, default
        Functions that return the score of the paper's method on its exactly calibrated mechanism,
        and of Gramercy's on the default one. `default` on the exact matrix is the score without
        privacy.
    nothing
        The score without the release.
    variants
        Additional methods.
    larger
        Whether larger scores are better.
    release, own
        The paper's mechanism, and Gramercy's.
    covariance
        Whether the paper's mechanism releases a matrix, so that the two noises can be compared.
    moment
        Whether a second moment follows from its release (noisy rows), so that the errors of the
        matrices can be compared, but not their noises.
    repetitions
        Number of repetitions.
    table
        Folder of the table that it needs, if any.
    remark
        What the page adds below the table: why the paper's method is better, where it is.
    """

    title: str
    score: str
    how: str
    sample: Callable[[Rng], Sample]
    paper: Method
    default: Method
    nothing: Callable[[Sample], float]
    variants: tuple[Variant, ...] = ()
    larger: bool = False
    release: Release = independent
    own: Release = isotropic
    covariance: bool = True
    moment: bool = False
    repetitions: int = 20
    table: str | None = None
    remark: str = ""


def measure(rng: Rng, *, epsilon: float, task: Task) -> Figures:
    """Score both methods on one release each, and the bounds without privacy and release."""
    sample = task.sample(rng)
    rows = sample.rows
    n, p = rows.shape
    ours, theirs = task.own(rows, epsilon, rng), task.release(rows, epsilon, rng)
    known = exact(rows)
    repaired = replace(theirs, repaired=denoise(theirs.raw, theirs.law, 1.0, float(n)))
    figures: Figures = {
        "n": n,
        "p": p,
        "paper": task.paper(theirs, sample),
        "estimator": task.default(repaired, sample),
        "default": task.default(ours, sample),
        "without": task.default(known, sample),
        "nothing": task.nothing(sample),
    }
    for each in task.variants:
        figures[each.title] = each.method(ours if each.ours else theirs, sample)
    if task.covariance:
        figures |= _noises(task, rows, epsilon, rng)
    if task.covariance or task.moment:
        matrices = {"paper_raw": theirs.raw, "raw": ours.raw, "denoised": ours.repaired}
        figures |= {name: relative(each, known.raw) for name, each in matrices.items()}
        figures["even"] = relative(np.eye(p) / p, known.raw)
    return figures


def _noises(task: Task, rows: Array, epsilon: float, rng: Rng) -> Figures:
    """Root mean square errors of both raw matrices, over enough releases to compare them.

    A few rows suffice, because the noise on their sum does not depend on their number.
    """
    few = rows[: 2 * rows.shape[1]]
    moment = few.T @ few / len(few)
    times = max(1, math.ceil((math.sqrt(2) / (rows.shape[1] * _PRECISE)) ** 2))

    def error(release: Release) -> float:
        off = [np.square(release(few, epsilon, rng).raw - moment).sum() for _ in range(times)]
        return math.sqrt(float(np.mean(off)))

    return {"noise_paper": error(task.release), "noise_ours": error(task.own)}
