"""Check a step of a cumulative series: its place in it, what it published, and what is decoded.

What a step published can be checked alone. The sum of all rows so far is decoded again if the
archive has all steps before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release_manifest
from gramercy.archive.bundles.encoded_file import ENCODED, Encoded, read_encoded
from gramercy.archive.bundles.number_files import GROUPS
from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.seal.bundle import SUMS, check_file, file_digest
from gramercy.archive.store.archive import Archive
from gramercy.common.prefix_sums import UNIT, PrefixSums
from gramercy.mechanisms.gaussian import Gaussian, GaussianIid
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.publish.drawing import arrays_close, check_entries, decode, most_rows, scaled
from gramercy.pipeline.verify.stated_facts import contradiction
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.facts import CumulativeFacts, EarlierStep
from gramercy.schemas.manifest import SHARED_BY_STEPS, ReleaseManifest
from gramercy.schemas.problem import Notice
from gramercy.schemas.publications import SECOND_MOMENT
from gramercy.schemas.steps import Cumulative, StepDays

Array = NDArray[np.float64]

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
    facts = bundle.manifest
    published, missing, withdrawn = list[tuple[Encoded, ...]](), "", ""
    for number, each in enumerate(_series(facts).earlier, 1):
        name = f"{facts.dataset.id}/{each.release}"
        folder = archive.release(facts.dataset.id, each.release)
        if not archive.contains(folder):
            missing = missing or name
            continue
        published.append(_published(place, bundle, number, each, folder))
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


def _published(
    place: Path, bundle: ReleaseBundle, number: int, stated: EarlierStep, folder: Path
) -> tuple[Encoded, ...]:
    """What an earlier step published, if it is the one that the release states."""
    facts, name = bundle.manifest, f"{bundle.manifest.dataset.id}/{stated.release}"
    if file_digest(folder / SUMS) != stated.sha256:
        raise families.REPLACED(
            "{path}: '{release}' is not the release of the earlier step.",
            "Ask the curator for the bundle that was published.",
            path=str(place / DESCRIPTOR),
            release=name,
        )
    check_file(folder, ENCODED)
    earlier = read_release_manifest(folder)
    if not _continues(facts, earlier, number):
        raise wordings.file_contradicts(str(place / DESCRIPTOR), name)
    return read_encoded(folder, earlier)


def _continues(facts: ReleaseManifest, earlier: ReleaseManifest, number: int) -> bool:
    """Whether a release is the step of this number in the series of a later one."""
    own, other = _series(facts), earlier.cumulative
    if other is None or other.step != number:
        return False
    same = all(getattr(facts, key) == getattr(earlier, key) for key in SHARED_BY_STEPS)
    same = same and facts.calibration.lattice == earlier.calibration.lattice
    same = same and (own.every, own.starts) == (other.every, other.starts)
    # The number of rows of a step is fixed at its first reading.
    same = same and own.rows[:number] == other.rows
    # Only a step that was drawn again has another release.
    drawn, before = own.draws[:number], other.draws[:number]
    if drawn == before:
        return same and own.earlier[: number - 1] == other.earlier
    return same and all(late >= early for late, early in zip(drawn, before, strict=True))


def _check_decoded(
    place: Path, bundle: ReleaseBundle, published: Sequence[Sequence[Encoded]]
) -> None:
    """Check that matrices and numbers of rows are exactly those that are decoded."""
    facts, mechanism = bundle.manifest, _mechanism(bundle)
    series = mechanism.parameters.series
    if series is None:
        raise ValueError
    sums, rows = decode(mechanism, series, published)
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
