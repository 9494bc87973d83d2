"""``gramercy export``: the catalogue in forms that others read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gramercy.application.context import Context
from gramercy.application.verification import to_verify
from gramercy.archive.open import open_archive
from gramercy.archive.registry_entry import Stated
from gramercy.archive.signing_keys import read_public
from gramercy.cli.options import ArchivePlace, AsJson, ReleaseNames
from gramercy.cli.output import terminal
from gramercy.cli.output.exported import held, timelines_of, write_package, write_registry
from gramercy.cli.output.page_file import check_folder
from gramercy.schemas.deployments_registry import CURATOR_TYPES, SECTORS
from gramercy.schemas.errors import RequestError


def export(
    names: ReleaseNames = None,
    registry: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write entries of the OpenDP Deployments Registry."),
    ] = None,
    curator_type: Annotated[
        str | None, typer.Option(help="For the registry: Government, Industry or Nonprofit.")
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="For the registry: which region the data describe.")
    ] = None,
    sector: Annotated[
        str | None, typer.Option(help="For the registry: Healthcare, Education, ...")
    ] = None,
    author: Annotated[
        list[str] | None,
        typer.Option(help="For the registry: of the entry; default: the curator. Repeatable."),
    ] = None,
    package: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write one data package of all.")
    ] = None,
    archive: ArchivePlace = None,
    key: Annotated[
        list[Path] | None, typer.Option(help="Public key of a curator; repeatable.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Hand the catalogue on: to the OpenDP Deployments Registry, or as one data package.

    Example: gramercy export --registry entries --curator-type Nonprofit --region Berlin
    """
    if registry is None and package is None:
        raise RequestError("Nothing to write.", "Add --registry FOLDER or --package FOLDER.")
    _check_places(registry, package)
    stated = _stated(curator_type, region, sector, author) if registry is not None else None
    context = Context.default()
    store = open_archive(archive) if archive else context.archive
    if archive and not store.there():
        raise RequestError(f"{store.where}: is not an archive.", "Give the path of its folder.")
    if key:
        store = replace(store, trusted=frozenset(map(read_public, key)))
    ledger = context.known_ledger if archive is None else None
    releases = held(store, to_verify(store, ledger, names or []))
    done: dict[str, Any] = {"releases": [each.id for each in releases]}
    if package is not None:
        # Of what was never published, a name alone would tell too much.
        known = {each.manifest.dataset.id for each in releases}
        datasets = sorted(known & {*ledger.datasets()}) if ledger else []
        write_package(package, releases, timelines_of(ledger, store, datasets) if ledger else None)
        done["package"] = str(package / "datapackage.json")
    if registry is not None and stated is not None:
        done["registry"] = [str(each) for each in write_registry(registry, releases, stated)]
    if json:
        terminal.as_json(done)
        return
    for each in [*done.get("registry", ()), *([done["package"]] if package else [])]:
        terminal.say(each)


def _check_places(registry: Path | None, package: Path | None) -> None:
    for option, folder in (("--registry", registry), ("--package", package)):
        if folder is not None:
            check_folder(option, folder)
    if registry is not None and package is not None:
        one, other = registry.resolve(), package.resolve()
        if one.is_relative_to(other) or other.is_relative_to(one):
            raise RequestError(
                "--registry and --package: one folder is, or holds, the other.", "Name two."
            )


def _stated(
    curator_type: str | None, region: str | None, sector: str | None, authors: list[str] | None
) -> Stated:
    """What the registry asks for, and no release says."""
    asks = "The registry asks"
    if curator_type not in CURATOR_TYPES:
        what = f"{asks} what kind of body the curator is: {', '.join(CURATOR_TYPES)}."
        raise RequestError(f"--curator-type: {_said(curator_type)}.", what)
    if sector is not None and sector not in SECTORS:
        raise RequestError(f"--sector: {_said(sector)}.", f"It is one of {', '.join(SECTORS)}.")
    if region is None or not region.strip():
        raise RequestError("--region: is missing.", f"{asks} which region the data describe.")
    return Stated(curator_type, region, sector, tuple(filter(None, authors or ())))  # type: ignore[arg-type]


def _said(word: str | None) -> str:
    return f"'{word}' is none" if word else "is missing"
