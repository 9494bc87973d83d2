"""What runs leave in Prefect's history: tags, artifacts and events; and the history of a ledger.

They state public facts and those of the ledger. The difference between the released matrix and the
true one would reveal private values, so the noise is compared with the released matrix instead.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from prefect import get_client
from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterKey,
    FlowRunFilter,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import Artifact, FlowRun
from prefect.client.schemas.sorting import ArtifactSort
from prefect.events import emit_event
from prefect.runtime import flow_run
from pydantic import ValidationError

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release
from gramercy.archive.store.archive import Archive
from gramercy.common import log_lines
from gramercy.common.home import Home
from gramercy.estimators.caveats import contradicted_count
from gramercy.ledger import Ledger
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, utc_now
from gramercy.reports.reader_notes import spectrum_of
from gramercy.schemas import families
from gramercy.schemas.ledger_history import Anchor, History
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.problem import Notice
from gramercy.tasks.policy import log_fact

_PAGE = 200
_RECENT = 20  # artifacts to look at; some may not be anchors
_RELEASE, _LEDGER = "release:", "ledger:"  # prefixes of tags


def dataset_tag(dataset: str) -> str:
    """The tag of every run for this data set, and of the deployments of its releases."""
    return f"dataset:{dataset}"


def ledger_tag(ledger_id: str) -> str:
    """The tag of every run that charges this ledger."""
    return f"{_LEDGER}{ledger_id}"


def verify_against_history(ledger: Ledger) -> None:
    """Verify a ledger against the newest anchor of its runs."""
    anchors = _anchors(ledger.head().ledger, _RECENT)
    for anchor in sorted(anchors, key=lambda each: each.seq)[-1:]:
        ledger.verify_anchor(anchor, "Prefect's history")


def read_history(ledger: Ledger) -> History:
    """The run history of a ledger."""
    ledger_id = ledger.head().ledger
    runs: dict[str, list[str]] = {}
    for run in _runs(ledger_tag(ledger_id)):
        for release in _tag_values(run, _RELEASE):
            runs.setdefault(release, []).append(run.name)
    elsewhere = [
        notice for dataset in ledger.datasets() for notice in _charged_elsewhere(dataset, ledger_id)
    ]
    return History(runs, _anchors(ledger_id), elsewhere)


def _tag_values(run: FlowRun, prefix: str) -> list[str]:
    return [tag.removeprefix(prefix) for tag in run.tags if tag.startswith(prefix)]


def _charged_elsewhere(dataset: str, ledger_id: str) -> Iterator[Notice]:
    """Releases of a data set of this name that were charged to another ledger."""
    by_ledger: dict[str, set[str]] = {}
    for run in _runs(dataset_tag(dataset)):
        for other_id in set(_tag_values(run, _LEDGER)) - {ledger_id}:
            by_ledger.setdefault(other_id, set()).update(_tag_values(run, _RELEASE))
    for other_id, releases in sorted(by_ledger.items()):
        if releases:
            yield families.RECORDED(
                "{dataset}: {releases} releases of a data set of this name were "
                "charged to another ledger ({ledger}).",
                "If it is the same data set, that part of its budget was spent there.",
                dataset=dataset,
                releases=len(releases),
                ledger=other_id,
            )


def _runs(tag: str) -> list[FlowRun]:
    has_tag = FlowRunFilter(tags=FlowRunFilterTags(all_=[tag]))
    with get_client(sync_client=True) as client:
        runs: list[FlowRun] = []
        while True:
            page = client.read_flow_runs(flow_run_filter=has_tag, limit=_PAGE, offset=len(runs))
            runs += page
            if len(page) < _PAGE:
                return runs


def _anchors(ledger_id: str, limit: int | None = None) -> list[Anchor]:
    """Anchors of a ledger; artifacts that are not anchors are ignored."""
    of_ledger = ArtifactFilter(key=ArtifactFilterKey(any_=[_artifact_key(ledger_id)]))
    artifacts: list[Artifact] = []
    with get_client(sync_client=True) as client:
        while True:
            page = client.read_artifacts(
                artifact_filter=of_ledger,
                sort=ArtifactSort.CREATED_DESC,
                limit=limit or _PAGE,
                offset=len(artifacts),
            )
            artifacts += page
            if limit or len(page) < _PAGE:
                break
    anchors = []
    for each in artifacts:
        with contextlib.suppress(ValidationError, ValueError, TypeError, IndexError):
            anchors.append(Anchor.model_validate(json.loads(str(each.data))[0]))
    return [each for each in anchors if each.ledger == ledger_id]


def _artifact_key(ledger_id: str) -> str:
    return f"ledger-{ledger_id}"


PUBLISHED = "release.published"
HOME = "gramercy.home"  # label that tells homes apart on a shared server
RELEASE_PAGE = "../index.html"  # of the catalogue, seen from the bundle


def scheduled_time() -> datetime.datetime:
    """When this run was scheduled to start, UTC; the present time if it was not scheduled."""
    scheduled = flow_run.scheduled_start_time if flow_run.id else None
    if scheduled is None:
        return utc_now()
    return datetime.datetime.fromtimestamp(scheduled.timestamp(), datetime.UTC)


def describe_run(
    context: Context, dataset: str, version: str, *releases: str, charges: bool = False
) -> None:
    """Name this run, and tag it by data set and releases, and by the ledger if it charges one.

    Audits find runs by these tags.

    Parameters
    ----------
    version
        The version that is published, or the release id of which an estimate or a report is made.
    releases
        ``<dataset>/<release id>`` of all that it made or returned so far.
    """
    _ = context.home.public_url  # refused before anything is charged
    log_lines.subjects[str(flow_run.id)] = {"dataset": dataset, "version": version}
    tags = {*flow_run.tags, dataset_tag(dataset), *(f"{_RELEASE}{each}" for each in releases)}
    tags |= {ledger_tag(context.ledger.head().ledger)} if charges else set()
    with get_client(sync_client=True) as client:
        client.update_flow_run(flow_run.id, name=f"{dataset} {version}", tags=sorted(tags))


def name_run(name: str) -> None:
    """Name this run, which is not for one data set."""
    with get_client(sync_client=True) as client:
        client.update_flow_run(flow_run.id, name=name)


def log_ledger_head(context: Context) -> None:
    """Log the ledger's last entry, with which its later states can be compared."""
    head = context.ledger.head()
    log_fact(f"Last entry of ledger {head.ledger}: {head.seq}, SHA-256 {head.hash}.")


