"""Printed numbers below the error of any threshold; and the local algorithm as stated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from benchmarks.arrays import Rng
from benchmarks.pages import table
from benchmarks.papers import thresholding
from benchmarks.papers.experiment import Experiment, Figures, Mean, Measured, Verdict, short
from benchmarks.papers.lw.models import CONSTANTS, covariance, drawn, truths
from benchmarks.papers.lw.published import COLUMNS, NORMS, ROWS, Row
from benchmarks.papers.thresholding import METHODS

REPETITIONS = 20
LOCAL = "local"
MARGIN = 0.05  # printed numbers have standard errors up to 2 %, and the grid is finite
NEAR = 0.08
_SOURCES = (*METHODS, LOCAL)


def measure(
    rng: Rng, *, model: int, rows: str, p: int, n: int, epsilon: float, delta: float
) -> Figures:
    """Smallest errors over all thresholds and over all constants; errors of the local protocol."""
    truth = covariance(model, p)
    x = drawn(truth, rows, n, rng)
    moment, meant = x.T @ x / n, truths(truth, rows)
    deviations = {each: thresholding.central(each, n, epsilon, delta) for each in METHODS}
    deviations[LOCAL] = thresholding.local(n, epsilon, delta)
    figures: Figures = {}
    for source in _SOURCES:
        sd = deviations[source]
        noisy = moment + thresholding.noise(p, sd, rng)
        least = [0.0, thresholding.threshold(0.0, n, p, sd)]
        result = thresholding.best(noisy, meant, least)
        for name, by_truth in zip(("any", "constant"), result, strict=True):
            for turn, by_norm in enumerate(by_truth):
                for norm, error in zip(NORMS, by_norm, strict=True):
                    figures[_key(source, name, norm, turn)] = error
    for method in METHODS:  # on the same reports, because both papers print the same noise
        by = thresholding.threshold(CONSTANTS[method, n], n, p, deviations[LOCAL])
        made = thresholding.estimate(noisy, by)
        figures[f"{method} zero"] = not made.any()
        for turn, wanted in enumerate(meant):
            for norm, error in zip(NORMS, thresholding.errors(made, wanted), strict=True):
                figures[_key(method, "stated", norm, turn)] = error
    return figures


def _key(source: str, name: str, norm: str, turn: int) -> str:
    return f"{source} {name} {norm} {turn}"


@dataclass(frozen=True)
class Bound:
    """A printed number, and the smallest errors that are possible.

    Parameters
    ----------
    row, column, norm
        Position in the tables.
    best
        Error of the best threshold of every repetition; for t rows, from the nearer target.
    constant
        The same for thresholds of the printed form, with the best constant c >= 0.
    stated
        For a local column, the error of the algorithm as stated.
    """

    row: Row
    column: str
    norm: str
    best: Mean
    constant: Mean
    stated: Mean | None

    @property
    def printed(self) -> float:
        return self.row.printed(self.column, self.norm)

    @property
    def local(self) -> bool:
        return self.stated is not None

    @property
    def below_best_threshold(self) -> bool:
        """Whether the printed error is smaller than that of every threshold."""
        return beats(self.printed, self.best)

    @property
    def contradicted(self) -> bool:
        """Whether the printed error is smaller than that of every constant."""
        return beats(self.printed, self.constant)

    @property
    def reproduced(self) -> bool:
        """Whether the printed error of a local column is near that of the stated algorithm."""
        return self.stated is not None and abs(self.stated.mean / self.printed - 1) <= NEAR


def beats(printed: float, oracle: Mean) -> bool:
    """Whether a printed number is below the oracle's by the margin and three standard errors."""
    error = 0.0 if np.isnan(oracle.sd) else oracle.error
    return printed < (1 - MARGIN) * oracle.mean - 3 * error


def bounds(measured: Measured) -> Iterator[Bound]:
    for row in ROWS:
        if not measured.has(**dict(row.setting)):
            continue
        for column in COLUMNS:
            local = column.endswith(LOCAL)
            source = LOCAL if local else column
            for norm in NORMS:
                best, constant = (
                    _nearest_mean(measured, row, source, name, norm) for name in ("any", "constant")
                )
                method = column.removesuffix(f"-{LOCAL}")
                stated = _nearest_mean(measured, row, method, "stated", norm) if local else None
                yield Bound(row, column, norm, best, constant, stated)


def _nearest_mean(measured: Measured, row: Row, source: str, name: str, norm: str) -> Mean:
    """Mean error from the target that it is nearer to."""
    turns = range(2 if row.rows == "t5" else 1)
    means = [
        measured.mean(_key(source, name, norm, turn), **dict(row.setting)) for turn in turns
    ]  # fmt: skip
    return min(means, key=lambda mean: mean.mean)


