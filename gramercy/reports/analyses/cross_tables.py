"""The part of a report about tables of counts: heat tables, and tests of independence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from gramercy.archive.bundles.estimate_bundle import EstimateBundle
from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.reports.rendering import render

_MOST_TABLES, _MOST_LINES = 10, 30  # that the page shows; the files have all
_DARKEST = 55  # per cent of the accent colour


@dataclass(frozen=True)
class HeatCell:
    """A count with its interval, and the strength of its colour in per cent."""

    count: float
    lower: float
    upper: float
    heat: int


@dataclass(frozen=True)
class HeatTable:
    """A table of counts.

    Parameters
    ----------
    rows, columns
        Names of the columns of levels; `columns` is empty for the counts of one.
    head
        Its levels.
    lines
        The level and the cells of each line.
    cut
        Whether some lines or columns are left out.
    test
        The test of independence; None for one column.
    """

    rows: str
    columns: str
    head: Sequence[str]
    lines: Sequence[tuple[str, Sequence[HeatCell]]]
    cut: bool
    test: dict[str, float] | None


def part(release: ReleaseBundle, estimate: EstimateBundle) -> Markup:
    """The part about one estimate of kind ``cross-tables``."""
    cells, tests = estimate.tables["cells"], estimate.tables.get("tests")
    grouped = list(cells.groupby(["rows", "columns"], sort=False))
    tables = [
        heat_table(str(names[0]), str(names[1]), frame, tests)
        for names, frame in grouped[:_MOST_TABLES]
    ]
    return Markup(
        render(
            "analyses/cross_tables.html",
            estimate=estimate.manifest.estimate,
            group=estimate.group,
            tables=tables,
            total=len(grouped),
            tuning=estimate.manifest.tuning,
            counted=release.manifest.count_key,
            clipped=release.evidence.radius is not None,
        )
    )


def heat_table(
    rows: str, columns: str, frame: pd.DataFrame, tests: pd.DataFrame | None
) -> HeatTable:
    """The table of two columns of levels, or of one, from the lines of an estimate."""
    heads, firsts = list(dict.fromkeys(frame["column"])), list(dict.fromkeys(frame["row"]))
    margins, other_margins = firsts[-2:], heads[-2:] if columns else []
    inner = frame[~frame["row"].isin(margins) & ~frame["column"].isin(other_margins)]
    largest = float(inner["count"].max())
    by_name = {(each["row"], each["column"]): each for each in frame.to_dict("records")}
    shown, lines = heads[-_MOST_LINES:], []
    for row in firsts[-_MOST_LINES:]:
        cells = []
        for column in shown:
            each = by_name[row, column]
            plain = row in margins or column in other_margins or not largest > 0
            heat = 0 if plain else round(_DARKEST * each["count"] / largest)
            bounds = each["count_lower"], each["count_upper"]
            cells.append(HeatCell(each["count"], *bounds, heat))
        lines.append((row, cells))
    test = None
    if columns and tests is not None:
        found = tests[(tests["rows"] == rows) & (tests["columns"] == columns)].iloc[0]
        keys = ("chi_squared", "freedom", "p_value", "cramers_v", "least_expected")
        test = {key: float(found[key]) for key in keys}
    cut = len(heads) > _MOST_LINES or len(firsts) > _MOST_LINES
    return HeatTable(rows, columns, shown, lines, cut, test)
