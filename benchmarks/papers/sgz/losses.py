"""Tables 1 and 2: losses between private and non-private estimates, measured and printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from benchmarks.arrays import Array
from benchmarks.pages import table
from benchmarks.papers.experiment import Figures, Mean, Measured, Verdict, short
from benchmarks.papers.sgz.published import EPSILONS, LOSSES, ROWS, Key, Printed

Band = Callable[[Key, float], float]  # tolerance for a cell, by its key and printed mean
READINGS = {"l1": "l1", "frobenius": "Frobenius", "l2": "'l2'"}
_ENOUGH = 10  # repetitions that an estimate of the spread requires
_SPREADS = 1.5  # two spreads within this factor are of the same kind


def norms(private: Array, other: Array) -> Figures:
    """Return the l1, Frobenius and both spectral losses; the third column prints one of these."""
    off = private - other
    spectral, frobenius = np.linalg.norm(off, 2), np.linalg.norm(other)
    return {
        "l1": float(np.linalg.norm(off, 1) / np.linalg.norm(other, 1)),
        "frobenius": float(np.linalg.norm(off) / frobenius),
        "l2": float(spectral / np.linalg.norm(other, 2)),
        "l2-frobenius": float(spectral / frobenius),
    }


def content(loss: str, epsilon: float) -> str:
    """Return the name of the loss that a printed column contains at that epsilon."""
    return "l2-frobenius" if loss == "l2" and epsilon > EPSILONS[0] else loss


def named(losses: Figures, epsilon: float) -> Figures:
    return {f"{name} at {epsilon:g}": value for name, value in losses.items()}


@dataclass(frozen=True)
class Line:
    """A printed cell and its reproduction."""

    key: Key
    printed: Printed
    ours: Mean
    most: float

    @property
    def ratio(self) -> float:
        return self.ours.mean / self.printed.mean

    @property
    def within(self) -> bool:
        return abs(self.ratio - 1) <= self.most

    @property
    def name(self) -> str:
        model, n, epsilon, loss = self.key
        return f"Model {model}, n = {n}, epsilon = {epsilon:g}, {READINGS[loss]}"


def _next(key: Key, at: int, values: tuple[float, ...]) -> tuple[object, ...]:
    """Return the key with the next value at position `at`, or () after the last value."""
    place = values.index(float(key[at])) + 1
    return (*key[:at], values[place], *key[at + 1 :]) if place < len(values) else ()


@dataclass(frozen=True)
class Table:
    """A printed table, with the tolerance for its reproduction."""

    title: str
    printed: dict[Key, Printed]
    band: Band

    @property
    def models(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(model for model, *_ in self.printed))

    def lines(self, measured: Measured) -> Iterator[Line]:
        """Yield all measured cells, in the order of the paper."""
        for key, printed in self.printed.items():
            model, n, epsilon, loss = key
            if measured.has(model=model, n=n):
                name = f"{content(loss, epsilon)} at {epsilon:g}"
                ours = measured.mean(name, model=model, n=n)
                yield Line(key, printed, ours, self.band(key, printed.mean))

    def page(self, measured: Measured) -> Iterator[str]:
        """Yield a table per model: for each loss, the measured and printed mean, and verdict."""
        known = list(self.lines(measured))
        for model in self.models:
            mine = [line for line in known if line.key[0] == model]
            if not mine:
                continue
            yield f"**{self.title}, Model {model}**\n"
            heads = [
                f"{READINGS[loss]}{each}"
                for loss in LOSSES
                for each in (": ours", ", printed", ", ratio")
            ]
            yield from table(
                ("n", "epsilon", *heads, "outside its band"),
                (
                    self._row(n, epsilon, [x for x in mine if x.key[1:3] == (n, epsilon)])
                    for n in ROWS
                    for epsilon in EPSILONS
                    if measured.has(model=model, n=n)
                ),
            )

    def _row(self, n: int, epsilon: float, lines: list[Line]) -> Iterator[str]:
        yield from (str(n), f"{epsilon:g}")
        for line in lines:
            yield from (
                str(line.ours),
                f"{short(line.printed.mean)} ({short(line.printed.spread)})",
                f"{line.ratio:.3f}",
            )
        yield ", ".join(READINGS[line.key[3]] for line in lines if not line.within)

    def verdicts(self, measured: Measured) -> Iterator[Verdict]:
        """Test each printed column, and the meaning of the brackets."""
        lines = list(self.lines(measured))
        if not lines:
            return
        for loss in LOSSES:
            mine = [line for line in lines if line.key[3] == loss]
            inside = sum(line.within for line in mine)
            far = max(mine, key=lambda line: abs(line.ratio - 1) / line.most)
            yield Verdict(
                f"{self.title}: every {READINGS[loss]} loss is reproduced within its band",
                inside == len(mine),
                f"{inside} of {len(mine)}; largest relative to its band: {far.name}, "
                f"{short(far.ours.mean)} for {short(far.printed.mean)}",
            )
        yield self._falling(lines)
        yield from self._spreads(lines)

    def _falling(self, lines: list[Line]) -> Verdict:
        """Test the paper's claim that losses fall with more rows and with a larger epsilon."""
        of = {line.key: line.ours.mean for line in lines}
        steps = [
            (of[key], of[larger])
            for key in of
            for larger in (_next(key, 1, ROWS), _next(key, 2, EPSILONS))
            if larger in of and content(key[3], key[2]) == content(larger[3], larger[2])
        ]
        fell = sum(after < before for before, after in steps)
        return Verdict(
            f"{self.title}: losses fall with the number of rows and with epsilon",
            fell == len(steps),
            f"in {fell} of {len(steps)} steps from one to the next",
        )

    def _spreads(self, lines: list[Line]) -> Iterator[Verdict]:
        known = [line for line in lines if line.key[3] != "l2" and line.ours.count >= _ENOUGH]
        known = [line for line in known if line.printed.spread > 0]
        if not known:
            return
        ratio = float(np.median([line.ours.sd / line.printed.spread for line in known]))
        yield Verdict(
            f"{self.title}: the brackets hold standard errors, as its caption says",
            not 1 / _SPREADS < ratio < _SPREADS,
            f"the deviation of one repetition is {short(ratio)} times the bracket (median of "
            f"{len(known)} cells); of the mean of 50 it would be {short(ratio / 50**0.5)} times",
        )

    def draw(self, measured: Measured) -> Figure:
        """Draw Frobenius losses against epsilon, a panel per model; crosses are printed means."""
        canvas = Figure(figsize=(8.5, 3.2), layout="constrained")
        lines = list(self.lines(measured))
        panels = canvas.subplots(1, len(self.models), sharey=True)
        for axes, model in zip(panels, self.models, strict=True):
            for at, n in enumerate(ROWS):
                mine = [x for x in lines if x.key[:2] == (model, n) and x.key[3] == "frobenius"]
                if not mine:
                    continue
                x = [line.key[2] for line in mine]
                means = [line.ours.mean for line in mine]
                axes.plot(x, means, color=f"C{at}", label=f"ours, n = {n}")
                printed = [line.printed.mean for line in mine]
                axes.plot(x, printed, "x", color=f"C{at}", label="printed")
            axes.set(title=f"Model {model}", xlabel="epsilon", xscale="log", yscale="log")
            axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
            axes.minorticks_off()
            axes.grid(alpha=0.3)
        panels[0].set_ylabel("relative Frobenius loss")
        panels[-1].legend(fontsize=7)
        return canvas
