"""``gramercy compare``: what changed between two releases of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from gramercy.application.context import Context
from gramercy.application.release_changes import compare_releases
from gramercy.archive.descriptions import describe_release
from gramercy.archive.layout import in_release_order
from gramercy.cli.options import AsJson, ReleaseName, split_name
from gramercy.cli.output import terminal
from gramercy.cli.output.output_files import check_output_file, write_page
from gramercy.estimators.uncertainty.difference import comparable
from gramercy.reports.change_summary import change_facts
from gramercy.schemas.problems.command_line import not_comparable, same_release
from gramercy.schemas.problems.warnings import release_withdrawn


def compare(
    earlier: ReleaseName,
    later: ReleaseName,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Also write an HTML page with a figure."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Compare two releases: which entries changed by more than the noise.

    Both must be releases of one data set with the same columns and normalisation.

    Example: gramercy compare clinic/2026-10-r1 clinic/2026-11-r2 --page change.html
    """
    if page is not None:
        check_output_file("--page", page)
    archive = Context.default().archive
    first, second = (describe_release(archive, *split_name(name)) for name in (earlier, later))
    if first.name == second.name:
        raise same_release(first.name)
    if not comparable(first.manifest, second.manifest):
        raise not_comparable(first.name, second.name)
    names = [each.manifest.release for each in (first, second)]
    if in_release_order(("", name) for name in names) != [("", name) for name in names]:
        first, second = second, first
    for release in (first, second):
        if release.withdrawn is not None:
            terminal.warn(release_withdrawn(release.name, release.withdrawn))
    comparison = compare_releases(archive, second, first)
    if page is not None:
        from gramercy.reports.change_page import change_page  # needs the extra `publish`

        write_page("--page", page, change_page(comparison, second.manifest.dataset.title))
    facts = change_facts(comparison)
    if json:
        terminal.print_json(facts)
        return
    _print(facts)
    if page is not None:
        terminal.say(f"Page: {page}")


def _print(facts: Mapping[str, Any]) -> None:
    """Print what changed between two releases."""
    terminal.say(terminal.bold(facts["earlier"]), " and ", terminal.bold(facts["later"]))
    chance = facts["by_chance"]
    expected = "" if chance is None else f"; {chance:.2g} are expected if nothing changed"
    terminal.say(
        f"{facts['beyond']} of {facts['entries']} entries differ by more than two standard "
        f"deviations of the noise{expected}."
    )
    if facts["p_value"] is not None:
        terminal.say(f"Test that nothing changed: p = {facts['p_value']:.2g}.")
    table = Table("column", "with", "change", "standard error", "deviations", box=None)
    for row, col, value, sd, away in facts["strongest"]:
        table.add_row(row, col, f"{value:.3g}", f"{sd:.2g}", f"{away:.3g}")
    terminal.out.print(table)
    if facts["groups"]:
        _print_groups(facts["groups"])


def _print_groups(groups: Mapping[str, Any]) -> None:
    """Print which groups of rows changed."""
    terminal.say(
        f"{groups['changed']} of {groups['tested']} tested groups differ by more than noise "
        f"(false discovery rate {groups['rate']:g})."
    )
    table = Table("group", "p", "adjusted", "most changed", "deviations", box=None)
    for each in groups["listed"]:
        row, col, *_, away = each["strongest"][0]
        values = (each["p_value"], each["adjusted"])
        texts = ("" if value is None else f"{value:.2g}" for value in values)
        table.add_row(each["group"], *texts, f"{row}, {col}", f"{away:.3g}")
    terminal.out.print(table)
