"""What an analyst does with an archive: open it, search it, read it, and run commands on it."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gramercy
from gramercy.archive.bundles.bundle_kinds import published_columns
from gramercy.archive.bundles.number_files import read_rows
from gramercy.archive.store.opening import open_archive
from gramercy.cli.main import main
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas.errors import GramercyError


def visit(archive: Path) -> dict[str, Any]:
    """Codes of all errors, and everything that was printed or shown."""
    os.environ["GRAMERCY_ARCHIVE_URL"] = str(archive)
    codes: set[str] = set()
    shown: list[str] = []
    names = [f"{x.parent.parent.name}/{x.parent.name}" for x in archive.glob("*/*/release")]
    actions: list[Callable[[], Any]] = [lambda: _catalogue(archive)]
    for name in names:
        actions += [
            lambda name=name: _release(archive, name),
            lambda name=name: verify_release(open_archive(archive), *name.split("/"), None),
        ]
    for action in actions:
        try:
            shown.append(repr(action()))
        except GramercyError as error:
            codes |= {error.code, *(each.code for each in error.details)}
            shown.append(str(error))
    package = archive.parent / f"{archive.name}-package"
    for words in (["list"], ["list", "--json"], *(["show", name] for name in names)):
        shown.append(_printed(*words))
    shown.append(_printed("export", "--archive", str(archive), "--package", str(package)))
    table = package / "releases.csv"
    return {
        "codes": sorted(codes),
        "shown": "\n".join(shown),
        "html": _pages(archive, names),
        "csv": table.read_text() if table.exists() else "",
    }


def _catalogue(archive: Path) -> Any:
    catalogue = gramercy.open(archive)
    return [*catalogue], catalogue.search("x").to_json()


def _release(archive: Path, name: str) -> Any:
    release = gramercy.open(archive)[name]
    rows = release.manifest.publication.rows_file
    if rows is not None:
        columns = published_columns(release.manifest)
        for _ in read_rows(release.path / rows, columns, round(release.manifest.rows.value)):
            pass
    shown = release, release.denoised.shape, release.report
    return shown, sorted(release.estimates), release.withdrawn


def _pages(archive: Path, names: list[str]) -> str:
    """What a notebook shows."""
    catalogue = gramercy.open(archive)
    pages = [catalogue._repr_html_()]
    for name in names:
        with contextlib.suppress(GramercyError):
            pages.append(catalogue[name]._repr_html_())
    return "\n".join(pages)


def _printed(*words: str) -> str:
    """What a command prints to a terminal."""
    sys.argv = ["gramercy", *words]
    text = io.StringIO()
    with (
        contextlib.redirect_stdout(text),
        contextlib.redirect_stderr(text),
        contextlib.suppress(SystemExit),
    ):
        main()
    return text.getvalue()
