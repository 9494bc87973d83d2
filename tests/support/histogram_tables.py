"""Histograms of columns and of row lengths, counted with numpy, with seeded noise or without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.scaling.column_constants import Grid
from gramercy.scaling.column_scan import ColumnConstants, ColumnScan
from gramercy.schemas.evidence import Histogram
from gramercy.schemas.facts import RowsFacts
from tests.support.factories import write_request

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


def counted(cells: Array, grid: Grid) -> Counts:
    """The exact counts of cells; NaN is missing."""
    present = np.clip(cells[np.isfinite(cells)], grid.edges[0], grid.edges[-1])
    counts = np.histogram(present, grid.edges)[0]
    return np.append(counts, len(cells) - len(present)).astype(np.int64)


def noisy(counts: Counts, sd: float, rng: np.random.Generator) -> Counts:
    """Counts with rounded Gaussian noise."""
    result: Counts = np.rint(counts + sd * rng.normal(size=counts.shape)).astype(np.int64)
    return result


def scanned(
    cells: Array,
    lower: float | None = None,
    upper: float | None = None,
    *,
    sd: float = 1e-3,
    stages: int = 3,
    seed: int = 0,
    planned: float | None = None,
) -> ColumnScan:
    """A column after some stages of histograms with noise `sd`.

    `planned` is the number of rows that the rule is given, by default the true one.
    """
    rng, scan, rows = np.random.default_rng(seed), ColumnScan(lower, upper), planned or len(cells)
    for _ in range(stages):
        scan = scan.after(noisy(counted(cells, scan.grid), sd, rng), sd, float(rows))
    return scan


def estimated(
    cells: Array, lower: float | None = None, upper: float | None = None, **how: Any
) -> ColumnConstants:
    """The constants of a column among 20, with so much noise that no tail widens its scale."""
    rows = how.get("planned") or len(cells)
    return scanned(cells, lower, upper, **how).finished(float(rows), 100.0, 21)


ROWS = 2000
COLUMNS: dict[str, Any] = {
    "weight": {"lower": 0.0, "upper": 200.0},
    "income": {},
    "ward": {"levels": ["A", "B"]},
}


def write_skewed_table(path: Path) -> pd.DataFrame:
    """Write the table of `marginals_request`: a tenth of the incomes is missing."""
    rng = np.random.default_rng(3)
    income = np.where(rng.random(ROWS) < 0.1, np.nan, np.exp(8 + rng.normal(size=ROWS)))
    ward = np.where(rng.random(ROWS) < 0.3, "A", "B")
    table = pd.DataFrame({"weight": rng.normal(70, 12, ROWS), "income": income, "ward": ward})
    table["person"] = [f"p{k // 2}" for k in range(ROWS)]
    table.to_csv(path, index=False)
    return table


def marginals_request(folder: Path, request: dict[str, Any] | None = None, **changes: Any) -> Path:
    """A request for a release of marginals; `changes` are those of the contract."""
    if not (folder / "table.csv").exists():
        write_skewed_table(folder / "table.csv")
    keys = {"mechanism": {"name": "marginals", "epsilon": 4.0, "delta": 1e-6}, "estimates": []}
    facts = {"rows": ROWS, "columns": COLUMNS, "budget": {"epsilon": 90.0, "delta": 1e-5}}
    facts |= {"intercept": True}
    return write_request(folder, request=keys | (request or {}), **facts | changes)


def histogram(
    cells: NDArray[np.float64], edges: NDArray[np.float64], sd: float, rng: np.random.Generator
) -> Histogram:
    """A noisy histogram of the cells of a column; NaN for missing ones."""
    missing = np.isnan(cells)
    inside = np.clip(cells[~missing], edges[0], edges[-1])
    counts = np.append(np.histogram(inside, edges)[0], missing.sum())
    noisy = counts + np.rint(rng.normal(0, sd, counts.size)).astype(np.int64)
    lower, upper = np.append(edges[:-1], np.nan), np.append(edges[1:], np.nan)
    return Histogram(3, "x", lower, upper, (None,) * counts.size, noisy, sd)


def public(rows: int) -> RowsFacts:
    """A public number of rows."""
    return RowsFacts(value=rows, observed=rows, status="public", sd=0.0)