def attach_release(context: Context, dataset: str, release: str) -> None:
    """Attach privacy parameters, budget before and after, noise, and a link to the bundle."""
    archive, ledger = context.archive, context.ledger
    folder = archive.release(dataset, release)
    bundle = read_release(folder)
    name = f"{dataset}/{release}"
    facts = bundle.manifest
    privacy = {
        "release": name,
        "published": facts.published,
        "neighbours": facts.neighbours,
        "unit": facts.privacy_unit,
        "normalisation": facts.normalisation.kind,
        "mechanism": facts.mechanism["name"],
        "arithmetic": facts.calibration.arithmetic,
        **facts.calibration.constants,
        **facts.guarantee.model_dump(),
    }
    if facts.publication.has_matrix:
        privacy |= {
            "sd_diagonal": facts.noise.sd_diagonal,
            "sd_off_diagonal": facts.noise.sd_off_diagonal,
        }
    _table("privacy", dataset, f"Privacy parameters of {name}", privacy)
    log_fact(f"Guarantee of {name}: {_in_words(facts)}.")
    for caveat in contradicted_count(bundle.evidence):
        log_fact(str(caveat.notice))
    before, after = ledger.statements_around(dataset, release)
    budget = {
        "budget: epsilon": after.budget.epsilon,
        "budget: delta": after.budget.delta,
        "spent before": before.spent,
        "spent after": after.spent,
        "remaining before": before.remaining,
        "remaining after": after.remaining,
    }
    _table("budget", dataset, f"Budget before and after {name}, as epsilon", budget)
    log_fact(
        f"Budget of {dataset}, as epsilon: {before.spent:.6g} spent before {name}, "
        f"{after.spent:.6g} after; {before.remaining:.6g} left before, {after.remaining:.6g} after."
    )
    anchor = ledger.head()  # it reveals nothing of the charges
    create_table_artifact(
        table=[anchor.model_dump()],
        key=_artifact_key(anchor.ledger),
        description=f"The ledger after a release of {dataset}",
    )
    log_ledger_head(context)
    log_fact(f"SHA-256 of the bundle's SHA256SUMS: {bundle.sha256}.")
    if facts.publication.has_matrix:
        title = f"Eigenvalues of {name}, compared with noise alone"
        _table("noise", dataset, title, _eigenvalues(bundle))
    _link(context, f"bundle-{dataset}", f"Bundle of {name}", folder, RELEASE_PAGE)


