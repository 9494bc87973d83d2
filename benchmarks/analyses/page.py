"""Write the results page from the stored results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from benchmarks import markdown
from benchmarks.analyses import cells, plots
from benchmarks.analyses.cells import Cell, Result
from benchmarks.analyses.components import SECONDS
from benchmarks.analyses.lines import (
    COLUMNS,
    COMPONENT_COLUMNS,
    Lines,
    component_lines,
    regression_lines,
)
from benchmarks.analyses.methods import COMPONENTS, EPSILONS, REGRESSIONS, TABLES
from benchmarks.markdown import table
from benchmarks.statistics.comparisons import geometric_mean
from benchmarks.statistics.tables import ROWS
from benchmarks.statistics.tables import TABLES as RECIPES

PEERS = ("AdaSSP, bounds", "AdaSSP, true constants", "raw", "denoised", "declared")


def write(folder: Path) -> None:
    """Write `results.md` and its figure from `results.jsonl` in the same folder."""
    results = cells.read(folder / "results.jsonl")
    (folder / "figures").mkdir(exist_ok=True)
    plots.draw(regression_lines(results), folder / "figures" / "loss.svg")
    markdown.write(folder / "results.md", _page(results))


def _page(results: Mapping[Cell, Result]) -> Iterator[str]:
    regressions, components = regression_lines(results), component_lines(results)
    yield "# Regressions and components\n"
    yield (
        "For readers who choose between a release and a procedure made for one analysis: "
        "regressions and principal components at the same exact guarantee under replace-one. "
        f"Populations are tables of {ROWS:,} rows; each release is of as many rows, drawn from its "
        "table with replacement. A release answers all further regressions at no cost, while "
        "every use of AdaSSP or DP-PCA is paid for. Written by `python -m benchmarks.analyses` "
        "from `results.jsonl`. Noise is seeded, so nothing here is a release.\n"
    )
    yield "## Regression\n"
    yield (
        "The outcome is the last column, and all others are regressors; delta = 1e-6. `error` is "
        "the root mean square error of the fitted coefficients in standard deviations; `loss` is "
        "by how much R squared of the fit in the population is below that of least squares, on "
        "average. Both include sampling.\n"
    )
    for method in REGRESSIONS.values():
        yield f"- **{method.title}**: {method.note}."
    yield ""
    yield (
        "AdaSSP is written here from the paper, with noise of the exact size of the Gaussian "
        "mechanism: less than the published constants give at this guarantee. Least squares "
        "from the raw matrix is the common procedure from noisy sufficient statistics. Not "
        "compared: BinAgg and dp-statsmodels, which are not re-implemented; OpenDP, whose "
        "regression has one regressor; and, of other analyses, synthetic rows.\n"
    )
    yield from _summary(regressions)
    yield "![Loss of R squared](figures/loss.svg)\n"
    yield from _losses(regressions)
    yield from _coverage(regressions)
    yield from _all(regressions)
    yield from _components(components)


def _summary(lines: Lines) -> Iterator[str]:
    yield (
        "Geometric means over the tables of another method's figure over that of Gramercy with "
        "private constants: above 1, the other is less accurate.\n"
    )
    head = ["epsilon", *(f"{COLUMNS[key]}: {of}" for key in PEERS for of in ("error", "loss"))]
    body = []
    for epsilon in EPSILONS:
        here = [each for (_, other), each in lines.items() if other == epsilon]
        ratios = [_ratio(here, key, of) for key in PEERS for of in ("error", "loss")]
        body.append((f"{epsilon:g}", *ratios))
    yield from table(head, body)


def _ratio(here: list[dict[str, dict[str, float]]], key: str, of: str) -> str:
    both = [each for each in here if key in each and "private" in each]
    ratios = [each[key][of] / each["private"][of] for each in both]
    return f"{geometric_mean(ratios):.2f}" if ratios else ""


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
        "known in at least half of the releases. Classical intervals from the raw matrix ignore "
        "its noise. On tables whose outcome is not linear in the regressors, rows that are clipped "
        "change what is estimated, and intervals without folds assume residuals that do not depend "
        "on the regressors.\n"
    )
    yield _mean_coverage([each["private"] for each in lines.values() if "private" in each])
    body = []
    for (name, epsilon), here in lines.items():
        shown = [
            _number(here.get(key, {}).get(of), percent=True)
            for key in ("private", "declared")
            for of in ("known", "coverage", "worst")
        ]
        classical = _number(here.get("raw", {}).get("coverage"), percent=True)
        body.append((name, f"{epsilon:g}", *shown, classical))
    head = (
        "table",
        "epsilon",
        *("private constants: known", "mean coverage", "smallest"),
        *("bounds: known", "mean coverage", "smallest"),
        "classical, raw matrix",
    )
    yield from table(head, body)


def _mean_coverage(scores: list[dict[str, float]]) -> str:
    coverage = [each["coverage"] for each in scores if "coverage" in each]
    if not coverage:
        return ""
    worst = min(each.get("worst", 1.0) for each in scores)
    known = np.mean([each["known"] for each in scores])
    return (
        f"With private constants, {known:.0%} of the coefficients are known, mean coverage over "
        f"all cells is {np.mean(coverage):.1%}, and the smallest of any coefficient {worst:.0%}; "
        "of 30 releases, a coefficient with exact 95% intervals has 87% or less in one case of "
        "16.\n"
    )


def _all(lines: Lines) -> Iterator[str]:
    yield "### All cells\n"
    for of, title in (("error", "Error of coefficients"), ("loss", "Loss of R squared")):
        yield f"{title}:\n"
        body = [
            (name, f"{epsilon:g}", *(_number(here.get(key, {}).get(of)) for key in COLUMNS))
            for (name, epsilon), here in lines.items()
        ]
        yield from table(("table", "epsilon", *COLUMNS.values()), body)
    yield "Tables:\n"
    yield from (f"- {name}: {RECIPES[name].title}." for name in TABLES)
    yield ""


def _components(lines: Lines) -> Iterator[str]:
    yield "## Principal components\n"
    yield (
        "Of the covariance of columns divided by half the width of their bounds. `lost` is the "
        "share of all variance by which the first two components found explain less than the best "
        "two; `share` is the root mean square error of the first component's share, from the "
        "released eigenvalues.\n"
    )
    for method in COMPONENTS.values():
        yield f"- **{method.title}**: {method.note}."
    yield ""
    head = (
        "table",
        "epsilon",
        *(f"{title}: {of}" for title in COMPONENT_COLUMNS.values() for of in ("lost", "share")),
    )
    body = [
        (
            name,
            f"{epsilon:g}",
            *(
                _number(here.get(key, {}).get(of))
                for key in COMPONENT_COLUMNS
                for of in ("lost", "share")
            ),
        )
        for (name, epsilon), here in lines.items()
    ]
    yield from table(head, body)
    yield (
        f"An empty cell was not measured, or took more than {SECONDS} s of processor time. "
        "OpenDP's figures are of two releases a cell, and the others' of thirty."
    )
    better = list(_better(lines))
    if better:
        yield f"\nOpenDP is more accurate than Gramercy, pure: {'; '.join(better)}."


def _better(lines: Lines) -> Iterator[str]:
    """Cells in which OpenDP is more accurate at pure epsilon."""
    for (name, epsilon), here in lines.items():
        ours, theirs = here.get("components, pure"), here.get("components, OpenDP")
        if ours is not None and theirs is not None:
            found = [of for of in ("lost", "share") if theirs[of] < ours[of]]
            if found:
                yield f"{name} at epsilon {epsilon:g} ({', '.join(found)})"


def _number(value: float | None, percent: bool = False) -> str:
    if value is None or np.isnan(value):
        return ""
    return f"{value:.0%}" if percent else f"{value:.2g}"
