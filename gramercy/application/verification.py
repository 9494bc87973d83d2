"""Verify a release from its own files: everything that follows from other facts is worked out anew.

What follows from nothing else (the numbers of the noisy matrix, a title, the public constants of a
column) is held by the seal, and by the ledger for whoever has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from gramercy.application.affected import by_place
from gramercy.application.calibration import calibrate, fit, release_manifest
from gramercy.application.public_parameters import shift
from gramercy.application.reporting import written
from gramercy.application.request_model import restored
from gramercy.archive.bundle import SEAL, SUMS, check, signer
from gramercy.archive.estimate_bundle import (
    GRAPH,
    EstimateBundle,
    estimate_descriptor,
    read_estimate,
)
from gramercy.archive.package import DESCRIPTOR, read_descriptor, read_manifest
from gramercy.archive.release_bundle import (
    CARD,
    PAGE,
    Array,
    ReleaseBundle,
    published_columns,
    read_release,
    read_report,
    release_card,
    release_descriptor,
    report_descriptor,
    rows_file,
    stems,
)
from gramercy.archive.rows_file import read_rows
from gramercy.archive.signature import key_id
from gramercy.archive.store import Archive
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.ledger import Ledger
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.rowwise import RowWise
from gramercy.reports.page_equality import same_pictures, same_words
from gramercy.schemas.errors import BundleError, GramercyError, UnknownRelease
from gramercy.schemas.manifest import FORMAT, EstimateManifest, ReleaseManifest, ReportManifest

Manifest = TypeVar("Manifest", ReleaseManifest, EstimateManifest, ReportManifest)

# Eigenvectors differ in their last digits between machines; what follows from them agrees to this.
_SAME = 1e-6


@dataclass(frozen=True)
class Verified:
    """What was checked of a release, and what could not be, in words."""

    release: str
    checks: tuple[str, ...]
    unchecked: tuple[str, ...]


def known_releases(archive: Archive, ledger: Ledger | None) -> list[tuple[str, str]]:
    """(data set, release) of what lies in the archive, and of what the ledger says should."""
    known = set(archive.releases())
    for dataset in ledger.datasets() if ledger else ():
        charges = ledger.charges(dataset) if ledger else ()
        states = {"published", "withdrawn"}
        known |= {(dataset, each.release) for each in charges if each.state in states}
    return sorted(known)


def to_verify(archive: Archive, ledger: Ledger | None, names: list[str]) -> list[tuple[str, str]]:
    """(data set, release) of what is to be verified: what lies there, and what should.

    Raises
    ------
    UnknownRelease
        If there is nothing of such a name.
    """
    known = known_releases(archive, ledger)
    chosen = known
    if names:
        chosen = [pair for n in names for pair in known if n in (pair[0], "/".join(pair))]
        known_names = {n for pair in known for n in (pair[0], "/".join(pair))}
        if unknown := [n for n in names if n not in known_names]:
            raise UnknownRelease(
                f"{archive.root}: holds no release '{unknown[0]}'.", "See 'gramercy list'."
            )
    if not chosen:
        raise UnknownRelease(f"{archive.root}: holds no release.", "Publish one first.")
    return list(dict.fromkeys(chosen))


def verify_release(
    archive: Archive, dataset: str, release: str, ledger: Ledger | None, *, beside: bool = True
) -> Verified:
    """Recompute a release and its estimates.

    Parameters
    ----------
    archive, dataset, release
        Where it lies.
    ledger
        Where it was charged, for whoever has it.
    beside
        Whether to recompute estimates and reports; else their seals are verified alone.

    Raises
    ------
    BundleError
        Naming the file that is wrong.
    """
    with archive.naming():
        return _verify(archive, dataset, release, ledger, beside)


def _verify(
    archive: Archive, dataset: str, release: str, ledger: Ledger | None, beside: bool
) -> Verified:
    place = archive.release(dataset, release)
    if not archive.holds(place):
        raise BundleError(
            f"{archive.shown(place)}: was published, and is gone.",
            "Restore it from a copy: noise is never drawn again for a published release.",
        )
    bundle = _held(place, lambda: read_release(place))
    archive.hold_to_key(place)
    done = [
        "seal: every file is what was sealed",
        f"signature: by the key {key_id(signer(place))}, {_whose(archive)}",
        "formats: all hold the same numbers",
    ]
    left: list[str] = []
    for words, holds in _CHECKS.items():
        _held(place, lambda holds=holds: holds(place, bundle))  # type: ignore[misc]
        done.append(words)
    if bundle.manifest.format < FORMAT:
        left.append("card: its words are of an older format, and were not compared")
    if by_place(bundle.manifest):
        left.append(
            "guarantee: does not hold if a row's values decide in which file of the source it is "
            "(docs/security-history.md, 1)"
        )
    if bundle.manifest.sources:
        told, doubt = _held(place, lambda: _check_average(archive, place, bundle))
        done += [told] if told else []
        left += [doubt] if doubt else []
    for name in archive.estimates(dataset, release):
        at = archive.estimate(dataset, release, name)
        _seal(archive, at)
        _held(at, lambda at=at: _belongs(at, bundle, EstimateManifest))  # type: ignore[misc]
        if beside:
            _held(at, lambda at=at: _check_estimate(at, bundle))  # type: ignore[misc]
            done.append(f"estimate {name}: recomputed from this release")
    for name in archive.reports(dataset, release):
        at = archive.report(dataset, release, name)
        _seal(archive, at)
        _held(at, lambda at=at: _belongs(at, bundle, ReportManifest))  # type: ignore[misc]
        if beside:
            told, doubt = _held(at, lambda at=at: _check_report(archive, at, bundle))  # type: ignore[misc]
            done.append(f"report {name}: {told}")
            left += [f"report {name}: {doubt}"] if doubt else []
    if ledger is not None:
        _check_charge(place, bundle, ledger)
        done.append("ledger: this guarantee was charged, and this bundle published")
    return Verified(f"{dataset}/{release}", tuple(done), tuple(left))


def _seal(archive: Archive, place: Path) -> None:
    check(place)
    archive.hold_to_key(place)


def _belongs(
    place: Path, release: ReleaseBundle, kind: type[EstimateManifest] | type[ReportManifest]
) -> None:
    """An estimate or report lies beside the release that it is of, under its own name."""
    facts = read_manifest(place, kind)
    name = facts.report if isinstance(facts, ReportManifest) else facts.estimate
    if (facts.release_sha256, name) != (release.sha256, place.name):
        raise BundleError(f"{place / DESCRIPTOR}: is of another release, or of another name.")


def _whose(archive: Archive) -> str:
    return "which is trusted" if archive.trusted else "whose owner nobody has named"


def _held(place: Path, check: Callable[[], Any]) -> Any:
    """Run a check; whatever a forged bundle makes it stumble over is the bundle's fault."""
    stumbled = ""
    try:
        return check()
    except GramercyError:
        raise
    except Exception as caught:
        stumbled = type(caught).__name__
    raise BundleError(f"{place / DESCRIPTOR}: describes no release that can be ({stumbled}).")


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
    _agree(place, facts.model_dump(), _as_of(facts, again).model_dump())
    if facts.dataset.id != place.parent.parent.name:
        raise BundleError(f"{place / DESCRIPTOR}: describes another data set than its folder's.")


