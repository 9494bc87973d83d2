"""What an estimate found, on the terminal: its tables, or the strongest edges of its graph."""

from __future__ import annotations

import numpy as np
import pandas as pd
from rich.table import Column, Table

from gramercy.archive.estimate_bundle import EstimateBundle
from gramercy.cli.output.terminal import bold, out, plain, say

_ROWS, _EDGES = 20, 10


def print_estimate(bundle: EstimateBundle) -> None:
    """Print the first rows of every table; the edges where there is no table."""
    for name, table in bundle.tables.items():
        _print_table(name.replace("_", " "), table, _ROWS)
    if not bundle.tables and bundle.edges is not None:
        i, j = np.nonzero(np.triu(bundle.edges, 1))
        weights, names = bundle.edges[i, j], np.array(bundle.manifest.names, dtype=object)
        edges = pd.DataFrame({"row": names[i], "col": names[j], "weight": weights})
        order = np.argsort(-np.abs(weights), kind="stable")
        pairs = len(names) * (len(names) - 1) // 2
        title = f"{i.size} edges between {pairs} pairs of columns"
        _print_table(title + ", strongest first" * (i.size > 1), edges.iloc[order], _EDGES)


def _print_table(title: str, rows: pd.DataFrame, most: int) -> None:
    say(bold(title))
    if rows.empty:
        return
    table = Table(*(Column(plain(str(name))) for name in rows.columns), box=None)
    for cells in rows.head(most).itertuples(index=False):
        table.add_row(*(plain(_cell(cell)) for cell in cells))
    out.print(table)
    if len(rows) > most:
        say(f"and {len(rows) - most} more rows")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.4g}"
    return str(value)
