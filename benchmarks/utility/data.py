"""The test tables: rows in the unit ball, normalised with public constants only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from ruamel.yaml import YAML
from sklearn.datasets import load_breast_cancer, load_digits

from benchmarks.arrays import Array

CONTRACT = Path(__file__).parent / "breast_cancer.yaml"


@dataclass(frozen=True)
class Dataset:
    """A table and its exact second moment, which releases are compared with.

    Parameters
    ----------
    name
        Key in `TABLES`.
    rows
        Rows of length at most 1, shape (n, p).
    unit
        Whether all rows are divided by their length.
    """

    name: str
    rows: Array
    unit: bool = True

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def p(self) -> int:
        return int(self.rows.shape[1])

    @cached_property
    def moment(self) -> Array:
        """S = X^T X / n."""
        return self.rows.T @ self.rows / self.n


def unit(rows: Array) -> Array:
    """Divide every row by its length; zero rows stay zero."""
    scaled: Array = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return scaled


def _digits() -> Array:
    return unit(load_digits().data)


def _breast_cancer() -> Array:
    table = load_breast_cancer(as_frame=True).data
    columns = YAML(typ="safe").load(CONTRACT)["columns"]
    of = {key: np.array([columns[name][key] for name in table.columns]) for key in _KEYS}
    bounded = np.clip(table.to_numpy(float), of["lower"], of["upper"])
    return unit((bounded - of["centre"]) / of["scale"])


_KEYS = ("lower", "upper", "centre", "scale")


def _gaussian(n: int, p: int, power: float) -> Array:
    """Draw N(0, Sigma) rows, then normalise; Sigma has eigenvalues k^-power, a random basis."""
    rng = np.random.default_rng([n, p])
    basis = np.linalg.qr(rng.standard_normal((p, p)))[0]
    deviations = np.arange(1, p + 1) ** (-power / 2)
    return unit((rng.standard_normal((n, p)) * deviations) @ basis.T)


def _short_rows() -> Array:
    """Zipf rows with lengths min(1, .1 e^Z), most of them far below the public radius."""
    rng = np.random.default_rng(7)
    return _gaussian(2000, 64, 1.0) * np.minimum(1, 0.1 * np.exp(rng.standard_normal((2000, 1))))


@dataclass(frozen=True)
class Recipe:
    """A test table: its description on the page and the function that draws it."""

    title: str
    n: int
    p: int
    build: Callable[[], Array]
    unit: bool = True


TABLES: Mapping[str, Recipe] = {
    "digits": Recipe("scikit-learn digits, unit rows, not centred", 1797, 64, _digits),
    "breast-cancer": Recipe(
        "breast cancer, its contract's bounds, centres and scales, unit rows",
        569,
        30,
        _breast_cancer,
    ),
    "zipf-2000x64": Recipe(
        "Gaussian rows, eigenvalues 1/k, unit rows", 2000, 64, lambda: _gaussian(2000, 64, 1.0)
    ),
    "short-2000x64": Recipe(
        "the same rows cut short: lengths min(1, .1 e^Z), Z standard normal",
        2000,
        64,
        _short_rows,
        unit=False,
    ),
    "slow-2000x200": Recipe(
        "Gaussian rows, eigenvalues k^(-1/2), unit rows",
        2000,
        200,
        lambda: _gaussian(2000, 200, 0.5),
    ),
    "slow-50000x200": Recipe(
        "Gaussian rows, eigenvalues k^(-1/2), unit rows",
        50000,
        200,
        lambda: _gaussian(50000, 200, 0.5),
    ),
}


@lru_cache(maxsize=2)
def load(name: str) -> Dataset:
    """Load the table of that name."""
    return Dataset(name, TABLES[name].build(), TABLES[name].unit)