def _as_of(stated: Manifest, again: Manifest) -> Manifest:
    """What follows, as the format that is stated has it: the words of a card have changed since."""
    if stated.format == FORMAT:
        return again
    kept: dict[str, Any] = {"format": stated.format}
    if isinstance(stated, ReleaseManifest):
        kept["card"] = stated.card
    return again.model_copy(update=kept)


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
        if not _close(together / facts.rows.value, bundle.unbiased):
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
    if not _close(gram / facts.rows.value, bundle.raw):
        raise BundleError(f"{place / 'second_moment.npy'}: does not follow from {path.name}.")


def _check_average(archive: Archive, place: Path, bundle: ReleaseBundle) -> tuple[str, str]:
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
    if not _close(total / facts.rows.value, bundle.raw):
        raise BundleError(f"{place / 'second_moment.npy'}: is not the average of its sources.")
    return "average: worked out anew from its sources", ""


def _check_repairs(place: Path, bundle: ReleaseBundle) -> None:
    facts = bundle.manifest
    again = [(project(bundle.unbiased, facts.trace), bundle.projected)]
    if bundle.denoised is not None:
        denoised = denoise(bundle.unbiased, facts.noise, facts.trace, facts.rows.value)
        again.append((denoised, bundle.denoised))
    for stem, (one, other) in zip(stems(facts)[1:], again, strict=False):
        if not _close(one, other):
            raise BundleError(f"{place / f'{stem}.npy'}: does not follow from the matrix.")


def _check_files(place: Path, bundle: ReleaseBundle) -> None:
    _agree(place, read_descriptor(place), release_descriptor(place, bundle.manifest))
    current = bundle.manifest.format == FORMAT
    if current and (place / CARD).read_text(encoding="utf-8") != release_card(bundle.manifest):
        raise BundleError(f"{place / CARD}: does not say what {DESCRIPTOR} says.")
    _no_more_than_listed(place)


_CHECKS: dict[str, Callable[[Path, ReleaseBundle], None]] = {
    "guarantee: worked out anew from what was asked, exactly as stated": _check_manifest,
    "rows: the matrix is divided by the number that is stated": _check_rows,
    "noise: what is published lies on the stated lattice": _check_noise,
    "repaired matrices: recomputed from the noisy one": _check_repairs,
    "description and card: say the same, of every file": _check_files,
}


