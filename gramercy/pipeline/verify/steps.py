"""Check a step of a cumulative series: its place in it, what it published, and what is decoded.

What a step published can be checked alone. The sum of all rows so far is decoded again if the
archive has all steps before it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release_manifest
from gramercy.archive.bundles.encoded_file import ENCODED, Encoded, decode, read_encoded
from gramercy.archive.bundles.number_files import GROUPS
from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.seal.bundle import SUMS, check_file, file_digest
from gramercy.archive.store.archive import Archive
from gramercy.common.prefix_sums import UNIT, PrefixSums
from gramercy.mechanisms.gaussian import Gaussian, GaussianIid
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.publish.drawing import arrays_close, check_entries, most_rows, scaled
from gramercy.pipeline.verify.stated_facts import contradiction
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.facts import CumulativeFacts
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.model import digest
from gramercy.schemas.problem import Notice
from gramercy.schemas.publications import SECOND_MOMENT
from gramercy.schemas.steps import MOST_STEPS, Cumulative, StepDays

Array = NDArray[np.float64]

_MOST_KEPT = 2500  # entries of the matrices of a step that is kept in memory
_SURE = 60.0  # standard deviations that noise never exceeds


def check_series(place: Path, bundle: ReleaseBundle) -> None:
    """Check the place of a step in its series, and that the series can have one guarantee."""
    facts, stated = bundle.manifest, _series(bundle.manifest)
    named, own = facts.mechanism["name"], facts.publication.name
    # The guarantee of all steps together is proven for these mechanisms, and no others.
    if named not in (Gaussian.name, GaussianIid.name) or own != SECOND_MOMENT.name:
        raise contradiction(place, "mechanism", named, Gaussian.name)
    checks: list[tuple[str, Any, Any]] = [
        ("privacy_unit", facts.privacy_unit, "row"),
        ("folds", facts.folds, 1),
        ("scaling", facts.has_histograms, False),
        ("guarantee.delta0", facts.guarantee.delta0, 0.0),
    ]
    days = _days(facts, stated)
    if days is None or facts.dataset.version not in days.labels:
        raise contradiction(place, "cumulative.every", stated.every, facts.dataset.version)
    step = 1 + days.labels.index(facts.dataset.version)
    weights = tuple(PrefixSums(days.count).weights[step - 1, :step].tolist())
    checks += [
        ("cumulative.starts", stated.starts, days.starts),
        ("cumulative.step", stated.step, step),
        ("cumulative.weights", stated.weights, weights),
        ("cumulative.draws", step <= len(stated.draws) <= days.count, True),
        ("cumulative.earlier", len(stated.earlier), step - 1),
        ("cumulative.earlier", len({each.release for each in stated.earlier}), step - 1),
        ("cumulative.rows", len(stated.rows), step if facts.neighbours.count_is_public else 0),
    ]
    for key, value, expected in checks:
        if value != expected:
            raise contradiction(place, key, value, expected)


def _series(facts: ReleaseManifest) -> CumulativeFacts:
    if facts.cumulative is None:
        raise ValueError
    return facts.cumulative


def _days(facts: ReleaseManifest, stated: CumulativeFacts) -> StepDays | None:
    """The steps that fill the window of the budget; None if there are none of this length."""
    per, window = facts.budget.per, "" if facts.period is None else facts.period.label
    with suppress(GramercyError):
        if per != "lifetime":
            return Cumulative(every=stated.every).series(per, window)
        series = Cumulative(every=stated.every, start=stated.starts[0], steps=stated.steps)
        return series.series(per, "")
    return None


def check_encoded(place: Path, bundle: ReleaseBundle) -> None:
    """Check that no number that a step published is beyond what rows and noise explain."""
    facts, stated, mechanism = bundle.manifest, _series(bundle.manifest), _mechanism(bundle)
    if stated.rows:
        rows = float(np.dot(stated.weights, stated.rows))
    else:
        rows = max(stated.weights) * most_rows(facts.rows)
    # Noise in the units in which it was drawn, on a diagonal entry and on a number of rows.
    unit = UNIT / mechanism.parameters.spread
    noise = _SURE * mechanism.law.sd_diagonal * mechanism.lattice.divisor * unit
    of_count = _SURE * (mechanism.sd_rows or 0.0) * unit
    largest = rows * mechanism.lattice.squared_radius
    for part in bundle.encoded:
        matrix, counts = part.matrix.astype(np.float64), np.array([part.rows or 0], np.float64)
        check_entries(place / ENCODED, matrix, largest + noise)
        check_entries(place / ENCODED, counts, rows + of_count)
        # Squares and numbers of rows are not negative; the squares of a row add up to one.
        negative = np.minimum(np.diag(matrix), 0.0)
        check_entries(place / ENCODED, negative, noise)
        check_entries(place / ENCODED, np.minimum(counts, 0.0), of_count)
        trace = np.maximum(np.trace(matrix), 0.0)
        check_entries(place / ENCODED, trace, largest + noise * np.sqrt(len(matrix)))


def _mechanism(bundle: ReleaseBundle) -> Gaussian:
    mechanism = calibrate(bundle.manifest).mechanism
    if not isinstance(mechanism, Gaussian):
        raise TypeError
    return mechanism


def check_earlier(
    archive: Archive, place: Path, bundle: ReleaseBundle
) -> tuple[str, Notice | None]:
    """Decode the sum so far again, if all steps before this one are in the archive.

    Raises
    ------
    BundleError
        If one of them was exchanged, or is of another series, or the sum is not that.
    """
    facts, own = bundle.manifest, _Step.of(bundle.manifest)
    published, missing, withdrawn = list[tuple[Encoded, ...]](), "", ""
    for number, each in enumerate(_series(facts).earlier, 1):
        name = f"{facts.dataset.id}/{each.release}"
        folder = archive.release(facts.dataset.id, each.release)
        if not archive.contains(folder):
            missing = missing or name
            continue
        published.append(_published(place, bundle, own, number, folder))
        if archive.contains(archive.withdrawal(facts.dataset.id, each.release)):
            withdrawn = withdrawn or name
    if missing:
        return "", families.NOT_CHECKED(
            "The sum of all rows so far was not decoded again: '{release}', a step before this "
            "one, is not in this archive.",
            "Verify the release in an archive that has all steps of its series.",
            release=missing,
        )
    _check_decoded(place, bundle, [*published, bundle.encoded])
    words = f"sum: decoded again from {len(published) + 1} steps"
    if withdrawn:
        return words, families.NOT_CHECKED(
            "'{release}', a step from which the sum is decoded, was withdrawn later.",
            "Read its notice of withdrawal, and use a later step that was decoded without it.",
            release=withdrawn,
        )
    return words, None


@dataclass(frozen=True)
class _Step:
    """A step, as far as later ones depend on it."""

    number: int
    series: str  # digest of what all steps share
    rows: tuple[int, ...]
    draws: tuple[int, ...]
    earlier: tuple[str, ...]  # digests of the releases before it

    @classmethod
    def of(cls, facts: ReleaseManifest) -> _Step:
        own, lattice = _series(facts), facts.calibration.lattice
        series = digest([facts.series, own.every, lattice.bits, lattice.shrinkage])
        earlier = tuple(sys.intern(each.sha256) for each in own.earlier)
        return cls(own.step, series, own.rows, own.draws, earlier)

    def continues(self, earlier: _Step, number: int) -> bool:
        """Whether another one is the step of this number in the same series."""
        drawn, before = self.draws[:number], earlier.draws[:number]
        same = (earlier.number, earlier.series) == (number, self.series)
        # The number of rows of a step is fixed at its first reading.
        same = same and earlier.rows == self.rows[:number]
        # Only a step that was drawn again has another release.
        if drawn == before:
            return same and earlier.earlier == self.earlier[: number - 1]
        return same and all(late >= early for late, early in zip(drawn, before, strict=True))


def _published(
    place: Path, bundle: ReleaseBundle, own: _Step, number: int, folder: Path
) -> tuple[Encoded, ...]:
    """What an earlier step published, if it is the one that the release states."""
    name, sha256 = f"{bundle.manifest.dataset.id}/{folder.parent.name}", own.earlier[number - 1]
    if file_digest(folder / SUMS) != sha256:
        raise families.REPLACED(
            "{path}: '{release}' is not the release of the earlier step.",
            "Ask the curator for the bundle that was published.",
            path=str(place / DESCRIPTOR),
            release=name,
        )
    is_small = bundle.raw.size * len(bundle.encoded) <= _MOST_KEPT
    step, encoded = _read_step(folder, sha256, keep_numbers=is_small)
    if not own.continues(step, number):
        raise wordings.file_contradicts(str(place / DESCRIPTOR), name)
    return encoded or _read_numbers(folder, bundle.manifest)


@lru_cache(maxsize=MOST_STEPS)  # a step is read for every later one that is verified
def _read_step(folder: Path, _: str, *, keep_numbers: bool) -> tuple[_Step, tuple[Encoded, ...]]:
    """A step whose list of files has this digest, perhaps without its numbers."""
    facts = read_release_manifest(folder)
    return _Step.of(facts), _read_numbers(folder, facts) if keep_numbers else ()


def _read_numbers(folder: Path, facts: ReleaseManifest) -> tuple[Encoded, ...]:
    """What a step published; `facts`: of any step of its series."""
    check_file(folder, ENCODED)
    return read_encoded(folder, facts)


def _check_decoded(
    place: Path, bundle: ReleaseBundle, published: Sequence[Sequence[Encoded]]
) -> None:
    """Check that matrices and numbers of rows are exactly those that are decoded."""
    facts = bundle.manifest
    series, divisor = PrefixSums(_series(facts).steps), _mechanism(bundle).lattice.divisor
    sums, rows = decode(series, divisor, published)
    whole = sums[:, None].sum(axis=(0, 1)) / facts.rows.value
    if not np.array_equal(whole, bundle.drawn):
        raise wordings.file_contradicts(str(place / f"{bundle.drawn_stem}.npy"), ENCODED)
    counts = [each.rows.observed for each in facts.groups]
    if facts.neighbours.count_is_public:
        expected: list[Any] = [float(sum(_series(facts).rows))]
    else:
        expected = [float(rows.sum(keepdims=True)[0])]
    expected += rows.tolist() if counts else []
    if [facts.rows.observed, *counts] != expected:
        raise wordings.file_contradicts(str(place / DESCRIPTOR), ENCODED)
    for group, own, total in zip(bundle.groups, facts.groups, sums, strict=False):
        raw = scaled(facts, bundle.whitening, total / own.rows.value)
        same = np.array_equal if bundle.root is None else arrays_close
        if not same(raw, group.raw):
            raise wordings.file_contradicts(str(place / GROUPS), ENCODED)
