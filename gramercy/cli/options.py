"""What commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gramercy.common.home import Home

RequestPath = Annotated[Path, typer.Argument(metavar="REQUEST", help="Release request, YAML.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def archive() -> Any:
    """The archive of the home in use."""
    from gramercy.archive.store import Archive

    return Archive.of(Home.default())
