"""Tags and artifacts of a Prefect run, for auditors.

They state public facts and those of the ledger. The difference between the released matrix and the
true one would reveal private values, so the noise is compared with the released matrix instead.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path

from prefect import get_client
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.runtime import flow_run

from gramercy.application.context import Context
from gramercy.application.planning import utc_now
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import ReleaseBundle, read_release
from gramercy.estimators.noise.spectrum import spectrum
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.tasks.history import attach_anchor, ledger_tag


def scheduled_time() -> datetime.datetime:
    """When this run was scheduled to start, UTC; the present time if it was not scheduled."""
    scheduled = flow_run.scheduled_start_time if flow_run.id else None
    if scheduled is None:
        return utc_now()
    return datetime.datetime.fromtimestamp(scheduled.timestamp(), datetime.UTC)


def tag_run(
    context: Context, dataset: str, release: str | None = None, *, charges: bool = False
) -> None:
    """Tag this run by data set and release, so that the run history can be filtered.

    Parameters
    ----------
    context
        The home whose ledger the run may charge.
    dataset, release
        Ids of the data set and the release.
    charges
        Whether this run charges the ledger, so that its id becomes a tag for audits.
    """
    tags = {*flow_run.tags, f"dataset:{dataset}"}
    tags |= {f"release:{dataset}/{release}"} if release else set()
    tags |= {ledger_tag(context.ledger.head().ledger)} if charges else set()
    with get_client(sync_client=True) as client:
        client.update_flow_run(flow_run.id, tags=sorted(tags))


def attach_release(context: Context, dataset: str, release: str) -> None:
    """Attach privacy parameters, budget before and after, noise, and a link to the bundle."""
    archive, ledger = context.archive, context.ledger
    folder = archive.release(dataset, release)
    bundle = read_release(folder)
    name = f"{dataset}/{release}"
    _table("privacy", dataset, f"Privacy parameters of {name}", _privacy(bundle.manifest))
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
    facts = bundle.manifest
    attach_anchor(dataset, ledger.head())
    if facts.kind != "marginals":
        title = f"Eigenvalues of {name}, compared with noise alone"
        _table("noise", dataset, title, _eigenvalues(bundle))
    title = f"Bundle of {name}"
    create_link_artifact(archive.uri(folder), name, key=f"bundle-{dataset}", description=title)


def attach_estimates(
    archive: Archive, dataset: str, release: str, estimates: Sequence[str]
) -> None:
    """Attach the locations of the estimates that were made."""
    locations = {name: archive.uri(archive.estimate(dataset, release, name)) for name in estimates}
    _table("estimates", dataset, f"Estimates from {dataset}/{release}", locations)


def attach_report(archive: Archive, dataset: str, release: str, report: str) -> None:
    """Attach a link to a report."""
    name = f"{dataset}/{release}"
    create_link_artifact(
        link=archive.uri(archive.report(dataset, release, report) / "report.html"),
        link_text=f"Report on {name}",
        key=f"report-{dataset}",
        description=f"Report on {name}",
    )


def attach_audit(page: Path, discrepancies: Sequence[str]) -> None:
    """Attach the discrepancies that an audit found, and a link to its page."""
    rows = {str(number): sentence for number, sentence in enumerate(discrepancies, 1)}
    _table("audit", "of-the-home", "Discrepancies", rows or {"none": "No discrepancies found."})
    create_link_artifact(page.as_uri(), "Audit", key="audit-page", description="Page of the audit")


def _privacy(facts: ReleaseManifest) -> dict[str, object]:
    return {
        "release": f"{facts.dataset.id}/{facts.release}",
        "published": facts.published,
        "neighbours": facts.neighbours,
        "unit": facts.privacy_unit,
        "normalisation": facts.normalisation.kind,
        "mechanism": facts.mechanism["name"],
        "arithmetic": facts.calibration.arithmetic,
        **facts.calibration.constants,
        **facts.guarantee.model_dump(),
        **({} if facts.kind == "marginals" else _matrix_noise(facts)),
    }


def _matrix_noise(facts: ReleaseManifest) -> dict[str, object]:
    law = facts.noise
    return {"sd_diagonal": law.sd_diagonal, "sd_off_diagonal": law.sd_off_diagonal}


def _eigenvalues(bundle: ReleaseBundle) -> dict[str, object]:
    facts = bundle.manifest
    eigenvalues = spectrum(bundle.unbiased, bundle.repaired, facts.noise, facts.rows.value)
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