def attach_estimates(
    archive: Archive, dataset: str, release: str, estimates: Sequence[str]
) -> None:
    """Attach the locations of the estimates that were made."""
    folders = {name: archive.estimate(dataset, release, name) for name in estimates}
    locations = {name: archive.display_path(folder) for name, folder in folders.items()}
    _table("estimates", dataset, f"Estimates from {dataset}/{release}", locations)


def attach_report(context: Context, dataset: str, release: str, report: str) -> None:
    """Attach a link to a report."""
    page = context.archive.report(dataset, release, report) / "report.html"
    _link(context, f"report-{dataset}", f"Report on {dataset}/{release}", page)


def attach_audit(page: Path, discrepancies: Sequence[str]) -> None:
    """Attach the discrepancies that an audit found, and the path of its page."""
    rows = {str(number): sentence for number, sentence in enumerate(discrepancies, 1)}
    _table("audit", "of-the-home", "Discrepancies", rows or {"none": "No discrepancies found."})
    _location("audit-page", "Page of the audit", str(page))


def _link(context: Context, key: str, title: str, place: Path, page: str = "") -> None:
    """Attach a link to a file or folder of the archive, or its location where none would open.

    Browsers follow no link from a server's page to a file of their machine, or to an object store.
    """
    archive = context.archive
    if served := context.home.public_url:
        address = web_address(served, archive.root, place / page)
        create_link_artifact(address, title, key=key, description=title)
        log_fact(f"{title}: {address}")
    else:
        _location(key, title, archive.display_path(place))


def web_address(served: str, root: Path, place: Path) -> str:
    """The address of a place below the root of an archive that is served at an address."""
    names = Path(os.path.normpath(place)).relative_to(os.path.normpath(root)).parts
    return "/".join([served, *(urllib.parse.quote(name, safe="") for name in names)])


def _location(key: str, title: str, location: str) -> None:
    """Attach a location as text, in a block of code that a name cannot end."""
    log_fact(f"{title}: {location}")
    create_markdown_artifact(f"{title}:\n\n    {location}\n", key=key, description=title)


def _in_words(facts: ReleaseManifest) -> str:
    stated = facts.guarantee
    return (
        f"epsilon = {stated.epsilon:.6g}, delta = {stated.delta:.6g} "
        f"({facts.neighbours}, unit of privacy: {facts.privacy_unit}; {facts.mechanism['name']})"
    )


def _eigenvalues(bundle: ReleaseBundle) -> dict[str, object]:
    eigenvalues = spectrum_of(bundle)
    return {
        "smallest eigenvalue of noise alone (99 releases of 100)": eigenvalues.lower,
        "smallest eigenvalue of the release": float(eigenvalues.released[-1]),
        "negative eigenvalues expected of noise alone": int((eigenvalues.noise < 0).sum()),
        "negative eigenvalues of the release": int((eigenvalues.released < 0).sum()),
        "eigenvalues of the release above the noise": eigenvalues.above_noise,
    }


def _table(kind: str, dataset: str, title: str, rows: Mapping[str, object]) -> None:
    create_table_artifact(
        table=[{"parameter": name, "value": str(value)} for name, value in rows.items()],
        key=f"{kind}-{dataset}",
        description=title,
    )


def emit_published(home: Home, plan: Plan, release: str) -> None:
    """Emit ``release.published`` with the requested estimates and the home: public facts only.

    Also emitted by a replay, in case an earlier run ended before it did so. A deployment that is
    triggered twice finds its work done.
    """
    dataset = plan.contract.id
    emit_event(
        PUBLISHED,
        resource={
            "prefect.resource.id": f"gramercy.release.{dataset}/{release}",
            "prefect.resource.name": f"{dataset}/{release}",
            "gramercy.dataset": dataset,
            HOME: home.address,
        },
        payload={
            "release": f"{dataset}/{release}",
            "estimates": [each.model_dump(mode="json") for each in plan.request.estimates],
        },
    )
