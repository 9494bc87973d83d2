"""Arguments and options that commands share: their completion, their checks, and what they name."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gramercy.common import disk
from gramercy.common.home import Home
from gramercy.schemas import families

if TYPE_CHECKING:
    from gramercy.archive.store.archive import Archive
    from gramercy.pipeline.context import Context

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
        autocompletion=completed(lambda: _datasets() + _releases()),
    ),
]
DatasetName = Annotated[
    str | None,
    typer.Argument(help="Id of a data set; default: all.", autocompletion=completed(_datasets)),
]
LogFormat = Annotated[
    Literal["text", "json"],
    typer.Option(help="Format of the log on standard error: json has one object a line."),
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
    bool, typer.Option("--copy", help="The home is a copy that is only read: its ledger has moved.")
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


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Refuse a word that is not among the choices."""
    if value in choices:
        return
    lowered = {each.lower(): each for each in choices}
    if similar := difflib.get_close_matches(value.lower(), lowered, n=1):
        raise families.USAGE(
            "{option}: '{value}' is unknown.",
            "Did you mean '{suggestion}'?",
            option=option,
            value=value,
            suggestion=lowered[similar[0]],
        )
    raise families.USAGE(
        "{option} must be one of: {choices}.",
        "'{value}' is not.",
        option=option,
        value=value,
        choices=tuple(choices),
    )


def archive_of_options(
    context: Context, address: str | None, keys: Sequence[Path] | None
) -> Archive:
    """The archive at an address, or that of the home; with the given keys as the trusted ones."""
    from gramercy.archive.seal.signing import read_public_key  # not needed for help
    from gramercy.archive.store.opening import open_archive

    archive = context.archive if address is None else open_archive(address)
    if keys:
        archive = replace(archive, trusted=frozenset(map(read_public_key, keys)))
    if address is not None:
        archive.check_exists()
    return archive


def check_output_file(option: str, path: Path) -> None:
    """Check that a file can be written here, before the work for it is done."""
    with write_errors(option, path):
        if path.exists() and not path.is_file():
            raise families.OUTPUT(
                "{option}: {path} exists and is not a file.",
                "Choose another file name.",
                option=option,
                path=str(path),
            )
        if not path.absolute().parent.is_dir():
            raise families.OUTPUT(
                "{option}: the folder of {path} does not exist.",
                "Create it, or choose another file name.",
                option=option,
                path=str(path),
            )


def write_page(option: str, path: Path, html: str) -> None:
    """Write the page that an option asks for, replacing an older one atomically."""
    check_output_file(option, path)
    with write_errors(option, path):
        disk.write_atomically(path.resolve(), html.encode())


def check_output_folder(option: str, folder: Path) -> None:
    """Check that a folder can be created: neither it nor a parent is a file."""
    with write_errors(option, folder):
        for path in (folder, *folder.parents):
            if path.exists() and not path.is_dir():
                raise families.OUTPUT(
                    "{option}: {path} exists and is not a folder.",
                    "Choose another folder.",
                    option=option,
                    path=str(path),
                )


@contextlib.contextmanager
def write_errors(option: str, path: Path) -> Iterator[None]:
    """Turn an `OSError` into a `RequestError` that names the option and the path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise families.OUTPUT(
            "{option}: {path} cannot be written ({reason}).",
            "Free some space, or choose another location.",
            option=option,
            path=str(path),
            reason=reason,
        ) from None
