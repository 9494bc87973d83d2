"""``gramercy compare``: what changed between two releases of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gramercy.api.release import Release
from gramercy.archive.bundles.bundle_kinds import DescribedRelease, describe_release
from gramercy.archive.store.archive import Archive
from gramercy.cli import terminal
from gramercy.cli.options import (
    ArchiveLocation,
    AsJson,
    PublicKeys,
    ReleaseName,
    archive_of_options,
    check_output_file,
    split_name,
    write_page,
)
from gramercy.common.natural_order import natural
from gramercy.estimators.table_comparison import comparable
from gramercy.pipeline.context import Context
from gramercy.reports.release_comparison import change_facts, compare_releases
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import RequestError


def _not_comparable(earlier: str, later: str) -> RequestError:
    return families.COMPARISON(
        "'{earlier}' and '{later}' are not estimates of the same matrix.",
        "Compare releases of the same data set, columns, normalisation and penalty. Releases with "
        "private constants have the same ones if a request takes them from the other release: "
        "'scaling: {{from: RELEASE}}', if that one was drawn in one stage ('stages: 1'). In "
        "Python, release.compare(other) compares means, standard deviations and correlations, "
        "also of releases with different constants.",
        earlier=earlier,
        later=later,
    )


def compare(
    earlier: ReleaseName,
    later: ReleaseName,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Also write an HTML page with a figure."),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(
            metavar="STEPS",
            help="Of two steps of a cumulative series, compare the rows of so many last steps.",
        ),
    ] = None,
    archive: ArchiveLocation = None,
    key: PublicKeys = None,
    json: AsJson = False,
) -> None:
    """Compare two releases: which entries changed by more than the noise.

    Releases of one data set with the same columns, constants and normalisation are compared entry
    by entry. Otherwise their means, standard deviations and correlations are compared. Two sums of
    one cumulative series have rows in common: --last compares the last steps of each.

    Example: gramercy compare clinic/2026-10-r1 clinic/2026-11-r1 --page change.html
    """
    if page is not None:
        check_output_file("--page", page)
    context = Context.default()
    store = archive_of_options(context, archive, key)
    first, second = (describe_release(store, *split_name(name)) for name in (earlier, later))
    if first.name == second.name:
        raise families.COMPARISON(
            "'{release}' cannot be compared with itself.", "Name two releases.", release=first.name
        )
    first, second = sorted(
        (first, second), key=lambda each: (each.manifest.charged, natural(each.name))
    )
    for release in (first, second):
        if release.withdrawn is not None:
            terminal.warn(wordings.release_withdrawn(release.name, release.withdrawn))
    if last is not None or not comparable(first.manifest, second.manifest):
        if page is not None or first.manifest.dataset.id != second.manifest.dataset.id:
            raise _not_comparable(first.name, second.name)
        _compare_numbers(store, first, second, last, json=json)
        return
    comparison = compare_releases(store, second, first)
    if page is not None:
        # These need the extra `publish`.
        from gramercy.pipeline.page_links import archive_links
        from gramercy.reports.change_page import change_page

        title, links = second.manifest.dataset.title, archive_links(context, page)
        write_page("--page", page, change_page(comparison, title, links))
    facts = change_facts(comparison)
    if json:
        terminal.print_json(facts)
        return
    _print(facts)
    if page is not None:
        terminal.say(f"Page: {page}")


def _compare_numbers(
    archive: Archive,
    earlier: DescribedRelease,
    later: DescribedRelease,
    last: int | None,
    *,
    json: bool,
) -> None:
    """Compare means and correlations of releases whose matrices have different constants."""
    manifests = (earlier.manifest, later.manifest)
    have_means = (e.intercept and not e.normalisation.unit_rows for e in manifests)
    if not all(each.kind == "second-moment" for each in manifests) or not all(have_means):
        raise _not_comparable(earlier.name, later.name)
    new, old = (Release(archive, *split_name(each.name)) for each in (later, earlier))
    found = new.compare(old) if last is None else new.last(last).compare(old.last(last))
    differing = found.discoveries()
    if json:
        facts = {"earlier": found.second, "later": found.first, "numbers": len(found.table())}
        listed = differing.astype(object).where(differing.notna(), None).to_dict("records")
        terminal.print_json(facts | {"rate": 0.05, "differing": listed})
        return
    terminal.say(terminal.bold(found.second), " and ", terminal.bold(found.first))
    reason = "Their constants differ, or rows were clipped in a metric."
    if last is not None:
        reason = "They are windows of steps without common rows."
    terminal.say(
        f"{reason} So means, standard deviations and correlations are compared, as of different "
        f"rows: {len(differing)} of {len(found.table())} differ (false discovery rate 0.05)."
    )
    table = Table("number", "column", "with", "change", "standard error", "p", box=None)
    for each in differing.head(20).itertuples():
        texts = (each.kind, each.column, each.other or "")
        numbers = (f"{each.difference:.3g}", f"{each.standard_error:.2g}", f"{each.p_value:.2g}")
        table.add_row(*map(Text, map(str, texts)), *numbers)
    if len(differing):
        terminal.out.print(table)


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
    groups = facts["groups"]
    if not groups:
        return
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
