"""What auditors find in a Prefect run itself: tags to filter by, and artifacts to read.

Only public facts, and the ledger's: the deviation between the released matrix and the true one is
none of them (whoever knew it exactly would know more than the release tells), so the noise is held
against what the release itself shows of it.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path

from prefect import get_client
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.runtime import flow_run

from gramercy.application.context import Context
from gramercy.application.planning import now
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import read_release
from gramercy.estimators.noise.spectrum import spectrum
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.tasks.history import ledger_tag, tell


def scheduled() -> datetime.datetime:
    """When this run was meant to start, UTC: now, where nobody scheduled it."""
    planned = flow_run.scheduled_start_time if flow_run.id else None
    if planned is None:
        return now()
    return datetime.datetime.fromtimestamp(planned.timestamp(), datetime.UTC)


def tag(
    context: Context, dataset: str, release: str | None = None, *, charges: bool = False
) -> None:
    """Tag this run by data set and release, so that history can be filtered.

    Parameters
    ----------
    context
        Whose ledger it may charge.
    dataset, release
        Which.
    charges
        Whether this run charges a ledger; its id is a tag, too, for audits.
    """
    tags = {*flow_run.tags, f"dataset:{dataset}"}
    tags |= {f"release:{dataset}/{release}"} if release else set()
    tags |= {ledger_tag(context.ledger.head().ledger)} if charges else set()
    with get_client(sync_client=True) as client:
        client.update_flow_run(flow_run.id, tags=sorted(tags))


def show_release(context: Context, dataset: str, release: str) -> None:
    """Attach privacy parameters, budget before and after, noise, and a link to the bundle."""
    archive, ledger = context.archive, context.ledger
    place = archive.release(dataset, release)
    bundle = read_release(place)
    name = f"{dataset}/{release}"
    _table("privacy", dataset, f"Privacy parameters of {name}", _privacy(bundle.manifest))
    before, after = ledger.around(dataset, release)
    budget = {
        "budget: epsilon": after.budget.epsilon,
        "budget: delta": after.budget.delta,
        "spent before": before.spent,
        "spent after": after.spent,
        "left before, for one more release": before.remaining,
        "left after, for one more release": after.remaining,
    }
    _table("budget", dataset, f"Budget before and after {name}, as epsilon", budget)
    facts = bundle.manifest
    tell(dataset, ledger.head())
    found = spectrum(bundle.unbiased, bundle.repaired, facts.noise, facts.rows.value)
    noise = {
        "expected: no eigenvalue of the noise alone lies below": found.lower,
        "realised: smallest eigenvalue as released, signal and noise": float(found.released[-1]),
        "expected: negative eigenvalues, were it noise alone": int((found.noise < 0).sum()),
        "realised: negative eigenvalues as released": int((found.released < 0).sum()),
        "realised: eigenvalues that stand out of the noise": found.beyond,
    }
    _table("noise", dataset, f"Noise of {name}, expected and as the release shows it", noise)
    words = f"Bundle of {name}"
    create_link_artifact(archive.uri(place), name, key=f"bundle-{dataset}", description=words)


def show_estimates(archive: Archive, dataset: str, release: str, estimates: Sequence[str]) -> None:
    """Attach the estimates that were made, and where they lie."""
    places = {name: archive.uri(archive.estimate(dataset, release, name)) for name in estimates}
    _table("estimates", dataset, f"Estimates from {dataset}/{release}", places)


def show_report(archive: Archive, dataset: str, release: str, report: str) -> None:
    """Attach a link to a report."""
    name = f"{dataset}/{release}"
    create_link_artifact(
        link=archive.uri(archive.report(dataset, release, report) / "report.html"),
        link_text=f"Report on {name}",
        key=f"report-{dataset}",
        description=f"Report on {name}",
    )


def show_audit(page: Path, discrepancies: Sequence[str]) -> None:
    """Attach what an audit found, and a link to its page."""
    found = {f"{place}": words for place, words in enumerate(discrepancies, 1)}
    _table("audit", "of-the-home", "What does not agree", found or {"nothing": "all agrees"})
    create_link_artifact(page.as_uri(), "Audit", key="audit-page", description="The auditor's page")


def _privacy(facts: ReleaseManifest) -> dict[str, object]:
    return {
        "release": f"{facts.dataset.id}/{facts.release}",
        "published": facts.published,
        "neighbours": facts.neighbours,
        "unit": facts.unit,
        "normalisation": facts.normalisation.kind,
        "mechanism": facts.mechanism["name"],
        "arithmetic": facts.calibration.arithmetic,
        **facts.calibration.constants,
        **facts.guarantee.model_dump(),
        "sd_diagonal": facts.noise.sd_diagonal,
        "sd_off_diagonal": facts.noise.sd_off_diagonal,
    }


def _table(kind: str, dataset: str, title: str, rows: Mapping[str, object]) -> None:
    create_table_artifact(
        table=[{"parameter": name, "value": str(value)} for name, value in rows.items()],
        key=f"{kind}-{dataset}",
        description=title,
    )
