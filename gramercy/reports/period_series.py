"""A data set over time: numbers of each period or step with intervals, and what changed."""

from __future__ import annotations

import datetime
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from gramercy.archive.listing.contents import ListedRelease
from gramercy.common.plotting import figure, over_time, with_words
from gramercy.estimators.table_comparison import OverTime
from gramercy.reports.reader_notes import display_name
from gramercy.reports.steps import StepNoise
from gramercy.schemas.facts import CumulativeFacts

_CHARTS = 6
_CHARTS_OF_A_KIND = 3
_TITLE = 38  # characters on a line over a small chart
_LISTED_CHANGES = 10
_RATE = 0.05  # expected share of false changes among those that are listed


@dataclass(frozen=True)
class PeriodSeries:
    """The newest release of each of the last periods, and their numbers."""

    releases: Mapping[str, ListedRelease]  # The releases by the labels of their periods
    omitted: int = 0  # Number of earlier periods that are left out
    # The numbers of each period, and how they changed; None if releases lack them
    numbers: OverTime | None = field(default=None, repr=False)
    # Estimate, lower and upper bound of each number from all periods together, by (kind, column,
    # other); empty if they cannot be pooled
    pooled: Mapping[tuple[str, str, str], tuple[float, float, float]] = field(default_factory=dict)


def series_facts(series: PeriodSeries) -> dict[str, Any]:
    """What the page of a data set shows of its periods."""
    facts: dict[str, Any] = {
        "releases": series.releases,
        "omitted": series.omitted,
        "pooled": bool(series.pooled),
        "rate": _RATE,
        "charts": [],
        "changed": [],
        "tested": 0,
        "beyond": 0,
    }
    if series.numbers is None:
        return facts
    changes = series.numbers.changes
    significant = changes[changes["adjusted"] < _RATE].sort_values("p_value", kind="stable")
    by_number = series.numbers.series.groupby(["kind", "column", "other"], sort=False)
    values = dict(iter(by_number))
    # Drawn are those that are most likely to have changed, a few of each kind.
    known = changes[changes["p_value"].notna()].sort_values("p_value", kind="stable")
    of_kinds = known.groupby("kind", sort=False).head(_CHARTS_OF_A_KIND)
    return facts | {
        "charts": [
            _chart(f"over-time-{k}", _title(key), values[key], series.pooled.get(key))
            for k, key in enumerate(_keys(of_kinds.head(_CHARTS)))
        ],
        "tested": int(changes["p_value"].notna().sum()),
        "beyond": len(significant),
        "changed": [
            (
                _title(key),
                [None if np.isnan(x) else float(x) for x in values[key]["estimate"]],
                p_value,
            )
            for key, p_value in zip(_keys(significant), significant["p_value"], strict=True)
        ][:_LISTED_CHANGES],
    }


@dataclass(frozen=True)
class StepSeries:
    """The last steps of the newest cumulative series, and their numbers."""

    step: CumulativeFacts  # the newest step that is published
    # The releases of the steps by their labels, oldest first; and how many before them are left out
    releases: Mapping[str, str]
    omitted: int = 0
    missing: Sequence[str] = ()  # labels of steps that are complete, and are not published
    spent: Sequence[
        str
    ] = ()  # those of them that were charged without a release: they block later ones
    # The numbers so far, after each step; and those of each step alone. None if releases lack them
    so_far: pd.DataFrame | None = field(default=None, repr=False)
    alone: OverTime | None = field(default=None, repr=False)


def step_facts(series: StepSeries) -> dict[str, Any]:
    """What the page of a data set shows of the steps of a series."""
    starts, first = series.step.starts, series.omitted
    facts: dict[str, Any] = {
        "step": series.step,
        "noise": StepNoise.of(series.step),
        "lines": [
            (label, release, starts[number], starts[number + 1] - datetime.timedelta(days=1))
            for number, (label, release) in enumerate(series.releases.items(), first)
        ],
        "omitted": series.omitted,
        "missing": series.missing,
        "spent": series.spent,
        "charts": [],
        "tested": 0,
        "beyond": 0,
    }
    if series.so_far is None or series.alone is None:
        return facts
    changes, every = series.alone.changes, series.step.every
    known = changes[changes["p_value"].notna()].sort_values("p_value", kind="stable")
    tables = ((series.so_far, "so far"), (series.alone.series, f"each {every}"))
    values = [
        (dict(iter(table.groupby(["kind", "column", "other"], sort=False))), words)
        for table, words in tables
    ]
    shown = _keys(known.groupby("kind", sort=False).head(1)) or _keys(changes.head(1))
    return facts | {
        "charts": [
            _chart(f"steps-{k}-{j}", f"{_title(key)}\n{words}", numbers[key])
            for k, key in enumerate(shown)
            for j, (numbers, words) in enumerate(values)
        ],
        "tested": len(known),
        "beyond": int((changes["adjusted"] < _RATE).sum()),
        "rate": _RATE,
    }


def _keys(lines: pd.DataFrame) -> list[tuple[str, str, str]]:
    return [*lines[["kind", "column", "other"]].itertuples(index=False, name=None)]


def _title(key: tuple[str, str, str]) -> str:
    kind, column, other = key
    names = display_name(column) + (f" and {display_name(other)}" if other else "")
    return f"{kind} of {names}"


def _chart(
    name: str, title: str, lines: pd.DataFrame, pooled: tuple[float, float, float] | None = None
) -> Markup:
    """The intervals of one number by ``period``, and that of all of them together."""
    with figure(name, f"The {title.replace(chr(10), ', ')}, with intervals.", 3.4, 2.2) as drawing:
        numbers = lines[["estimate", "lower", "upper"]].to_numpy().T
        over_time([*lines["period"]], numbers, drawing.axes, pooled or ())
        lines_of_title = [textwrap.fill(line, _TITLE) for line in title.splitlines()]
        with_words(drawing.axes, "\n".join(lines_of_title))
    return drawing.svg
