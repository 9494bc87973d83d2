"""A task of a paper at a sound, exactly accounted guarantee: its mechanism, and our default.

Rows have length one by public constants, and nothing is tuned on them: every method sees the
release alone. Both mechanisms have the same exact (epsilon, delta), replace-one. Ours is by one
rule for all papers: a matrix by the estimator that the paper asks for, with our tuning; a graph by
the partial correlations of the default ridge. Other choices are reported as variants.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.graphs.releases import exact, independent, isotropic
from benchmarks.papers.experiment import Figures
from benchmarks.papers.scores import relative
from gramercy.estimators.noise.denoise import denoise
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]
Rng = np.random.Generator
_PRECISE = 0.006  # the standard error of the ratio of two noises, in one measurement


@dataclass(frozen=True)
class Sample:
    """What a task works on.

    Parameters
    ----------
    rows
        Of length at most one, shape (n, p).
    truth
        Whatever the scores need.
    """

    rows: Array
    truth: Any = None


Method = Callable[[Evidence, Sample], float]
Release = Callable[[Array, float, Rng], Evidence]


@dataclass(frozen=True)
class Variant:
    """Another method, with its own column.

    Parameters
    ----------
    title
        Of the column.
    method
        From a release to a score.
    ours
        Whether it uses our release or the paper's.
    """

    title: str
    method: Method
    ours: bool = True


@dataclass(frozen=True)
class Task:
    """What an experiment of a paper asks of a release.

    Parameters
    ----------
    title
        In the tables.
    score, how
        What the methods' numbers are, and what our estimator is, in words.
    sample
        The rows, and the truth.
    paper, default
        The paper's method, from its mechanism calibrated exactly; ours from our default.
        They return the score; `default` on the exact matrix is the score without privacy.
    nothing
        The score without the release.
    variants
        Other methods.
    larger
        Whether larger scores are better.
    release, own
        The paper's mechanism, and ours.
    covariance
        Whether it releases a matrix, so that the two noises can be compared.
    moment
        Whether a second moment follows from what it releases (noisy rows), so that the errors of
        the matrices can be compared, though not their noises.
    repetitions
        How often.
    table
        The folder of the table it needs, if any.
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


def measure(rng: Rng, *, epsilon: float, task: Task) -> Figures:
    """Both methods on one release each, and what bounds them from above and below."""
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
    """Root mean square errors of both raw matrices, of as many releases as it takes to compare.

    Of a few rows: the noise on their sum does not depend on how many there are.
    """
    few = rows[: 2 * rows.shape[1]]
    moment = few.T @ few / len(few)
    times = max(1, math.ceil((math.sqrt(2) / (rows.shape[1] * _PRECISE)) ** 2))

    def error(release: Release) -> float:
        off = [np.square(release(few, epsilon, rng).raw - moment).sum() for _ in range(times)]
        return math.sqrt(float(np.mean(off)))

    return {"noise_paper": error(task.release), "noise_ours": error(task.own)}
