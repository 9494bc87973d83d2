"""What Li and Wang estimate, at a sound guarantee: covariances, and classes.

Our default for a covariance is the denoised matrix of the release where noise is most of it (300
rows): it falls back to what is public, where every threshold leaves the diagonal's noise as it is.
Where entries stand out of the noise (20,000 rows) it is `ThresholdedCovariance`, with a threshold
of every entry's own noise and sampling error; the table of the matrix has the denoised one beside.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.graphs.data import normalised
from benchmarks.graphs.truths import of_unit_rows
from benchmarks.papers import classes, data
from benchmarks.papers.classes import Within
from benchmarks.papers.lw import qda
from benchmarks.papers.lw.models import covariance, drawn
from benchmarks.papers.scores import relative
from benchmarks.papers.sound import Sample, Task
from benchmarks.papers.thresholding import estimate
from estimators.threshold import ThresholdedCovariance
from schemas.evidence import Evidence

Array = NDArray[np.float64]
Rng = np.random.Generator
COLUMNS = 100
THRESHOLDS = 41


def rows(rng: Rng, n: int) -> Sample:
    """Model 1; t rows of length one have the very same law as normal ones."""
    of = covariance(1, COLUMNS)
    return Sample(data.unit(drawn(of, "normal", n, rng)), of_unit_rows(of))


def thresholded(evidence: Evidence, sample: Sample, paper: str = "lw") -> float:
    """The paper's estimator: its constant as `estimators.threshold` has it from the release."""
    made = ThresholdedCovariance.model_validate({"threshold": paper, "keep_diagonal": False})
    return relative(made.fit(evidence).matrix, sample.truth)


def denoised(evidence: Evidence, sample: Sample) -> float:
    return relative(evidence.repaired, sample.truth)


def ours(evidence: Evidence, sample: Sample) -> float:
    """The threshold of every entry."""
    return relative(ThresholdedCovariance().fit(evidence).matrix, sample.truth)


def even(sample: Sample) -> float:
    """Rows have length one, so the trace is known: as much for every column."""
    p = len(sample.truth)
    return relative(np.eye(p) / p, sample.truth)


def labelled(rng: Rng) -> Sample:
    """Features of length one beside the zeros and ones of the classes: together of length one."""
    x, of = qda.features()
    x = normalised(x)
    held = qda.split(of, rng)
    return Sample(classes.beside(x, of)[~held], (x[held], of[held]))


def pooled(evidence: Evidence, sample: Sample) -> float:
    """The paper's score, thresholded with theta from the release."""
    of = Within.of(evidence)
    if of is None:
        return classes.smaller(sample)
    made = ThresholdedCovariance.model_validate({"threshold": "lw", "keep_diagonal": False})
    return of.errors(qda.inverse(made.fit(of.evidence).matrix), sample)


def best(evidence: Evidence, sample: Sample) -> float:
    """The same by the best of many thresholds: the paper chooses one by cross-validation.

    No guarantee covers that. Here only the test rows themselves can tell: more than it could have.
    """
    of = Within.of(evidence)
    if of is None:
        return classes.smaller(sample)
    scatter = of.evidence.raw
    every = (
        estimate(scatter, float(by)) for by in np.linspace(0, np.abs(scatter).max(), THRESHOLDS)
    )
    return min(of.errors(qda.inverse(made), sample) for made in every)


TASKS = {
    "covariance-300": Task(
        title="covariance of Model 1, p = 100, n = 300 (ours: the denoised matrix)",
        score="relative Frobenius error",
        sample=partial(rows, n=300),
        paper=thresholded,
        default=denoised,
        nothing=even,
    ),
    "covariance-20000": Task(
        title="covariance of Model 1, p = 100, n = 20,000 (ours: thresholded)",
        score="relative Frobenius error",
        sample=partial(rows, n=20_000),
        paper=thresholded,
        default=ours,
        nothing=even,
    ),
    "discriminant": Task(
        title=f"discriminant analysis of {qda.TABLE}",
        score="share of test rows misclassified",
        sample=labelled,
        paper=pooled,
        default=classes.discriminant,
        nothing=classes.smaller,
        table=qda.TABLE,
    ),
    "discriminant-best": Task(
        title=(
            f"discriminant analysis of {qda.TABLE} (the paper's: the threshold that is best for "
            "the test rows)"
        ),
        score="share of test rows misclassified",
        sample=labelled,
        paper=best,
        default=classes.discriminant,
        nothing=classes.smaller,
        table=qda.TABLE,
    ),
}
