"""Files and folders that an option asks for: checked before the work, replaced atomically."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from gramercy.common import disk
from gramercy.schemas import families


def check_output_file(option: str, path: Path) -> None:
    """Check that a file can be written here, before the work for it is done.

    Raises
    ------
    RequestError
        Naming the option and the path.
    """
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
    """Write the page that an option asks for, replacing an older one atomically.

    Raises
    ------
    RequestError
        If it cannot be written, naming the option and the file.
    """
    check_output_file(option, path)
    with write_errors(option, path):
        disk.write_atomically(path.resolve(), html.encode())


def check_output_folder(option: str, folder: Path) -> None:
    """Check that a folder can be created: neither it nor a parent is a file.

    Raises
    ------
    RequestError
        Naming the option and the file.
    """
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
