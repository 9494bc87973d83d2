"""Check that the published numbers of a release agree with each other, as far as noise allows.

A release with private constants states some facts of its table several times: how many rows are
clipped is in the histogram of row lengths, in the matrix and in the matrix of lost moments. Each
has noise of its own, whose law is public. So a matrix that was exchanged, or set to zero, is found
if the difference is more than the noise explains.

Every check is an inequality between exact sums that holds for any table. Its score is how far the
published numbers are beyond it, in standard deviations of their noise. The probability that the
score of an intact release exceeds t is at most exp(-t^2/2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, ndtri

from gramercy.archive.bundles.bundle_kinds import FURTHER, ReleaseBundle
from gramercy.archive.bundles.number_files import GROUP_FILES, GROUPS, MARGINALS
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.publish.drawing import MATRIX
from gramercy.schemas import wordings
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import Lost

Array = NDArray[np.float64]

_LEVEL = 1e-9  # probability that an intact release fails any check
_ROUNDED = 0.25  # variance that bounds what rounding adds to the noise of a count
_SURE = 8.0  # standard deviations that noise never exceeds
_OPEN = 1e300  # squared length at the open end of a bin


Score = tuple[str, str, float]  # how far a file contradicts its source


@dataclass(frozen=True)
class Sum:
    """A sum over a table, and the variance of its noise, which is independent of that of others."""

    value: float
    variance: float

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.value + other.value, self.variance + other.variance)

    def __mul__(self, factor: float) -> Sum:
        return Sum(self.value * factor, self.variance * factor**2)

    def at_most(self, other: Sum, slack: float, file: str, source: str) -> Score:
        """The check that this sum is at most another one and a slack."""
        excess = self + other * -1.0
        return file, source, (excess.value - slack) / math.sqrt(excess.variance)


@dataclass(frozen=True)
class Matrix:
    """The sum of x x^T over rows x, of which none is longer than `longest`."""

    file: str
    sums: Array
    sd: Array  # of the noise of every entry; infinite if it is not Gaussian
    longest: float
    step: float  # of the lattice on which rows are rounded

    def trace(self, first: int = 0, end: int | None = None) -> Sum:
        """The sum of squares of a range of columns."""
        sums, sd = np.diag(self.sums)[first:end], np.diag(self.sd)[first:end]
        return Sum(float(sums.sum()), float((sd**2).sum()))

    def rounding(self, square: float | None = None) -> float:
        """Largest effect of rounding on a row's x x^T, or on a cell's square of at most `square`.

        A cell moves by at most a step of the lattice, because rows of persons are rounded twice.
        """
        cells, square = (len(self.sums), self.longest**2) if square is None else (1, square)
        return 2 * self.step * math.sqrt(cells * square) + cells * self.step**2

    def scores(self) -> Iterator[Score]:
        """The sum is hardly negative in any direction, and is not far below its noise."""
        p, upper, sd = len(self.sums), np.triu_indices(len(self.sums)), float(self.sd[0, -1])
        if math.isinf(sd):
            return
        negative = -float(np.linalg.eigvalsh(self.sums)[0]) / sd
        yield self.file, "its noise", (negative - 2 * math.sqrt(p)) / math.sqrt(2)
        square = ((self.sums / self.sd)[upper] ** 2).sum()  # chi-squared, of noise alone
        yield self.file, "its noise", -float(ndtri(gammainc(len(upper[0]) / 2, square / 2)))


class Lengths:
    """What the published lengths of rows, or of persons, say of sums over rows of the unit ball."""

    def __init__(self, bundle: ReleaseBundle, lost: Lost) -> None:
        facts, histogram, square = bundle.manifest, bundle.histograms[-1], lost.radius**2
        self.calibration = calibrate(facts)
        self._count, self._variance = histogram.count, histogram.sd**2 + _ROUNDED
        low = np.nan_to_num(histogram.lower) ** 2 / square
        high = np.append(low[1:], _OPEN)
        if facts.parts > 1:  # malformed lines are rows, with the cells that their folders state
            high[0] = _OPEN
        # A row z loses (1 - w) y y^T, where y has another number a for its intercept; see `Lost`.
        # This is the least and the largest |y|^2/|z|^2, of one row and of the rows of a person.
        other = lost.intercept**2
        shortest = min(other, 1.0) if facts.intercept else 1.0
        longest = 1 + other / (1 if facts.privacy_unit == "person" else square)
        least, most = np.maximum(low - 1, 0) * shortest, np.maximum(high - 1, 0) * longest
        self.kept = self._sum(np.minimum(low, 1)), self._sum(np.minimum(high, 1))
        self.lost = self._sum(np.minimum(least, lost.cut)), self._sum(np.minimum(most, lost.cut))
        clipped = self._sum(high > 1)
        self.most_clipped = clipped.value + _SURE * math.sqrt(clipped.variance)
        # Rows whose loss is cut, and the first bin, where malformed lines are counted.
        self.uncounted = self._sum((most > lost.cut) | (low == low[0]))

    def _sum(self, weights: NDArray[Any]) -> Sum:
        weights = weights.astype(np.float64)
        return Sum(float(self._count @ weights), self._variance * float(weights @ weights))


class Part:
    """A release, or a group of its rows: sums over rows of the unit ball."""

    def __init__(self, bundle: ReleaseBundle, lengths: Lengths, files: Mapping[str, str]) -> None:
        facts, rows = bundle.manifest, bundle.manifest.rows
        self.facts, self.lengths = facts, lengths  # of the whole release
        self.persons = facts.privacy_unit == "person"
        # Upper bounds on the numbers of rows that are rounded, and that lose something.
        each = max(1.0, facts.dataset.rows / facts.dataset.count)
        self.most = (rows.value + _SURE * rows.sd) * each
        self.most_clipped = self.most if self.persons else min(lengths.most_clipped, self.most)

        def matrix(name: str, mean: Array, law: NoiseLaw, norm: float, step: float) -> Matrix:
            gaussian = law.family in {"gaussian-isotropic", "gaussian-iid"}
            sd = law.deviations(len(mean)) if gaussian else np.full_like(mean, math.inf)
            length = math.sqrt(norm)
            return Matrix(files[name], rows.value * mean, rows.value * sd, length, length * step)

        own = lengths.calibration
        self.kept = matrix(MATRIX, bundle.unbiased, facts.noise, 1.0, own.mechanism.lattice.step)
        self.further = dict[str, Matrix]()
        for name, form in facts.further_rows.items():
            law, step = facts.further_facts[name].noise, own.further[name].lattice.step
            self.further[name] = matrix(name, bundle.further[name], law, form.norm, step)

    def scores(self) -> Iterator[Score]:
        """All checks without counts."""
        for matrix in (self.kept, *self.further.values()):
            yield from matrix.scores()
        lost = self.facts.lost_rows
        if lost is not None and lost.intercept and not self.persons:
            yield from self._of_weights(lost)
        if "missing" in self.further:
            yield from self._of_missing(self.further["missing"])

    def _of_weights(self, facts: Lost) -> Iterator[Score]:
        """What is kept of rows and what they lose are all rows, except uncounted ones."""
        lost, source, rows = self.further["lost"], "the number of rows", self.facts.rows
        counted = Sum(rows.observed, rows.sd**2 + _ROUNDED)
        of_kept, of_lost = facts.radius**2, (facts.radius / facts.intercept) ** 2
        weight = self.kept.trace(end=1) * of_kept + lost.trace(end=1) * of_lost
        slack = self.most * self.kept.rounding(1 / of_kept) * of_kept
        slack += self.most_clipped * lost.rounding(1 / of_lost) * of_lost
        yield weight.at_most(counted, slack, lost.file, source)
        yield counted.at_most(weight + self.lengths.uncounted, slack, lost.file, source)

    def _of_missing(self, missing: Matrix) -> Iterator[Score]:
        """Its first columns are those of the matrix, unless rows of a person are shortened."""
        p, factor = len(self.kept.sums), 2 / missing.longest**2
        slack = self.most * (self.kept.rounding() + factor * missing.rounding())
        kept, least = self.kept.trace(), missing.trace(end=p) * factor
        most = missing.trace() * factor if self.persons else least
        yield least.at_most(kept, slack, missing.file, self.kept.file)
        yield kept.at_most(most, slack, missing.file, self.kept.file)

    def scores_of_counts(self, bundle: ReleaseBundle) -> Iterator[Score]:
        """Traces against the lengths of rows, and the diagonal of missing cells against counts."""
        missing = self.facts.missing_rows
        for matrix, (least, most), rows in (
            (self.kept, self.lengths.kept, self.most),
            (self.further["lost"], self.lengths.lost, self.most_clipped),
        ):
            slack, trace = rows * matrix.rounding(), matrix.trace()
            yield trace.at_most(most, slack, matrix.file, MARGINALS)
            yield least.at_most(trace, slack, matrix.file, MARGINALS)
        # The constants of a later release are those of an earlier one, whose cells were counted.
        if missing is None or self.persons or not bundle.marginals:
            return
        p, matrix = len(self.kept.sums), self.further["missing"]
        slack = self.most * matrix.rounding(1)
        shortest = min(missing.cut / len(missing.columns), 1.0)  # square that stands for a cell
        for place, k in enumerate(missing.columns, start=p):
            own, counts = matrix.trace(place, place + 1), bundle.marginals[k]
            counted = Sum(float(counts.count[-1]), counts.sd**2 + _ROUNDED)
            yield own.at_most(counted, slack, matrix.file, MARGINALS)
            most = own + self.lengths.uncounted
            yield (counted * shortest).at_most(most, slack, matrix.file, MARGINALS)


def check_agreement(place: Path, bundle: ReleaseBundle) -> None:
    """Check that matrices, groups and histograms of a release agree within their noise.

    Raises
    ------
    BundleError
        If they contradict each other.
    """
    scores = list(_scores(bundle))
    most = math.sqrt(2 * math.log(max(len(scores), 1) / _LEVEL))
    for file, source, value in scores:
        if not value <= most:
            raise wordings.file_contradicts(str(place / file), source)


def _scores(bundle: ReleaseBundle) -> Iterator[Score]:
    facts, lost = bundle.manifest, bundle.manifest.lost_rows
    if lost is None:
        return
    lengths = Lengths(bundle, lost)
    files = {MATRIX: MATRIX} | {name: f"{stem}.npy" for name, stem in FURTHER.items()}
    whole = Part(bundle, lengths, files)
    yield from whole.scores()
    yield from whole.scores_of_counts(bundle)
    for k in range(len(facts.groups)):
        group = Part(bundle.of_group(k), lengths, {MATRIX: GROUPS} | GROUP_FILES)
        yield from group.scores()
