"""Verify estimates by recomputing them from their release, and what reports state."""

from __future__ import annotations

from pathlib import Path

from gramercy.archive.bundles.estimate_bundle import estimate_descriptor, read_estimate
from gramercy.archive.bundles.estimate_graph import GRAPH
from gramercy.archive.bundles.package import DESCRIPTOR, read_descriptor, read_manifest
from gramercy.archive.bundles.release_bundle import ReleaseBundle, read_report, report_descriptor
from gramercy.archive.store.archive import Archive
from gramercy.estimators import Estimator
from gramercy.pipeline.publish.estimable import (
    missing_releases,
    read_other_releases,
    withdrawn_releases,
)
from gramercy.pipeline.publish.estimating import estimator_from_settings, fit
from gramercy.pipeline.publish.reporting import report_manifest
from gramercy.pipeline.verify.comparison import (
    arrays_close,
    check_facts,
    check_no_extra_files,
    contradiction,
    tables_close,
    tunings_close,
)
from gramercy.schemas import families, wordings
from gramercy.schemas.manifest import EstimateManifest, ReportManifest
from gramercy.schemas.problem import Notice

_SETTINGS = "the settings and the release"


def check_belongs(
    place: Path, release: ReleaseBundle, kind: type[EstimateManifest] | type[ReportManifest]
) -> None:
    """Check that an estimate or a report is of this release, and in the folder of its name."""
    facts = read_manifest(place, kind)
    name = facts.report if isinstance(facts, ReportManifest) else facts.estimate
    if (facts.release_sha256, name) != (release.sha256, place.name):
        described = f"{name} of {facts.dataset.id}/{facts.release}"
        raise wordings.folder_mismatch(str(place / DESCRIPTOR), described)


def check_estimate(
    archive: Archive, place: Path, release: ReleaseBundle
) -> tuple[str, Notice | None]:
    """Recompute an estimate from its release, and compare everything in its bundle.

    Parameters
    ----------
    archive
        Where other releases are, if the estimate needs any.
    place, release
        The estimate, and the release that it belongs to.

    Returns
    -------
    tuple
        What was verified, in words; and what could not be compared, if anything.
    """
    bundle = read_estimate(place)
    stated = bundle.manifest
    estimator = estimator_from_settings(stated.estimator)
    if missing := missing_releases(archive, estimator):
        _check_facts_only(place, release, stated, estimator)
        return "names this release", families.NOT_CHECKED(
            "Estimate {estimate}: the numbers were not recomputed, because "
            "'{release}' is not in this archive.",
            "Verify the release in an archive that has both.",
            estimate=stated.estimate,
            release=missing[0],
        )
    others = read_other_releases(archive, estimator)
    for other in others:
        name = other.release_evidence.name
        if stated.sources.get(name) != other.sha256:
            raise families.REPLACED(
                "{path}: '{release}' is not the release that was pooled.",
                "Ask the curator for the bundle that was published.",
                path=str(place / DESCRIPTOR),
                release=name,
            )
    manifest, result = fit(release, estimator, others)
    recomputed = manifest.model_copy(update={"software": stated.software, "tuning": stated.tuning})
    check_facts(place, stated.model_dump(), recomputed.model_dump())
    if stated.estimate != place.name:
        raise wordings.folder_mismatch(str(place / DESCRIPTOR), stated.estimate)
    if not tunings_close(stated.tuning, manifest.tuning):
        raise contradiction(place, "tuning", stated.tuning, manifest.tuning)
    for name, matrix in result.matrices.items():
        if not arrays_close(matrix, bundle.matrices[name]):
            raise wordings.file_contradicts(f"{place / name}.npy", _SETTINGS)
    for name, table in result.tables.items():
        if not tables_close(table, bundle.tables[name]):
            raise wordings.file_contradicts(f"{place / name}.parquet", _SETTINGS)
    # Edges are on the scale of correlations.
    if result.edges is not None and not arrays_close(result.edges, bundle.edges, scale=1.0):
        raise wordings.file_contradicts(str(place / GRAPH), _SETTINGS)
    check_facts(place, read_descriptor(place), estimate_descriptor(place, stated))
    check_no_extra_files(place)
    words = f"recomputed from {' and '.join(['this release', *estimator.other_releases])}"
    if withdrawn := withdrawn_releases(archive, estimator):
        return words, families.NOT_CHECKED(
            "Estimate {estimate}: '{release}', one of the releases that were pooled, "
            "was withdrawn later.",
            "Read its notice of withdrawal, and pool the other releases again.",
            estimate=stated.estimate,
            release=withdrawn[0],
        )
    return words, None


def _check_facts_only(
    place: Path, release: ReleaseBundle, stated: EstimateManifest, estimator: Estimator
) -> None:
    """Check what an estimate states, apart from its numbers."""
    facts = release.manifest
    if set(stated.sources) != set(estimator.other_releases):
        raise contradiction(place, "sources", [*stated.sources], [*estimator.other_releases])
    known = {
        "estimate": estimator.id,
        "dataset": facts.dataset,
        "release": facts.release,
        "names": tuple(facts.names),
        "estimator": estimator.model_dump(),
    }
    check_facts(place, stated.model_dump(), stated.model_copy(update=known).model_dump())
    if stated.estimate != place.name:
        raise wordings.folder_mismatch(str(place / DESCRIPTOR), stated.estimate)
    check_facts(place, read_descriptor(place), estimate_descriptor(place, stated))
    check_no_extra_files(place)


def check_report(archive: Archive, place: Path, release: ReleaseBundle) -> tuple[str, None]:
    """Verify what a report states; its page is what was sealed.

    Returns
    -------
    tuple
        What was verified, in words; nothing is left that could not be compared.
    """
    stated, facts = read_report(place).manifest, release.manifest
    estimates = [
        read_estimate(archive.estimate(facts.dataset.id, facts.release, name))
        for name in stated.estimates
    ]
    manifest = report_manifest(release, estimates)
    recomputed = manifest.model_copy(update={"software": stated.software})
    check_facts(place, stated.model_dump(), recomputed.model_dump())
    if place.name != stated.report:
        raise wordings.folder_mismatch(str(place / DESCRIPTOR), stated.report)
    check_facts(place, read_descriptor(place), report_descriptor(place, stated))
    check_no_extra_files(place)
    return "names this release and its estimates", None
