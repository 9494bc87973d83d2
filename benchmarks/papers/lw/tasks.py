"""What Li and Wang estimate, at a sound guarantee: covariances, and classes.

Our default for a covariance is the denoised matrix of the release where noise is most of it (300
rows): it falls back to what is public, where every threshold leaves the diagonal's noise as it is.
Where entries stand out of the noise (20,000 rows) it is `ThresholdedCovariance`, with a threshold
of every entry's own noise and sampling error; the table of the matrix has the denoised one beside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.graphs.data import normalised
from benchmarks.graphs.truths import of_unit_rows
from benchmarks.papers import data
from benchmarks.papers.lw import qda
from benchmarks.papers.lw.models import covariance, drawn
from benchmarks.papers.scores import relative
from benchmarks.papers.sound import Sample, Task
from benchmarks.papers.thresholding import estimate
from estimators.discriminant import Discriminant
from estimators.noise.denoise import project
from estimators.threshold import ThresholdedCovariance
from schemas.errors import RequestError
from schemas.evidence import Evidence
from schemas.manifest import ColumnFacts, LevelsFacts
from schemas.noise import NoiseLaw

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
    x, classes = qda.features()
    x = normalised(x)
    held = qda.split(classes, rng)
    together = np.hstack([x, np.eye(2)[classes]]) / np.sqrt(2)
    return Sample(together[~held], (x[held], classes[held]))


@dataclass(frozen=True)
class _Within:
    """What discriminant analysis needs of one noisy matrix, in the units of the features."""

    means: Array
    shares: Array
    scatter: Array
    law: NoiseLaw  # of the entries of the scatter, to first order


def _within(evidence: Evidence) -> _Within | None:
    """None where noise has left a class without weight."""
    raw = evidence.raw
    weights, sums = np.diag(raw)[-2:], raw[-2:, :-2]
    if (weights <= 0).any():
        return None
    means, total = sums / weights[:, None], float(weights.sum())
    scatter = (raw[:-2, :-2] - sums.T @ means) / total
    by = {key: getattr(evidence.law, key) / total for key in ("sd_diagonal", "sd_off_diagonal")}
    law = evidence.law.model_copy(update=by)
    return _Within(means, weights / total, (scatter + scatter.T) / 2, law)


def pooled(evidence: Evidence, sample: Sample) -> float:
    """The paper's score, thresholded with theta from the release."""
    of = _within(evidence)
    if of is None:
        return larger(sample)
    inner = Evidence(of.scatter, project(of.scatter, np.inf), of.law, evidence.rows)
    made = ThresholdedCovariance.model_validate({"threshold": "lw", "keep_diagonal": False})
    return _wrong(of, made.fit(inner).matrix, sample)


def best(evidence: Evidence, sample: Sample) -> float:
    """The same by the best of many thresholds: the paper chooses one by cross-validation.

    No guarantee covers that. Here only the test rows themselves can tell: more than it could have.
    """
    of = _within(evidence)
    if of is None:
        return larger(sample)
    grid = np.linspace(0, np.abs(of.scatter).max(), THRESHOLDS)
    return min(_wrong(of, estimate(of.scatter, float(by)), sample) for by in grid)


def _wrong(of: _Within, covariance: Array, sample: Sample) -> float:
    x, classes = sample.truth
    found = qda.classified(x, of.means, of.shares, covariance)
    return float((found != classes).mean())


def discriminant(evidence: Evidence, sample: Sample) -> float:
    """Ours: `Discriminant`, with its defaults."""
    p = len(evidence.raw) - 2
    numbers = [ColumnFacts(name=f"x{i}", lower=-1, upper=1, centre=0, scale=1) for i in range(p)]
    levels = LevelsFacts(name="class", levels=("0", "1"))
    known = replace(evidence, columns=(*numbers, levels, levels))
    try:
        lines = Discriminant().fit(known).tables["coefficients"]
    except RequestError:  # a class is lost in the noise
        return larger(sample)
    x, classes = sample.truth
    scores = x @ lines.iloc[:, 2:].to_numpy(float).T + lines["constant"].to_numpy(float)
    found = lines["class"].to_numpy(int)[scores.argmax(axis=1)]
    return float((found != classes).mean())


def larger(sample: Sample) -> float:
    """Whoever always says the larger class."""
    _, classes = sample.truth
    return float(np.bincount(classes).min() / classes.size)


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
        default=discriminant,
        nothing=larger,
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
        default=discriminant,
        nothing=larger,
        table=qda.TABLE,
    ),
}
