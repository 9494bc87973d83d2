"""What an estimate found, on the terminal: its tables, or the strongest edges of its graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.measure import Measurement
from rich.table import Column, Table

from gramercy.archive.bundles.estimate_bundle import EstimateBundle
from gramercy.cli.output import terminal
from gramercy.cli.output.terminal import bold, plain, say

_ROWS, _EDGES = 20, 10
_EXPONENT = 1e15  # from here on, numbers have an exponent


def print_estimate(bundle: EstimateBundle) -> None:
    """Print the first rows of every table; the edges where there is no table."""
    for name, table in bundle.tables.items():
        _print_table(name.replace("_", " "), table, _ROWS)
    if not bundle.tables and bundle.edges is not None:
        edges, p = _strongest_first(bundle.edges, bundle), len(bundle.manifest.names)
        title = f"{len(edges)} edges between {p * (p - 1) // 2} pairs of columns"
        _print_table(title + ", strongest first" * (len(edges) > 1), edges, _EDGES)


def estimate_facts(bundle: EstimateBundle) -> dict[str, Any]:
    """The tables, and the edges where there is no table, as plain data: a list of rows each."""
    tables = dict(bundle.tables)
    if not tables and bundle.edges is not None:
        tables["edges"] = _strongest_first(bundle.edges, bundle)
    return {name: _records(table) for name, table in tables.items()}


def _strongest_first(matrix: NDArray[np.float64], bundle: EstimateBundle) -> pd.DataFrame:
    """The edges of a graph, from their matrix."""
    i, j = np.nonzero(np.triu(matrix, 1))
    weights, names = matrix[i, j], np.array(bundle.manifest.names, dtype=object)
    edges = pd.DataFrame({"row": names[i], "col": names[j], "weight": weights})
    return edges.iloc[np.argsort(-np.abs(weights), kind="stable")]


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows with None for missing and infinite numbers."""
    cells = table.astype(object).where(table.notna(), None).replace([np.inf, -np.inf], None)
    return [{str(name): each for name, each in row.items()} for row in cells.to_dict("records")]


def _print_table(title: str, rows: pd.DataFrame, most: int) -> None:
    say(bold(title))
    if rows.empty:
        return
    for part in _parts_that_fit(rows.head(most)):
        terminal.out.print(part)
    if len(rows) > most:
        say(f"and {len(rows) - most} more rows")


def _parts_that_fit(rows: pd.DataFrame) -> Iterator[Table]:
    """Tables of as many columns as fit, each after the columns of text that come first."""
    numbers = [k for k, kind in enumerate(rows.dtypes) if kind.kind in "fiub"]
    first = numbers[0] if numbers else rows.shape[1]
    names, start = list(range(first)), first
    while True:
        end = rows.shape[1]
        while end > start + 1 and not _fits(_table(rows, [*names, *range(start, end)])):
            end -= 1
        yield _table(rows, [*names, *range(start, end)])
        start = end
        if start >= rows.shape[1]:
            return


def _table(rows: pd.DataFrame, columns: list[int]) -> Table:
    chosen = rows.iloc[:, columns]
    headers = (Column(plain(str(name)), overflow="fold") for name in chosen.columns)
    table = Table(*headers, box=None)
    for cells in chosen.itertuples(index=False):
        table.add_row(*(plain(_cell(cell)) for cell in cells))
    return table


def _fits(table: Table) -> bool:
    unlimited = terminal.out.options.update(width=1 << 20)
    return Measurement.get(terminal.out, unlimited, table).maximum <= terminal.out.width


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    if np.isnan(value):
        return ""
    return f"{value:.0f}" if 1000 <= abs(value) < _EXPONENT else f"{value:.4g}"
