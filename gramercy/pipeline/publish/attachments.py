"""What is sealed next to a release: reports, and notices of withdrawal; and how it is sealed once.

The ledger records the digests of estimates and reports, so that an audit finds the missing ones.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gramercy.archive.bundles.bundle_kinds import (
    PAGE,
    EstimateBundle,
    ReleaseBundle,
    ReportBundle,
    read_estimate,
    read_release,
    read_report,
    report_descriptor,
    software_versions,
    write_estimate,
    write_withdrawal,
)
from gramercy.archive.bundles.package import write_descriptor
from gramercy.archive.seal.bundle import SUMS, file_digest
from gramercy.common.extras import publishing
from gramercy.common.process_lock import file_lock
from gramercy.estimators import Estimate, Estimator, registry
from gramercy.estimators.tuning.parallel import reporting_progress
from gramercy.estimators.tuning.stability import with_stability
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import (
    check_estimable,
    check_other_releases,
    read_other_releases,
)
from gramercy.pipeline.progress import steps_bar
from gramercy.schemas import families
from gramercy.schemas.errors import RequestError
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.manifest import FORMAT, EstimateManifest, ReportManifest, WithdrawalManifest
from gramercy.schemas.model import digest, parse

DRAWING = ("jinja2", "matplotlib", "networkx", "pillow")


def report(context: Context, dataset: str, release: str, estimates: Sequence[str]) -> str:
    """Write the report on a release and these estimates, unless it exists; returns its id."""
    return make_report(context, dataset, release, estimates).manifest.report


def make_report(
    context: Context, dataset: str, release: str, estimates: Sequence[str]
) -> ReportBundle:
    """Write and seal a report on a release; equal estimates give the same report."""
    archive, names = context.archive, sorted(set(estimates))
    place = archive.report(dataset, release, report_id(names))
    with seal_once(context, place) as staged:
        if staged is not None:
            bundle = read_release(archive.release(dataset, release))
            bundles = [read_estimate(archive.estimate(dataset, release, name)) for name in names]
            manifest = report_manifest(bundle, bundles)
            (staged / PAGE).write_text(report_page(bundle, bundles), encoding="utf-8", newline="\n")
            write_descriptor(staged, report_descriptor(staged, manifest))
    return read_report(place)


def report_page(release: ReleaseBundle, estimates: Sequence[EstimateBundle]) -> str:
    """The page of a report."""
    with publishing():
        # They need the extra 'publish'.
        from gramercy.reports.release_report import marginals_page, release_page

        if not release.manifest.publication.has_matrix:
            return marginals_page(release)
        return release_page(release, estimates)


def report_manifest(release: ReleaseBundle, estimates: Sequence[EstimateBundle]) -> ReportManifest:
    """The manifest of a report."""
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
        software=software_versions(*DRAWING),
    )


def report_id(estimates: Sequence[str]) -> str:
    """Folder name of a report; equal estimates give the same name."""
    return f"report-{digest(sorted(estimates))[:8]}"


_KINDS = {"estimates": "estimate", "reports": "report"}  # folders of bundles that are recorded


@contextmanager
def seal_once(context: Context, place: Path) -> Iterator[Path | None]:
    """Yield an empty folder, to seal and commit at `place`; or None if that bundle exists.

    An event may be delivered twice, and the command line may run at the same time as a worker: the
    second process waits for the first, and uses its result.
    """
    archive = context.archive
    name = ".".join(place.relative_to(archive.root).parts)
    if not archive.contains(place):  # what is committed never changes: no lock is needed then
        with file_lock(context.home.locks, name):
            if not archive.contains(place):  # another process may have held the lock
                with archive.staging(f"_{digest(name)[:16]}", sweep_first=True) as staged:
                    yield staged
                    archive.seal(staged)
                    archive.commit(staged, place)
                _record(context, place, replace=True)
                return
    archive.verify_signer(place)
    yield None
    _record(context, place, replace=False)


def _record(context: Context, place: Path, *, replace: bool) -> None:
    """Record the digest of an estimate or a report in the ledger that charged its release.

    A bundle that was sealed before is recorded if its process crashed before it could do so.
    """
    dataset, release, kind, *name = place.relative_to(context.archive.root).parts
    if context.existing_ledger is None or kind not in _KINDS:
        return
    ledger, sha256 = context.ledger, file_digest(place / SUMS)
    if ledger.record_derived(dataset, release, _KINDS[kind], name[0], sha256, replace=replace):
        context.record_head()


def withdraw(context: Context, dataset: str, release: str, reason: str) -> Path:
    """Mark a published release as withdrawn; returns the path of the notice.

    The ledger is written first. After an interruption, the same command writes what is missing.
    """
    ledger, archive = context.open_stores()
    bundle = read_release(archive.release(dataset, release))
    facts = {
        "format": FORMAT,
        "kind": "withdrawal",
        "dataset": bundle.manifest.dataset,
        "release": release,
        "release_sha256": bundle.sha256,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    with ledger.lock(dataset):
        charge = ledger.charge_of(dataset, release)
        if charge is None:
            raise families.UNTRUSTED(
                "{ledger}: '{release}' was not charged in this ledger.",
                "Withdraw the release where it was charged.",
                ledger=ledger.location,
                release=f"{dataset}/{release}",
            )
        if charge.state is ChargeState.SEALED:
            raise families.SPENT(
                "Publication of '{release}' was interrupted before its end.",
                "Repeat its request, which finishes the publication; then withdraw the release.",
                release=f"{dataset}/{release}",
            )
        if charge.state is ChargeState.WITHDRAWN:
            reason = charge.reason
        manifest = parse(
            WithdrawalManifest, facts | {"reason": reason.strip()}, "withdraw", RequestError
        )
        if charge.state is not ChargeState.WITHDRAWN:
            ledger.mark(dataset, release, ChargeState.WITHDRAWN, reason=manifest.reason)
            context.record_head(outside=True)
        place = archive.withdrawal(dataset, release)
        with seal_once(context, place) as staged:
            if staged is not None:
                write_withdrawal(staged, manifest)
    return place


def estimate(context: Context, dataset: str, release: str, estimator: Estimator) -> str:
    """Compute one estimate, unless it exists; returns its id."""
    return make_estimate(context, dataset, release, estimator).manifest.estimate


def make_estimate(
    context: Context, dataset: str, release: str, estimator: Estimator
) -> EstimateBundle:
    """Compute and seal an estimate of a release; equal settings give the same estimate."""
    archive = context.archive
    place = archive.estimate(dataset, release, estimator.id)
    with seal_once(context, place) as staged:
        if staged is not None:
            bundle = read_release(archive.release(dataset, release))
            check_other_releases(archive, estimator, bundle.release_evidence.name, bundle.manifest)
            others = read_other_releases(archive, estimator)
            with steps_bar(estimator.name) as bar, reporting_progress(bar):
                manifest, result = fit(bundle, estimator, others)
            write_estimate(staged, manifest, result.matrices, result.tables, result.edges)
    return read_estimate(place)


def fit(
    bundle: ReleaseBundle,
    estimator: Estimator,
    others: Sequence[ReleaseBundle] = (),
    *,
    stability: bool = True,
) -> tuple[EstimateManifest, Estimate]:
    """Compute an estimate and its manifest.

    Parameters
    ----------
    others
        The other releases that the estimator needs, in the order of `Estimator.other_releases`.
    stability
        Whether the stability of its edges is computed as well; see `with_stability`.
    """
    facts = bundle.manifest
    check_estimable(facts)
    of_group = [each.rows_of(estimator.group) for each in (bundle, *others)]
    releases = [each.release_evidence for each in of_group]
    evidence = estimator.evidence_of(releases)
    result = estimator.fit(evidence)
    if not all(np.isfinite(matrix).all() for matrix in result.matrices.values()):
        raise families.ESTIMATE(
            "{estimator}: these settings give no finite matrix.",
            "Use a larger penalty.",
            estimator=estimator.name,
        )
    if stability:
        result = with_stability(evidence, estimator, result)
    manifest = EstimateManifest(
        format=FORMAT,
        kind=result.kind,
        estimate=estimator.id,
        dataset=facts.dataset,
        release=facts.release,
        release_sha256=bundle.sha256,
        sources={each.name: each.sha256 for each in releases[1:]},
        names=tuple(facts.names),
        estimator=estimator.model_dump(),
        tuning=dict(result.tuning),
        matrices=tuple(result.matrices),
        tables=tuple(result.tables),
        graph=result.edges is not None,
        privacy="post-processing of the release; no further privacy cost",
        software=software_versions(),
    )
    return manifest, result


def estimator_from_settings(settings: Mapping[str, Any]) -> Estimator:
    """The estimator with the settings that a manifest states."""
    return registry[settings["name"]].model_validate(dict(settings))
