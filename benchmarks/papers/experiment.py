"""The description of an experiment, and its measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.arrays import Array

Scalar = str | int | float
Setting = tuple[tuple[str, Scalar], ...]
Figures = dict[str, Any]  # numbers, or lists of them, by name


def grid(**values: tuple[Scalar, ...]) -> tuple[Setting, ...]:
    """Return every combination of the values; the last key varies fastest."""
    return tuple(tuple(zip(values, each, strict=True)) for each in product(*values.values()))


@dataclass(frozen=True)
class Mean:
    """Mean over repetitions, with their standard deviation."""

    mean: float
    sd: float
    count: int

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.sd / math.sqrt(self.count)

    def __str__(self) -> str:
        """Format with the standard deviation, if known; a deviation from rounding errors is 0."""
        if math.isnan(self.sd):
            return short(self.mean)
        return f"{short(self.mean)} ({short(self.sd if self.sd > 1e-9 * abs(self.mean) else 0.0)})"


def short(value: float) -> str:
    """Format a number for a table with about three significant digits."""
    size = abs(value)
    if size >= 99.5:
        return f"{value:,.0f}" if size < 1e6 else f"{value:.2g}"
    if size >= 9.995:
        return f"{value:.1f}"
    if size >= 0.9995 or size == 0:
        return f"{value:.2f}"
    return f"{value:.3f}" if size >= 0.0995 else f"{value:.3g}"


class Measured:
    """The measurements of one experiment: figures by setting and repetition."""

    def __init__(self, result: dict[Setting, list[Figures]]) -> None:
        self.settings = tuple(result)  # in the order of the experiment
        self._found = {_key(dict(setting)): each for setting, each in result.items()}

    def has(self, **setting: Scalar) -> bool:
        return _key(setting) in self._found

    def values(self, figure: str, **setting: Scalar) -> Array:
        """Return the values of a figure at a setting, shape (repetitions, ...).

        Raises
        ------
        LookupError
            If the setting was not measured, or only by an older version without that figure.
        """
        of = self._found[_key(setting)]
        if not all(figure in each for each in of):
            raise LookupError(
                f"no '{figure}' at {setting}: it is from another version; delete these results"
            )
        return np.array([each[figure] for each in of], dtype=float)

    def mean(self, figure: str, **setting: Scalar) -> Mean:
        """Mean over the repetitions in which the figure is a number."""
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
        Measured numbers, in words.
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
        Factor by which Gramercy's score is better.
    ours, theirs
        Whether each score is useful: better than chance, and better than without the release.
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
    """A task solved by Gramercy and by a paper at the same exact guarantee.

    Parameters
    ----------
    task, rows, columns
        Title of the task and shape of its table.
    outcomes
        Outcomes by epsilon.
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
        Heading, and the protocol with its interpretation of the paper, in words.
    settings, repetitions
        Settings, and the number of repetitions of each.
    measure
        Measures one repetition; called with a generator and the setting's keys.
    page
        Yields the lines of the section from the measurements.
    verdicts
        Yields the tested claims.
    draw
        Draws the section's figure.
    compared
        Computes the comparison at one guarantee, if the experiment has one.
    quick, quick_repetitions
        Settings and repetitions with ``--quick``.
    table
        Folder of the table that it needs, if any; skipped if it is absent.
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
        First paragraph of the page.
    """

    title: str
    about: str
    experiments: dict[str, Experiment] = field(default_factory=dict)


def _key(setting: dict[str, Scalar]) -> Setting:
    """Return the setting with sorted names, as a key that does not depend on their order."""
    return tuple(sorted(setting.items()))
