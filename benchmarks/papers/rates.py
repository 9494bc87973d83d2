"""The rates that theorems promise, and measured errors: exponents in rows, columns, epsilon.

A theorem bounds an error up to a constant. So its exponents are compared: the slope of the bound's
logarithm, and that of the error's, fitted over the same settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.arrays import Array, Rng
from benchmarks.pages import table
from benchmarks.papers.experiment import Experiment, Figures, Measured, Scalar, Setting, Verdict

AXES = {"n": "rows", "p": "columns", "epsilon": "epsilon"}
REPETITIONS = 5
NOISES = ("sound", "published")
EMPTY = 0.5  # settings with a larger share of empty estimates, or of none, are not fitted
CLOSE = 0.1  # exponents that differ less are called equal


@dataclass(frozen=True)
class Theorem:
    """A theorem, and how its error is measured.

    Parameters
    ----------
    statement
        Its number and its promise, with the norm, in a line.
    error
        Draws a table and returns the error by noise, those of `NOISES` that it has; NaN without
        an estimate. With `empty` behind the noise's name: whether thresholds left nothing off the
        diagonal. Called with a generator, n, p and epsilon.
    along
        The values along each axis; the other two are as in `at`.
    at
        Values of n, p and epsilon.
    bound
        The terms of the promise without their constants, by n, p and epsilon; None without a rate.
    promised
        What is promised instead of a rate.
    remark
        What the measurements say about the theorem.
    """

    statement: str
    error: Callable[[Rng, int, int, float], Figures]
    along: Mapping[str, tuple[Scalar, ...]]
    at: Mapping[str, Scalar] = field(default_factory=lambda: {"n": 64_000, "p": 16, "epsilon": 1.0})
    bound: Callable[[int, int, float], tuple[float, ...]] | None = None
    promised: str = ""
    remark: str = ""

    def settings(self, axis: str) -> list[dict[str, Scalar]]:
        return [{**self.at, axis: value} for value in self.along[axis]]


Theorems = Mapping[str, Theorem]


def experiment(theorems: Theorems) -> Experiment:
    """Build the experiment of a paper's theorems."""
    every = dict.fromkeys(
        _setting(name, of)
        for name, theorem in theorems.items()
        for axis in theorem.along
        for of in theorem.settings(axis)
    )
    return Experiment(
        title="The theorems' rates and measured errors",
        about=(
            "Measured as the theorems assume: rows of length one, delta = 1e-06. Columns are "
            "correlated in pairs. A bound holds up to a constant, so exponents are compared: the "
            "slopes of the logarithms of the bound, of each of its terms, and of the error over "
            "the same settings, by least squares over all repetitions, with the standard error. "
            "Where the bound is a sum, the error's exponent may be that of either term. Sound: the "
            "noise with an exact guarantee. Published: the noise of the paper, at the same epsilon "
            "and delta. Settings whose estimate mostly has nothing off the diagonal, or does not "
            "exist, are not fitted."
        ),
        settings=tuple(every),
        repetitions=REPETITIONS,
        measure=partial(measure, theorems=theorems),
        page=partial(_page, theorems=theorems),
        verdicts=partial(_verdicts, theorems=theorems),
        draw=partial(_draw, theorems=theorems),
        quick=tuple(every)[:2],
    )


def _setting(name: str, of: Mapping[str, Scalar]) -> Setting:
    return (("theorem", name), *((axis, of[axis]) for axis in AXES))


def measure(rng: Rng, *, theorem: str, theorems: Theorems, **of: Scalar) -> Figures:
    """Measure the error of one theorem once."""
    return theorems[theorem].error(rng, int(of["n"]), int(of["p"]), float(of["epsilon"]))


@dataclass(frozen=True)
class Slope:
    """A fitted exponent: its value and standard error, and the values of the axis in the fit."""

    value: float
    error: float
    values: tuple[Scalar, ...]

    def __str__(self) -> str:
        return f"{self.value:+.2f} ({self.error:.2f})"


