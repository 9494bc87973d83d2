"""Report on a release: reads the archive only, and seals the page beside the release."""

from __future__ import annotations

from collections.abc import Sequence

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
from gramercy.archive.store import Archive
from gramercy.common.home import Home
from gramercy.schemas.errors import BundleError
from gramercy.schemas.manifest import FORMAT, ReportManifest
from gramercy.schemas.model import digest

_DRAWING = ("jinja2", "matplotlib", "networkx", "pillow")


def report(dataset: str, release: str, estimates: list[str]) -> str:
    """Write the report on a release and on these estimates, or find it done; returns its id."""
    archive = Archive.of(Home.default())
    return make_report(archive, dataset, release, estimates).manifest.report


def make_report(
    archive: Archive, dataset: str, release: str, estimates: Sequence[str]
) -> ReportBundle:
    """Seal a report beside its release; the same estimates twice give the one report.

    Raises
    ------
    BundleError
        If the release or an estimate is not what was sealed.
    """
    shown = sorted(set(estimates))
    place = archive.report(dataset, release, _id(shown))
    with sealed_once(archive, place) as staged:
        if staged is not None:
            bundle = read_release(archive.release(dataset, release))
            places = [archive.estimate(dataset, release, each) for each in shown]
            write_report(staged, *written(bundle, [read_estimate(each) for each in places]))
    return read_report(place)


def written(
    release: ReleaseBundle, estimates: Sequence[EstimateBundle]
) -> tuple[ReportManifest, str]:
    """A report and what it says of itself.

    Raises
    ------
    BundleError
        If an estimate is not of this release.
    """
    from gramercy.reports.page import edition, release_page  # matplotlib takes a second

    facts = release.manifest
    for each in estimates:
        if each.manifest.release_sha256 != release.sha256:
            raise BundleError(f"Estimate '{each.manifest.estimate}' is not of this release.")
    manifest = ReportManifest(
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
    return manifest, release_page(release, estimates)


def _id(estimates: Sequence[str]) -> str:
    """Folder name of a report: the same estimates of the same release give the same one."""
    return f"report-{digest(sorted(estimates))[:8]}"
