"""Write the results page from the stored results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.analyses import cells
from benchmarks.analyses.cells import Result
from benchmarks.analyses.components import SECONDS
from benchmarks.analyses.lines import (
    COLUMNS,
    COMPONENT_COLUMNS,
    ONE_REGRESSOR_COLUMNS,
    SYNTHETIC_COLUMNS,
    Lines,
    better,
    component_lines,
    fold_lines,
    number,
    one_regressor_lines,
    regression_lines,
    synthetic_lines,
)
from benchmarks.analyses.methods import (
    COMPONENTS,
    DERIVED,
    EPSILONS,
    FOLDED_EPSILONS,
    FOLDS,
    ONE_REGRESSOR,
    REGRESSIONS,
    SYNTHETIC,
    TABLES,
)
from benchmarks.analyses.surveys import SURVEYS, TITLES
from benchmarks.analyses.tables import FOLDED, MANY
from benchmarks.analyses.transforms import TITLES as AMOUNTS
from benchmarks.cells import Benchmark, Cell, read_results
from benchmarks.pages import figure, table, write_page
from benchmarks.statistics.comparisons import geometric_mean
from benchmarks.statistics.tables import ROWS
from benchmarks.statistics.tables import TABLES as RECIPES

PEERS = tuple(key for key in COLUMNS if key != "private")


def write(folder: Path) -> None:
    """Write `results.md` and its figure from `results.jsonl` in the same folder."""
    results = read_results(folder / "results.jsonl", cells.Result)
    (folder / "figures").mkdir(exist_ok=True)
    _draw(regression_lines(results), folder / "figures" / "loss.svg")
    write_page(folder / "results.md", _page(results))


def _page(results: Mapping[Cell, Result]) -> Iterator[str]:
    yield "# Regressions, components and synthetic rows\n"
    yield (
        "For readers who choose between a release and a procedure made for one analysis: "
        "regressions, principal components and synthetic rows at the same guarantee under "
        "replace-one. A release answers all further analyses at no cost, while every use of the "
        "other procedures is paid for. Samples are drawn with replacement from populations whose "
        "coefficients are known. Written by `python -m benchmarks analyses` from `results.jsonl`, "
        "which was measured on 27 November 2026. "
        "Noise is seeded, except that of other libraries, so nothing here is a release.\n"
    )
    yield from _regressions(regression_lines(results))
    yield from folds_section(results)
    yield from one_regressor_section(results)
    yield from components_section(results)
    yield from synthetic_section(results)
    yield from derived_section(results)


def _regressions(lines: Lines) -> Iterator[str]:
    yield "## Regression\n"
    yield (
        f"Tables of {ROWS:,} rows and samples of as many. The outcome is the last column, and all "
        "others are regressors; delta = 1e-6. `error` is the root mean square error of the fitted "
        "coefficients in standard deviations; `loss` is by how much R squared of the fit in the "
        "population is below that of least squares, on average, at most 1 per release. Both "
        "include sampling. A cell has 30 releases of every method.\n"
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
        f"all cells is, for coefficients {'; '.join(parts)}. Of 30 releases, a coefficient "
        "with exact 95% intervals has 90% or less in one case of 5, and 80% or less in one of "
        "300.\n"
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


_TITLES = ("mean coverage", "smallest", "clipped, mean", "clipped, smallest")
_LOW = 0.85  # coverage of a coefficient that is too small
_FORMS = ("folds", "no folds")
_SHARES = ("coverage", "worst", "clipped coverage", "clipped worst")


def folds_section(results: Mapping[Cell, Result]) -> Iterator[str]:
    """Yield the section."""
    lines = fold_lines(results)
    (method,) = FOLDS.values()
    yield "## Regressions with folds\n"
    yield (
        f"Coverage of 95% intervals of three coefficients, from {method.releases} releases of "
        f"{MANY:,} rows whose errors depend on the regressors: {method.note}. At epsilon 8 folds "
        "are what a plan proposes for such a table; at epsilon 4 the noise of ten folds is below "
        "the sampling error, but not by the factor of three that the proposal asks for. Rows with "
        "more noise are clipped at a smaller radius, so folds add to what clipping changes. "
        "`clipped` figures are as above; `width` is the median in standard deviations.\n"
    )
    yield from _folds_summary(lines)
    for form in _FORMS:
        yield _in_words(lines, form)
    head = [f"{form}: {of}" for form in _FORMS for of in (*_TITLES, "width")]
    body = []
    for (name, epsilon), here in lines.items():
        shown: list[str] = []
        for form in _FORMS:
            scores = here.get(form, {})
            shown += (number(scores.get(of), percent=True) for of in _SHARES)
            shown.append(number(scores.get("width")))
        body.append((name, f"{epsilon:g}", *shown))
    yield from table(("table", "epsilon", *head), body)
    yield "Tables:\n"
    yield from (f"- {name}: {each.title}." for name, each in FOLDED.items())
    yield ""


def _folds_summary(lines: Lines) -> Iterator[str]:
    """Means over the tables, and the smallest coverage of any coefficient."""
    body = []
    for epsilon, form in product(FOLDED_EPSILONS, _FORMS):
        scores = [here[form] for (_, other), here in lines.items() if other == epsilon]
        if scores:
            found = {of: [each[of] for each in scores] for of in (*_SHARES, "width")}
            shown = (
                f"{np.mean(found[of]):.1%}" if of.endswith("coverage") else f"{min(found[of]):.0%}"
                for of in _SHARES
            )
            body.append((f"{epsilon:g}", form, *shown, number(float(np.mean(found["width"])))))
    yield from table(("epsilon", "", *_TITLES, "width"), body)


def _in_words(lines: Lines, form: str) -> str:
    """Where a coefficient is covered too rarely."""
    low = [
        f"{name} at epsilon {epsilon:g} ({here[form][of]:.0%}{why})"
        for of, why in (("worst", ""), ("clipped worst", " of the clipped rows"))
        for (name, epsilon), here in lines.items()
        if here[form].get(of, 1.0) < _LOW
    ]
    title = "With folds" if form == "folds" else "Without folds"
    if low:
        return f"{title}, a coefficient is covered in less than {_LOW:.0%}: {'; '.join(low)}.\n"
    return f"{title}, no coefficient is covered in less than {_LOW:.0%}.\n"


_ONE_REGRESSOR = ("error", "loss")


def one_regressor_section(results: Mapping[Cell, Result]) -> Iterator[str]:
    """Yield the section."""
    lines = one_regressor_lines(results)
    yield "## One regressor\n"
    yield (
        "The first and the last column of tables above. OpenDP's regression has one regressor, and "
        "is robust: it estimates medians, which differ from least squares where errors are skewed "
        "or the outcome has few values, and `error` contains that difference.\n"
    )
    for method in ONE_REGRESSOR.values():
        yield f"- **{method.title}**: {method.note}."
    yield ""
    private = "one regressor, private"
    coverage = {
        "private constants: coverage": "coverage",
        "clipped coverage": "clipped coverage",
    }
    titles = [f"{title}: {of}" for title in ONE_REGRESSOR_COLUMNS.values() for of in _ONE_REGRESSOR]
    body = []
    for (name, epsilon), here in lines.items():
        shown = [
            number(here.get(key, {}).get(of))
            for key in ONE_REGRESSOR_COLUMNS
            for of in _ONE_REGRESSOR
        ]
        shown += [number(here.get(private, {}).get(of), percent=True) for of in coverage.values()]
        body.append((name.removesuffix(", one regressor"), f"{epsilon:g}", *shown))
    yield from table(("table", "epsilon", *titles, *coverage), body)
    for ours in (private, "one regressor, pure"):
        found = list(better(lines, ours, "one regressor, OpenDP", _ONE_REGRESSOR))
        if found:
            cells = "; ".join(found).replace(", one regressor", "")
            yield f"OpenDP is more accurate than {ONE_REGRESSOR_COLUMNS[ours]}: {cells}.\n"
    yield (
        "One coefficient of a large table has little noise, and what clipping changes shows: on "
        "lognormal columns it exceeds the interval, unless the coefficient of the clipped rows is "
        "what is asked for.\n"
    )


def components_section(results: Mapping[Cell, Result]) -> Iterator[str]:
    """Yield the section."""
    lines = component_lines(results)
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
                number(here.get(key, {}).get(of))
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
    ours, theirs = "components, pure", "components, OpenDP"
    found = list(better(lines, ours, theirs, ("lost", "share")))
    if found:
        yield f"\nOpenDP is more accurate than Gramercy, pure: {'; '.join(found)}."
    yield ""


_SYNTHETIC = ("marginals", "spikes", "correlations", "error", "loss")


def synthetic_section(results: Mapping[Cell, Result]) -> Iterator[str]:
    """Yield the section."""
    lines = synthetic_lines(results)
    yield "## Synthetic rows\n"
    yield (
        "As many rows as the sample has, against the population. `marginals` is the total "
        "variation of the joint distribution of two columns, numeric ones in tenths and at their "
        "spikes, on average over all pairs; a spike is a value that one cell of twenty has, and "
        "`spikes` is the mean error of the share of rows at one. `correlations` is the root mean "
        "square error over pairs of columns and indicators of levels; `error` and `loss` are as "
        "above, for least squares of the last column on all others in the synthetic rows.\n"
    )
    for method in SYNTHETIC.values():
        yield f"- **{method.title}**: {method.note}."
    yield ""
    yield (
        "MST and AIM draw their rows independently from the model that they fit; SmartNoise's own "
        "`sample` rounds, which with mbi 1.1 correlates independent columns, by up to .3. Their "
        "figures are of one release a cell, and ours of ten. `the sample` is resampling, without "
        "privacy. An empty cell was not measured.\n"
    )
    left_out = [name for name in SURVEYS if not _is_measured(results, name, "synthetic, MST")]
    if left_out:
        yield f"MST was not run on {', '.join(left_out)}: the library was not installed then.\n"
    for of in _SYNTHETIC:
        yield f"`{of}`:\n"
        body = []
        for (name, epsilon), here in lines.items():
            sample = results.get(Cell(name, 1.0, "synthetic, sample"))
            alone = sample.scores[""].get(of) if sample else None
            shown = [number(here.get(key, {}).get(of)) for key in SYNTHETIC_COLUMNS]
            if any(shown):
                body.append((name, f"{epsilon:g}", *shown, number(alone)))
        yield from table(("table", "epsilon", *SYNTHETIC_COLUMNS.values(), "the sample"), body)
    for theirs in ("synthetic, MST", "synthetic, AIM"):
        found = list(better(lines, "synthetic, private", theirs, _SYNTHETIC))
        if found:
            yield f"{SYNTHETIC_COLUMNS[theirs]} is more accurate: {'; '.join(found)}.\n"
    yield (
        "A copula has the released correlations and no curve: on the table of curves its joint "
        "distributions stay wrong with any budget.\n"
    )
    yield "Tables:\n"
    yield from (f"- {name}: {TITLES[name]}." for name in SURVEYS)
    yield ""


def _is_measured(results: Mapping[Cell, Result], table: str, method: str) -> bool:
    return any((cell.table, cell.method) == (table, method) for cell in results)


_DERIVED = {
    "best": "R squared without privacy",
    "r_squared": "R squared",
    "error": "error of coefficients",
    "known": "known",
    "coverage": "coverage",
    "correlation": "error of the correlation",
    "correlation coverage": "its coverage",
    "mean": "error of the mean",
    "mean coverage": "its coverage",
    "others": "error of other correlations",
}


def derived_section(results: Mapping[Cell, Result]) -> Iterator[str]:
    """Yield the section."""
    method, *_ = DERIVED.values()
    yield "## Amounts with long tails, and columns derived from them\n"
    yield (
        f"Tables of an amount x, other predictors, and an outcome; {method.note}, "
        f"{method.releases} releases a cell. A form is what is published in place of x: x itself, "
        "a function of it, log1p(x) with the indicator of x != 0, or both x and log1p(x), of which "
        "the regression uses the second. `R squared` is that of predictions from a release in the "
        "population, and `without privacy` that of least squares with the same columns: it shows "
        "what the form can say at all. Errors are root mean squares. That of coefficients is in "
        "standard deviations, of those of the amount alone, of which a share is `known`; that of "
        "the mean is relative to the mean transformed back: a geometric mean of 1 + x, minus 1, is "
        "not the mean of x, so these lines compare how well each is known, and nothing else. "
        "Coverage is of 95% intervals for the population. `other correlations` are those of the "
        "columns that are not derived from x. Normal scores, `rank`, are those of a release's own "
        "histograms, so each release has a truth of its own.\n"
    )
    for name, title in AMOUNTS.items():
        body = []
        for epsilon in EPSILONS:
            for cell in (Cell(name, epsilon, method) for method in DERIVED):
                for form, scores in results[cell].scores.items() if cell in results else ():
                    shown = (_derived_number(of, scores.get(of)) for of in _DERIVED)
                    body.append((f"{epsilon:g}", form, *shown))
        if body:
            yield f"{name}: {title}.\n"
            yield from table(("epsilon", "form", *_DERIVED.values()), body)


def _derived_number(of: str, value: float | None) -> str:
    return number(value, percent=of == "known" or of.endswith("coverage"))


MARKS = {
    "declared": ("0.6", "o"),
    "AdaSSP, bounds": ("C3", "s"),
    "AdaSSP, true constants": ("C0", "^"),
    "dp-statsmodels, true constants": ("C2", "x"),
    "BinAgg, true constants": ("C4", "+"),
    "raw": ("C1", "|"),
    "private": ("black", "o"),
}


def _draw(lines: Lines, path: Path) -> None:
    """Draw the loss of R squared by all methods as SVG."""
    names = [name for name in TABLES if any(table == name for table, _ in lines)][::-1]
    epsilons = sorted({epsilon for _, epsilon in lines})
    with figure(path, 12, 1.7 + 0.28 * len(names), salt="analyses") as canvas:
        panels = canvas.subplots(1, len(epsilons), sharey=True, squeeze=False)[0]
        for axes, epsilon in zip(panels, epsilons, strict=True):
            for key, (colour, marker) in MARKS.items():
                here = [
                    (lines[name, epsilon][key]["loss"], row)
                    for row, name in enumerate(names)
                    if key in lines.get((name, epsilon), {})
                ]
                values, rows = [value for value, _ in here], [row for _, row in here]
                size = 90 if marker == "|" else 26
                axes.scatter(values, rows, s=size, c=colour, marker=marker, label=COLUMNS[key])
            axes.set(xscale="log", title=f"ε = {epsilon:g}", xlabel="loss of R squared")
            axes.grid(alpha=0.3)
        panels[0].set_yticks(range(len(names)), names)
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)


BENCHMARK = Benchmark(
    name="analyses",
    quick="measure two tables with few releases",
    result=cells.Result,
    missing=cells.missing,
    measure=cells.measure,
    label=lambda cell: f"{cell.table} {cell.epsilon:g} {cell.method}",
    write=write,
)
