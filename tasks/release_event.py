"""The Prefect event of a publication, which triggers deployments such as estimates and reports."""

from __future__ import annotations

from prefect.events import emit_event

from gramercy.common.home import Home
from gramercy.pipeline.plan.planning import Plan

PUBLISHED = "release.published"
HOME = "gramercy.home"  # label that tells homes apart on a shared server


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
