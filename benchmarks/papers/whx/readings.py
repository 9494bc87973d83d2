"""The printed Laplace row under three interpretations of r."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.arrays import Rng
from benchmarks.graphs.truths import truth
from benchmarks.pages import table
from benchmarks.papers.experiment import Experiment, Figures, Measured, Verdict, grid, short
from benchmarks.papers.scores import relative
from benchmarks.papers.whx import noise
from benchmarks.papers.whx.iterate import iterate
from benchmarks.papers.whx.published import COLUMNS, EPSILONS, P, printed
from gramercy.estimators.solvers.glasso import graphical_lasso

RS = (0.5, 1.0, 1.5)
READINGS = {
    "rows": "n = r p",
    "penalty": "the penalty is r, n = p",
    "length": "rows of length r, n = p, and noise as for length 1",
}
AT = 0.5  # epsilon
BAND = 1.25


def experiment() -> Experiment:
    """Build the experiment: three interpretations, three values of r."""
    settings = grid(reading=tuple(READINGS), r=RS)
    return Experiment(
        title="Possible meanings of r",
        about=(
            "The slides do not define r. Errors of the Laplace row and of Table 1's Wishart "
            f"row at epsilon = {AT:g} under three interpretations, each divided by the error at "
            f"r = {RS[0]:g}. All else is as in the tables below."
        ),
        settings=settings,
        repetitions=20,
        measure=measure,
        page=_page,
        verdicts=_verdicts,
        quick=settings,
    )


def measure(rng: Rng, *, reading: str, r: float) -> Figures:
    """Measure one data set under one interpretation."""
    n = round(r * P) if reading == "rows" else P
    penalty = r if reading == "penalty" else noise.PENALTY
    rows = truth("random", P, rng).rows(n, rng) * (r if reading == "length" else 1.0)
    moment = rows.T @ rows / n
    wanted = graphical_lasso(moment, penalty, penalize_diagonal=True).precision
    return {
        name: relative(iterate(moment + noise.PUBLISHED[name](rng, n, P, AT), penalty), wanted)
        for name in ("laplace", "wishart")
    }


def relatively(measured: Measured, reading: str, name: str) -> list[float]:
    """Return the errors, divided by the error at the smallest r."""
    means = [measured.mean(name, reading=reading, r=r).mean for r in RS]
    return [mean / means[0] for mean in means]


def as_printed(name: str) -> list[float]:
    """Return the printed errors, divided by the error at the smallest r."""
    result = [printed(name, AT, column) for column in COLUMNS[: len(RS)]]
    return [each / result[0] for each in result]


def products() -> list[float]:
    """Return the printed Laplace errors times r times epsilon."""
    return [
        printed("laplace", epsilon, column) * r * epsilon
        for column, r in zip(COLUMNS[: len(RS)], RS, strict=True)
        for epsilon in EPSILONS
    ]


def _page(measured: Measured) -> Iterator[str]:
    yield from table(
        ("reading", "row", *(f"r = {r:g}" for r in RS)),
        (
            (title, name, *map(short, line))
            for name in ("laplace", "wishart")
            for title, line in (
                ("**as printed**", as_printed(name)),
                *(
                    (title, relatively(measured, reading, name))
                    for reading, title in READINGS.items()
                ),
            )
        ),
    )


def _verdicts(measured: Measured) -> Iterator[Verdict]:
    if not measured.settings:
        return
    result = products()
    yield Verdict(
        "the printed Laplace errors of the synthetic columns are proportional to "
        "1 / (r epsilon), as the noise is if r = n / p",
        max(result) <= BAND * min(result),
        f"error times r times epsilon is {short(min(result))} to {short(max(result))}",
    )
    wanted = as_printed("laplace")
    ours = {reading: relatively(measured, reading, "laplace") for reading in READINGS}
    fitting = {
        reading
        for reading, line in ours.items()
        if all(1 / BAND <= one / other <= BAND for one, other in zip(line, wanted, strict=True))
    }
    yield Verdict(
        f"of three readings, 'n = r p' alone reproduces the Laplace row over r, within {BAND:g}",
        fitting == {"rows"},
        "; ".join(f"{READINGS[key]}: {_line(line)}" for key, line in ours.items())
        + f"; printed: {_line(wanted)}",
    )


def _line(values: list[float]) -> str:
    return ", ".join(map(short, values))
