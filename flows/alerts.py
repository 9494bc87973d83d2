"""Alerts by e-mail or webhook, as automations of a Prefect server.

``python -m gramercy.flows.alerts POOL`` makes them on the server at PREFECT_API_URL; `gramercy
serve` does the same. Their texts name runs, and quote neither a table nor an error.
"""

from __future__ import annotations

import datetime
import sys
from dataclasses import dataclass
from typing import Any

from apprise import Apprise
from prefect import get_client
from prefect.automations import AutomationCore, EventTrigger, Posture, SendNotification
from prefect.blocks.notifications import SlackWebhook
from pydantic import SecretStr

from gramercy.common.home import Home
from gramercy.schemas import families

_SIGNED = "\n\nRun 'gramercy status' in the home of the worker.\n"
_RUN = "{{ flow.name }}/{{ deployment.name }}"


@dataclass(frozen=True)
class Alert:
    """What is reported of a work pool, and when.

    Parameters
    ----------
    name
        What has happened.
    after
        Events of Prefect that begin it.
    subject
        Of the message, a template of Prefect.
    unless
        Events that end it; if one follows `within` this time, nothing is sent.
    of_runs
        Whether the events are of the pool's runs, or of the pool.
    """

    name: str
    after: frozenset[str]
    subject: str
    unless: frozenset[str] = frozenset()
    within: datetime.timedelta = datetime.timedelta(0)
    of_runs: bool = True

    def trigger(self, pool: str) -> EventTrigger:
        """When it is sent, for the runs of one work pool."""
        of_pool = {"prefect.resource.name": pool}
        resource: dict[str, Any] = {
            "match": {"prefect.resource.id": "prefect.flow-run.*"},
            "match_related": of_pool | {"prefect.resource.role": "work-pool"},
        }
        if not self.of_runs:
            resource = {"match": of_pool | {"prefect.resource.id": "prefect.work-pool.*"}}
        if not self.unless:
            return EventTrigger(
                expect=set(self.after), posture=Posture.Reactive, threshold=1, **resource
            )
        return EventTrigger(
            after=set(self.after),
            expect=set(self.unless),
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=self.within,
            **resource,
        )


_TEN_MINUTES = datetime.timedelta(minutes=10)
ALERTS = (
    Alert(
        "failed run",  # of a release, an estimate, a report, an audit or a status
        frozenset({"prefect.flow-run.Failed", "prefect.flow-run.Crashed"}),
        f"Gramercy: {_RUN} has failed ({{{{ flow_run.name }}}})",
    ),
    Alert(
        "late run",
        frozenset({"prefect.flow-run.Late"}),
        f"Gramercy: {_RUN} has not started",
        unless=frozenset({"prefect.flow-run.Pending", "prefect.flow-run.Cancelled"}),
        within=_TEN_MINUTES,
    ),
    Alert(
        "approval",
        frozenset({"prefect.flow-run.Suspended"}),
        f"Gramercy: {_RUN} waits for 'gramercy approve'",
    ),
    Alert(
        "no worker",
        frozenset({"prefect.work-pool.not-ready"}),
        "Gramercy: no worker",
        unless=frozenset({"prefect.work-pool.ready"}),
        within=_TEN_MINUTES,
        of_runs=False,
    ),
)


def make_alerts(pool: str, home: Home) -> bool:
    """Make or renew the alerts of a work pool, or remove them if the home names no address.

    The server and its clients are those of Prefect's settings.

    Returns
    -------
    bool
        Whether there are alerts.

    Raises
    ------
    RequestError
        If the address is not one of Apprise.
    """
    address = home.alerts_url
    if address and not Apprise().add(address):
        raise families.SETTING(
            "GRAMERCY_ALERTS_URL must be an address of Apprise.",
            "Write one such as mailto://user:password@example.org or json://example.org/path.",
        )
    with get_client(sync_client=True) as client:
        for alert in ALERTS:
            name = f"Gramercy, work pool {pool}: {alert.name}"
            if address is None:
                made = None
            else:
                made = AutomationCore(
                    name=name,
                    description="Made by Gramercy, which replaces it.",
                    trigger=alert.trigger(pool),
                    actions=[
                        SendNotification(
                            block_document_id=_block(pool, address),
                            subject=alert.subject,
                            body=f"{alert.subject}, in the work pool {pool}.{_SIGNED}",
                        )
                    ],
                )
            existing = client.read_automations_by_name(name)
            for each in existing[1 if made else 0 :]:
                client.delete_automation(each.id)
            if made and not existing:
                client.create_automation(made)
            elif made and made != AutomationCore.model_validate(existing[0].model_dump()):
                client.update_automation(existing[0].id, made)  # forgets what it waits for
    return address is not None


def _block(pool: str, address: str) -> Any:
    """The id of the block that keeps the address, which Prefect encrypts."""
    # Prefect hands the address of this block to Apprise, which sends mail and webhooks alike.
    name = f"gramercy-{pool}".replace("_", "--")
    return SlackWebhook(url=SecretStr(address), notify_type="failure").save(name, overwrite=True)


if __name__ == "__main__":
    make_alerts(sys.argv[1], Home.default())
