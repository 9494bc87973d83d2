"""Estimates and reports against the release that they were made from."""

from __future__ import annotations

from pathlib import Path

from gramercy.application.comparison import (
    agree,
    as_of,
    close,
    near,
    no_more_than_listed,
    same_table,
)
from gramercy.application.estimating import fit, restored
from gramercy.application.reporting import report_manifest, report_page
from gramercy.archive.estimate_bundle import GRAPH, estimate_descriptor, read_estimate
from gramercy.archive.package import DESCRIPTOR, read_descriptor, read_manifest
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import PAGE, ReleaseBundle, read_report, report_descriptor
from gramercy.common.extras import INSTALL_PUBLISH
from gramercy.reports.page_equality import same_pictures, same_words
from gramercy.schemas.errors import BundleError, MissingPackages
from gramercy.schemas.manifest import EstimateManifest, ReportManifest


def check_belongs(
    place: Path, release: ReleaseBundle, kind: type[EstimateManifest] | type[ReportManifest]
) -> None:
    """An estimate or report lies beside the release that it is of, under its own name."""
    facts = read_manifest(place, kind)
    name = facts.report if isinstance(facts, ReportManifest) else facts.estimate
    if (facts.release_sha256, name) != (release.sha256, place.name):
        raise BundleError(f"{place / DESCRIPTOR}: is of another release, or of another name.")


def check_estimate(place: Path, release: ReleaseBundle) -> None:
    """Recompute an estimate from its release, and compare all that it holds."""
    bundle = read_estimate(place)
    stated = bundle.manifest
    manifest, found = fit(release, restored(stated.estimator))
    again = manifest.model_copy(update={"software": stated.software, "tuning": stated.tuning})
    agree(place, stated.model_dump(), as_of(stated, again).model_dump())
    if stated.estimate != place.name or not near(stated.tuning, manifest.tuning):
        raise BundleError(f"{place / DESCRIPTOR}: states other settings than its own.")
    for name, matrix in found.matrices.items():
        if not close(matrix, bundle.matrices[name]):
            raise BundleError(f"{place / name}.npy: is not what its settings give.")
    for name, table in found.tables.items():
        if not same_table(table, bundle.tables[name]):
            raise BundleError(f"{place / name}.parquet: is not what its settings give.")
    # Edges are on the scale of correlations.
    if found.edges is not None and not close(found.edges, bundle.edges, scale=1.0):
        raise BundleError(f"{place / GRAPH}: is not what its settings give.")
    agree(place, read_descriptor(place), estimate_descriptor(place, stated))
    no_more_than_listed(place)


def check_report(archive: Archive, place: Path, release: ReleaseBundle) -> tuple[str, str]:
    """Check a report; what was checked of it, and what could not be, in words."""
    bundle, facts = read_report(place), release.manifest
    stated = bundle.manifest
    shown = [
        read_estimate(archive.estimate(facts.dataset.id, facts.release, name))
        for name in stated.estimates
    ]
    manifest = report_manifest(release, shown)
    again = manifest.model_copy(update={"software": stated.software})
    agree(place, stated.model_dump(), as_of(stated, again).model_dump())
    if place.name != stated.report:
        raise BundleError(f"{place / DESCRIPTOR}: describes another report than its folder's.")
    agree(place, read_descriptor(place), report_descriptor(place, stated))
    no_more_than_listed(place)
    named = "names this release and its estimates"
    if stated.software.get("report") != manifest.software["report"]:
        by = f"Gramercy {stated.software.get('gramercy', '?'):.20}"
        doubt = f"its page is of another edition ({by}) than this one writes, and was not compared"
        return named, doubt
    try:
        page = report_page(release, shown)
    except MissingPackages:
        return named, f"its page was not compared: that needs {INSTALL_PUBLISH}"
    if not same_words(page, bundle.page):
        raise BundleError(f"{place / PAGE}: does not say what the release says.")
    if stated.software != manifest.software:
        doubt = "its pictures were drawn by other versions of libraries, and were not compared"
        return "says what this release and its estimates say", doubt
    if not same_pictures(page, bundle.page):
        raise BundleError(f"{place / PAGE}: does not show what the release says.")
    return "says and shows what this release and its estimates say", ""
