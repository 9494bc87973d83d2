"""Spending of a budget over time: a page, and the figure on other pages."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from gramercy.common.plotting import ACCENT, FAINT, INK, PAPER, WARM, figure
from gramercy.reports.rendering import Links, navigation, no_links, render
from gramercy.schemas.ledger_history import Event, Timeline, counted_charges

_MARGIN = datetime.timedelta(hours=12)  # before the events, if all are at a single moment
_ONE_DAY = datetime.timedelta(days=1)
_FEW_DAYS = datetime.timedelta(days=4)
_MOST_MARKS = 60  # charges; the marks of more would hide the line

# How a charge is marked, by its state.
_MARKS: dict[str, tuple[str, dict[str, Any]]] = {
    "published": ("published", {"marker": "o", "markerfacecolor": ACCENT}),
    "withdrawn": ("withdrawn", {"marker": "o", "markerfacecolor": PAPER}),
    "spent": ("spent, nothing published", {"marker": "X", "markerfacecolor": WARM}),
    "": ("in progress", {"marker": "D", "markerfacecolor": PAPER}),
}
_EDGES = {"published": ACCENT, "withdrawn": WARM, "spent": WARM, "": ACCENT}


def history_page(timelines: Sequence[Timeline], links: Links = no_links) -> str:
    """The page: a figure and a table of events for every budget."""
    datasets = {timeline.dataset for timeline in timelines}
    about = (timelines[0].dataset, timelines[0].dataset) if len(datasets) == 1 else None
    budgets = [
        {
            "timeline": timeline,
            "last": timeline.events[-1],
            "picture": spending(timeline.events, f"spent-{index}"),
            "counted": counted_charges(timeline.events),
            "deltas": len({event.delta for event in timeline.events}),
        }
        for index, timeline in enumerate(timelines)
    ]
    place = navigation(links, "Spending over time", about)
    return render("history.html", navigation=place, budgets=budgets, infinity=math.inf)


def spending(events: Sequence[Event], name: str = "spent", *, days: bool = False) -> Markup:
    """Draw spent epsilon and the budget over time, both as steps.

    With a resolution of `days`, for public pages, events of one day are drawn next to each other: a
    time of day would reveal how long it took to read a table.
    """
    if not events:
        return Markup()
    import matplotlib.dates

    dates: Any = matplotlib.dates  # untyped

    times = _by_day(_times(events)) if days else _times(events)
    first, last = times[0], times[-1]
    start = first - ((last - first) * 0.06 or _MARGIN)
    finite = [each.spent for each in events if math.isfinite(each.spent)]
    top = 1.12 * max(*finite, *(each.budget for each in events), 1e-300)
    across = [float(x) for x in dates.date2num(times)]
    spent = [min(each.spent, top) for each in events]
    budgets = [each.budget for each in events]
    charges = [  # with the key of their marks: any other state is in progress
        (x, y, each.charge.state if each.charge.state in _MARKS else "")
        for x, y, each in zip(across, spent, events, strict=False)
        if each.charge
    ]
    final = events[-1]
    total = f"{final.spent:.4g}" if math.isfinite(final.spent) else "infinite"
    title = (
        f"Spent over time: ε = {total} of {final.budget:g} at δ = {final.delta:g}, "
        f"{counted_charges(events)}."
    )
    with figure(name, title, 5.6, 3.0) as drawing:
        axes = drawing.axes
        level: Any = {"step": "post", "color": ACCENT, "alpha": 0.16, "linewidth": 0}
        axes.fill_between(across, spent, 0, **level)
        step: Any = {"drawstyle": "steps-post", "solid_joinstyle": "miter"}
        axes.plot(across, budgets, color=INK, linewidth=1.4, label="budget", **step)
        axes.plot(
            across,
            spent,
            color=ACCENT,
            linewidth=1.8,
            label="spent",
            clip_on=False,
            **step,
        )
        for state, (label, style) in _MARKS.items():
            marked = [(x, y) for x, y, own in charges if own == state]
            if marked and (state != "published" or len(charges) <= _MOST_MARKS):
                mark: Any = {"linestyle": "none", "markersize": 6, "markeredgewidth": 1.3, **style}
                edge: Any = {"color": _EDGES[state], "markeredgecolor": _EDGES[state]}
                axes.plot(*zip(*marked, strict=True), label=label, clip_on=False, **mark, **edge)
        before = False
        for x, each in zip(across, events, strict=False):
            if math.isinf(each.spent) and not before:
                text: Any = {"textcoords": "offset points", "color": INK, "va": "bottom"}
                axes.annotate("∞", (x, top), (1, 1), **text)
            before = math.isinf(each.spent)
        locator = dates.AutoDateLocator(minticks=2, maxticks=6)
        formatter = dates.ConciseDateFormatter(locator)
        if days and last - first < _FEW_DAYS:  # the automatic locator would add hours
            locator, formatter = dates.DayLocator(), dates.DateFormatter("%Y-%m-%d")
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(formatter)
        axes.xaxis.get_offset_text().set_color(FAINT)
        axes.set(xlim=(float(dates.date2num(start)), across[-1]), ylim=(0, top))
        axes.set_ylabel("ε at the budget's δ")
        axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.6)
        above: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1.01), "borderaxespad": 0}
        axes.legend(frameon=False, ncols=3, handlelength=1.6, columnspacing=1.4, **above)
    return drawing.svg


def _times(events: Sequence[Event]) -> list[datetime.datetime]:
    """Times in ledger order; if a clock was set back, no earlier than the previous event."""
    recorded = (datetime.datetime.fromisoformat(each.at) for each in events)
    aware = (x if x.tzinfo else x.replace(tzinfo=datetime.UTC) for x in recorded)
    return list(itertools.accumulate(aware, max))


def _by_day(times: Sequence[datetime.datetime]) -> list[datetime.datetime]:
    """The day of each event; the last one of a day is drawn on it, others small steps before."""
    grouped = itertools.groupby(each.astimezone(datetime.UTC).date() for each in times)
    counts = {date: len(list(group)) for date, group in grouped}
    midnight = datetime.time(tzinfo=datetime.UTC)
    days = [datetime.datetime.combine(date, midnight) for date in counts]
    span = days[-1] - days[0]
    step, before = span * 0.03 or _ONE_DAY, days[0] - max(span / 4, _ONE_DAY)
    placed: list[datetime.datetime] = []
    for previous, day, count in zip([before, *days], days, counts.values(), strict=False):
        apart = min(step, (day - previous) / count)
        placed += [day - index * apart for index in reversed(range(count))]
    return placed
