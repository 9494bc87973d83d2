"""Tables on disk, where there are any: rows of length one by public constants."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.utility.data import unit

Array = NDArray[np.float64]
# Next to the checkout, unless the variable names another folder.
FOLDER = Path(os.environ.get("GRAMERCY_TABLES", Path(__file__).parents[3] / "shared" / "data"))


@dataclass(frozen=True)
class Table:
    """A table of the folder.

    Parameters
    ----------
    title
        What the page says of it.
    logarithm
        Whether its columns are taken as logarithms of 1 + x.
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
    """Those that are there."""
    return [name for name in TABLES if (FOLDER / name / "data.csv").exists()]


def load(name: str) -> Array:
    """The table of that name, with rows of length one."""
    table = pd.read_csv(FOLDER / name / "data.csv").dropna().to_numpy(float)
    return normalised(np.log1p(table) if TABLES[name].logarithm else table)


def normalised(table: Array) -> Array:
    """Rows of length one; a centre and scale a column, known to one digit.

    A steward would declare them in the contract. Columns that are constant are left out.
    """
    table = table[:, table.std(axis=0) > 0]
    return unit((table - centres(table)) / scales(table))


def centres(table: Array) -> Array:
    """To one digit of the scale."""
    scale = scales(table)
    result: Array = np.round(table.mean(axis=0) / scale) * scale
    return result


def scales(table: Array) -> Array:
    """The deviation of every column, to one digit."""
    deviations = table.std(axis=0)
    power = 10.0 ** np.floor(np.log10(deviations))
    rounded: Array = np.round(deviations / power) * power
    return rounded
