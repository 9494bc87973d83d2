"""The deployments of prefect.yaml, for the requests of one machine."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.client.schemas.schedules import CronSchedule
from prefect.settings import PREFECT_API_URL, temporary_settings
from pydantic import ValidationError
from ruamel.yaml import YAML

from gramercy.application.planning import make_plan
from gramercy.application.request_model import Request
from gramercy.common.home import Home
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import canonical
from gramercy.tasks.announce import HOME

POOL = "gramercy"
_POOL_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_SERVED = "served:"
_PAGE = 100  # of deployments


def packaged() -> Path:
    """Where prefect.yaml is: at the top of a checkout, or in this room of an installed package."""
    here = Path(__file__).resolve().parent
    return next(p for p in (here / "prefect.yaml", here.parent / "prefect.yaml") if p.is_file())


def deployments(
    requests: Sequence[Request], cron: str, timezone: str | None, pool: str = POOL
) -> dict[str, Any]:
    """What prefect.yaml says, with a release deployment for each of these requests.

    All of them are run by this pool, and follow releases of this home alone.

    Parameters
    ----------
    requests
        Their versions are patterns, so that every scheduled run has a version of its own.
    cron, timezone
        When they run; without a zone, in each request's own.
    pool
        The work pool; where it is not the usual one, its name ends those of the deployments.

    Raises
    ------
    RequestError
        If a request cannot be planned, or the schedule or the pool's name is none.
    """
    if not _POOL_NAME.fullmatch(pool) or pool.startswith("prefect"):
        raise RequestError(
            "--pool: is no name of a work pool.", "Small letters and digits, such as 'cardiology'."
        )
    facts: dict[str, Any] = YAML(typ="safe", pure=True).load(packaged().read_text())
    template, *others = facts["deployments"]
    made: dict[str, Any] = {}
    for each in requests:
        one = _scheduled(template, each, cron, timezone or each.timezone)
        place = sum(name.split(".")[0] == one["name"] for name in made) + 1
        one["name"] += f".{place}" if place > 1 else ""  # several requests for one data set
        made[one["name"]] = one
    facts["deployments"] = [_own(each, pool) for each in (*made.values(), *others)]
    return facts


def _own(deployment: Mapping[str, Any], pool: str) -> dict[str, Any]:
    """Of this home, on a server that others may use too."""
    home = Home.default().address
    found = {**deployment, "work_pool": {"name": pool}, "tags": [_SERVED + home]}
    if pool != POOL:
        found["name"] += f"@{pool}"
    if "triggers" in found:
        found["triggers"] = [{**each, "match": {HOME: home}} for each in found["triggers"]]
    return found


def check_pool(api: str, asked: Mapping[str, Any], pool: str) -> None:
    """Refuse what would take another's place, or be handed another's runs.

    Parameters
    ----------
    api
        Of the Prefect server.
    asked
        What `deployments` returned.
    pool
        The work pool.

    Raises
    ------
    RequestError
        If this home did not make a deployment in the pool, or one that is called as one of these.
    """
    mine = _SERVED + Home.default().address
    names = {(each["entrypoint"], each["name"]) for each in asked["deployments"]}
    with temporary_settings({PREFECT_API_URL: api}), get_client(sync_client=True) as client:
        for each in _all(client):
            taken = each.work_pool_name == pool or (each.entrypoint, each.name) in names
            if taken and mine not in each.tags:
                raise RequestError(
                    f"On this server, '{each.name}' in the work pool '{each.work_pool_name}' was "
                    "deployed from elsewhere, or by hand.",
                    "Name a pool of your own with --pool; or delete that deployment, if it is no "
                    "longer wanted.",
                )


def _all(client: Any, **of: Any) -> Iterator[Any]:
    """Deployments, a page after the other, all of them read before the first is given."""
    found: list[Any] = []
    while page := client.read_deployments(**of, limit=_PAGE, offset=len(found)):
        found += page
    return iter(found)


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
    mine = DeploymentFilter(tags=DeploymentFilterTags(all_=[_SERVED + Home.default().address]))
    gone = []
    with temporary_settings({PREFECT_API_URL: api}), get_client(sync_client=True) as client:
        for each in _all(client, deployment_filter=mine):
            if each.name not in names:
                client.delete_deployment(each.id)
                gone.append(f"release/{each.name}")
    return gone


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
