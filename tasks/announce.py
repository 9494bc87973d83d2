"""Tell Prefect that something was published, so that deployments which wait for it begin."""

from __future__ import annotations

from prefect.events import emit_event

from gramercy.application.planning import Plan
from gramercy.common.home import Home

PUBLISHED = "release.published"
HOME = "gramercy.home"  # which one it was published from, on a server that several use


def announce(home: Home, plan: Plan, release: str) -> None:
    """Emit ``release.published``, with what is to be estimated: public facts, and the home.

    Also after a replay: whoever died before this line is made good for, and what waits for the
    event finds its work done if it comes twice.
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
