"""Names inside an archive: ``<dataset>/<release>/release`` and the bundles of that release.

Its estimates are at ``<dataset>/<release>/estimates/<id>``, its reports at
``<dataset>/<release>/reports/<id>``, its notice of withdrawal at ``<dataset>/<release>/withdrawn``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from gramercy.archive.anchors import FOLDER
from gramercy.schemas.problems.archive import not_a_release_name, release_behind_link

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
STAGING = ".staging"
INDEX, GLOSSARY = "index.html", "glossary.html"  # pages of the catalogue
# Path components of a bundle, by kind.
DEPTH = {"release": 3, "withdrawn": 3, "estimates": 4, "reports": 4}
_MOST_DIGITS = 20  # digits of the longest counter that Gramercy writes in a release id


def bundle_path(root: Path, *names: str) -> Path:
    """The path of a bundle below the root of an archive.

    Raises
    ------
    UnknownRelease
        If a name, or a link in the archive, could lead out of the archive.
    """
    if not all(NAME.fullmatch(name) for name in names):
        raise not_a_release_name("/".join(names[:2]))
    path = root.joinpath(*names)
    if is_redirected(root, path):
        raise release_behind_link(str(path))
    return path


def is_redirected(root: Path, path: Path) -> bool:
    """Whether a link below the root redirects a path, out of the root or within it."""
    return path.resolve() != root.resolve() / path.relative_to(root)


def is_archive_file(name: str) -> bool:
    """Whether a file is of a bundle, a page, an anchor of the ledger, or in the staging area."""
    parts = name.split("/")
    if name == GLOSSARY or (parts[-1] == INDEX and len(parts) <= 3):
        return True
    if parts[0] in {STAGING, FOLDER}:
        return True
    return len(parts) > 2 and DEPTH.get(parts[2]) == len(parts) - 1


def in_release_order(releases: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Releases by data set, then by the counter in their ids: VERSION-r2 before VERSION-r10."""

    def key(release: tuple[str, str]) -> tuple[str, int, str]:
        counter = release[1].rpartition("-r")[2]
        number = int(counter) if counter.isdecimal() and len(counter) < _MOST_DIGITS else 0
        return release[0], number, release[1]

    return sorted(releases, key=key)
