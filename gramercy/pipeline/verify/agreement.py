"""Check that the published numbers of a release agree with each other, as far as noise allows.

A release with private constants states some facts of its table several times: how many rows are
clipped is in the histogram of row lengths, in the matrix and in the matrix of lost moments. Each
has noise of its own, whose law is public. So a matrix that was exchanged, or set to zero, is found
if the difference is more than the noise explains.

Every check is an inequality between exact sums over the table, which holds for any table. Of an
intact release all checks together fail with a probability below 1e-9: the noise of a difference is
Gaussian, and rounding to a lattice moves it by at most what is allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc, ndtri

from gramercy.archive.bundles.bundle_kinds import FURTHER, ReleaseBundle
from gramercy.archive.bundles.number_files import GROUP_FILES, GROUPS, MARGINALS
from gramercy.common.lattice import Lattice
from gramercy.pipeline.plan.calibration import Calibration, calibrate
from gramercy.pipeline.publish.drawing import MATRIX
from gramercy.schemas import wordings
from gramercy.schemas.evidence import Histogram
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import Lost, Missing

Array = NDArray[np.float64]

_LEVEL = 1e-9  # probability that an intact release fails any check
_ROUNDED = 0.25  # variance that bounds what rounding adds to the noise of a count


@dataclass(frozen=True)
class Noisy:
    """Sums over the rows of a table, and the variance of their noise; each independent of others.

    Operations combine numbers with independent noise.
    """

    value: Array
    variance: Array

    @classmethod
    def of_matrix(cls, matrix: Array, law: NoiseLaw, factor: float) -> Noisy:
        """A matrix of sums, from a published one."""
        return cls(factor * matrix, (factor * law.deviations(len(matrix))) ** 2)

    @classmethod
    def of_counts(cls, histogram: Histogram) -> Noisy:
        """The counts of a histogram."""
        counts = histogram.count.astype(np.float64)
        return cls(counts, np.full_like(counts, histogram.sd**2 + _ROUNDED))

    def __add__(self, other: Noisy) -> Noisy:
        return Noisy(self.value + other.value, self.variance + other.variance)

    def __sub__(self, other: Noisy) -> Noisy:
        return self + other * -1.0

    def __mul__(self, factor: float | Array) -> Noisy:
        return Noisy(self.value * factor, self.variance * np.square(factor))

    def __getitem__(self, index: Any) -> Noisy:
        return Noisy(self.value[index], self.variance[index])

    def total(self, weights: float | Array = 1.0) -> Noisy:
        """A weighted sum."""
        terms = self * weights
        return Noisy(terms.value.sum(), terms.variance.sum())

    @property
    def diagonal(self) -> Noisy:
        """The diagonal of a matrix."""
        return Noisy(np.diag(self.value), np.diag(self.variance))


_NOTHING = Noisy(np.zeros(()), np.zeros(()))


@dataclass(frozen=True)
class Score:
    """How far published numbers are beyond what is possible, in standard deviations of the noise.

    The probability that a score of an intact release exceeds t is at most exp(-t^2/2).
    """

    file: str
    source: str  # what the file contradicts if a score is large
    scores: Array


@dataclass(frozen=True)
class Lengths:
    """What the published lengths of rows, or of persons, say of kept and lost moments.

    Squared lengths and moments are in scaled units. Sums over bins take the least and the largest
    value that a length in a bin allows.
    """

    counts: Noisy
    low: Array  # squared, shape (bins,)
    high: Array
    lost: Lost
    intercept: bool
    persons: bool
    # Whether a malformed line remains as a row, with the cells that the folders of its file state.
    keeps_malformed: bool

    @classmethod
    def of(cls, facts: ReleaseManifest, histogram: Histogram, lost: Lost) -> Lengths:
        """Of a release, with the squared length of the longest row that its bounds allow."""
        persons = facts.privacy_unit == "person"
        longest = math.inf if persons else float(facts.intercept + (_farthest(facts) ** 2).sum())
        low = np.nan_to_num(histogram.lower) ** 2
        high = np.append(low[1:], max(longest, low[-1]))
        keeps = facts.parts > 1
        if keeps:
            high[0] = high[-1]
        counts = Noisy.of_counts(histogram)
        return cls(counts, low, high, lost, facts.intercept, persons, keeps)

    @property
    def _square(self) -> float:
        return self.lost.radius**2

    def _share_lost(self, squares: Array) -> Array:
        share: Array = 1 - np.minimum(self._square / np.maximum(squares, 1e-300), 1.0)
        return share

    def _norms(self, squares: Array) -> tuple[Array, Array]:
        """Least and largest squared norm of what a row loses, before it is cut."""
        if self.persons and self.intercept:
            clipped = np.maximum(squares - self._square, 0.0)
            ratio = self.lost.intercept**2
            return clipped * min(1.0, ratio), clipped * max(1.0, ratio)
        norm = np.maximum(squares - self.intercept + self.lost.intercept**2, 0.0)
        norm = self._share_lost(squares) * norm
        return norm, norm

    @property
    def rows(self) -> Noisy:
        """Number of rows or persons."""
        return self.counts.total()

    @property
    def long_rows(self) -> Noisy:
        """Number of rows or persons that may be clipped."""
        return self.counts.total((self.high > self._square).astype(np.float64))

    @property
    def kept_weight(self) -> tuple[Noisy, Noisy]:
        """Least and largest sum of the weights of clipped rows; of a malformed line it is zero."""
        least = 1 - self._share_lost(self.high)
        least[0] = 0.0 if not self.keeps_malformed else least[0]
        return self.counts.total(least), self.counts.total(1 - self._share_lost(self.low))

    @property
    def real_rows(self) -> Noisy:
        """Number of rows without those that may be malformed lines, whose length is zero."""
        weights = np.ones_like(self.low)
        weights[0] = 0.0 if not self.keeps_malformed else 1.0
        return self.counts.total(weights)

    @property
    def kept_trace(self) -> tuple[Noisy, Noisy]:
        """Least and largest sum of squares of clipped rows."""
        ends = (np.minimum(each, self._square) for each in (self.low, self.high))
        least, most = (self.counts.total(each) for each in ends)
        return least, most

    @property
    def lost_trace(self) -> tuple[Noisy, Noisy]:
        """Least and largest trace of the sum of what rows lose."""
        cut = self.lost.largest
        least, _ = self._norms(self.low)
        _, most = self._norms(self.high)
        return self.counts.total(np.minimum(least, cut)), self.counts.total(np.minimum(most, cut))

    @property
    def uncounted(self) -> tuple[Noisy, Noisy]:
        """Largest weight and trace that neither matrix has, because of the cut; of rows alone."""
        norm = self._norms(self.high)[1]
        beyond = np.maximum(norm - self.lost.largest, 0.0)
        part = self._share_lost(self.high) * beyond / np.maximum(norm, 1e-300)
        return self.counts.total(part), self.counts.total(beyond)


@dataclass(frozen=True)
class Rounding:
    """How far rounding rows to a lattice moves the sums of their squares, in scaled units."""

    lattice: Lattice
    longest: float  # length of a row on the boundary of the unit ball
    rows: float  # number of units that are rounded
    rows_each: float  # mean number of rows of a unit

    def of_square(self, largest: float | Array) -> float | Array:
        """Of the square of an entry, whose largest absolute value is known."""
        h = self.lattice.step / 2
        of_entry = 2 * h * np.minimum(largest / self.longest, 1.0) + h * h
        return self.rows * self.rows_each * self.longest**2 * of_entry

    @property
    def of_trace(self) -> float:
        """Of the trace."""
        h, p = self.lattice.step / 2, self.lattice.p
        return self.rows * self.rows_each * self.longest**2 * (2 * h * math.sqrt(p) + p * h * h)


@dataclass(frozen=True)
class Part:
    """A release, or a group of its rows: its sums in scaled units, and all that they must obey."""

    bundle: ReleaseBundle
    calibration: Calibration
    lost_rows: Lost
    missing_rows: Missing | None
    lengths: Lengths
    rows: Noisy  # number of rows or persons
    files: dict[str, str]

    @property
    def _facts(self) -> ReleaseManifest:
        return self.bundle.manifest

    @property
    def _persons(self) -> bool:
        return self.lengths.persons

    @cached_property
    def _gaussian(self) -> bool:
        """Whether the noise of the released matrix is Gaussian, as that of others always is."""
        return self._facts.noise.family in {"gaussian-isotropic", "gaussian-iid"}

    @cached_property
    def _kept(self) -> Noisy:
        factor = self._facts.rows.value * self.lost_rows.radius**2
        return Noisy.of_matrix(self.bundle.unbiased, self._facts.noise, factor)

    @cached_property
    def _lost(self) -> Noisy:
        law = self._facts.further_facts["lost"].noise
        factor = self._facts.rows.value * self.lost_rows.radius**2
        return Noisy.of_matrix(self.bundle.further["lost"], law, factor)

    @cached_property
    def _missing(self) -> Noisy:
        law = self._facts.further_facts["missing"].noise
        return Noisy.of_matrix(self.bundle.further["missing"], law, self._facts.rows.value)

    @cached_property
    def _roundings(self) -> tuple[Rounding, Rounding]:
        """Of kept and of lost rows."""
        radius, further = self.lost_rows.radius, self.calibration.further
        rows = max(float(self.rows.value), self._facts.rows.value)
        each = max(1.0, self._facts.dataset.rows / self._facts.dataset.count)
        lost = self.lengths.long_rows
        long = min(max(float(lost.value), 0.0) + 8 * math.sqrt(lost.variance), rows)
        return (
            Rounding(self.calibration.mechanism.lattice, radius, rows, each),
            Rounding(further["lost"].lattice, self.lost_rows.longest(math.nan), long, each),
        )

    @cached_property
    def _lost_weight(self) -> Noisy:
        return self._lost[0, 0] * self.lost_rows.intercept**-2

    @cached_property
    def _weight_slack(self) -> float:
        of_kept, of_lost = self._roundings
        a = self.lost_rows.intercept
        return float(of_kept.of_square(1.0) + of_lost.of_square(a) / a**2)

    def scores(self) -> Iterator[Score]:
        """All checks of this part."""
        if self._gaussian:
            yield from self._of_noise(MATRIX, self._kept, self._facts.noise)
        for name, law in ((k, each.noise) for k, each in self._facts.further_facts.items()):
            sums = self._lost if name == "lost" else self._missing
            yield from self._of_noise(name, sums, law)
        if self._facts.intercept:
            yield from self._of_lost_columns()
            if self._gaussian and not self._persons:
                yield from self._of_weights()
        if self.missing_rows is not None:
            yield from self._of_missing(self.missing_rows)

    def _of_noise(self, name: str, sums: Noisy, law: NoiseLaw) -> Iterator[Score]:
        """A sum of squares with noise: hardly negative in any direction, and not without noise."""
        p, file = len(sums.value), self.files[name]
        sd = math.sqrt(sums.variance[0, -1] if p > 1 else sums.variance[0, 0])
        least = float(np.linalg.eigvalsh(sums.value)[0])
        of_least = (-least / sd - 2 * math.sqrt(p)) / math.sqrt(2)
        upper = np.triu_indices(p)
        square = float((sums.value[upper] ** 2 / sums.variance[upper]).sum())
        yield Score(file, "its noise", np.array([of_least, _below(square, len(upper[0]))]))

    def _of_lost_columns(self) -> Iterator[Score]:
        """Of the lost weight of rows, each column has at most its largest square."""
        farthest = _farthest(self._facts)
        _, of_lost = self._roundings
        slack = of_lost.of_square(farthest) + farthest**2 * (
            of_lost.of_square(self.lost_rows.intercept) / self.lost_rows.intercept**2
        )
        most = Noisy(
            self._lost_weight.value * farthest**2, self._lost_weight.variance * farthest**4
        )
        yield _at_most(self.files["lost"], "its first entry", self._lost.diagonal[1:], most, slack)

    def _of_weights(self) -> Iterator[Score]:
        """What is kept of rows and what they lose are all rows, except what the cut takes."""
        weight = self._kept[0, 0] + self._lost_weight
        rows = self.rows if self.lengths.keeps_malformed else self.lengths.real_rows
        beyond, _ = self.lengths.uncounted
        file, slack = self.files["lost"], self._weight_slack
        yield _at_most(self.files[MATRIX], "the number of rows", self._kept[0, 0], self.rows, slack)
        yield _at_most(file, "the number of rows", weight, self.rows, slack)
        yield _at_most(file, "the number of rows", rows, weight + beyond, slack)

    def _of_missing(self, missing: Missing) -> Iterator[Score]:
        """The rows in it are those of the matrix; cells are missing together in no less than 0."""
        p, file = len(self.bundle.raw), self.files["missing"]
        rows, law = self._facts.rows.value, self._facts.noise
        own = self._missing[:p, :p] * (1 / missing.cut)
        if self._gaussian:
            kept = Noisy.of_matrix(self.bundle.unbiased, law, rows)
            difference, upper = kept - own, np.triu_indices(p)
            if self._persons:  # whose rows may be shortened
                slack = 2 * self._roundings[0].of_trace / missing.radius**2
                total = self._missing.diagonal.total() * (1 / missing.cut)
                yield _at_most(file, self.files[MATRIX], own.diagonal, kept.diagonal, slack)
                yield _at_most(file, self.files[MATRIX], kept.diagonal.total(), total, slack)
            else:
                square = float((difference.value**2 / difference.variance)[upper].sum())
                size = len(upper[0])
                scores = np.array([_below(square, size), _above(square, size)])
                yield Score(file, self.files[MATRIX], scores)
        yield _at_most(file, "its noise", self._missing[p:, p:] * -1.0, _NOTHING)
        for place, k in enumerate(missing.columns):  # what is missing adds to no sum
            entries = self._missing[_features(self._facts)[k], p + place]
            yield _at_most(file, "its noise", entries, _NOTHING)
            yield _at_most(file, "its noise", entries * -1.0, _NOTHING)


class Whole(Part):
    """All rows, whose cells and lengths are in histograms."""

    def scores(self) -> Iterator[Score]:
        """See `Part.scores`: also the checks against histograms."""
        yield from super().scores()
        of_kept, of_lost = self._roundings
        least, most = self.lengths.lost_trace
        trace, file = self._lost.diagonal.total(), self.files["lost"]
        yield _at_most(file, MARGINALS, trace, most, of_lost.of_trace)
        yield _at_most(file, MARGINALS, least, trace, of_lost.of_trace)
        if self._gaussian:
            least, most = self.lengths.kept_trace
            kept = self._kept.diagonal.total()
            yield _at_most(MATRIX, MARGINALS, kept, most, of_kept.of_trace)
            yield _at_most(MATRIX, MARGINALS, least, kept, of_kept.of_trace)
        if self._persons or not self._facts.intercept:
            return
        if self._gaussian:
            least, most = self.lengths.kept_weight
            slack = float(of_kept.of_square(1.0))
            yield _at_most(MATRIX, MARGINALS, self._kept[0, 0], most, slack)
            yield _at_most(MATRIX, MARGINALS, least, self._kept[0, 0], slack)
        if not self.bundle.marginals:  # the constants are those of another release
            return
        if self._gaussian:
            yield from self._of_columns()
        yield from self._of_missing_cells()

    def _of_columns(self) -> Iterator[Score]:
        """First and second moments of columns, kept and lost, against their histograms."""
        farthest, places = _farthest(self._facts), _features(self._facts)
        weight, trace = self.lengths.uncounted
        of_kept, of_lost = self._roundings
        first = self._kept[0] + self._lost[0] * (1 / self.lost_rows.intercept)
        second = self._kept.diagonal + self._lost.diagonal
        for facts, histogram, own in zip(
            self._facts.columns, self.bundle.marginals, places, strict=True
        ):
            counts = Noisy.of_counts(histogram)
            low, high = self._cells(facts, histogram, len(own))
            for j, least, most in zip(own, low, high, strict=True):
                largest = float(farthest[j - 1])
                slack = of_kept.of_square(largest) + of_lost.of_square(largest)
                squares = np.stack([least**2, most**2])
                smallest = np.where((least < 0) & (most > 0), 0.0, squares.min(axis=0))
                all_of = counts.total(squares.max(axis=0))
                file = self.files["lost"]
                yield _at_most(file, MARGINALS, second[j], all_of, float(slack))
                all_of = counts.total(smallest)
                yield _at_most(file, MARGINALS, all_of, second[j] + trace, float(slack))
                slack = slack + largest * self._weight_slack
                beyond = weight * largest
                yield _at_most(file, MARGINALS, first[j], counts.total(most) + beyond, float(slack))
                yield _at_most(
                    file, MARGINALS, counts.total(least), first[j] + beyond, float(slack)
                )

    def _cells(self, facts: object, histogram: Histogram, width: int) -> tuple[Array, Array]:
        """Least and largest scaled cell in each bin, shape (width, bins)."""
        bins = histogram.count.size
        if isinstance(facts, LevelsFacts):
            low = np.eye(width, bins)
            high = low.copy()
            high[:, -1] = float(self.lengths.keeps_malformed)
            return low, high
        low, high = np.nan_to_num(histogram.lower), np.nan_to_num(histogram.upper)
        low[0], high[-2] = -math.inf, math.inf
        low, high = (
            (np.clip(each, facts.lower, facts.upper) - facts.centre) / facts.scale  # type: ignore[attr-defined]
            for each in (low, high)
        )
        if not self.lengths.keeps_malformed:
            low[-1] = high[-1] = 0.0
        else:
            low[-1], high[-1] = min(low[0], 0.0), max(high[-2], 0.0)
        return low[None], high[None]

    def _of_missing_cells(self) -> Iterator[Score]:
        """The diagonal of missing cells against their counts."""
        missing = self.missing_rows
        if missing is None:
            return
        p, square = len(self.bundle.raw), missing.indicator**2
        shortest = min(missing.cut / (square * len(missing.columns)), 1.0)
        file = self.files["missing"]
        for place, k in enumerate(missing.columns):
            counted = Noisy.of_counts(self.bundle.marginals[k])[-1]
            own = self._missing[p + place, p + place] * (1 / square)
            slack = self._missing_slack(missing) / square
            yield _at_most(file, MARGINALS, own, counted, slack)
            if self._gaussian and not self.lengths.keeps_malformed:
                # Malformed lines are counted as missing cells, and are in no matrix.
                weight = self._kept[0, 0] + self._lost_weight
                malformed = self.lengths.rows - weight
                most = own + malformed * shortest
                yield _at_most(
                    file, MARGINALS, counted * shortest, most, slack + self._weight_slack
                )

    def _missing_slack(self, missing: Missing) -> float:
        lattice = self.calibration.further["missing"].lattice
        longest, rows = missing.longest(math.nan), max(float(self.rows.value), 1.0)
        return float(Rounding(lattice, longest, rows, 1.0).of_square(missing.indicator))


def check_agreement(place: Path, bundle: ReleaseBundle) -> None:
    """Check that matrices, groups and histograms of a release agree within their noise.

    Raises
    ------
    BundleError
        If they contradict each other.
    """
    scores = list(_scores(bundle))
    tests = sum(each.scores.size for each in scores)
    most = math.sqrt(2 * math.log(tests / _LEVEL))
    for each in scores:
        if not (each.scores <= most).all():
            raise wordings.file_contradicts(str(place / each.file), each.source)


def _scores(bundle: ReleaseBundle) -> Iterator[Score]:
    facts = bundle.manifest
    lost, missing = facts.lost_rows, facts.missing_rows
    if lost is None:
        return
    lengths, calibration = Lengths.of(facts, bundle.histograms[-1], lost), calibrate(facts)
    files = {MATRIX: MATRIX} | {name: f"{FURTHER[name]}.npy" for name in bundle.further}
    yield from Whole(bundle, calibration, lost, missing, lengths, lengths.rows, files).scores()
    if not facts.groups:
        return
    files = {MATRIX: GROUPS} | {name: GROUP_FILES[name] for name in bundle.further}
    for k, own in enumerate(facts.groups):
        rows = Noisy(np.array(own.rows.observed), np.array(own.rows.sd**2 + _ROUNDED))
        yield from Part(
            bundle.of_group(k), calibration, lost, missing, lengths, rows, files
        ).scores()


def _at_most(
    file: str, source: str, left: Noisy, right: Noisy, slack: float | Array = 0.0
) -> Score:
    """That a sum is at most another one."""
    difference = left - right
    excess = np.atleast_1d(difference.value - slack)
    sd = np.sqrt(np.atleast_1d(difference.variance))
    return Score(file, source, (excess / sd).ravel())


def _below(square: float, size: int) -> float:
    """How surprisingly small a sum of squares of standard normal numbers is."""
    return -float(ndtri(gammainc(size / 2, square / 2)))


def _above(square: float, size: int) -> float:
    """How surprisingly large it is."""
    return -float(ndtri(gammaincc(size / 2, square / 2)))


def _farthest(facts: ReleaseManifest) -> Array:
    """Largest absolute value of every column without the intercept, in scaled units."""
    largest = list[float]()
    for column in facts.columns:
        if isinstance(column, LevelsFacts):
            largest += [1.0] * len(column.levels)
        else:
            ends = (column.upper - column.centre, column.centre - column.lower, 0.0)
            largest.append(max(ends) / column.scale)
    return np.array(largest)


def _features(facts: ReleaseManifest) -> list[list[int]]:
    """The columns of the matrix that belong to each table column."""
    places, start = list[list[int]](), int(facts.intercept)
    for column in facts.columns:
        width = len(column.levels) if isinstance(column, LevelsFacts) else 1
        places.append(list(range(start, start + width)))
        start += width
    return places
