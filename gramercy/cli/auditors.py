"""Commands of those who check that ledger and archive tell one story, and hand it on."""

from __future__ import annotations

import sys
from dataclasses import replace
from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer

from gramercy.cli import running
from gramercy.cli.options import AsJson
from gramercy.cli.options import archive as archive_here
from gramercy.cli.output import view
from gramercy.common.home import Home
from gramercy.schemas.errors import Discrepancies, RequestError


def audit(
    runs: Annotated[
        bool, typer.Option("--runs", help="Ask Prefect's run history, too; starts Prefect.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the report goes.")
    ] = None,
    key: Annotated[
        list[Path] | None,
        typer.Option(help="Public key of a curator, instead of the home's own; repeatable."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Hold ledger, archive and run history against each other. Changes nothing.

    Exit code 2 if anything does not agree. The report is written in any case, as HTML and JSON.

    Example: gramercy audit --runs --output audit
    """
    if runs and key:
        raise RequestError("--runs and --key: one at a time.", "Give the command twice.")
    page = running.audit(output) if runs else _without_prefect(output, key, json)
    found: dict[str, Any] = loads(page.with_name("audit.json").read_text(encoding="utf-8"))
    if json:
        view.as_json(found)
    else:
        view.audit_text(found, page)
    if found["discrepancies"]:
        sys.exit(Discrepancies.exit_code)


def history(
    dataset: Annotated[str | None, typer.Argument(help="One data set; default: all.")] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML page as well.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show what was spent over time: every charge, and every change of a budget.

    Example: gramercy history clinic --page spent.html
    """
    from gramercy.cli.output.exported import timelines_of
    from gramercy.cli.output.page_file import check_page, write_page_of
    from gramercy.cli.output.spending import timeline_text
    from gramercy.ledger import Ledger
    from gramercy.reports.history_page import history_page

    if page is not None:
        check_page("--page", page)
    ledger = Ledger.known(Home.default())
    if ledger is None and dataset:
        raise RequestError(
            f"No data set '{dataset}': this home has no ledger.",
            "A first release makes one; $GRAMERCY_HOME or $GRAMERCY_LEDGER_URL names another.",
        )
    found: list[Any] = []
    if ledger is not None:
        found = timelines_of(ledger, archive_here(), [dataset] if dataset else ledger.datasets())
    if page is not None:
        write_page_of("--page", page, history_page(found))
    if json:
        view.as_json([each.facts() for each in found])
        return
    for each in found:
        timeline_text(each)
    if not found:
        view.say("No data set is registered yet: a first release registers it.")
    if page is not None:
        view.say(f"Page: {page}")


def export(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RELEASE]...", help="DATASET/RELEASE, or DATASET; default: all."),
    ] = None,
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
    archive: Annotated[
        str | None, typer.Option(help="A folder or URL, instead of this home's own archive.")
    ] = None,
    key: Annotated[
        list[Path] | None, typer.Option(help="Public key of a curator; repeatable.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Hand the catalogue on: to the OpenDP Deployments Registry, or as one data package.

    Example: gramercy export --registry entries --curator-type Nonprofit --region Berlin
    """
    from gramercy.application.verification import to_verify
    from gramercy.archive.remote import open_archive
    from gramercy.archive.signing_keys import read_public
    from gramercy.cli.output.exported import held, timelines_of, write_package, write_registry
    from gramercy.ledger import Ledger

    if registry is None and package is None:
        raise RequestError("Nothing to write.", "Add --registry FOLDER or --package FOLDER.")
    _check_places(registry, package)
    stated = _stated(curator_type, region, sector, author) if registry is not None else None
    store = open_archive(archive) if archive else archive_here()
    if archive and not store.there():
        raise RequestError(f"{store.where}: is not an archive.", "Give the path of its folder.")
    if key:
        store = replace(store, trusted=frozenset(map(read_public, key)))
    ledger = Ledger.known(Home.default()) if archive is None else None
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
        view.as_json(done)
        return
    for each in [*done.get("registry", ()), *([done["package"]] if package else [])]:
        view.say(each)


def _check_places(registry: Path | None, package: Path | None) -> None:
    from gramercy.cli.output.page_file import check_folder

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
) -> Any:
    """What the registry asks for, and no release says."""
    from gramercy.archive.registry_entry import Stated
    from gramercy.schemas.deployments_registry import CURATOR_TYPES, SECTORS

    asks = "The registry asks"
    if curator_type not in CURATOR_TYPES:
        what = f"{asks} what kind of body the curator is: {', '.join(CURATOR_TYPES)}."
        raise RequestError(f"--curator-type: {_said(curator_type)}.", what)
    if sector is not None and sector not in SECTORS:
        raise RequestError(f"--sector: {_said(sector)}.", f"It is one of {', '.join(SECTORS)}.")
    if not (region or "").strip():
        raise RequestError("--region: is missing.", f"{asks} which region the data describe.")
    return Stated(curator_type, region, sector, tuple(filter(None, authors or ())))  # type: ignore[arg-type]


def _said(word: str | None) -> str:
    return f"'{word}' is none" if word else "is missing"


def _without_prefect(output: Path | None, key: list[Path] | None, quiet: bool) -> Path:
    from gramercy.application.auditing import make_audit, write_audit
    from gramercy.archive.signing_keys import read_public

    trusted = frozenset(map(read_public, key)) if key else None
    with view.doing("verifying", quiet) as on_release:
        return write_audit(make_audit(on_release=on_release, trusted=trusted), output)
