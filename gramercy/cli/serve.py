"""``gramercy serve``: releases on a schedule, on this machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gramercy.application.context import Context
from gramercy.application.yaml_files import read_request
from gramercy.cli import prefect_processes
from gramercy.cli.output import terminal
from gramercy.flows.deployments import deployments
from gramercy.flows.work_pool import WorkPool
from gramercy.schemas.errors import RequestError, ServerError
from gramercy.schemas.url import without_secrets

_LOOK_SECONDS = 2


def serve(
    requests: Annotated[
        list[Path] | None, typer.Argument(metavar="[REQUEST]...", help="Requests to schedule.")
    ] = None,
    cron: Annotated[str, typer.Option(help="When they run.")] = "0 6 * * 1",
    timezone: Annotated[
        str | None, typer.Option(help="Of the schedule; default: the request's, else UTC.")
    ] = None,
    port: Annotated[int, typer.Option(help="Of the Prefect server.")] = 4200,
    pool: Annotated[
        str, typer.Option(help="Work pool; of your own, on a server that others use too.")
    ] = "gramercy",
) -> None:
    """Run a Prefect server, the deployments and a worker on this machine, until Ctrl-C.

    Example: gramercy serve request.yaml --cron "0 6 * * 1" --timezone Europe/Berlin
    """
    prefect_processes.end_in_order()
    context = Context.default()
    asked = [read_request(path) for path in requests or []]
    served = deployments(context, asked, cron, timezone, pool)
    if not 1 <= port <= 65535:
        raise RequestError("--port: is no port.", "Name one from 1 to 65535.")
    with prefect_processes.server(context.home, port) as (api, server):
        for name in WorkPool(api, pool, context.home).deploy(served):
            terminal.say(f"No longer scheduled: {name}", to=terminal.err)
        with prefect_processes.worker(context.home, api, pool) as worker:
            _say_what_runs(served, without_secrets(api))
            while worker.poll() is None and (server is None or server.poll() is None):
                time.sleep(_LOOK_SECONDS)
            raise ServerError("The server or the worker stopped.", "Their last lines tell why.")


def _say_what_runs(served: Sequence[Any], api: str) -> None:
    for each in served:
        when = "when a release is published"
        if each.schedules:
            schedule = each.schedules[0].schedule
            when = f"{schedule.cron} ({schedule.timezone})"
        terminal.say(terminal.bold(each.full_name), f"  {when}")
    place = api.removesuffix("/api")
    terminal.say(f"\nServing at {place}. Ctrl-C stops it; the schedule waits meanwhile.")
    first = served[0]
    if first.schedules:
        prefect = Path(sys.executable).with_name("prefect")
        terminal.say(
            "To release now, in another terminal:\n"
            f"  PREFECT_API_URL={api} {prefect} deployment run {first.full_name}"
        )
    else:
        terminal.say("Nothing is scheduled: name release requests to schedule them.")
