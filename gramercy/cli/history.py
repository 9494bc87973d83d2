"""``gramercy history``: spending of budgets over time."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from gramercy.archive.listing.contents import Contents, ListedRelease
from gramercy.archive.store.archive import Archive
from gramercy.cli import terminal
from gramercy.cli.options import AsJson, DatasetName, check_output_file, write_page
from gramercy.pipeline.context import Context
from gramercy.pipeline.page_links import archive_links
from gramercy.schemas import families
from gramercy.schemas.ledger_history import Event, Timeline, counted_charges

if TYPE_CHECKING:
    from gramercy.ledger import Ledger
_DRAWN = 20  # budgets; more are listed without charts
_WIDTH, _HEIGHT = 64, 9
_MARGIN = 4  # columns after the last event, so that its step is visible
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_BUDGET = "─"
_STATE_STYLES = {"published": "green", "withdrawn": "red", "spent": "red"}


def history(
    dataset: DatasetName = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Also write an HTML page.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show every charge and every change of a budget.

    Example: gramercy history clinic --page spent.html
    """
    if page is not None:
        check_output_file("--page", page)
    context = Context.default()
    ledger = context.existing_ledger
    if ledger is None and dataset:
        raise families.NO_LEDGER(
            "No data set '{dataset}': this home has no ledger.",
            "The first release creates one; $GRAMERCY_HOME or $GRAMERCY_LEDGER_URL selects "
            "another.",
            dataset=dataset,
        )
    timelines: Iterator[Timeline] = iter(())
    if ledger is not None:
        datasets = [dataset] if dataset else ledger.datasets()
        timelines = timelines_of(ledger, context.archive, datasets)
    if page is not None:
        from gramercy.reports.history_page import history_page  # draws: imported only if needed

        on_page = list(timelines)
        write_page("--page", page, history_page(on_page, archive_links(context, page)))
        timelines = iter(on_page)
    if json:
        terminal.print_json_list(each.facts() for each in timelines)
        return
    first = list(itertools.islice(timelines, _DRAWN + 1))
    for each in itertools.chain(first, timelines):
        print_timeline(each, with_chart=len(first) <= _DRAWN)
    if not first:
        terminal.say("No data set is registered yet; its first release registers it.")
    if page is not None:
        terminal.say(f"Page: {page}")


def print_timeline(timeline: Timeline, *, with_chart: bool = True) -> None:
    """Print a budget's timeline: a picture, unless it is left out, and a line for every event."""
    last = timeline.events[-1]
    spent = f"epsilon={_number(last.spent)} of {last.budget:g} spent at delta={last.delta:g}"
    counted = counted_charges(timeline.events)
    terminal.say(terminal.bold(timeline.name), f"  {spent}, {counted}")
    for line in chart(timeline.events) if with_chart else ():
        terminal.out.print(line, no_wrap=True, overflow="crop")
    for line in _lines(timeline.events):
        terminal.say(line)


def chart(events: Sequence[Event]) -> list[Text]:
    """Lines of a text chart: spent epsilon over time as filled steps, and the budget."""
    first, last = events[0].at, events[-1].at
    columns = _columns(events)
    top = max(
        *(each.budget for each in columns),
        *(each.spent for each in columns if math.isfinite(each.spent)),
    )
    lines = []
    for row in range(_HEIGHT, 0, -1):
        line = Text(f"{top * row / _HEIGHT:>8.3g} │" if row % 2 else " " * 9 + "│", style="dim")
        for each in columns:
            line.append(*_cell(each, row, top))
        lines.append(line)
    lines.append(Text(f"{0:>8} └" + "─" * _WIDTH, style="dim"))
    days = first[:10] if first[:10] == last[:10] else f"{first[:10]}{last[:10]:>{_WIDTH - 10}}"
    lines.append(Text(" " * 10 + days, style="dim"))
    legend = Text(" " * 10).append("█", style="yellow").append(" spent  ")
    lines.append(legend.append(_BUDGET, style="cyan").append(" budget"))
    return lines


def _columns(events: Sequence[Event]) -> list[Event]:
    """The last event up to each of `_WIDTH` equidistant times."""
    stated = (datetime.datetime.fromisoformat(each.at).timestamp() for each in events)
    times = list(itertools.accumulate(stated, max))  # a clock may have been set back
    span = times[-1] - times[0]
    if not span:
        return [events[-1]] * _WIDTH
    parts = [int((_WIDTH - _MARGIN) * (t - times[0]) / span) for t in times]
    columns, index = [], 0
    for part in range(_WIDTH):
        while index + 1 < len(events) and parts[index + 1] <= part:
            index += 1
        columns.append(events[index])
    return columns


def _cell(event: Event, row: int, top: float) -> tuple[str, str]:
    """The character at a height, and its colour."""
    eighths = 8 * _HEIGHT if math.isinf(event.spent) else math.ceil(8 * _HEIGHT * event.spent / top)
    filled = min(8, max(0, eighths - 8 * (row - 1)))
    if row == max(1, math.ceil(_HEIGHT * event.budget / top)):
        return _BUDGET, "cyan" if filled < 8 else "black on yellow"
    return _EIGHTHS[filled], "yellow"


def _lines(events: Sequence[Event]) -> Iterator[Text]:
    """A line for every event, with charges in columns and the reason of their state below."""
    head = ("day", "release", "version", "mechanism", "state", "epsilon", "spent after it", "by")
    cells = [
        (
            each.at[:10],
            *(charge.release, charge.version, charge.mechanism or "–", charge.state),
            _number(charge.epsilon) + (f" ({charge.series.words})" if charge.series else ""),
            f"{_number(each.spent)} of {each.budget:g}",
            charge.people or "–",
        )
        for each in events
        if (charge := each.charge) is not None
    ]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    rows = iter(cells)
    yield Text(_joined(head, widths), style="dim")
    for each in events:
        day = f"{each.at[:10]}  "
        if each.charge is None:
            budget = f"budget {each.what}: epsilon={each.budget:g}, delta={each.delta:g}"
            reason = "" if each.reason == each.what else f"; reason: {each.reason}"
            yield Text(day).append(budget + reason, style="cyan")
            continue
        line = Text(_joined(next(rows), widths))
        start = sum(widths[:4]) + 8
        style = _STATE_STYLES.get(each.charge.state, "yellow")
        line.stylize(style, start, start + len(each.charge.state))
        yield line
        if each.reason:
            yield Text(" " * len(day) + each.reason, style=style)


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{text:<{width}}" for text, width in zip(cells, widths, strict=True)).rstrip()


def _number(epsilon: float) -> str:
    return f"{epsilon:.4g}" if math.isfinite(epsilon) else "∞"


def timelines_of(ledger: Ledger, archive: Archive, datasets: Sequence[str]) -> Iterator[Timeline]:
    """The timelines of data sets in turn, with the mechanisms of releases in the archive.

    Neither the ledger nor the listing is in memory as a whole.
    """
    contents = Contents(archive)
    for dataset, listed in contents.entries_in_turn(datasets):
        entries = (listed or {}).values()
        mechanisms = {each.facts.release: each.facts.mechanism.name for each in entries}
        timelines = ledger.timelines(dataset, mechanisms)
        charges = (charge for each in timelines for charge in each.charges)
        others = [
            (dataset, each.release)
            for each in charges
            if each.state.was_published and not each.mechanism
        ]
        for (_, release), result in contents.try_list(others).items() if others else ():
            if isinstance(result, ListedRelease):  # `gramercy verify` reports damage
                mechanisms[release] = result.facts.mechanism.name
        yield from ledger.timelines(dataset, mechanisms) if others else timelines
