"""Real tables on disk, if available, with rows normalised to length one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.utility.data import unit

Array = NDArray[np.float64]
# Next to the checkout, unless the environment variable names another folder.
FOLDER = Path(os.environ.get("GRAMERCY_TABLES", Path(__file__).parents[3] / "shared" / "data"))


@dataclass(frozen=True)
class Table:
    """A table in the data folder.

    Parameters
    ----------
    title
        Description on the page.
    logarithm
        Whether columns x are replaced by log(1 + x).
    """

    title: str
    logarithm: bool = False


TABLES = {
    "sachs": Table("flow cytometry, Sachs et al. (2005), logarithms", logarithm=True),
    "wine_quality": Table("wine quality, Cortez et al. (2009)"),
    "credit_default_tw": Table("credit card clients, Yeh and Lien (2009)"),
    "ecoli70_gaussian": Table("draws from the ecoli70 network of the bnlearn repository"),
    "ionosphere": Table("radar returns, Sigillito et al. (1989)"),
    "parkinsons": Table("voice recordings, Little et al. (2007)"),
}


def present() -> list[str]:
    """Return the names of the tables that are on disk."""
    return [name for name in TABLES if (FOLDER / name / "data.csv").exists()]


def load(name: str) -> Array:
    """Load the table of that name, with rows of length one."""
    table = pd.read_csv(FOLDER / name / "data.csv").dropna().to_numpy(float)
    return normalised(np.log1p(table) if TABLES[name].logarithm else table)


def normalised(table: Array) -> Array:
    """Centre and scale the columns by constants of one digit, and scale rows to length one.

    A data steward would declare these constants in the contract. Constant columns are dropped.
    """
    table = table[:, table.std(axis=0) > 0]
    return unit((table - centres(table)) / scales(table))


def centres(table: Array) -> Array:
    """Return the centre of every column, rounded to one digit of its scale."""
    scale = scales(table)
    result: Array = np.round(table.mean(axis=0) / scale) * scale
    return result


def scales(table: Array) -> Array:
    """Return the standard deviation of every column, rounded to one digit."""
    deviations = table.std(axis=0)
    power = 10.0 ** np.floor(np.log10(deviations))
    rounded: Array = np.round(deviations / power) * power
    return rounded