def _check_estimate(place: Path, release: ReleaseBundle) -> None:
    bundle: EstimateBundle = read_estimate(place)
    stated = bundle.manifest
    manifest, found = fit(release, restored(stated.estimator))
    again = manifest.model_copy(update={"software": stated.software, "tuning": stated.tuning})
    _agree(place, stated.model_dump(), _as_of(stated, again).model_dump())
    if stated.estimate != place.name or not _near(stated.tuning, manifest.tuning):
        raise BundleError(f"{place / DESCRIPTOR}: states other settings than its own.")
    for name, matrix in found.matrices.items():
        if not _close(matrix, bundle.matrices[name]):
            raise BundleError(f"{place / name}.npy: is not what its settings give.")
    for name, table in found.tables.items():
        if not _same_table(table, bundle.tables[name]):
            raise BundleError(f"{place / name}.parquet: is not what its settings give.")
    if found.edges is not None and not _close(found.edges, bundle.edges):
        raise BundleError(f"{place / GRAPH}: is not what its settings give.")
    _agree(place, read_descriptor(place), estimate_descriptor(place, stated))
    _no_more_than_listed(place)


def _check_report(archive: Archive, place: Path, release: ReleaseBundle) -> tuple[str, str]:
    """Check a report; what was checked of it, and what could not be, in words."""
    bundle, facts = read_report(place), release.manifest
    stated = bundle.manifest
    shown = [
        read_estimate(archive.estimate(facts.dataset.id, facts.release, name))
        for name in stated.estimates
    ]
    manifest, page = written(release, shown)
    again = manifest.model_copy(update={"software": stated.software})
    _agree(place, stated.model_dump(), _as_of(stated, again).model_dump())
    if place.name != stated.report:
        raise BundleError(f"{place / DESCRIPTOR}: describes another report than its folder's.")
    _agree(place, read_descriptor(place), report_descriptor(place, stated))
    _no_more_than_listed(place)
    if stated.software.get("report") != manifest.software["report"]:
        by = f"Gramercy {stated.software.get('gramercy', '?'):.20}"
        doubt = f"its page is of another edition ({by}) than this one writes, and was not compared"
        return "names this release and its estimates", doubt
    if not same_words(page, bundle.page):
        raise BundleError(f"{place / PAGE}: does not say what the release says.")
    if stated.software != manifest.software:
        doubt = "its pictures were drawn by other versions of libraries, and were not compared"
        return "says what this release and its estimates say", doubt
    if not same_pictures(page, bundle.page):
        raise BundleError(f"{place / PAGE}: does not show what the release says.")
    return "says and shows what this release and its estimates say", ""


def _check_charge(place: Path, bundle: ReleaseBundle, ledger: Ledger) -> None:
    facts = bundle.manifest
    dataset = facts.dataset.id
    charge = ledger.charge_of(dataset, facts.release)
    if charge is None:
        raise BundleError(f"{place}: was never charged in this home's ledger.")
    stated = facts.guarantee
    pure = math.inf if stated.pure is None else stated.pure
    if charge.guarantee != Guarantee(stated.mu, stated.delta0, pure):
        raise BundleError(f"{place / DESCRIPTOR}: states another guarantee than was charged.")
    if charge.state not in {"published", "withdrawn"} or charge.sha256 != bundle.sha256:
        raise BundleError(f"{place / SUMS}: is not the bundle that was published.")


def _agree(place: Path, stated: Mapping[str, Any], again: Mapping[str, Any]) -> None:
    differing = [key for key in {**stated, **again} if not _same(stated.get(key), again.get(key))]
    if differing:
        raise BundleError(
            f"{place / DESCRIPTOR}: '{differing[0]}' does not follow from the rest of it."
        )


def _same(one: Any, other: Any) -> bool:
    """Whether two facts agree, numbers but for what another machine's last digits may be."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def _no_more_than_listed(place: Path) -> None:
    listed = {resource["path"] for resource in read_descriptor(place)["resources"]}
    for path in place.iterdir():
        if path.name not in listed | {DESCRIPTOR} | SEAL:
            raise BundleError(f"{path}: is no part of a release.")


def _near(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Whether numbers that follow from eigenvectors agree."""
    return one.keys() == other.keys() and all(
        math.isclose(one[key], other[key], rel_tol=1e-5) for key in one
    )


def _same_table(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    if list(one.columns) != list(other.columns) or len(one) != len(other):
        return False
    for name in one.columns:
        if not pd.api.types.is_numeric_dtype(one[name]):
            if one[name].tolist() != other[name].tolist():
                return False
            continue
        # A score may be infinite, and a number that is not known is NaN.
        here, there = one[name].to_numpy(float), other[name].to_numpy(float)
        known = np.isfinite(here)
        same = np.array_equal(here[~known], there[~known], equal_nan=True)
        if not (same and _close(here[known], there[known])):
            return False
    return True


def _close(one: Array, other: Array | None) -> bool:
    if other is None or one.shape != other.shape:
        return False
    tolerance = _SAME * float(np.abs(one).max(initial=0))
    return bool(np.allclose(one, other, rtol=0, atol=tolerance))
