"""Report on a release: reads the archive only, and seals the page next to the release."""

from __future__ import annotations

from collections.abc import Sequence

from gramercy.archive.bundles.estimate_bundle import EstimateBundle, read_estimate
from gramercy.archive.bundles.release_bundle import (
    ReleaseBundle,
    ReportBundle,
    read_release,
    read_report,
    software_versions,
    write_report,
)
from gramercy.common.extras import publishing
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.seal_once import seal_once
from gramercy.schemas import families
from gramercy.schemas.manifest import FORMAT, ReportManifest
from gramercy.schemas.model import digest

_DRAWING = ("jinja2", "matplotlib", "networkx", "pillow")


def report(context: Context, dataset: str, release: str, estimates: Sequence[str]) -> str:
    """Write the report on a release and these estimates, unless it exists; returns its id."""
    return make_report(context, dataset, release, estimates).manifest.report


def make_report(
    context: Context, dataset: str, release: str, estimates: Sequence[str]
) -> ReportBundle:
    """Write and seal a report on a release; equal estimates give the same report.

    Raises
    ------
    BundleError
        If the release or an estimate differs from what was sealed.
    """
    archive, names = context.archive, sorted(set(estimates))
    place = archive.report(dataset, release, report_id(names))
    with seal_once(context, place) as staged:
        if staged is not None:
            bundle = read_release(archive.release(dataset, release))
            bundles = [read_estimate(archive.estimate(dataset, release, name)) for name in names]
            manifest = report_manifest(bundle, bundles)
            write_report(staged, manifest, report_page(bundle, bundles))
    return read_report(place)


def report_page(release: ReleaseBundle, estimates: Sequence[EstimateBundle]) -> str:
    """The page of a report.

    Raises
    ------
    MissingPackages
        If the packages that draw it are not installed.
    """
    with publishing():
        # They need the extra 'publish'.
        from gramercy.reports.marginals_page import marginals_page
        from gramercy.reports.page import release_page

        if release.manifest.kind == "marginals":
            return marginals_page(release)
        return release_page(release, estimates)


def report_manifest(release: ReleaseBundle, estimates: Sequence[EstimateBundle]) -> ReportManifest:
    """The manifest of a report.

    Raises
    ------
    BundleError
        If an estimate is not of this release.
    """
    facts = release.manifest
    for each in estimates:
        if each.manifest.release_sha256 != release.sha256:
            raise families.CONTRADICTION(
                "Estimate '{estimate}' was not made from this release.",
                "Ask the curator for the bundle that was published.",
                estimate=each.manifest.estimate,
            )
    return ReportManifest(
        format=FORMAT,
        kind="report",
        report=report_id([each.manifest.estimate for each in estimates]),
        dataset=facts.dataset,
        release=facts.release,
        release_sha256=release.sha256,
        estimates={each.manifest.estimate: each.sha256 for each in estimates},
        privacy="post-processing of the release; no further privacy cost",
        software=software_versions(*_DRAWING),
    )


def report_id(estimates: Sequence[str]) -> str:
    """Folder name of a report; equal estimates give the same name."""
    return f"report-{digest(sorted(estimates))[:8]}"
