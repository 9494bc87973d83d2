"""Check that the published numbers of a release agree with each other, as far as noise allows.

A release with private constants states some facts of its table several times: how many rows are
clipped is in the histogram of row lengths, in the matrix and in the matrix of lost moments. Each
has noise of its own, whose law is public. So a matrix that was exchanged, or set to zero, is found
if the difference is more than the noise explains.

Every check is an inequality between exact sums that holds for any table. Its score is how far the
published numbers are beyond it, in standard deviations of their noise. The probability that the
score of an intact release exceeds t is at most exp(-t^2/2).

A step of a cumulative series states whole numbers and what is decoded from them. Both are sums of
squares, also if rows were added late or deleted: a row then has a share between 0 and 1 in the sum
over all steps so far. That over one step alone may be negative, so it is not checked.
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

from gramercy.archive.bundles.bundle_kinds import (
    FURTHER,
    PILOT,
    WHITENED,
    ReleaseBundle,
)
from gramercy.archive.bundles.encoded_file import ENCODED
from gramercy.archive.bundles.number_files import GROUP_FILES, GROUPS, MARGINALS
from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.common.metric import ROW_BITS, congruence
from gramercy.common.prefix_sums import UNIT
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.publish.drawing import MATRIX
from gramercy.schemas import wordings
from gramercy.schemas.evidence import ROW_LENGTHS, TURNED_LENGTHS, Histogram
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import Lost

Array = NDArray[np.float64]

_LEVEL = 1e-9  # probability that an intact release fails any check
_ROUNDED = 0.25  # variance that bounds what rounding adds to the noise of a count
_SURE = 8.0  # standard deviations that noise never exceeds
_OPEN = 1e100  # squared length at the open end of a bin


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
    steps: Array  # by how much a cell of a row may be rounded; shape (p,)

    def form(self, weights: Array) -> Sum:
        """The sum of x^T W x for a symmetric W."""
        twice = np.where(np.eye(len(weights), dtype=bool), 1.0, 2.0) * weights**2
        used = twice > 0
        variance = float((twice[used] * self.sd[used] ** 2).sum())
        return Sum(float((weights * self.sums).sum()), variance)

    def trace(self, first: int = 0, end: int | None = None) -> Sum:
        """The sum of squares of a range of columns."""
        return self.form(_squares(len(self.sums), first, end))

    def rounding(self, weights: Array | None = None, most: float | None = None) -> float:
        """Largest effect of rounding on a row's x^T W x, which is at most `most`; or on |x|^2.

        A cell moves by at most a step of the lattice, because rows of persons are rounded twice.
        """
        weights = np.eye(len(self.sums)) if weights is None else weights
        most = self.longest**2 if most is None else most
        moved = float(self.steps @ np.abs(weights) @ self.steps)
        return 2 * math.sqrt(moved * most) + moved

    def scores(self) -> Iterator[Score]:
        """The sum is hardly negative in any direction, and is not far below its noise."""
        p, upper, sd = len(self.sums), np.triu_indices(len(self.sums)), float(self.sd[0, -1])
        if math.isinf(sd):
            return
        negative = -float(np.linalg.eigvalsh(self.sums)[0]) / sd
        yield self.file, "its noise", (negative - 2 * math.sqrt(p)) / math.sqrt(2)
        square = ((self.sums / self.sd)[upper] ** 2).sum()  # chi-squared, of noise alone
        yield self.file, "its noise", -float(ndtri(gammainc(len(upper[0]) / 2, square / 2)))


def _squares(p: int, first: int, end: int | None) -> Array:
    """The W of the sum of squares of a range of columns."""
    used = np.zeros(p)
    used[first:end] = 1.0
    return np.diag(used)


def _extremes(weights: Array) -> tuple[float, float]:
    """The smallest and the largest eigenvalue of a positive W."""
    values = np.linalg.eigvalsh(weights)
    return max(float(values[0]), 0.0), float(values[-1])


Bounds = tuple[Sum, Sum]


class Lengths:
    """What the published lengths of rows, or of persons, say of sums over them."""

    def __init__(self, histogram: Histogram, unit: float, *, malformed: bool) -> None:
        self._count, self._variance = histogram.count, histogram.sd**2 + _ROUNDED
        # Of every bin, the least and the largest squared length, in squares of the unit.
        self.low = histogram.lower**2 / unit**2
        self.high = np.append(self.low[1:], _OPEN)
        if malformed:  # malformed lines are rows, with the cells that their folders state
            self.high[0] = _OPEN

    def sum(self, weights: NDArray[Any]) -> Sum:
        """The sum of what each row in a bin has."""
        weights = weights.astype(np.float64)
        return Sum(float(self._count @ weights), self._variance * float(weights @ weights))

    def bounds(self, least: float, most: float, beyond: float = 0.0) -> Bounds:
        """Of the sum of squared lengths, as far as they are beyond a number.

        Or of a smaller number for each row, if it is at least `least`; it is at most `most`.
        """
        low, high = (np.maximum(each - beyond, 0.0) for each in (self.low, self.high))
        return self.sum(np.minimum(low, least)), self.sum(np.minimum(high, most))


class Geometry:
    """What is known of rows in the metric of scaled columns, and in that of the drawn matrix.

    A scaled row z is x = z/r. The matrix has w u u^T with u = G^-1 x and w = min(1, 1/|u|^2), and
    (1 - w) y y^T is lost, where y is x with another number for its intercept; see `Lost`.
    """

    def __init__(self, bundle: ReleaseBundle, lost: Lost) -> None:
        facts, p = bundle.manifest, len(bundle.raw)
        self.lost, self.calibration = lost, calibrate(facts)
        histograms = {each.column: each for each in bundle.histograms}
        malformed = facts.parts > 1
        self.scaled = Lengths(histograms[ROW_LENGTHS], lost.unit, malformed=malformed)
        self.drawn, self.root = self.scaled, np.eye(p)
        if bundle.whitening is not None:
            self.turned = Lengths(histograms[TURNED_LENGTHS], lost.radius, malformed=malformed)
            # x^T W x is the square of a row's length in the metric.
            self.turn = congruence(bundle.whitening.metric, np.eye(p))
            self.turn *= (lost.unit / lost.radius) ** 2
        if bundle.root is not None:
            self.drawn, self.root = self.turned, bundle.root
        self.near, self.far = _extremes(congruence(self.root, np.eye(p)))
        # By how much a cell of x, shortened, is rounded before the metric is applied.
        self.rounded = 2.0**-ROW_BITS * max(1.0, math.sqrt(self.far))
        # x^T W x of what is lost is (1 - w) |u|^2.
        back = np.asarray(np.linalg.inv(self.root), np.float64)
        if lost.intercept:
            back[:, 0] /= lost.intercept
        self.restored = congruence(back.T, np.eye(p))
        self.rounded_lost = 0.0
        if bundle.root is not None:
            longest = (1 + math.sqrt(lost.cut)) * max(1.0, lost.intercept)
            self.rounded_lost = 2.0**-ROW_BITS * longest
        # The least and the largest |y|^2/|u|^2 and |y|^2/|x|^2: of one row, and of a person's rows.
        other, square = lost.intercept**2, lost.unit**2
        person = facts.privacy_unit == "person"
        shortest = self.near * (min(other, 1.0) if facts.intercept else 1.0)
        longest = self.far + other * (self.far if person else 1 / square)
        least = np.maximum(self.drawn.low - 1, 0) * shortest
        most = np.maximum(self.drawn.high - 1, 0) * longest
        self.trace_of_lost = (
            self.drawn.sum(np.minimum(least, lost.cut)),
            self.drawn.sum(np.minimum(most, lost.cut)),
        )
        clipped = self.drawn.sum(self.drawn.high > 1)
        self.most_clipped = clipped.value + _SURE * math.sqrt(clipped.variance)
        # Rows whose loss is cut, and the first bin, where malformed lines are counted.
        by_scaled = self.scaled.high + other * (self.scaled.high if person else 1 / square)
        self.uncounted = [
            each.sum((largest > lost.cut) | (each.low == each.low[0]))
            for each, largest in ((self.drawn, most), (self.scaled, by_scaled))
        ]


class Part:
    """A release, or a group of its rows: sums over rows of the unit ball."""

    def __init__(self, bundle: ReleaseBundle, geometry: Geometry, files: Mapping[str, str]) -> None:
        facts, rows = bundle.manifest, bundle.manifest.rows
        self.facts, self.geometry = facts, geometry  # the latter of the whole release
        self.persons = facts.privacy_unit == "person"
        # Upper bounds on the numbers of rows that are rounded, and that lose something.
        each = max(1.0, facts.dataset.rows / facts.dataset.count)
        self.most = (rows.value + _SURE * rows.sd) * each
        self.most_clipped = self.most if self.persons else min(geometry.most_clipped, self.most)

        def matrix(
            name: str, mean: Array, law: NoiseLaw, norm: float, step: float, rounded: float = 0.0
        ) -> Matrix:
            gaussian = law.family in {"gaussian-isotropic", "gaussian-iid"}
            sd = law.deviations(len(mean)) if gaussian else np.full_like(mean, math.inf)
            length = math.sqrt(norm)
            steps = np.full(len(mean), length * step) + rounded
            return Matrix(files[name], rows.value * mean, rows.value * sd, length, steps)

        own = geometry.calibration
        self.kept = matrix(MATRIX, bundle.drawn, facts.noise, 1.0, own.mechanism.lattice.step)
        self.further = dict[str, Matrix]()
        for name, form in facts.further_rows.items():
            law, step = facts.further_facts[name].noise, own.further[name].lattice.step
            rounded = geometry.rounded_lost if name == "lost" else 0.0
            mean = bundle.further[name]
            self.further[name] = matrix(name, mean, law, form.norm, step, rounded)

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
        of_lost = (facts.unit / facts.intercept) ** 2
        weights = np.outer(self.geometry.root[0], self.geometry.root[0]) * facts.unit**2
        weight = self.kept.form(weights) + lost.trace(end=1) * of_lost
        rounded = self.geometry.rounded * facts.unit  # of the intercept
        slack = self.most * (self.kept.rounding(weights, 1.0) + 2 * rounded + rounded**2)
        slack += self.most_clipped * lost.rounding(_squares(len(lost.sums), 0, 1) * of_lost, 1.0)
        yield weight.at_most(counted, slack, lost.file, source)
        for uncounted in self.geometry.uncounted:
            yield counted.at_most(weight + uncounted, slack, lost.file, source)

    def _of_missing(self, missing: Matrix) -> Iterator[Score]:
        """Its first columns are those of the matrix, unless rows of a person are shortened."""
        p, factor = len(self.kept.sums), 2 / missing.longest**2
        slack = self.most * (self.kept.rounding() + factor * missing.rounding())
        kept, least = self.kept.trace(), missing.trace(end=p) * factor
        most = missing.trace() * factor if self.persons else least
        yield least.at_most(kept, slack, missing.file, self.kept.file)
        yield kept.at_most(most, slack, missing.file, self.kept.file)

    def scores_of_counts(self, bundle: ReleaseBundle) -> Iterator[Score]:
        """Sums of squares against lengths, and the diagonal of missing cells against counts."""
        lost, geometry = self.further["lost"], self.geometry
        yield from _within(
            self.kept.trace(),
            geometry.drawn.bounds(1.0, 1.0),
            self.most * self.kept.rounding(),
            self.kept.file,
        )
        yield from _within(
            lost.trace(), geometry.trace_of_lost, self.most_clipped * lost.rounding(), lost.file
        )
        shortest, longest = (each * lost.longest**2 for each in _extremes(geometry.restored))
        yield from _within(
            lost.form(geometry.restored),
            geometry.drawn.bounds(shortest, longest, beyond=1.0),
            self.most_clipped * lost.rounding(geometry.restored, longest),
            lost.file,
        )
        if bundle.whitening is not None and bundle.whitening.pilot is not None:
            yield from self._of_pilot(bundle.whitening.pilot)
        yield from self._of_counts(bundle)

    def _of_pilot(self, total: Array) -> Iterator[Score]:
        """The pilot matrix against lengths, and against the released matrix with what is lost."""
        geometry, mechanism = self.geometry, self.geometry.calibration.pilot
        if mechanism is None:
            raise ValueError
        p, sd = len(total), mechanism.noise_of_sum(1)
        sds = np.where(np.eye(p, dtype=bool), math.sqrt(2.0), 1.0) * sd
        steps = np.full(p, mechanism.lattice.step + geometry.rounded)
        pilot = Matrix(f"{PILOT}.npy", total, sds, 1.0, steps)
        yield from pilot.scores()
        slack = self.most * pilot.rounding()
        yield from _within(pilot.trace(), geometry.scaled.bounds(1.0, 1.0), slack, pilot.file)
        shortest, longest = _extremes(geometry.turn)
        slack = self.most * pilot.rounding(geometry.turn, longest)
        lengths = geometry.turned.bounds(shortest, longest)
        yield from _within(pilot.form(geometry.turn), lengths, slack, pilot.file)
        yield from self._of_both(pilot, np.eye(p), 1.0)
        yield from self._of_both(pilot, geometry.turn, longest)

    def _of_both(self, pilot: Matrix, weights: Array, longest: float) -> Iterator[Score]:
        """All that the pilot has is kept or lost, and what is kept is clipped in the pilot.

        `weights`, `longest`: W of scaled rows, and its largest eigenvalue.
        """
        lost, geometry = self.further["lost"], self.geometry
        of_kept = congruence(geometry.root.T, weights)
        most_kept = _extremes(of_kept)[1]
        slack = self.most * (
            pilot.rounding(weights, longest) + self.kept.rounding(of_kept, most_kept)
        )
        own, kept = pilot.form(weights), self.kept.form(of_kept)
        _, clipped = geometry.scaled.bounds(0.0, most_kept / longest, beyond=1.0)
        yield kept.at_most(own + clipped * longest, slack, pilot.file, self.kept.file)
        restored = np.ones(len(weights))
        if self.geometry.lost.intercept:
            restored[0] = 1 / self.geometry.lost.intercept
        of_lost = weights * np.outer(restored, restored)
        slack += self.most_clipped * lost.rounding(of_lost, _extremes(of_lost)[1] * lost.longest**2)
        everything = kept + lost.form(of_lost)
        for uncounted in geometry.uncounted:
            most = everything + uncounted * longest
            yield own.at_most(most, slack, pilot.file, self.kept.file)

    def _of_counts(self, bundle: ReleaseBundle) -> Iterator[Score]:
        """The diagonal of missing cells against counts."""
        missing = self.facts.missing_rows
        # The constants of a later release are those of an earlier one, whose cells were counted.
        if missing is None or self.persons or not bundle.marginals:
            return
        p, matrix = len(self.kept.sums), self.further["missing"]
        shortest = min(missing.cut / len(missing.columns), 1.0)  # square that stands for a cell
        for place, k in enumerate(missing.columns, start=p):
            own, counts = matrix.trace(place, place + 1), bundle.marginals[k]
            counted = Sum(float(counts.count[-1]), counts.sd**2 + _ROUNDED)
            cell = _squares(len(matrix.sums), place, place + 1)
            slack = self.most * matrix.rounding(cell, 1.0)
            yield own.at_most(counted, slack, matrix.file, MARGINALS)
            for uncounted in self.geometry.uncounted:
                most = own + uncounted
                yield (counted * shortest).at_most(most, slack, matrix.file, MARGINALS)


def _within(stated: Sum, bounds: Bounds, slack: float, file: str) -> Iterator[Score]:
    """A sum is between two others, which follow from published histograms."""
    least, most = bounds
    yield stated.at_most(most, slack, file, MARGINALS)
    yield least.at_most(stated, slack, file, MARGINALS)


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


def _of_step(bundle: ReleaseBundle) -> Iterator[Score]:
    """What a step published, and the sum that is decoded; the squares of a row are at most one."""
    facts, mechanism = bundle.manifest, calibrate(bundle.manifest).mechanism
    if facts.cumulative is None or not isinstance(mechanism, Gaussian):
        return
    p, unit = len(bundle.raw), UNIT / mechanism.parameters.spread  # of a number of rows
    square = mechanism.lattice.divisor * unit
    for part in bundle.encoded:
        sds = square * _deviations(mechanism.law, p)
        own = Matrix(ENCODED, part.matrix.astype(np.float64), sds, 1.0, np.zeros(p))
        yield from own.scores()
        if part.rows is not None:
            rows = Sum(float(part.rows), ((mechanism.sd_rows or 0.0) * unit) ** 2)
        elif facts.cumulative.rows:
            rows = Sum(float(np.dot(facts.cumulative.weights, facts.cumulative.rows)), 0.0)
        else:  # the trace is the number
            continue
        most = rows * float(mechanism.lattice.squared_radius)
        yield own.trace().at_most(most, 0.0, ENCODED, DESCRIPTOR)
    decoded = [(f"{bundle.drawn_stem}.npy", bundle.drawn, facts.noise)]
    for group, own_facts in zip(bundle.groups, facts.groups, strict=True):
        law = facts.group_noise(own_facts.rows.value)
        decoded.append((GROUPS, bundle.in_metric(group.raw), law))
    for file, matrix, law in decoded:
        yield from Matrix(file, matrix, _deviations(law, p), 1.0, np.zeros(p)).scores()


def _deviations(law: NoiseLaw, p: int) -> Array:
    """Standard deviation of the noise of every entry, shape (p, p)."""
    return np.where(np.eye(p, dtype=bool), law.sd_diagonal, law.sd_off_diagonal)


def _scores(bundle: ReleaseBundle) -> Iterator[Score]:
    facts, lost = bundle.manifest, bundle.manifest.lost_rows
    if facts.cumulative is not None:
        yield from _of_step(bundle)
    if lost is None:
        return
    geometry = Geometry(bundle, lost)
    files = {MATRIX: MATRIX} | {name: f"{stem}.npy" for name, stem in FURTHER.items()}
    if bundle.root is not None:
        files[MATRIX] = f"{WHITENED}.npy"
    whole = Part(bundle, geometry, files)
    yield from whole.scores()
    yield from whole.scores_of_counts(bundle)
    for k in range(len(facts.groups)):
        group = Part(bundle.of_group(k), geometry, {MATRIX: GROUPS} | GROUP_FILES)
        yield from group.scores()