def fitted(points: Iterable[tuple[Scalar, Array]]) -> Slope | None:
    """Fit log error to log value by least squares; None with fewer than two values."""
    kept = [(value, errors[errors > 0]) for value, errors in points]
    kept = [(value, errors) for value, errors in kept if errors.size]
    if len(kept) < 2:
        return None
    x = np.concatenate([np.full(errors.size, math.log(float(value))) for value, errors in kept])
    y = np.log(np.concatenate([errors for _, errors in kept]))
    x = x - x.mean()
    slope = float(x @ y / (x @ x))
    rest = y - y.mean() - slope * x
    left = x.size - 2
    error = math.sqrt(float(rest @ rest) / left / float(x @ x)) if left else 0.0
    return Slope(slope, error, tuple(value for value, _ in kept))


def measured_slope(
    measured: Measured, name: str, theorem: Theorem, axis: str, noise: str
) -> Slope | None:
    """The exponent of the error along an axis; None if it was not measured."""
    points = []
    for of in theorem.settings(axis):
        setting = dict(_setting(name, of))
        if not measured.has(**setting):
            return None
        try:
            errors = measured.values(noise, **setting)
        except LookupError:
            return None
        if _lost(measured, noise, setting) <= EMPTY:
            points.append((of[axis], errors))
    return fitted(points)


def _lost(measured: Measured, noise: str, setting: dict[str, Scalar]) -> float:
    """Share of repetitions with nothing off the diagonal, or without an estimate."""
    empty = measured.values(f"{noise} empty", **setting)
    return float(np.mean(empty + np.isnan(measured.values(noise, **setting)) > 0))


def promised_slopes(theorem: Theorem, axis: str, values: tuple[Scalar, ...]) -> tuple[float, ...]:
    """The exponents of the terms of the bound over the same values, from the most harmful one."""
    if theorem.bound is None:
        return ()
    every = [{**theorem.at, axis: value} for value in values]
    terms = zip(
        *(theorem.bound(int(of["n"]), int(of["p"]), float(of["epsilon"])) for of in every),
        strict=True,
    )
    slopes = (
        fitted((value, np.array([size])) for value, size in zip(values, term, strict=True))
        for term in terms
    )
    found = {round(slope.value, 6) for slope in slopes if slope is not None}
    return tuple(sorted(found, key=partial(_harm, axis), reverse=True))


def _harm(axis: str, exponent: float) -> float:
    """How much an exponent harms: in more rows, in more columns, or in less epsilon."""
    return -exponent if axis == "epsilon" else exponent


def verdict(axis: str, found: Slope, promise: tuple[float, ...]) -> str:
    """Compare the exponent of the error with those of the bound's terms."""
    harm, slack = _harm(axis, found.value), max(2 * found.error, CLOSE)
    if harm > _harm(axis, promise[0]) + slack:
        return "**worse**"
    return "better" if harm < _harm(axis, promise[-1]) - slack else "as promised"


@dataclass(frozen=True)
class Line:
    """A theorem along one axis."""

    theorem: Theorem
    axis: str
    slopes: dict[str, Slope]
    promise: tuple[float, ...]
    lost: str

    @property
    def first(self) -> Slope:
        """The exponent with the sound noise, or with the published one if no other has it."""
        return next(self.slopes[noise] for noise in NOISES if noise in self.slopes)

    @property
    def promised(self) -> str:
        if not self.promise:
            return self.theorem.promised
        return " or ".join(f"{exponent:+.2f}" for exponent in self.promise)

    @property
    def verdict(self) -> str:
        return verdict(self.axis, self.first, self.promise) if self.promise else ""


