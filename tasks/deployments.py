"""The deployments of prefect.yaml, for the requests of one machine."""

from __future__ import annotations

import datetime
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.client.schemas.schedules import CronSchedule
from prefect.settings import PREFECT_API_URL, temporary_settings
from pydantic import ValidationError
from ruamel.yaml import YAML

from schemas.errors import RequestError
from schemas.home import Home
from schemas.model import canonical
from tasks.plan import make_plan
from tasks.request import Request

POOL = "gramercy"


def packaged() -> Path:
    """Where prefect.yaml lies: beside the packages in a checkout, in this one when installed."""
    here = Path(__file__).parent
    return next(p for p in (here / "prefect.yaml", here.parent / "prefect.yaml") if p.is_file())


def deployments(requests: Sequence[Request], cron: str, timezone: str | None) -> dict[str, Any]:
    """What prefect.yaml says, with a release deployment for each of these requests.

    Parameters
    ----------
    requests
        Their versions are patterns, so that every scheduled run has a version of its own.
    cron, timezone
        When they run; without a zone, in each request's own.

    Raises
    ------
    RequestError
        If a request cannot be planned, or the schedule is none.
    """
    facts: dict[str, Any] = YAML(typ="safe", pure=True).load(packaged().read_text())
    template, *others = facts["deployments"]
    made: dict[str, Any] = {}
    for each in requests:
        one = _scheduled(template, each, cron, timezone or each.timezone)
        place = sum(name.split(".")[0] == one["name"] for name in made) + 1
        one["name"] += f".{place}" if place > 1 else ""  # several requests for one data set
        made[one["name"]] = one
    facts["deployments"] = [*made.values(), *others]
    return facts


def retire(api: str, kept: Mapping[str, Any]) -> list[str]:
    """Take back the release deployments that this home served before, and serves no more.

    Parameters
    ----------
    api
        Of the Prefect server.
    kept
        What `deployments` returned.

    Returns
    -------
    list of str
        Their names. Their runs stay in the history.
    """
    names = {each["name"] for each in kept["deployments"]}
    mine = DeploymentFilter(tags=DeploymentFilterTags(all_=[_tag()]))
    gone = []
    with temporary_settings({PREFECT_API_URL: api}), get_client(sync_client=True) as client:
        for each in client.read_deployments(deployment_filter=mine):
            if each.name not in names:
                client.delete_deployment(each.id)
                gone.append(f"release/{each.name}")
    return gone


def _tag() -> str:
    """Marks the deployments of this home on this machine."""
    return f"served:{socket.gethostname()}:{Home.default().root}"


def _scheduled(template: Any, request: Request, cron: str, timezone: str) -> dict[str, Any]:
    _check_schedule(cron, timezone)
    request = request.model_copy(update={"timezone": timezone})
    plan = make_plan(request.on(datetime.datetime.now(datetime.UTC)))
    if "%" not in request.version:
        raise RequestError(
            f"key 'version': '{request.version}' would be published once, and then only replayed.",
            'Use a pattern of the date, such as "%G-W%V" or "%Y-%m-%d".',
        )
    parameters = {"request": request.model_dump(mode="json")}
    if "{{" in canonical(parameters):  # Prefect would look up what is between them
        raise RequestError("key 'dataset': the path holds '{{'.", "Rename the folder or the file.")
    return {
        **template,
        "name": plan.contract.id,
        "description": f"Publish the data set {plan.contract.id}.",
        "tags": [_tag()],
        "schedules": [{"slug": "schedule", "cron": cron, "timezone": timezone}],
        "parameters": parameters,
    }


def _check_schedule(cron: str, timezone: str) -> None:
    wrong = ""
    try:
        CronSchedule(cron=cron, timezone=timezone)
    except ValidationError as caught:
        wrong = str(caught.errors()[0]["loc"][0])
    if wrong == "timezone" or not timezone:
        raise RequestError("--timezone: is no time zone.", "A name, such as Europe/Berlin.")
    if wrong or len(cron.split()) != 5:
        raise RequestError("--cron: is no schedule.", "Five fields, such as '0 6 * * 1'.")
