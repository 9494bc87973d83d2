"""Arguments and options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RequestPath = Annotated[Path, typer.Argument(metavar="REQUEST", help="Release request, YAML.")]
ReleaseName = Annotated[str, typer.Argument(metavar="RELEASE", help="DATASET/RELEASE.")]
ReleaseNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RELEASE]...", help="DATASET/RELEASE, or DATASET; default: all."),
]
OneDataset = Annotated[str | None, typer.Argument(help="One data set; default: all.")]
ArchivePlace = Annotated[
    str | None, typer.Option(help="A folder or URL, instead of this home's own archive.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def parts_of(release: str) -> tuple[str, str]:
    """DATASET/RELEASE in its two parts."""
    dataset, _, name = release.partition("/")
    return dataset, name
