"""Write the results page from the stored results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from benchmarks import markdown
from benchmarks.analyses import (
    cells,
    page_of_components,
    page_of_folds,
    page_of_one_regressor,
    page_of_synthetic_rows,
    plots,
)
from benchmarks.analyses.cells import Result
from benchmarks.analyses.comparing import number
from benchmarks.analyses.lines import COLUMNS, Lines, regression_lines
from benchmarks.analyses.methods import EPSILONS, REGRESSIONS, TABLES
from benchmarks.markdown import table
from benchmarks.method_cells import Cell
from benchmarks.statistics.comparisons import geometric_mean
from benchmarks.statistics.tables import ROWS
from benchmarks.statistics.tables import TABLES as RECIPES

PEERS = tuple(key for key in COLUMNS if key != "private")


def write(folder: Path) -> None:
    """Write `results.md` and its figure from `results.jsonl` in the same folder."""
    results = cells.read(folder / "results.jsonl")
    (folder / "figures").mkdir(exist_ok=True)
    plots.draw(regression_lines(results), folder / "figures" / "loss.svg")
    markdown.write(folder / "results.md", _page(results))


def _page(results: Mapping[Cell, Result]) -> Iterator[str]:
    yield "# Regressions, components and synthetic rows\n"
    yield (
        "For readers who choose between a release and a procedure made for one analysis: "
        "regressions, principal components and synthetic rows at the same guarantee under "
        "replace-one. A release answers all further analyses at no cost, while every use of the "
        "other procedures is paid for. Samples are drawn with replacement from populations whose "
        "coefficients are known. Written by `python -m benchmarks.analyses` from `results.jsonl`. "
        "Noise is seeded, except that of other libraries, so nothing here is a release.\n"
    )
    yield from _regressions(regression_lines(results))
    yield from page_of_folds.section(results)
    yield from page_of_one_regressor.section(results)
    yield from page_of_components.section(results)
    yield from page_of_synthetic_rows.section(results)


def _regressions(lines: Lines) -> Iterator[str]:
    yield "## Regression\n"
    yield (
        f"Tables of {ROWS:,} rows and samples of as many. The outcome is the last column, and all "
        "others are regressors; delta = 1e-6. `error` is the root mean square error of the fitted "
        "coefficients in standard deviations; `loss` is by how much R squared of the fit in the "
        "population is below that of least squares, on average, at most 1 per release. Both "
        "include sampling. A cell has 100 releases with private constants, and 30 of every other "
        "method.\n"
    )
    for method in REGRESSIONS.values():
        yield f"- **{method.title}**: {method.note}."
    yield ""
    yield (
        "AdaSSP, dp-statsmodels and BinAgg are written here from their descriptions, with noise of "
        "the exact size for this guarantee: for AdaSSP and dp-statsmodels less than published, "
        "for BinAgg more, because its package protects one row more or less, and gives every "
        "column of a sum the noise of a column alone. Where noise leaves X^T X with a negative "
        "eigenvalue, dp-statsmodels shifts the smallest one to 1e-06, and coefficients become "
        "arbitrary. BinAgg is meant for few regressors: compare it on three columns. Least squares "
        "from the raw matrix is the common procedure from noisy sufficient statistics.\n"
    )
    yield from _summary(lines)
    yield "![Loss of R squared](figures/loss.svg)\n"
    yield from _losses(lines)
    yield from _coverage(lines)
    yield from _all(lines)


def _summary(lines: Lines) -> Iterator[str]:
    yield (
        "Geometric means over the tables of another method's figure over that of Gramercy with "
        "private constants: above 1, the other is less accurate.\n"
    )
    places = [(epsilon, of) for epsilon in EPSILONS for of in ("error", "loss")]
    body = []
    for key in PEERS:
        ratios = []
        for epsilon, of in places:
            here = [each for (_, other), each in lines.items() if other == epsilon]
            ratios.append(_ratio(here, key, of))
        body.append((COLUMNS[key], *ratios))
    yield from table(("method", *(f"epsilon {epsilon:g}: {of}" for epsilon, of in places)), body)


def _ratio(here: list[dict[str, dict[str, float]]], key: str, of: str) -> str:
    both = [each for each in here if key in each and "private" in each]
    ratios = [each[key][of] / each["private"][of] for each in both]
    return f"{geometric_mean(ratios):.3g}" if ratios else ""


def _losses(lines: Lines) -> Iterator[str]:
    """Where another method is clearly more accurate."""
    yield "### Where Gramercy with private constants loses\n"
    yield "Cells in which another method's error or loss is less than .9 times its own.\n"
    body = []
    for (name, epsilon), here in lines.items():
        for key in PEERS:
            if key not in here or "private" not in here:
                continue
            ratios = {of: here[key][of] / here["private"][of] for of in ("error", "loss")}
            if min(ratios.values()) < 0.9:
                shown = (f"{ratios[of]:.2f}" for of in ("error", "loss"))
                body.append((name, f"{epsilon:g}", COLUMNS[key], *shown))
    yield from table(("table", "epsilon", "method", "error / ours", "loss / ours"), body)


def _coverage(lines: Lines) -> Iterator[str]:
    yield "### Coverage of 95% intervals\n"
    yield (
        "Of the coefficients that are known: the mean, and the smallest of a coefficient that is "
        "known in at least half of the releases. Clipping changes what a release estimates: "
        "`clipped` figures are of the coefficients that the population's rows have once they are "
        "clamped and clipped as in the release, and leave the errors of the intervals alone. "
        "Classical intervals from the raw matrix ignore its noise. Intervals of the arbitrary "
        "coefficients of other procedures are wide enough to cover.\n"
    )
    yield _mean_coverage([each["private"] for each in lines.values() if "private" in each])
    columns = {
        "private constants: known": ("private", "known"),
        "mean coverage": ("private", "coverage"),
        "smallest": ("private", "worst"),
        "clipped, mean": ("private", "clipped coverage"),
        "clipped, smallest": ("private", "clipped worst"),
        "bounds: known": ("declared", "known"),
        "bounds: mean coverage": ("declared", "coverage"),
        "bounds: smallest": ("declared", "worst"),
        "classical, raw matrix": ("raw", "coverage"),
        "dp-statsmodels, true constants": ("dp-statsmodels, true constants", "coverage"),
        "BinAgg, true constants": ("BinAgg, true constants", "coverage"),
    }
    body = []
    for (name, epsilon), here in lines.items():
        shown = (number(here.get(key, {}).get(of), percent=True) for key, of in columns.values())
        body.append((name, f"{epsilon:g}", *shown))
    yield from table(("table", "epsilon", *columns), body)


def _mean_coverage(scores: list[dict[str, float]]) -> str:
    parts = []
    for of, whose in (("", "the population"), ("clipped ", "its clipped rows")):
        coverage = [each[f"{of}coverage"] for each in scores if f"{of}coverage" in each]
        if coverage:
            worst = min(each.get(f"{of}worst", 1.0) for each in scores)
            parts.append(f"of {whose} {np.mean(coverage):.1%}, and the smallest {worst:.0%}")
    if not parts:
        return ""
    known = np.mean([each["known"] for each in scores])
    return (
        f"With private constants, {known:.0%} of the coefficients are known. Mean coverage over "
        f"all cells is, for coefficients {'; '.join(parts)}. Of 100 releases, a coefficient "
        "with exact 95% intervals has 90% or less in one case of 35, and 85% or less in one of "
        "7,400.\n"
    )


def _all(lines: Lines) -> Iterator[str]:
    yield "### All cells\n"
    for of, title in (("error", "Error of coefficients"), ("loss", "Loss of R squared")):
        yield f"{title}:\n"
        body = [
            (name, f"{epsilon:g}", *(number(here.get(key, {}).get(of)) for key in COLUMNS))
            for (name, epsilon), here in lines.items()
        ]
        yield from table(("table", "epsilon", *COLUMNS.values()), body)
    yield "Tables:\n"
    yield from (f"- {name}: {RECIPES[name].title}." for name in TABLES)
    yield ""
