"""Estimates from one noisy second moment: how long an analyst waits, against one eigh."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arrays import Array
from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs.problems import closing_processes
from gramercy.estimators import registry
from gramercy.estimators.noise.denoise import denoise
from gramercy.schemas.evidence import Evidence, Fold
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.noise import NoiseLaw

EIGH = "numpy: eigh"
FOLDS = 20
_MANY, _MOST = 200, 1000  # columns: folds up to the first, everything but denoising to the second
_SD, _CORRELATION = 2e-3, 0.5


@contextmanager
def job(cell: Cell, _: Path) -> Iterator[dict[str, Contender]]:
    evidence = _release(cell.rows, cell.columns)
    contenders: dict[str, Callable[[], Any]] = {
        "denoising": lambda: denoise(evidence.raw, evidence.law, evidence.trace, unit=False)
    }
    if cell.columns <= _MOST:
        contenders |= {
            "intervals": _fit(evidence, "intervals"),
            "discoveries": _fit(evidence, "discoveries"),
            "regression": _fit(evidence, "regression", formula="c0 ~ c1 + c2 + c3"),
            "pca": _fit(evidence, "pca"),
            "graph by stability": _fit(evidence, "graphical-lasso", penalty="stability"),
        }
    contenders[EIGH] = lambda: np.linalg.eigh(evidence.raw)
    with closing_processes():
        yield {name: Contender(run) for name, run in contenders.items()}


def _fit(evidence: Evidence, name: str, **settings: Any) -> Callable[[], Any]:
    estimator = registry[name](name=name, **settings)
    return lambda: estimator.fit(evidence)


def _release(rows: int, columns: int) -> Evidence:
    """A release of a chain of columns with an intercept; in folds, if there are few columns."""
    rng = np.random.default_rng(0)
    law = NoiseLaw(family="gaussian-isotropic", sd_diagonal=_SD * np.sqrt(2), sd_off_diagonal=_SD)
    count = FOLDS if columns <= _MANY else 1
    folds = [
        Fold(_moment(rows // count, columns, rng) + _noise(columns + 1, count, rng), rows // count)
        for _ in range(count)
    ]
    raw: Array = np.mean([fold.moment for fold in folds], axis=0)
    names = [f"c{k}" for k in range(columns)]
    facts = [ColumnFacts(name=name, lower=-9, upper=9, centre=0, scale=1) for name in names]
    return Evidence(
        raw,
        denoise(raw, law, np.inf, unit=False),
        law,
        float(rows),
        names=("(intercept)", *names),
        columns=(None, *facts),
        unit=False,
        folds=tuple(folds) if count > 1 else (),
        trace=np.inf,
    )


def _moment(rows: int, columns: int, rng: np.random.Generator) -> Array:
    """The second moment of rows whose neighbouring columns are correlated."""
    cells = rng.standard_normal((columns, rows))
    for k in range(1, columns):
        cells[k] = _CORRELATION * cells[k - 1] + np.sqrt(1 - _CORRELATION**2) * cells[k]
    with_intercept = np.vstack([np.ones(rows), cells])
    moment: Array = with_intercept @ with_intercept.T / rows
    return moment


def _noise(p: int, folds: int, rng: np.random.Generator) -> Array:
    half = rng.standard_normal((p, p)) * _SD * np.sqrt(folds / 2)
    noise: Array = half + half.T
    return noise
