"""Verify estimates and reports: recompute them from their release."""

from __future__ import annotations

from pathlib import Path

from gramercy.application.comparison import (
    arrays_close,
    check_facts,
    check_no_extra_files,
    contradiction,
    in_stated_format,
    tables_close,
    tunings_close,
)
from gramercy.application.estimable import (
    missing_releases,
    read_other_releases,
    withdrawn_releases,
)
from gramercy.application.estimating import estimator_from_settings, fit
from gramercy.application.reporting import report_manifest, report_page
from gramercy.archive.archive import Archive
from gramercy.archive.estimate_bundle import estimate_descriptor, read_estimate
from gramercy.archive.estimate_graph import GRAPH
from gramercy.archive.package import DESCRIPTOR, comparable_descriptor, read_manifest
from gramercy.archive.release_bundle import PAGE, ReleaseBundle, read_report, report_descriptor
from gramercy.common.extras import INSTALL_PUBLISH
from gramercy.estimators import Estimator
from gramercy.reports.page_equality import same_figures, same_text
from gramercy.schemas.errors import MissingPackages
from gramercy.schemas.manifest import EstimateManifest, ReportManifest
from gramercy.schemas.problem import Notice
from gramercy.schemas.problems import verification as problems

_SETTINGS = "the settings and the release"


def check_belongs(
    place: Path, release: ReleaseBundle, kind: type[EstimateManifest] | type[ReportManifest]
) -> None:
    """Check that an estimate or a report is of this release, and in the folder of its name."""
    facts = read_manifest(place, kind)
    name = facts.report if isinstance(facts, ReportManifest) else facts.estimate
    if (facts.release_sha256, name) != (release.sha256, place.name):
        described = f"{name} of {facts.dataset.id}/{facts.release}"
        raise problems.folder_mismatch(str(place / DESCRIPTOR), described)


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
    of_intercept = estimator.intercept_since if release.manifest.intercept else 0
    if stated.format < max(estimator.method_since, of_intercept):
        _check_facts_only(place, release, stated, estimator)
        version = f"{stated.software.get('gramercy', '?'):.20}"
        return "names this release", problems.estimate_by_former_method(stated.estimate, version)
    if missing := missing_releases(archive, estimator):
        _check_facts_only(place, release, stated, estimator)
        return "names this release", problems.pool_not_recomputed(stated.estimate, missing[0])
    others = read_other_releases(archive, estimator)
    for other in others:
        name = other.release_evidence.name
        if stated.sources.get(name) != other.sha256:
            raise problems.pooled_release_replaced(str(place / DESCRIPTOR), name)
    manifest, result = fit(release, estimator, others)
    recomputed = manifest.model_copy(update={"software": stated.software, "tuning": stated.tuning})
    check_facts(place, stated.model_dump(), in_stated_format(stated, recomputed).model_dump())
    if stated.estimate != place.name:
        raise problems.folder_mismatch(str(place / DESCRIPTOR), stated.estimate)
    if not tunings_close(stated.tuning, manifest.tuning):
        raise contradiction(place, "tuning", stated.tuning, manifest.tuning)
    for name, matrix in result.matrices.items():
        if not arrays_close(matrix, bundle.matrices[name]):
            raise problems.file_contradicts(f"{place / name}.npy", _SETTINGS)
    for name, table in result.tables.items():
        if not tables_close(table, bundle.tables[name]):
            raise problems.file_contradicts(f"{place / name}.parquet", _SETTINGS)
    # Edges are on the scale of correlations.
    if result.edges is not None and not arrays_close(result.edges, bundle.edges, scale=1.0):
        raise problems.file_contradicts(str(place / GRAPH), _SETTINGS)
    check_facts(place, comparable_descriptor(place), estimate_descriptor(place, stated))
    check_no_extra_files(place)
    words = f"recomputed from {' and '.join(['this release', *estimator.other_releases])}"
    if withdrawn := withdrawn_releases(archive, estimator):
        return words, problems.pooled_release_withdrawn(stated.estimate, withdrawn[0])
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
        raise problems.folder_mismatch(str(place / DESCRIPTOR), stated.estimate)
    check_facts(place, comparable_descriptor(place), estimate_descriptor(place, stated))
    check_no_extra_files(place)


def check_report(
    archive: Archive, place: Path, release: ReleaseBundle
) -> tuple[str, Notice | None]:
    """Verify a report.

    Returns
    -------
    tuple
        What was verified, in words; and what could not be compared, if anything.
    """
    bundle, facts = read_report(place), release.manifest
    stated = bundle.manifest
    estimates = [
        read_estimate(archive.estimate(facts.dataset.id, facts.release, name))
        for name in stated.estimates
    ]
    manifest = report_manifest(release, estimates)
    recomputed = manifest.model_copy(update={"software": stated.software})
    check_facts(place, stated.model_dump(), in_stated_format(stated, recomputed).model_dump())
    if place.name != stated.report:
        raise problems.folder_mismatch(str(place / DESCRIPTOR), stated.report)
    check_facts(place, comparable_descriptor(place), report_descriptor(place, stated))
    check_no_extra_files(place)
    report, named = stated.report, "names this release and its estimates"
    if stated.software.get("report") != manifest.software["report"]:
        version = f"{stated.software.get('gramercy', '?'):.20}"
        return named, problems.page_of_other_version(report, version)
    try:
        page = report_page(release, estimates)
    except MissingPackages:
        return named, problems.page_needs_packages(report, INSTALL_PUBLISH)
    source = "the release and its estimates"
    if not same_text(page, bundle.page):
        raise problems.file_contradicts(str(place / PAGE), source)
    if stated.software != manifest.software:
        agreed = "the text agrees with this release and its estimates"
        return agreed, problems.figures_not_compared(report)
    if not same_figures(page, bundle.page):
        raise problems.file_contradicts(str(place / PAGE), source)
    return "text and figures agree with this release and its estimates", None
