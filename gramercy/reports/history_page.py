"""What was spent of a budget over time, beside the budget that was in force."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from gramercy.reports.page import render
from gramercy.reports.svg import ACCENT, FAINT, INK, PAPER, WARM, figure
from gramercy.schemas.timeline import Event, Timeline

_AT_ONCE = datetime.timedelta(hours=12)  # around events that all are of one moment
_ONE_DAY = datetime.timedelta(days=1)
_FEW_DAYS = datetime.timedelta(days=4)
_MANY = 60  # charges, whose marks would hide the line

# How a charge is marked, by what became of it.
_MARKS: dict[str, tuple[str, dict[str, Any]]] = {
    "published": ("published", {"marker": "o", "markerfacecolor": ACCENT}),
    "withdrawn": ("withdrawn", {"marker": "o", "markerfacecolor": PAPER}),
    "spent": ("spent, nothing published", {"marker": "X", "markerfacecolor": WARM}),
    "": ("under way", {"marker": "D", "markerfacecolor": PAPER}),
}
_EDGES = {"published": ACCENT, "withdrawn": WARM, "spent": WARM, "": ACCENT}


def history_page(timelines: Sequence[Timeline]) -> str:
    """The page: for every budget a picture, and a table of its events."""
    shown = [
        {
            "timeline": each,
            "last": each.events[-1],
            "picture": spending(each.events, f"spent-{place}"),
            "deltas": len({event.delta for event in each.events}),
        }
        for place, each in enumerate(timelines)
    ]
    return render("history.html", shown=shown, infinity=math.inf)


def spending(events: Sequence[Event], name: str = "spent", *, days: bool = False) -> Markup:
    """Draw spent epsilon over time against the budget in force; both are steps.

    Parameters
    ----------
    events
        In the order in which they were entered; with none, there is no picture.
    name
        Keeps the figure's ids apart from those of others on the page.
    days
        Whether the picture holds days alone, for the public: a time of day tells how long a table
        took to be read. Events of one day then stand beside each other, in order.

    Returns
    -------
    Markup
        SVG in the colours of the page.
    """
    if not events:
        return Markup()
    import matplotlib.dates

    dated: Any = matplotlib.dates  # which has no types

    times = _by_day(_times(events)) if days else _times(events)
    first, last = times[0], times[-1]
    around = (last - first) * 0.06 or _AT_ONCE
    end = last + around
    finite = [each.spent for each in events if math.isfinite(each.spent)]
    top = 1.12 * max(*finite, *(each.budget for each in events), 1e-300)
    across = [float(x) for x in dated.date2num([*times, end])]
    spent = [min(each.spent, top) for each in events]
    budgets = [each.budget for each in events]
    charges = [(x, y, e) for x, y, e in zip(across, spent, events, strict=False) if e.charge]
    with figure(name, _in_words(events, len(charges)), 5.6, 3.0) as drawn:
        axes = drawn.axes
        level: Any = {"step": "post", "color": ACCENT, "alpha": 0.16, "linewidth": 0}
        axes.fill_between(across, [*spent, spent[-1]], 0, **level)
        step: Any = {"drawstyle": "steps-post", "solid_joinstyle": "miter"}
        axes.plot(across, [*budgets, budgets[-1]], color=INK, linewidth=1.4, label="budget", **step)
        axes.plot(
            across,
            [*spent, spent[-1]],
            color=ACCENT,
            linewidth=1.8,
            label="spent",
            clip_on=False,
            **step,
        )
        for state, (words, style) in _MARKS.items():
            marked = [(x, y) for x, y, e in charges if _kind(e) == state]
            if marked and (state != "published" or len(charges) <= _MANY):
                mark: Any = {"linestyle": "none", "markersize": 6, "markeredgewidth": 1.3, **style}
                edge: Any = {"color": _EDGES[state], "markeredgecolor": _EDGES[state]}
                axes.plot(*zip(*marked, strict=True), label=words, clip_on=False, **mark, **edge)
        for beyond, group in itertools.groupby(zip(across, events, strict=False), _is_infinite):
            if beyond:
                told: Any = {"textcoords": "offset points", "color": INK, "va": "bottom"}
                axes.annotate("∞", (next(group)[0], top), (1, 1), **told)
        locator = dated.AutoDateLocator(minticks=2, maxticks=6)
        formatter = dated.ConciseDateFormatter(locator)
        if days and last - first < _FEW_DAYS:  # of which they would tell hours
            locator, formatter = dated.DayLocator(), dated.DateFormatter("%Y-%m-%d")
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(formatter)
        axes.xaxis.get_offset_text().set_color(FAINT)
        axes.set(xlim=(float(dated.date2num(first - around)), across[-1]), ylim=(0, top))
        axes.set_ylabel("epsilon at the budget's delta")
        axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.6)
        above: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1.01), "borderaxespad": 0}
        axes.legend(frameon=False, ncols=3, handlelength=1.6, columnspacing=1.4, **above)
    return drawn.svg


def _times(events: Sequence[Event]) -> list[datetime.datetime]:
    """When, in the order of entry: where a clock was set back, not before the event before."""
    stated = (datetime.datetime.fromisoformat(each.at) for each in events)
    known = (x if x.tzinfo else x.replace(tzinfo=datetime.UTC) for x in stated)
    return list(itertools.accumulate(known, max))


def _by_day(times: Sequence[datetime.datetime]) -> list[datetime.datetime]:
    """The day of each; those of one day a step apart, and before the next day there is."""
    dates = itertools.groupby(each.astimezone(datetime.UTC).date() for each in times)
    counts = {date: len(list(group)) for date, group in dates}
    midnight = datetime.time(tzinfo=datetime.UTC)
    days = [datetime.datetime.combine(date, midnight) for date in counts]
    span = days[-1] - days[0]
    step, after = span * 0.03 or _ONE_DAY, days[-1] + max(span / 4, _ONE_DAY)
    placed: list[datetime.datetime] = []
    for day, following, count in zip(days, [*days[1:], after], counts.values(), strict=True):
        apart = min(step, (following - day) / count)
        placed += [day + place * apart for place in range(count)]
    return placed


def _kind(event: Event) -> str:
    state = event.charge.state if event.charge else ""
    return state if state in _MARKS else ""


def _is_infinite(place: tuple[float, Event]) -> bool:
    return math.isinf(place[1].spent)


def _in_words(events: Sequence[Event], charges: int) -> str:
    last = events[-1]
    spent = f"{last.spent:.4g}" if math.isfinite(last.spent) else "no finite epsilon"
    many = "1 charge" if charges == 1 else f"{charges} charges"
    return f"Spent over time: {spent} of epsilon {last.budget:g} at delta {last.delta:g}, {many}."
