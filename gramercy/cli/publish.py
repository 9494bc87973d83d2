"""``gramercy release``, ``randomize`` and ``aggregate``: charge and publish."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gramercy.cli.options import AsJson, LogFormat, PeriodOption, RequestPath, Yes
from gramercy.cli.prefect_server import start_ahead
from gramercy.common import log_lines
from gramercy.common.home import Home
from gramercy.pipeline.validation import worker_process

NewCharge = Annotated[
    bool, typer.Option("--new-charge", help="Charge again after an interrupted release.")
]
Despite = Annotated[
    bool, typer.Option("--despite", help="Publish even if the plan says that it would be useless.")
]


def release(
    request: RequestPath,
    yes: Yes = False,
    despite: Despite = False,
    new_charge: NewCharge = False,
    period: PeriodOption = None,
    log_format: LogFormat = "text",
    json: AsJson = False,
) -> None:
    """Publish a release, or return the one published before.

    A request is charged once: the same request again returns the same release, without a charge.
    If the plan's verdict is red, the command asks about that as well; --yes does not answer it.

    Example: gramercy release request.yaml --yes
    """
    if log_format == "json":
        log_lines.use_json("stderr")
    _publish(
        request,
        yes=yes,
        new_charge=new_charge,
        json=json,
        period=period,
        asks_if_useless=not despite,
    )


def randomize(
    request: RequestPath, yes: Yes = False, new_charge: NewCharge = False, json: AsJson = False
) -> None:
    """Publish one noisy report per row, for the mechanism 'local'.

    Run it where the rows are; 'gramercy aggregate' averages the reports of several sources.

    Example: gramercy randomize request.yaml --yes
    """
    _publish(request, yes=yes, new_charge=new_charge, json=json, mechanism="local")


def aggregate(
    request: RequestPath,
    reports: Annotated[
        list[Path],
        typer.Argument(
            metavar="REPORTS...", help="Release folders that 'gramercy randomize' published."
        ),
    ],
    yes: Yes = False,
    new_charge: NewCharge = False,
    json: AsJson = False,
) -> None:
    """Publish the average of noisy reports from one or more sources.

    Example: gramercy aggregate request.yaml north/release south/release
    """
    folders = [str(path.absolute()) for path in reports]
    _publish(request, folders, yes=yes, new_charge=new_charge, json=json)


def _publish(request: Path, reports: Sequence[str] | None = None, **options: Any) -> None:
    """Start the processes that will be needed, and then import what takes a second."""
    home = Home.default()
    if home.ledger_url is None and not home.ledger.exists():  # so that nothing can be a replay
        start_ahead()
        if reports is None:
            worker_process.start_ahead()
    from gramercy.cli.request_runner import publish_request

    publish_request(request, reports, **options)
