"""``gramercy site``: the catalogue's pages."""

from __future__ import annotations

from gramercy.application.catalogue_pages import write_site
from gramercy.application.context import Context
from gramercy.archive.layout import INDEX
from gramercy.cli.options import AsJson
from gramercy.cli.output import terminal


def site(json: AsJson = False) -> None:
    """Write all pages of the catalogue anew: index.html in the archive, and what it links to.

    Each publish writes those that it changes. Any web server can show them, and so can a disk.

    Example: gramercy site
    """
    context = Context.default()
    archive = context.archive
    with terminal.doing("drawing", json) as on_release:
        count = write_site(context, watch=on_release)
    page = archive.shown(archive.root / INDEX)
    if json:
        terminal.as_json({"releases": count, "page": page})
    else:
        terminal.say(f"Pages of {count} releases: ", terminal.bold(page))
