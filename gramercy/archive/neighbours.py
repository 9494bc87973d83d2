"""Whether a folder is an archive, and which archives are near one that is not."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from gramercy.archive.layout import ARCHIVE_FILES
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas.problems.archive import not_an_archive
from gramercy.schemas.problems.listing import archive_nearby

_MOST_LOOKED_AT = 200  # folders, in search of a suggestion


def check_is_archive(folder: Path) -> None:
    """Check that a folder is an archive; an empty folder is one, in which nothing was published.

    Raises
    ------
    RequestError
        If it is not; with the archives next to it.
    """
    if folder.is_dir() and (not _names(folder) or _has_archive(folder)):
        return
    nearby = [str(each) for each in dict.fromkeys(_around(folder)) if _has_archive(each)]
    if nearby:
        raise archive_nearby(str(folder), most_similar_first(str(folder), nearby))
    raise not_an_archive(str(folder))


def _has_archive(folder: Path) -> bool:
    """Whether a folder has files that only archives have, or a release."""
    names = _names(folder)
    if ARCHIVE_FILES & set(names):
        return True
    return any(
        os.path.isfile(folder / dataset / release / "release" / "SHA256SUMS")
        for dataset in names
        for release in _names(folder / dataset)
    )


def _around(folder: Path) -> Iterator[Path]:
    """The folders directly below, above and next to a folder that may not exist."""
    parents = [*folder.absolute().parents][:2]
    for base in (folder, *parents[:1]):
        yield from (base / name for name in _names(base))
    yield from parents


def _names(folder: Path) -> list[str]:
    """The first names in a folder; none if it is not one, or may not be read."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return [each.name for each, _ in zip(entries, range(_MOST_LOOKED_AT), strict=False)]
    return []
