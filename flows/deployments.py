"""The deployments that prefect.yaml states, for the requests of one home."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.objects import ConcurrencyLimitConfig
from prefect.client.schemas.schedules import CronSchedule
from prefect.deployments.runner import RunnerDeployment
from prefect.events import DeploymentEventTrigger, ResourceSpecification
from prefect.flows import load_flow_from_entrypoint
from prefect.types.entrypoint import EntrypointType
from pydantic import ValidationError
from ruamel.yaml import YAML

from gramercy.application.context import Context
from gramercy.application.planning import make_plan
from gramercy.application.request_model import Request
from gramercy.common.home import Home
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import canonical
from gramercy.tasks.announce import HOME

POOL = "gramercy"
_POOL_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def packaged() -> Path:
    """Where prefect.yaml is: at the top of a checkout, or in this room of an installed package."""
    here = Path(__file__).resolve().parent
    return next(p for p in (here / "prefect.yaml", here.parent / "prefect.yaml") if p.is_file())


def served_tag(home: Home) -> str:
    """The tag of every deployment that this home serves."""
    return f"served:{home.address}"


def deployments(
    context: Context,
    requests: Sequence[Request],
    cron: str,
    timezone: str | None,
    pool: str = POOL,
) -> list[RunnerDeployment]:
    """What prefect.yaml states, with a release deployment for each of these requests.

    All of them are run by this pool, and follow releases of this home alone.

    Parameters
    ----------
    context
        Whose home serves them.
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
    template, *others = YAML(typ="safe", pure=True).load(packaged().read_text())["deployments"]
    releases: list[dict[str, Any]] = []
    requests_of: Counter[str] = Counter()  # several requests for one data set are numbered
    for request in requests:
        release = template | _scheduled(context, request, cron, timezone or request.timezone)
        requests_of[release["name"]] += 1
        number = requests_of[release["name"]]
        releases.append(release | ({"name": f"{release['name']}.{number}"} if number > 1 else {}))
    return [_deployment(each, pool, context.home) for each in (*releases, *others)]


def _scheduled(context: Context, request: Request, cron: str, timezone: str) -> dict[str, Any]:
    """What the release deployment of a request has of its own."""
    _check_schedule(cron, timezone)
    request = request.model_copy(update={"timezone": timezone})
    plan = make_plan(context, request)
    if "%" not in request.version:
        raise RequestError(
            f"key 'version': '{request.version}' would be published once, and then only replayed.",
            'Use a pattern of the date, such as "%G-W%V" or "%Y-%m-%d".',
        )
    parameters = {"request": request.model_dump(mode="json")}
    # `prefect deploy` would fill it in: a request that is served can be deployed by hand, too.
    if "{{" in canonical(parameters):
        raise RequestError("key 'dataset': the path holds '{{'.", "Rename the folder or the file.")
    return {
        "name": plan.contract.id,
        "description": f"Publish the data set {plan.contract.id}.",
        "schedules": [{"slug": "schedule", "cron": cron, "timezone": timezone}],
        "parameters": parameters,
    }


def _deployment(facts: Mapping[str, Any], pool: str, home: Home) -> RunnerDeployment:
    """One entry of prefect.yaml, made this home's on a server that others may use too."""
    limit = facts.get("concurrency_limit")
    match = ResourceSpecification({HOME: home.address})
    return RunnerDeployment.from_flow(
        load_flow_from_entrypoint(facts["entrypoint"]),
        name=facts["name"] if pool == POOL else f"{facts['name']}@{pool}",
        description=facts["description"],
        schedules=[_schedule(**each) for each in facts.get("schedules", [])],
        concurrency_limit=ConcurrencyLimitConfig(**limit) if limit else None,
        parameters=facts.get("parameters"),
        triggers=[
            DeploymentEventTrigger(**each, match=match) for each in facts.get("triggers", [])
        ],
        tags=[served_tag(home)],
        work_pool_name=pool,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


def _schedule(slug: str, cron: str, timezone: str) -> DeploymentScheduleCreate:
    return DeploymentScheduleCreate(slug=slug, schedule=CronSchedule(cron=cron, timezone=timezone))


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
