"""Places that an option names, for a command to write to: held first, and written whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from gramercy.common import disk
from gramercy.schemas.errors import RequestError


def check_page(option: str, path: Path) -> None:
    """Refuse a place where no page can be written, before the work for it is done.

    Raises
    ------
    RequestError
        Naming the option and the place.
    """
    with written(option, path):
        if path.exists() and not path.is_file():
            raise RequestError(f"{option}: {path} is there, and no file.", "Name another one.")
        if not path.absolute().parent.is_dir():
            raise RequestError(
                f"{option}: {path}: its folder is not there.", "Make it, or name another file."
            )


def write_page_of(option: str, path: Path, html: str) -> None:
    """Write the page that an option asks for; an older one stays until the new one is whole.

    Raises
    ------
    RequestError
        If it cannot be written, naming the option and the file.
    """
    check_page(option, path)
    with written(option, path):
        disk.replace(path.resolve(), html.encode())


def check_folder(option: str, folder: Path) -> None:
    """Refuse a folder that cannot be made, since a file is in its place or above it.

    Raises
    ------
    RequestError
        Naming the option and the file.
    """
    with written(option, folder):
        for each in (folder, *folder.parents):
            if each.exists() and not each.is_dir():
                raise RequestError(
                    f"{option}: {each} is there, and no folder.", "Name another place."
                )


@contextlib.contextmanager
def written(option: str, path: Path) -> Iterator[None]:
    """Tell a failure to write by the option that named the place."""
    try:
        yield
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise RequestError(
            f"{option}: {path} cannot be written ({why}).",
            "Make room there, or name another place.",
        ) from None
