"""What an experiment is, and what was measured of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rng = np.random.Generator
Scalar = str | int | float
Setting = tuple[tuple[str, Scalar], ...]
Figures = dict[str, Any]  # numbers, or lists of them, by name


def grid(**values: tuple[Scalar, ...]) -> tuple[Setting, ...]:
    """Every combination, the last key fastest."""
    return tuple(tuple(zip(values, each, strict=True)) for each in product(*values.values()))


@dataclass(frozen=True)
class Mean:
    """Over repetitions, with their standard deviation."""

    mean: float
    sd: float
    count: int

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.sd / math.sqrt(self.count)

    def __str__(self) -> str:
        """With the deviation, where there is one; what rounding leaves of zero is zero."""
        if math.isnan(self.sd):
            return short(self.mean)
        return f"{short(self.mean)} ({short(self.sd if self.sd > 1e-9 * abs(self.mean) else 0.0)})"


def short(value: float) -> str:
    """Three digits, and no more than a table needs."""
    size = abs(value)
    if size >= 99.5:
        return f"{value:,.0f}" if size < 1e6 else f"{value:.2g}"
    if size >= 9.995:
        return f"{value:.1f}"
    if size >= 0.9995 or size == 0:
        return f"{value:.2f}"
    return f"{value:.3f}" if size >= 0.0995 else f"{value:.3g}"


class Measured:
    """What was measured of one experiment: figures by setting and repetition."""

    def __init__(self, result: dict[Setting, list[Figures]]) -> None:
        self.settings = tuple(result)  # in the order of the experiment
        self._found = {_key(dict(setting)): each for setting, each in result.items()}

    def has(self, **setting: Scalar) -> bool:
        return _key(setting) in self._found

    def values(self, figure: str, **setting: Scalar) -> Array:
        """Shape (repetitions, ...).

        Raises
        ------
        LookupError
            Where the setting was not measured, or by an older version without that figure.
        """
        of = self._found[_key(setting)]
        if not all(figure in each for each in of):
            raise LookupError(f"no '{figure}' at {setting}: measured by another version; delete it")
        return np.array([each[figure] for each in of], dtype=float)

    def mean(self, figure: str, **setting: Scalar) -> Mean:
        """Over the repetitions in which there is such a number."""
        values = self.values(figure, **setting)
        known = values[~np.isnan(values)]
        if not known.size:
            return Mean(math.nan, math.nan, 0)
        sd = float(known.std(ddof=1)) if known.size > 1 else math.nan
        return Mean(float(known.mean()), sd, known.size)


@dataclass(frozen=True)
class Verdict:
    """A claim and whether it holds.

    Parameters
    ----------
    claim
        A sentence: the paper's claim, one that its settings imply, or Gramercy's.
    holds
        Whether the measurements agree.
    evidence
        What was measured, in words.
    """

    claim: str
    holds: bool
    evidence: str


@dataclass(frozen=True)
class Outcome:
    """Gramercy's default against a paper's mechanism at one epsilon.

    Parameters
    ----------
    ratio
        How many times better Gramercy's score is.
    ours, theirs
        Whether each score is useful: better than chance, and than not using the release.
    """

    ratio: float
    ours: bool
    theirs: bool

    def __str__(self) -> str:
        if not self.theirs:
            return "only ours useful" if self.ours else "neither useful"
        return f"{short(self.ratio)} ×" + ("" if self.ours else ", ours not useful")


@dataclass(frozen=True)
class Comparison:
    """A task solved in both ways at the same exact guarantee.

    Parameters
    ----------
    task, rows, columns
        Its title and the shape of its table.
    outcomes
        By epsilon.
    matrix
        Error of the paper's raw matrix over that of Gramercy's denoised one at epsilon = 1.
    """

    task: str
    rows: int
    columns: int
    outcomes: dict[float, Outcome]
    matrix: str


def _no_verdicts(_: Measured) -> Iterator[Verdict]:
    yield from ()


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper.

    Parameters
    ----------
    title, about
        Heading, and the protocol in words: what was read how.
    settings, repetitions
        What is measured, and how often.
    measure
        One repetition: called with a generator and the setting's keys.
    page
        The section's lines, from what was measured alone.
    verdicts
        Claims and what became of them.
    draw
        The section's figure.
    compared
        The comparison at one guarantee, for experiments that make one.
    quick, quick_repetitions
        What ``--quick`` measures.
    table
        The folder of the table it needs, if any; skipped where that is absent.
    """

    title: str
    about: str
    settings: tuple[Setting, ...]
    repetitions: int
    measure: Callable[..., Figures]
    page: Callable[[Measured], Iterator[str]]
    verdicts: Callable[[Measured], Iterator[Verdict]] = _no_verdicts
    draw: Callable[[Measured], Figure] | None = None
    compared: Callable[[Measured], Comparison] | None = None
    quick: tuple[Setting, ...] = ()
    quick_repetitions: int = 1
    table: str | None = None


@dataclass(frozen=True)
class Paper:
    """A paper's experiments, by their names in the results.

    Parameters
    ----------
    title
        Authors, year, title.
    about
        What the page says first.
    """

    title: str
    about: str
    experiments: dict[str, Experiment] = field(default_factory=dict)


def _key(setting: dict[str, Scalar]) -> Setting:
    """Whatever the order of its names."""
    return tuple(sorted(setting.items()))
