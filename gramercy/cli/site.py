"""``gramercy site``: rewrite the catalogue's pages."""

from __future__ import annotations

from gramercy.archive.store.layout import INDEX
from gramercy.cli import terminal
from gramercy.cli.options import AsJson
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context


def site(json: AsJson = False) -> None:
    """Rewrite the catalogue's pages.

    Writes index.html in the archive, and of all pages that it links to those that are missing, were
    changed or would be different now, as after an update. Publishing already updates the pages that
    change. The pages are static: any web server can serve them, and a browser can open them from
    disk.

    Example: gramercy site
    """
    context = Context.default()
    archive = context.archive
    with terminal.progress("writing pages", json) as on_release:
        count = write_site(context, on_release=on_release)
    page = archive.display_path(archive.root / INDEX)
    if json:
        terminal.print_json({"releases": count, "page": page})
    else:
        terminal.say(f"Pages of {count} releases: ", terminal.bold(page))
