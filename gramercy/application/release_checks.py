"""A release against what follows from its own public facts."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gramercy.application.calibration import calibrate
from gramercy.application.comparison import agree, as_of, close, no_more_than_listed
from gramercy.application.public_parameters import shift
from gramercy.application.release_manifest import release_manifest
from gramercy.archive.package import DESCRIPTOR, read_descriptor
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import (
    CARD,
    Array,
    ReleaseBundle,
    published_columns,
    read_release,
    release_card,
    release_descriptor,
    rows_file,
    stems,
)
from gramercy.archive.rows_file import read_rows
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.rowwise import RowWise
from gramercy.schemas.errors import BundleError
from gramercy.schemas.manifest import FORMAT


def _check_manifest(place: Path, bundle: ReleaseBundle) -> None:
    facts = bundle.manifest
    again = release_manifest(
        facts,
        release=place.parent.name,
        published=facts.published,
        seen=[part.seen for part in facts.fold_rows or [facts.rows]],
        versions=facts.software,
        sources=facts.sources,
    )
    agree(place, facts.model_dump(), as_of(facts, again).model_dump())
    if facts.dataset.id != place.parent.parent.name:
        raise BundleError(f"{place / DESCRIPTOR}: describes another data set than its folder's.")


def _check_rows(place: Path, bundle: ReleaseBundle) -> None:
    """Under add-remove the number of rows is the noisy trace, or a noisy count, which is whole.

    Folds have one each, and make the matrix together.
    """
    facts = bundle.manifest
    parts = [(bundle.unbiased, facts.rows)]
    if bundle.folds:
        moments = [fold.moment for fold in bundle.evidence.folds]
        parts = list(zip(moments, facts.fold_rows, strict=True))
        together = np.sum([moment * rows.value for moment, rows in parts], axis=0)
        if not close(together / facts.rows.value, bundle.unbiased):
            raise BundleError(f"{place / 'second_moment.npy'}: is not what its folds make.")
    if facts.neighbours != "add-remove":
        return
    for moment, rows in parts:
        trace = float(np.trace(moment)) * rows.value
        from_trace = math.isclose(rows.seen, trace, rel_tol=1e-9, abs_tol=1e-9)
        if not (rows.seen == round(rows.seen) if facts.counted else from_trace):
            raise BundleError(f"{place / DESCRIPTOR}: the number of rows is not the noisy one.")


def _check_noise(place: Path, bundle: ReleaseBundle) -> None:
    facts, mechanism = bundle.manifest, calibrate(bundle.manifest)
    path = place / f"{stems(facts)[0]}.npy"
    if isinstance(mechanism, RowWise) and facts.sources:
        _on_lattice(path, bundle.raw * facts.rows.value / mechanism.step)
    elif isinstance(mechanism, RowWise):
        _check_rows_file(place, bundle, mechanism)
        return
    if isinstance(mechanism, Additive):
        _on_lattice(path, bundle.raw * facts.rows.value * mechanism.lattice.divisor)
        for moment, part in zip(bundle.folds, facts.fold_rows, strict=True):
            _on_lattice(path, moment * part.value * mechanism.lattice.divisor)
    if isinstance(mechanism, Output):
        _on_lattice(path, bundle.raw / mechanism.step)
    of_one = facts.noise.divided_by(math.sqrt(facts.folds) / facts.rows.value)  # part, summed
    matrices = [(bundle.raw, facts.noise)]
    matrices += [
        (fold, of_one.divided_by(part.value))
        for fold, part in zip(bundle.folds, facts.fold_rows, strict=True)
    ]
    for matrix, law in matrices:
        largest = facts.trace + facts.noise.mean + 60 * law.sd_diagonal
        if facts.neighbours == "replace-one" and not (np.abs(matrix) <= largest).all():
            raise BundleError(f"{path}: no noise makes entries this large.")


def _on_lattice(path: Path, units: Array) -> None:
    # Beyond 2^40 units a double no longer shows whether it counts whole units.
    visible = np.abs(units) < 2.0**40
    if not (np.abs(units - np.rint(units))[visible] < 1e-2).all():
        raise BundleError(f"{path}: does not lie on the stated lattice.")


def _check_rows_file(place: Path, bundle: ReleaseBundle, mechanism: RowWise) -> None:
    """The published rows lie on their lattice, and the matrix follows from them."""
    facts = bundle.manifest
    path = place / str(rows_file(facts))
    gram = np.zeros_like(bundle.raw)
    moved = np.zeros(1) if facts.kind == "reports" else shift(facts)
    for batch in read_rows(path, published_columns(facts), facts.dataset.rows):
        _on_lattice(path, batch / mechanism.step)
        gram += mechanism.gram(batch - moved)
    if not close(gram / facts.rows.value, bundle.raw):
        raise BundleError(f"{place / 'second_moment.npy'}: does not follow from {path.name}.")


def check_average(archive: Archive, place: Path, bundle: ReleaseBundle) -> tuple[str, str]:
    """The average of reports, worked out anew where all of them are in this archive."""
    facts = bundle.manifest
    total = np.zeros_like(bundle.raw)
    for name, sha256 in facts.sources.items():
        source = archive.release(*name.split("/"))
        if not source.exists():
            return "", "average: not all of its sources are here, and it was not worked out anew"
        found = read_release(source)
        if found.sha256 != sha256:
            raise BundleError(f"{place / DESCRIPTOR}: '{name}' is not what was averaged.")
        total += found.raw * found.manifest.rows.value
    if not close(total / facts.rows.value, bundle.raw):
        raise BundleError(f"{place / 'second_moment.npy'}: is not the average of its sources.")
    return "average: worked out anew from its sources", ""


def _check_repairs(place: Path, bundle: ReleaseBundle) -> None:
    facts = bundle.manifest
    again = [(project(bundle.unbiased, facts.trace), bundle.projected)]
    if bundle.denoised is not None:
        denoised = denoise(bundle.unbiased, facts.noise, facts.trace, facts.rows.value)
        again.append((denoised, bundle.denoised))
    for stem, (one, other) in zip(stems(facts)[1:], again, strict=False):
        if not close(one, other):
            raise BundleError(f"{place / f'{stem}.npy'}: does not follow from the matrix.")


def _check_files(place: Path, bundle: ReleaseBundle) -> None:
    agree(place, read_descriptor(place), release_descriptor(place, bundle.manifest))
    current = bundle.manifest.format == FORMAT
    if current and (place / CARD).read_text(encoding="utf-8") != release_card(bundle.manifest):
        raise BundleError(f"{place / CARD}: does not say what {DESCRIPTOR} says.")
    no_more_than_listed(place)


RELEASE_CHECKS: dict[str, Callable[[Path, ReleaseBundle], None]] = {
    "guarantee: worked out anew from what was asked, exactly as stated": _check_manifest,
    "rows: the matrix is divided by the number that is stated": _check_rows,
    "noise: what is published lies on the stated lattice": _check_noise,
    "repaired matrices: recomputed from the noisy one": _check_repairs,
    "description and card: say the same, of every file": _check_files,
}
