"""``gramercy serve``: releases on a schedule, on this machine."""

from __future__ import annotations

import shlex
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
from gramercy.schemas.problems.command_line import port_out_of_range, serving_stopped
from gramercy.schemas.url import without_secrets

_POLL_SECONDS = 2


def serve(
    requests: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[REQUEST]...", help="YAML files of the requests to schedule."),
    ] = None,
    cron: Annotated[
        str, typer.Option(help="Schedule in cron syntax, with five fields.")
    ] = "0 6 * * 1",
    timezone: Annotated[
        str | None, typer.Option(help="Time zone of the schedule; default: the request's, or UTC.")
    ] = None,
    port: Annotated[int, typer.Option(help="TCP port of the Prefect server.")] = 4200,
    pool: Annotated[
        str, typer.Option(help="Work pool; choose your own on a shared server.")
    ] = "gramercy",
) -> None:
    """Run Prefect, its deployments and a worker on this machine.

    Runs until Ctrl-C. Contracts must be registered: see 'gramercy register'. Uses the server at
    PREFECT_API_URL, with the login in PREFECT_API_AUTH_STRING, if that is set.

    Example: gramercy serve request.yaml --cron "0 6 * * 1" --timezone Europe/Berlin
    """
    prefect_processes.stop_children_on_signals()
    context = Context.default()
    scheduled = [read_request(path) for path in requests or []]
    served = deployments(context, scheduled, cron, timezone, pool)
    if not 1 <= port <= 65535:
        raise port_out_of_range(port)
    with prefect_processes.server(context.home, port) as server:
        for name in WorkPool(server.api, pool, context.home, server.login).deploy(served):
            terminal.say(f"No longer scheduled: {name}", to=terminal.err)
        with prefect_processes.worker(context.home, server, pool) as worker:
            _print_deployments(served, server)
            while worker.poll() is None and (
                server.process is None or server.process.poll() is None
            ):
                time.sleep(_POLL_SECONDS)
            raise serving_stopped()


def _print_deployments(served: Sequence[Any], server: prefect_processes.Server) -> None:
    for deployment in served:
        when = "when a release is published"
        if deployment.schedules:
            schedule = deployment.schedules[0].schedule
            when = f"{schedule.cron} ({schedule.timezone})"
        terminal.say(terminal.bold(deployment.full_name), f"  {when}")
    api = without_secrets(server.api)
    url = api.removesuffix("/api")
    terminal.say(f"\nServing at {url}. Ctrl-C stops the server and pauses the schedule.")
    login = ""
    if server.login_file is not None:  # its content may be printed nowhere: output becomes logs
        terminal.say(f"Its pages ask for a password: the line in {server.login_file}.")
        login = f'PREFECT_API_AUTH_STRING="$(cat {shlex.quote(str(server.login_file))})" '
    first = served[0]
    if first.schedules:
        prefect = Path(sys.executable).with_name("prefect")
        terminal.say(
            "To release now, in another terminal:\n"
            f"  PREFECT_API_URL={api} {login}{prefect} deployment run {first.full_name}"
        )
    else:
        terminal.say("No release is scheduled; pass requests as arguments to schedule them.")
