"""The deployments of prefect.yaml, for the requests of one machine."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML

from schemas.errors import RequestError
from tasks.plan import make_plan
from tasks.request import Request

POOL = "gramercy"


def packaged() -> Path:
    """Where prefect.yaml lies: beside the packages in a checkout, in this one when installed."""
    here = Path(__file__).parent
    return next(p for p in (here / "prefect.yaml", here.parent / "prefect.yaml") if p.is_file())


def deployments(requests: Sequence[Request], cron: str, timezone: str) -> dict[str, Any]:
    """What prefect.yaml says, with a release deployment for each of these requests.

    Parameters
    ----------
    requests
        Their versions are patterns, so that every scheduled run has a version of its own.
    cron, timezone
        When they run.

    Raises
    ------
    RequestError
        If a request cannot be planned, or the schedule is none.
    """
    facts: dict[str, Any] = YAML(typ="safe", pure=True).load(packaged().read_text())
    template, *others = facts["deployments"]
    _check_schedule(cron, timezone)
    facts["deployments"] = [_scheduled(template, each, cron, timezone) for each in requests]
    facts["deployments"] += others
    return facts


def _scheduled(template: Any, request: Request, cron: str, timezone: str) -> dict[str, Any]:
    plan = make_plan(request.on(datetime.datetime.now(datetime.UTC)))
    if "%" not in request.version:
        raise RequestError(
            f"key 'version': '{request.version}' would be published once, and then only replayed.",
            'Use a pattern of the date, such as "%G-W%V" or "%Y-%m-%d".',
        )
    return {
        **template,
        "name": plan.contract.id,
        "description": f"Publish {plan.contract.title}.",
        "schedules": [{"slug": "schedule", "cron": cron, "timezone": timezone}],
        "parameters": {"request": request.model_dump(mode="json")},
    }


def _check_schedule(cron: str, timezone: str) -> None:
    from prefect.client.schemas.schedules import CronSchedule

    try:
        CronSchedule(cron=cron, timezone=timezone)
    except ValidationError as caught:
        key = caught.errors()[0]["loc"][0]
        mends = {"cron": "such as '0 6 * * 1'", "timezone": "such as Europe/Berlin"}
        words = f"Five fields, {mends['cron']}." if key == "cron" else f"A name, {mends[str(key)]}."
    else:
        return
    raise RequestError(f"--{key}: is no schedule.", words)
