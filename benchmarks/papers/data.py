"""The papers' real tables, where they are on disk."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.graphs.data import FOLDER

Array = NDArray[np.float64]
Edges = NDArray[np.bool_]


def present(table: str) -> bool:
    return (FOLDER / table / "data.csv").exists()


def frame(table: str) -> pd.DataFrame:
    """As it is on disk, without lines that lack a cell."""
    return pd.read_csv(FOLDER / table / "data.csv").dropna()


def labels(table: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / table / "labels.csv")


def truth(table: str, file: str = "truth.csv") -> Edges:
    """The known graph, without directions; shape (p, p)."""
    names = list(frame(table).columns)
    at = {name: index for index, name in enumerate(names)}
    edges = np.zeros((len(names), len(names)), dtype=bool)
    for left, right, *_ in pd.read_csv(FOLDER / table / file).itertuples(index=False):
        edges[at[left], at[right]] = edges[at[right], at[left]] = True
    return edges


def unit(rows: Array) -> Array:
    """Every row divided by its length."""
    made: Array = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return made