def lines(measured: Measured, theorems: Theorems) -> Iterator[Line]:
    for name, theorem in theorems.items():
        for axis in theorem.along:
            slopes = {
                noise: slope
                for noise in NOISES
                if (slope := measured_slope(measured, name, theorem, axis, noise)) is not None
            }
            if slopes:
                first = next(iter(slopes.values()))
                promise = promised_slopes(theorem, axis, first.values)
                noise = next(iter(slopes))
                yield Line(
                    theorem, axis, slopes, promise, _left_out(measured, name, theorem, axis, noise)
                )


def _left_out(measured: Measured, name: str, theorem: Theorem, axis: str, noise: str) -> str:
    lost = {
        of[axis]: _lost(measured, noise, dict(_setting(name, of))) for of in theorem.settings(axis)
    }
    return ", ".join(f"{_number(at)} ({share:.0%})" for at, share in lost.items() if share > EMPTY)


def _number(value: Scalar) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _page(measured: Measured, *, theorems: Theorems) -> Iterator[str]:
    every = list(lines(measured, theorems))
    for theorem in theorems.values():
        mine = [line for line in every if line.theorem is theorem]
        if not mine:
            continue
        at = ", ".join(f"{AXES[axis]} {_number(value)}" for axis, value in theorem.at.items())
        yield f"**{theorem.statement}** Measured at {at}, where not varied.\n"
        yield from table(
            (
                "exponent in", "range", "promised", "measured, sound noise",
                "measured, published noise", "verdict", "not fitted (share empty or none)",
            ),
            (_texts(line) for line in mine),
        )  # fmt: skip
        if theorem.remark:
            yield f"{theorem.remark}\n"


def _texts(line: Line) -> tuple[str, ...]:
    values = line.first.values
    return (
        AXES[line.axis],
        f"{_number(values[0])} to {_number(values[-1])}",
        line.promised,
        *(str(line.slopes[noise]) if noise in line.slopes else "" for noise in NOISES),
        line.verdict,
        line.lost,
    )


def _verdicts(measured: Measured, *, theorems: Theorems) -> Iterator[Verdict]:
    for line in lines(measured, theorems):
        if line.promise:
            yield Verdict(
                f"{line.theorem.statement.split(':')[0]}: the error grows no faster than promised "
                f"along {AXES[line.axis]}",
                "worse" not in line.verdict,
                f"exponent {line.first}, {line.promised} promised",
            )


def _draw(measured: Measured, *, theorems: Theorems) -> Figure:
    canvas = Figure(figsize=(9, 3.4), layout="constrained")
    panels = canvas.subplots(1, len(AXES))
    for (axis, title), axes in zip(AXES.items(), panels, strict=True):
        for color, (name, theorem) in enumerate(theorems.items()):
            if axis in theorem.along:
                _line(axes, measured, name, axis, theorem, f"C{color}")
        axes.set(xscale="log", yscale="log", xlabel=title)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("error; dashed: the worst term of the bound")
    marks, names = panels[0].get_legend_handles_labels()
    canvas.legend(marks, names, loc="outside lower center", ncols=3, fontsize=7)
    return canvas


def _line(axes: object, measured: Measured, name: str, axis: str, of: Theorem, color: str) -> None:
    """Draw the mean error, and the bound through the middle of the errors that are fitted."""
    for line in lines(measured, {name: of}):
        if line.axis != axis:
            continue
        noise = next(iter(line.slopes))
        at = list(line.first.values)
        errors = [measured.mean(noise, **dict(_setting(name, {**of.at, axis: x}))).mean for x in at]
        axes.plot(at, errors, "o-", markersize=3, color=color, label=name)  # type: ignore[attr-defined]
        if not line.promise:
            continue
        slope, middle = line.promise[0], np.exp(np.mean(np.log(np.array(at, float))))
        level = np.exp(np.mean(np.log(errors)))
        promise = [level * (float(x) / middle) ** slope for x in at]
        axes.plot(at, promise, "--", linewidth=1, color=color)  # type: ignore[attr-defined]
