"""Verify a release: recompute what follows from its public facts."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gramercy.archive.bundles.groups_file import GROUPS
from gramercy.archive.bundles.marginals_file import MARGINALS
from gramercy.archive.bundles.package import DESCRIPTOR, read_descriptor
from gramercy.archive.bundles.release_bundle import (
    CARD,
    Array,
    ReleaseBundle,
    has_histograms,
    published_columns,
    release_card,
    release_descriptor,
    rows_file,
    stems,
)
from gramercy.archive.bundles.rows_file import read_rows
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.rowwise import RowWise
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.plan.public_parameters import published_offset
from gramercy.pipeline.publish.noisy_sums import denoised_group
from gramercy.pipeline.publish.release_manifest import release_manifest
from gramercy.pipeline.verify.comparison import (
    arrays_close,
    check_facts,
    check_no_extra_files,
)
from gramercy.scaling.chain import replayed
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Histogram
from gramercy.schemas.facts import RowsFacts
from gramercy.schemas.manifest import ReleaseManifest, ReleaseSpec
from gramercy.schemas.normalisation import Unit

MATRIX = "second_moment.npy"


def _check_manifest(place: Path, bundle: ReleaseBundle) -> None:
    facts = bundle.manifest
    if (facts.dataset.id, facts.release) != (place.parent.parent.name, place.parent.name):
        described = f"{facts.dataset.id}/{facts.release}"
        raise wordings.folder_mismatch(str(place / DESCRIPTOR), described)
    recomputed = release_manifest(
        facts,
        release=place.parent.name,
        published=facts.published,
        row_counts=[part.observed for part in facts.fold_rows or [facts.rows]],
        group_counts=[
            [part.observed for part in group.fold_rows or [group.rows]] for group in facts.groups
        ],
        versions=facts.software,
        sources=facts.sources,
        histograms=bundle.histograms,
    )
    check_facts(place, facts.model_dump(), recomputed.model_dump())


def _check_constants(place: Path, bundle: ReleaseBundle) -> None:
    """Recompute centres, scales and radius from the published histograms."""
    facts = bundle.manifest
    calibration = calibrate(facts)
    chain, histograms = replayed(facts, bundle.histograms)
    noise = calibration.constants_noise
    draws = noise.draws if noise is not None else ()
    for stated, recomputed in zip(bundle.histograms, histograms, strict=True):
        same_sd = math.isclose(stated.sd, draws[stated.stage - 1].sd, rel_tol=1e-9)
        if not same_sd or not _same_bins(stated, recomputed):
            raise wordings.file_contradicts(str(place / MARGINALS), DESCRIPTOR)
    lengths = histograms[-1]
    spec = chain.clipped(lengths.count, lengths.sd, calibration.noise_of_sum(facts))
    check_same_constants(place, facts, spec, MARGINALS)


def _same_bins(stated: Histogram, recomputed: Histogram) -> bool:
    return (
        (stated.stage, stated.column, stated.level)
        == (recomputed.stage, recomputed.column, recomputed.level)
        and np.array_equal(stated.lower, recomputed.lower, equal_nan=True)
        and np.array_equal(stated.upper, recomputed.upper, equal_nan=True)
    )


def _check_rows(place: Path, bundle: ReleaseBundle) -> None:
    """Check the numbers of rows by which the matrix and its folds were divided.

    Under add-remove, each is the noisy trace, or a noisy count, which is a whole number.
    """
    facts = bundle.manifest
    parts = [(bundle.unbiased, facts.rows)]
    if bundle.folds:
        moments = [fold.moment for fold in bundle.evidence.folds]
        parts = list(zip(moments, facts.fold_rows, strict=True))
        total = np.sum([moment * rows.value for moment, rows in parts], axis=0)
        if not arrays_close(total / facts.rows.value, bundle.unbiased):
            raise wordings.file_contradicts(str(place / MATRIX), "its folds")
    noisy = parts if facts.neighbours == "add-remove" else []
    for moment, rows in [*noisy, *_group_parts(bundle)]:
        trace = float(np.trace(moment)) * rows.value
        from_trace = math.isclose(rows.observed, trace, rel_tol=1e-9, abs_tol=1e-9)
        from_count = rows.observed == round(rows.observed)
        if not (from_count if facts.publishes_noisy_count else from_trace):
            raise families.CONTRADICTION(
                "{path}: the number of rows is not the published noisy number.",
                "Ask the curator for the bundle that was published.",
                path=str(place / DESCRIPTOR),
            )


def _group_parts(bundle: ReleaseBundle) -> list[tuple[Array, RowsFacts]]:
    """Every matrix of a group, or of its folds if there are any, and its number of rows."""
    parts = []
    for group, facts in zip(bundle.groups, bundle.manifest.groups, strict=True):
        matrices = zip(group.folds or (group.raw,), facts.fold_rows or (facts.rows,), strict=True)
        parts += list(matrices)
    return parts


def _check_groups(place: Path, bundle: ReleaseBundle) -> None:
    """Check that groups add up to the matrix of all rows, and recompute their denoised matrices."""
    facts, path = bundle.manifest, place / GROUPS
    total = np.sum([matrix * rows.value for matrix, rows in _group_parts(bundle)], axis=0)
    if not arrays_close(total / facts.rows.value, bundle.unbiased):
        raise wordings.file_contradicts(str(path), MATRIX)
    for group, stated in zip(bundle.groups, facts.groups, strict=True):
        rows = [part.value for part in stated.fold_rows]
        total = np.sum([x * n for x, n in zip(group.folds, rows, strict=True)], axis=0)
        if rows and not arrays_close(total / stated.rows.value, group.raw):
            raise wordings.file_contradicts(str(path), "its folds")
        recomputed = denoised_group(facts, stated.rows.value, group.raw)
        if not arrays_close(recomputed, group.denoised):
            raise wordings.file_contradicts(str(path), "the noisy matrix")


def _check_noise(place: Path, bundle: ReleaseBundle) -> None:
    facts, mechanism = bundle.manifest, calibrate(bundle.manifest).mechanism
    path = place / f"{stems(facts)[0]}.npy"
    if isinstance(mechanism, RowWise) and facts.sources:
        _check_lattice(path, bundle.raw * facts.rows.value / mechanism.step)
    elif isinstance(mechanism, RowWise):
        _check_rows_file(place, bundle, mechanism)
        return
    if isinstance(mechanism, Additive):
        _check_lattice(path, bundle.raw * facts.rows.value * mechanism.lattice.divisor)
        for moment, part in zip(bundle.folds, facts.fold_rows, strict=True):
            _check_lattice(path, moment * part.value * mechanism.lattice.divisor)
        for moment, part in _group_parts(bundle):
            _check_lattice(place / GROUPS, moment * part.value * mechanism.lattice.divisor)
    if isinstance(mechanism, Output):
        _check_lattice(path, bundle.raw / mechanism.step)
    # The noise on the sum of one fold.
    fold_law = facts.noise.divided_by(math.sqrt(facts.folds) / facts.rows.value)
    matrices = [(bundle.raw, facts.noise)]
    matrices += [
        (fold, fold_law.divided_by(part.value))
        for fold, part in zip(bundle.folds, facts.fold_rows, strict=True)
    ]
    for matrix, law in matrices:
        largest = facts.trace_bound + facts.noise.mean + 60 * law.sd_diagonal
        if facts.neighbours == "replace-one" and not (np.abs(matrix) <= largest).all():
            raise families.CONTRADICTION(
                "{path}: entries are larger than the noise explains.",
                "Ask the curator for the bundle that was published.",
                path=str(path),
            )


def _check_lattice(path: Path, units: Array) -> None:
    # Beyond 2^40 units, a double cannot show whether it is a multiple of the unit.
    visible = np.abs(units) < 2.0**40
    if not (np.abs(units - np.rint(units))[visible] < 1e-2).all():
        raise families.CONTRADICTION(
            "{path}: the entries are not on the stated lattice.",
            "Ask the curator for the bundle that was published.",
            path=str(path),
        )


def _check_rows_file(place: Path, bundle: ReleaseBundle, mechanism: RowWise) -> None:
    """Check that the published rows are on their lattice, and that the matrix follows from them."""
    facts = bundle.manifest
    path = place / str(rows_file(facts))
    gram = np.zeros_like(bundle.raw)
    offset = np.zeros(1) if facts.kind == "reports" else published_offset(facts)
    for batch in read_rows(path, published_columns(facts), facts.dataset.rows):
        _check_lattice(path, batch / mechanism.step)
        gram += mechanism.gram(batch - offset)
    if not arrays_close(gram / facts.rows.value, bundle.raw):
        raise wordings.file_contradicts(str(place / MATRIX), path.name)


def check_same_constants(
    place: Path, facts: ReleaseManifest, recomputed: ReleaseSpec, source: str
) -> None:
    """Refuse a release whose constants are not those that histograms give."""
    for name in ("columns", "normalisation", "scaling"):
        if getattr(facts, name) != getattr(recomputed, name):
            raise wordings.file_contradicts(str(place / DESCRIPTOR), source)


def _check_repairs(place: Path, bundle: ReleaseBundle) -> None:
    facts = bundle.manifest
    pairs = [(project(bundle.unbiased, facts.trace_bound), bundle.projected)]
    if bundle.denoised is not None:
        denoised = denoise(
            bundle.unbiased,
            facts.noise,
            facts.trace_bound,
            facts.rows.value,
            unit=isinstance(facts.normalisation, Unit),
        )
        pairs.append((denoised, bundle.denoised))
    for stem, (recomputed, stated) in zip(stems(facts)[1:], pairs, strict=False):
        if not arrays_close(recomputed, stated):
            raise wordings.file_contradicts(str(place / f"{stem}.parquet"), "the noisy matrix")


def _check_files(place: Path, bundle: ReleaseBundle) -> None:
    check_facts(place, read_descriptor(place), release_descriptor(place, bundle.manifest))
    if (place / CARD).read_text(encoding="utf-8") != release_card(bundle.manifest):
        raise wordings.file_contradicts(str(place / CARD), DESCRIPTOR)
    check_no_extra_files(place)


Check = Callable[[Path, ReleaseBundle], None]


def release_checks(facts: ReleaseManifest) -> dict[str, Check]:
    """The checks of a release, each by the result that `gramercy verify` prints if it passes."""
    checks: dict[str, Check] = {
        "guarantee: recomputed from the request, and exactly as stated": _check_manifest
    }
    if has_histograms(facts):
        checks["constants: recomputed from the published histograms"] = _check_constants
    if facts.kind != "marginals":
        checks |= {
            "rows: the matrix is divided by the stated number": _check_rows,
            "noise: the published numbers are on the stated lattice": _check_noise,
            "repaired matrices: recomputed from the noisy one": _check_repairs,
        }
    if facts.groups:
        checks["groups: add up to the matrix, and are denoised as stated"] = _check_groups
    return checks | {"description and card: agree, and list every file": _check_files}
