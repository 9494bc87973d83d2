"""Report on a release: reads the archive only, and seals the page beside the release."""

from __future__ import annotations

from collections.abc import Sequence

from gramercy.application.context import Context
from gramercy.application.seal_once import sealed_once
from gramercy.archive.estimate_bundle import EstimateBundle, read_estimate
from gramercy.archive.release_bundle import (
    ReleaseBundle,
    ReportBundle,
    read_release,
    read_report,
    software,
    write_report,
)
from gramercy.common.extras import publishing
from gramercy.reports.edition import edition
from gramercy.schemas.errors import BundleError
from gramercy.schemas.manifest import FORMAT, ReportManifest
from gramercy.schemas.model import digest

_DRAWING = ("jinja2", "matplotlib", "networkx", "pillow")


def report(context: Context, dataset: str, release: str, estimates: Sequence[str]) -> str:
    """Write the report on a release and on these estimates, or find it done; returns its id."""
    return make_report(context, dataset, release, estimates).manifest.report


def make_report(
    context: Context, dataset: str, release: str, estimates: Sequence[str]
) -> ReportBundle:
    """Seal a report beside its release; the same estimates twice give the one report.

    Raises
    ------
    BundleError
        If the release or an estimate is not what was sealed.
    """
    archive, shown = context.archive, sorted(set(estimates))
    place = archive.report(dataset, release, _id(shown))
    with sealed_once(context, place) as staged:
        if staged is not None:
            bundle = read_release(archive.release(dataset, release))
            places = [archive.estimate(dataset, release, each) for each in shown]
            beside = [read_estimate(each) for each in places]
            manifest = report_manifest(bundle, beside)
            write_report(staged, manifest, report_page(bundle, beside))
    return read_report(place)


def report_page(release: ReleaseBundle, estimates: Sequence[EstimateBundle]) -> str:
    """The page of a report.

    Raises
    ------
    MissingPackages
        If what draws it is not installed.
    """
    with publishing():
        from gramercy.reports.page import release_page  # what draws it is of the extra

        return release_page(release, estimates)


def report_manifest(release: ReleaseBundle, estimates: Sequence[EstimateBundle]) -> ReportManifest:
    """What a report says of itself.

    Raises
    ------
    BundleError
        If an estimate is not of this release.
    """
    facts = release.manifest
    for each in estimates:
        if each.manifest.release_sha256 != release.sha256:
            raise BundleError(f"Estimate '{each.manifest.estimate}' is not of this release.")
    return ReportManifest(
        format=FORMAT,
        kind="report",
        report=_id([each.manifest.estimate for each in estimates]),
        dataset=facts.dataset,
        release=facts.release,
        release_sha256=release.sha256,
        estimates={each.manifest.estimate: each.sha256 for each in estimates},
        privacy="post-processing of the release; no further privacy cost",
        software=software(*_DRAWING) | {"report": edition()},
    )


def _id(estimates: Sequence[str]) -> str:
    """Folder name of a report: the same estimates of the same release give the same one."""
    return f"report-{digest(sorted(estimates))[:8]}"
