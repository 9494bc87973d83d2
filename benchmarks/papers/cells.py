"""The cells (experiment, setting, repetition) and their results files."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.cells import read_results
from benchmarks.papers import data
from benchmarks.papers.experiment import Figures, Measured, Setting
from benchmarks.papers.papers import PAPERS


@dataclass(frozen=True)
class Cell:
    """The unit of measurement: one repetition of an experiment at one setting."""

    paper: str
    experiment: str
    setting: Setting
    repetition: int


@dataclass(frozen=True)
class Result:
    """The figures of one cell, and the seconds that it took."""

    cell: Cell
    seconds: float
    figures: Figures


Results = dict[Cell, Result]


def plan(papers: list[str], quick: bool) -> Iterator[Cell]:
    """Yield all cells of the papers, for each experiment repetition by repetition."""
    for key in papers:
        for name, experiment in PAPERS[key].experiments.items():
            if experiment.table is not None and not data.present(experiment.table):
                continue
            times = experiment.quick_repetitions if quick else experiment.repetitions
            for repetition in range(times):
                for setting in experiment.quick if quick else experiment.settings:
                    yield Cell(key, name, setting, repetition)


def measure(cell: Cell) -> Result:
    """Measure a cell, with its own seed."""
    rng = np.random.default_rng(zlib.crc32(repr(cell).encode()))
    started = time.perf_counter()
    figures = PAPERS[cell.paper].experiments[cell.experiment].measure(rng, **dict(cell.setting))
    return Result(cell, round(time.perf_counter() - started, 3), _plain_numbers(figures))


def read(folder: Path) -> Results:
    """Read the results in the folder, which has one file per paper."""
    result: Results = {}
    for key in PAPERS:
        result |= read_results(file_of(folder, key), Result)
    return result


def file_of(folder: Path, paper: str) -> Path:
    return folder / f"{paper}.jsonl"


def measured(results: Results, paper: str, experiment: str) -> Measured:
    """Select the results of one experiment, ordered by its settings, then by repetition."""
    known: dict[Setting, dict[int, Figures]] = {}
    for cell, result in results.items():
        if (cell.paper, cell.experiment) == (paper, experiment):
            known.setdefault(cell.setting, {})[cell.repetition] = result.figures
    return Measured(
        {
            setting: [known[setting][repetition] for repetition in sorted(known[setting])]
            for setting in PAPERS[paper].experiments[experiment].settings
            if setting in known
        }
    )


def _plain_numbers(figures: Figures) -> Figures:
    """Convert figures to plain Python numbers, rounded to five digits."""
    return {name: _rounded(value) for name, value in figures.items()}


def _rounded(value: object) -> object:
    if isinstance(value, np.ndarray):
        return _rounded(value.tolist())
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    if isinstance(value, float | np.floating):
        return float(f"{float(value):.5g}")
    return value.item() if isinstance(value, np.generic) else value
