"""Arguments and options that commands share, and what a shell offers for them at the Tab key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from gramercy.common.home import Home

_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


def completed(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Completion in a shell, by those of the names that begin like the word."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _releases() -> list[str]:
    """Committed releases of the home's archive, unless it is elsewhere, where looking takes long.

    The names of folders suffice: a name that is offered may still be refused.
    """
    home = Home.default()
    committed = () if home.archive_url else home.archive.glob("*/*/release/SHA256SUMS.sig")
    names = sorted("/".join(path.parts[-4:-2]) for path in committed)
    return [name for name in names if _RELEASE.fullmatch(name)]


def _datasets() -> list[str]:
    return list(dict.fromkeys(name.partition("/")[0] for name in _releases()))


def _datasets_and_releases() -> list[str]:
    return _datasets() + _releases()


RequestPath = Annotated[
    Path, typer.Argument(metavar="REQUEST", help="YAML file of the release request.")
]
ReleaseName = Annotated[
    str,
    typer.Argument(
        metavar="RELEASE",
        help="Name of a release: DATASET/RELEASE.",
        autocompletion=completed(_releases),
    ),
]
ReleaseNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RELEASE]...",
        help="DATASET/RELEASE, or DATASET for all of its releases; default: all.",
        autocompletion=completed(_datasets_and_releases),
    ),
]
DatasetName = Annotated[
    str | None,
    typer.Argument(help="Id of a data set; default: all.", autocompletion=completed(_datasets)),
]
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