def _page(measured: Measured) -> Iterator[str]:
    result = list(bounds(measured))
    yield (
        "How many printed numbers are below the best threshold in hindsight (one threshold for "
        "each repetition and error), and below the best constant c >= 0.\n"
    )
    yield from table(
        ("table", "column", "numbers", "below any threshold", "below any constant"),
        (
            (str(number), column, str(len(mine)), *map(str, _counts(mine)))
            for number in dict.fromkeys(each.row.table for each in result)
            for column in COLUMNS
            if (mine := [e for e in result if (e.row.table, e.column) == (number, column)])
        ),
    )
    yield (
        "The local columns, spectral / Frobenius. Stated: the algorithm with the constants of the "
        "central columns and the deviation of the average (Li and Wang print a threshold that is "
        "sqrt(n) times higher).  Both papers print the same noise, so they have "
        "the same best thresholds. Bold: smaller than the error of any threshold.\n"
    )
    yield from table(
        (
            "table", "setting", "LW printed", "WX printed",
            "stated: LW", "WX", "zero matrix: LW", "WX", "best threshold",
        ),
        (
            _line(measured, row, [each for each in result if each.row == row and each.local])
            for row in dict.fromkeys(each.row for each in result)
        ),
    )  # fmt: skip


def _counts(mine: list[Bound]) -> tuple[int, int]:
    return sum(each.below_best_threshold for each in mine), sum(each.contradicted for each in mine)


def _line(measured: Measured, row: Row, mine: list[Bound]) -> tuple[str, ...]:
    printed, stated = {}, {}
    for method in METHODS:
        of = [each for each in mine if each.column == f"{method}-{LOCAL}"]
        printed[method] = " / ".join(_bold_if_below_oracle(each) for each in of)
        stated[method] = " / ".join(short(each.stated.mean) for each in of if each.stated)
    zeros = [measured.mean(f"{method} zero", **dict(row.setting)).mean for method in METHODS]
    best = " / ".join(str(each.best) for each in mine if each.column == f"{METHODS[0]}-{LOCAL}")
    return (
        str(row.table), row.name, *printed.values(), *stated.values(),
        *(f"{share:.0%}" for share in zeros), best,
    )  # fmt: skip


def _bold_if_below_oracle(each: Bound) -> str:
    return f"**{short(each.printed)}**" if each.below_best_threshold else short(each.printed)


def _verdicts(measured: Measured) -> Iterator[Verdict]:
    result = list(bounds(measured))
    for local, what in ((False, "central"), (True, "local")):
        mine = [each for each in result if each.local == local]
        if mine:
            below, under = _counts(mine)
            yield Verdict(
                f"No printed number of the {what} columns (Tables 1 to 6) is below what the best "
                "threshold in hindsight gives",
                below == 0,
                f"{below} of {len(mine)} are; {under} are below the best constant c >= 0",
            )
    mine = [each for each in result if each.local]
    if mine:
        near = sum(each.reproduced for each in mine)
        zero = np.mean(
            [
                measured.mean(f"{method} zero", **dict(row.setting)).mean
                for row in dict.fromkeys(each.row for each in mine)
                for method in METHODS
            ]
        )
        yield Verdict(
            f"The local columns are those of the stated algorithms, within {NEAR:.0%}",
            near == len(mine),
            f"{near} of {len(mine)} numbers; the stated output is the zero matrix in {zero:.0%} "
            "of the runs",
        )


def _draw(measured: Measured) -> Figure:
    canvas = Figure(figsize=(8, 3.8), layout="constrained")
    result = [each for each in bounds(measured) if each.local]
    for axes, norm in zip(canvas.subplots(1, 2), NORMS, strict=True):
        mine = [each for each in result if each.norm == norm]
        ends = [0.8 * min(e.best.mean for e in mine), 1.2 * max(e.printed for e in mine)]
        axes.plot(ends, ends, color="black", label="best threshold in hindsight")
        for method, colour in zip(METHODS, ("C3", "C0"), strict=True):
            at = [e for e in mine if e.column == f"{method}-{LOCAL}"]
            x = [e.best.mean for e in at]
            axes.plot(x, [e.printed for e in at], "o", color=colour, label=f"{method.upper()}")
        stated = [(e.best.mean, e.stated.mean) for e in mine if e.stated]
        x, y = np.array(stated).T
        axes.plot(x, y, "x", color="grey", label="the algorithm as stated")
        axes.set(xlabel="best threshold in hindsight", title=norm)
        axes.set_ylabel("printed, local columns")
        axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    return canvas


SETTINGS = tuple(row.setting for row in ROWS)

EXPERIMENT = Experiment(
    title="Tables 1 to 6: numbers that no threshold gives",
    about=(
        "The best threshold is chosen after the fact, in every repetition and for every error "
        "again: no rule, cross-validation included, has a smaller mean. A printed number counts "
        f"as below it if it is lower by {MARGIN:.0%} and three standard errors. t rows are "
        "measured against "
        "their scale matrix and against their covariance, and the nearer counts."
    ),
    settings=SETTINGS,
    repetitions=REPETITIONS,
    measure=measure,
    page=_page,
    verdicts=_verdicts,
    draw=_draw,
    quick=tuple(setting for setting in SETTINGS if dict(setting)["p"] != 200),
    quick_repetitions=2,  # one repetition has no standard error
)
