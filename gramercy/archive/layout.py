"""Names inside an archive: ``<dataset>/<release>/release``, and what belongs to that release.

Its estimates are at ``<dataset>/<release>/estimates/<id>``, its reports at
``<dataset>/<release>/reports/<id>``, its notice of withdrawal at ``<dataset>/<release>/withdrawn``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from gramercy.archive.anchors import FOLDER
from gramercy.schemas.errors import ArchiveError, GramercyError, UnknownRelease

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
STAGING = ".staging"
INDEX, GLOSSARY = "index.html", "glossary.html"  # pages of the catalogue
DEPTH = {"release": 3, "withdrawn": 3, "estimates": 4, "reports": 4}  # of bundles, by their kind
_DIGITS = 20  # of a turn; this software never writes a longer one


def bundle_path(root: Path, *names: str) -> Path:
    """The path of a bundle below the root of an archive.

    Raises
    ------
    UnknownRelease
        If a name, or a link in the archive, could lead elsewhere.
    """
    if not all(NAME.fullmatch(name) for name in names):
        raise UnknownRelease(
            f"'{'/'.join(names[:2])}': is not the name of a release.",
            "It is DATASET/RELEASE; see 'gramercy list'.",
        )
    path = root.joinpath(*names)
    if is_redirected(root, path):
        raise link_error(path, UnknownRelease)
    return path


def is_redirected(root: Path, path: Path) -> bool:
    """Whether a link below the root leads away from a path, out of the root or within it."""
    return path.resolve() != root.resolve() / path.relative_to(root)


def link_error(path: Path, kind: type[GramercyError] = ArchiveError) -> GramercyError:
    """What to raise for a path that a link leads away from."""
    return kind(
        f"{path}: a link leads elsewhere, and none is followed.", "Put the folder itself there."
    )


def is_known(name: str) -> bool:
    """Whether a file is of a bundle, a page, an anchor of the ledger, or in the staging area."""
    parts = name.split("/")
    if name == GLOSSARY or (parts[-1] == INDEX and len(parts) <= 3):
        return True
    if parts[0] in {STAGING, FOLDER}:
        return True
    return len(parts) > 2 and DEPTH.get(parts[2]) == len(parts) - 1


def by_turn(releases: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """By data set, and by the turns that end their ids: VERSION-r2 comes before VERSION-r10."""

    def key(release: tuple[str, str]) -> tuple[str, int, str]:
        turn = release[1].rpartition("-r")[2]
        number = int(turn) if turn.isdecimal() and len(turn) < _DIGITS else 0
        return release[0], number, release[1]

    return sorted(releases, key=key)
