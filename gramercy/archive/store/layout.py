"""Names inside an archive: ``<dataset>/<release>/release`` and the bundles of that release.

Its estimates are at ``<dataset>/<release>/estimates/<id>``, its reports at
``<dataset>/<release>/reports/<id>``, its notice of withdrawal at ``<dataset>/<release>/withdrawn``.
``listing.json`` and ``<dataset>/listing-*.json`` are the signed listing; HTML files are pages of
the catalogue, whose digests it holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from gramercy.common.natural_order import Natural, natural
from gramercy.schemas import families

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
STAGING = ".staging"
ANCHORS = ".ledger"
INDEX, GLOSSARY = "index.html", "glossary.html"  # pages of the catalogue
PAGE_BYTES = 1 << 26  # no page is larger
LISTING_FILE = "listing.json"
CATALOGUE_LOCK = "catalogue.pages"  # of the listing and the pages; no data set can have this name
ARCHIVE_FILES = frozenset({LISTING_FILE, STAGING, ANCHORS})  # every archive has one of them
_PART = re.compile(r"listing-[0-9a-f]{16}\.json", re.ASCII)
_PAGE = re.compile(
    r"index\.html|glossary\.html|datasets-[1-9][0-9]{0,8}\.html"
    r"|[^/]+/(?:index|releases-[1-9][0-9]{0,8})\.html|[^/]+/[^/]+/index\.html",
    re.ASCII,
)
# Path components of a bundle, by kind.
DEPTH = {"release": 3, "withdrawn": 3, "estimates": 4, "reports": 4}

Name = tuple[str, str]  # data set, release id


def bundle_path(root: Path, *names: str) -> Path:
    """The path of a bundle below the root of an archive."""
    if not all(NAME.fullmatch(name) for name in names):
        raise families.UNKNOWN_RELEASE(
            "'{name}' is not the name of a release.",
            "Write DATASET/RELEASE; 'gramercy list' shows all names.",
            name="/".join(names[:2]),
        )
    path = root.joinpath(*names)
    if is_redirected(root, path):
        raise families.UNKNOWN_RELEASE(
            "{path} is reached through a link, and links inside an archive are not followed.",
            "Replace the link with the folder itself.",
            path=str(path),
        )
    return path


def is_redirected(root: Path, path: Path) -> bool:
    """Whether a link below the root redirects a path, out of the root or within it."""
    return path.resolve() != root.resolve() / path.relative_to(root)


def is_archive_file(name: str) -> bool:
    """Whether a file is of a bundle or the listing, an anchor, or in the staging area."""
    parts = name.split("/")
    if name == LISTING_FILE or (len(parts) == 2 and is_part(parts[1])):
        return True
    if parts[0] in {STAGING, ANCHORS}:
        return True
    return len(parts) > 2 and DEPTH.get(parts[2]) == len(parts) - 1


def is_page(name: str) -> bool:
    """Whether a file has the name of a page of the catalogue."""
    return _PAGE.fullmatch(name) is not None


def part_name(dataset: str, digest: str) -> str:
    """The name of the file of a part of the signed listing, by its SHA-256."""
    return f"{dataset}/listing-{digest[:16]}.json"


def is_part(file: str) -> bool:
    """Whether a file in the folder of a data set is a part of the signed listing."""
    return _PART.fullmatch(file) is not None


def release_page(dataset: str, release: str) -> str:
    """The name of the page of a release."""
    return f"{dataset}/{release}/{INDEX}"


def older_page(dataset: str, number: int) -> str:
    """The name of the page of older releases of a data set; the oldest are on page 1."""
    return f"{dataset}/releases-{number}.html"


def in_release_order(releases: Iterable[Name], charged: Mapping[Name, int]) -> list[Name]:
    """Releases by data set, and in each as they were charged; those that are not known last.

    `charged`: see `ReleaseManifest.charged`. Releases of which it says nothing, or the same, are in
    the natural order of their ids: v2-r1 before v10-r1.
    """

    def key(release: Name) -> tuple[str, float, Natural]:
        return release[0], charged.get(release, math.inf), natural(release[1])

    return sorted(releases, key=key)
