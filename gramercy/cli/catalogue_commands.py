"""Commands about the catalogue: its pages, and two of its releases held against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from gramercy.cli.options import AsJson, archive
from gramercy.cli.output import view
from gramercy.cli.output.page_file import check_page, write_page_of
from gramercy.common.home import Home
from gramercy.schemas.errors import RequestError

ReleaseName = Annotated[str, typer.Argument(metavar="RELEASE", help="DATASET/RELEASE.")]


def site(json: AsJson = False) -> None:
    """Write all pages of the catalogue anew: index.html in the archive, and what it links to.

    Each publish writes those that it changes. Any web server can show them, and so can a disk.

    Example: gramercy site
    """
    from gramercy.application.catalogue_pages import write_site
    from gramercy.archive.store import INDEX
    from gramercy.ledger import Ledger

    store, home = archive(), Home.default()
    with view.doing("drawing", json) as on_release:
        count = write_site(store, Ledger.known(home), watch=on_release)
    page = store.shown(store.root / INDEX)
    if json:
        view.as_json({"releases": count, "page": page})
    else:
        view.say(f"Pages of {count} releases: ", view.bold(page))


def compare(
    earlier: ReleaseName,
    later: ReleaseName,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page with a picture, too.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Hold two releases of a data set against each other: what changed beyond their noise.

    Example: gramercy compare clinic/2026-10-r1 clinic/2026-11-r2 --page change.html
    """
    from gramercy.application.catalogue_pages import compared
    from gramercy.archive.listing import listed
    from gramercy.estimators.uncertainty.difference import comparable
    from gramercy.reports.change_page import change_page, changed

    if page is not None:
        check_page("--page", page)
    store = archive()
    first, second = (listed(store, *name.partition("/")[::2]) for name in (earlier, later))
    if first.name == second.name:
        raise RequestError(f"'{first.name}': is both of them.", "Name two releases.")
    if not comparable(first.facts, second.facts):
        raise RequestError(
            f"'{first.name}' and '{second.name}' do not speak of the same matrix.",
            "Compare releases of one data set with the same columns, normalisation and penalty.",
        )
    known = store.releases()
    first, second = sorted((first, second), key=lambda each: known.index(each.key))
    for each in (first, second):
        if each.withdrawn is not None:
            words = Text(f"{each.name} was withdrawn: ", style="yellow")
            view.say(words, each.withdrawn, to=view.err)
    found = compared(store, second, first)
    if page is not None:
        write_page_of("--page", page, change_page(found, second.facts.dataset.title))
    facts = {key: value for key, value in changed(found).items() if key != "picture"}
    if json:
        view.as_json(facts)
    else:
        view.change_text(facts, page)
