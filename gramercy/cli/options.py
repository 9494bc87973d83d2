"""Arguments and options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RequestPath = Annotated[
    Path, typer.Argument(metavar="REQUEST", help="YAML file of the release request.")
]
ReleaseName = Annotated[
    str, typer.Argument(metavar="RELEASE", help="Name of a release: DATASET/RELEASE.")
]
ReleaseNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RELEASE]...",
        help="DATASET/RELEASE, or DATASET for all of its releases; default: all.",
    ),
]
DatasetName = Annotated[str | None, typer.Argument(help="Id of a data set; default: all.")]
ArchiveLocation = Annotated[
    str | None, typer.Option(help="Folder or URL of an archive; default: this home's.")
]
PublicKeys = Annotated[
    list[Path] | None,
    typer.Option(
        help="File of a curator's public key; every bundle must be signed by one. Repeatable."
    ),
]
IsCopy = Annotated[
    bool,
    typer.Option("--copy", help="The home is a copy that is only read: its ledger has moved."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
PeriodOption = Annotated[
    str | None,
    typer.Option(
        "--period",
        metavar="PERIOD",
        help="Period of the data, such as 2026-11; default: the request's.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def split_name(release: str) -> tuple[str, str]:
    """Data set and release of DATASET/RELEASE."""
    dataset, _, name = release.partition("/")
    return dataset, name
