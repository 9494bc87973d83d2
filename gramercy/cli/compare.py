"""``gramercy compare``: two releases of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from gramercy.application.context import Context
from gramercy.application.release_changes import compared
from gramercy.archive.listing import listed
from gramercy.cli.options import AsJson, ReleaseName, parts_of
from gramercy.cli.output import terminal
from gramercy.cli.output.page_file import check_page, write_page_of
from gramercy.estimators.uncertainty.difference import comparable
from gramercy.reports.change_summary import changed
from gramercy.schemas.errors import RequestError


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
    if page is not None:
        check_page("--page", page)
    archive = Context.default().archive
    first, second = (listed(archive, *parts_of(name)) for name in (earlier, later))
    if first.name == second.name:
        raise RequestError(f"'{first.name}': is both of them.", "Name two releases.")
    if not comparable(first.facts, second.facts):
        raise RequestError(
            f"'{first.name}' and '{second.name}' do not speak of the same matrix.",
            "Compare releases of one data set with the same columns, normalisation and penalty.",
        )
    known = archive.releases()
    first, second = sorted((first, second), key=lambda each: known.index(each.key))
    for each in (first, second):
        if each.withdrawn is not None:
            terminal.warn(f"{each.name} was withdrawn: ", each.withdrawn)
    found = compared(archive, second, first)
    if page is not None:
        from gramercy.reports.change_page import change_page  # its templates are of the extra

        write_page_of("--page", page, change_page(found, second.facts.dataset.title))
    facts = changed(found)
    if json:
        terminal.as_json(facts)
        return
    _print(facts)
    if page is not None:
        terminal.say(f"Page: {page}")


def _print(facts: Mapping[str, Any]) -> None:
    """What changed between the two."""
    terminal.say(terminal.bold(facts["earlier"]), " and ", terminal.bold(facts["later"]))
    chance = facts["by_chance"]
    expected = "" if chance is None else f"; {chance:.2g} would if nothing had changed"
    terminal.say(
        f"{facts['beyond']} of {facts['entries']} entries differ by more than two standard "
        f"deviations of the noise{expected}."
    )
    if facts["p_value"] is not None:
        terminal.say(f"All together: p = {facts['p_value']:.2g}.")
    table = Table("column", "with", "change", "standard error", "deviations", box=None)
    for row, col, value, sd, away in facts["strongest"]:
        table.add_row(row, col, f"{value:.3g}", f"{sd:.2g}", f"{away:.3g}")
    terminal.out.print(table)
