"""Links from a page, wherever it is written, to pages of the catalogue that exist."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gramercy.archive.store.layout import PAGE_BYTES
from gramercy.pipeline.context import Context
from gramercy.reports.rendering import Links, no_links
from gramercy.schemas.errors import GramercyError


def archive_links(
    context: Context, page: Path, exists: Callable[[str], bool] | None = None
) -> Links:
    """The links of a page that is written to a file.

    They are relative if the file is in the archive, or if the archive is next to the file or to a
    folder above it; otherwise they start with ``GRAMERCY_PUBLIC_URL``, if it is set. Longer
    relative paths would reveal folders of this machine, and break on another.

    Parameters
    ----------
    exists
        Whether the archive has a page of this name; default: looked up in the archive.
    """
    root = _relative_root(context, page)
    if root is None and (served := context.home.public_url) is not None:
        root = served
    if root is None:
        return no_links

    def link(name: str) -> str:
        found = False
        if exists is not None:
            found = exists(name)
        else:
            with suppress(GramercyError):  # not a regular file, or the archive cannot be read
                found = context.archive.read_file(name, PAGE_BYTES) is not None
        return f"{root}/{urllib.parse.quote(name)}" if found else ""

    return link


def _relative_root(context: Context, page: Path) -> str | None:
    """The relative path from a page to the archive; None if there is none to use."""
    archive = context.archive
    if not archive.is_folder:
        return None
    # As written: browsers remove ".." from an address without following links.
    root, folder = (Path(os.path.abspath(each)) for each in (archive.root, page.parent))
    if not folder.is_relative_to(root.parent):
        return None
    return urllib.parse.quote(Path(os.path.relpath(root, folder)).as_posix())
