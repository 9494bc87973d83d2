"""The papers' real tables, if they are on disk, and their declared constants."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.arrays import Array
from benchmarks.graphs.truths import FOLDER
from benchmarks.utility.data import unit

__all__ = ["CONSTANTS", "frame", "labels", "present", "truth", "unit", "unit_rows"]

Edges = NDArray[np.bool_]
CONSTANTS = Path(__file__).with_name("constants.json")


def present(table: str) -> bool:
    return (FOLDER / table / "data.csv").exists()


def frame(table: str) -> pd.DataFrame:
    """Read the table from disk, without rows that have missing cells."""
    return pd.read_csv(FOLDER / table / "data.csv").dropna()


def labels(table: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / table / "labels.csv")


def truth(table: str, file: str = "truth.csv") -> Edges:
    """Read the true graph as an undirected graph, shape (p, p)."""
    names = list(frame(table).columns)
    at = {name: index for index, name in enumerate(names)}
    edges = np.zeros((len(names), len(names)), dtype=bool)
    for left, right, *_ in pd.read_csv(FOLDER / table / file).itertuples(index=False):
        edges[at[left], at[right]] = edges[at[right], at[left]] = True
    return edges


@lru_cache
def unit_rows(table: str) -> Array:
    """Read the table, scale it by its declared constants, and normalise rows to length one."""
    declared = json.loads(CONSTANTS.read_text())[table]
    cells = frame(table)[list(declared["centre"])].to_numpy(float)
    if declared["logarithm"]:
        cells = np.log1p(cells)
    centre, scale = (np.array(list(declared[key].values())) for key in ("centre", "scale"))
    return unit((cells - centre) / scale)
