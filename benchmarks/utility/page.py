"""Write the results page from the stored results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from matplotlib.axes import Axes

from benchmarks.cells import Benchmark, read_results
from benchmarks.pages import figure, table, write_page
from benchmarks.utility import cells
from benchmarks.utility.cells import METHODS, Cell
from benchmarks.utility.data import TABLES
from benchmarks.utility.guarantees import DELTA, GRID, TITLES, Kind, Privacy
from benchmarks.utility.peers.classical import classical_scale
from benchmarks.utility.tables import (
    NORMS,
    Comparison,
    Figure,
    Norm,
    Results,
    Row,
    best,
    chosen,
    comparisons,
    headline,
    rivals,
    rows,
)
from gramercy.mechanisms.accounting.gdp import gaussian_mu, gdp_delta

# Expected figures, from earlier measurements and the literature:
# kind, value, method, form, figure.
JUDGED: tuple[tuple[Kind, float, str, str, str], ...] = (
    ("zcdp", 0.1, "gaussian", "projected", "at most .050"),
    ("zcdp", 0.1, "gaussian", "denoised", "at most .045"),
    ("zcdp", 0.1, "gausscov", "published", ".085"),
    ("zcdp", 0.1, "separatecov", "as coded", ".077"),
    ("zcdp", 0.1, "adaptivecov", "published", ".098"),
    ("approx", 1.0, "gaussian", "projected", "at most .077"),
    ("approx", 1.0, "gaussian", "denoised", "at most .066"),
    ("approx", 1.0, "iid-classical", "raw", ".269"),
    ("approx", 1.0, "gausscov", "raw", ".213"),
    ("pure", 1.0, "matrix-laplace", "denoised", "at most .40"),
    ("pure", 1.0, "k-norm", "projected", "at most .40"),
    ("pure", 1.0, "laplace", "projected", ".50"),
    ("pure", 1.0, "opendp-pca", "published", ".957"),
)
CAPITAL: dict[Norm, str] = {"frobenius": "Frobenius", "spectral": "Spectral"}


def write(folder: Path) -> None:
    """Write `results.md` and one figure per table from `results.jsonl` in the same folder."""
    results = read_results(folder / "results.jsonl", cells.Result)
    measured = [name for name in TABLES if any(cell.dataset == name for cell in results)]
    (folder / "figures").mkdir(exist_ok=True)
    for dataset in measured:
        draw_errors(results, dataset, folder / "figures" / f"{dataset}.svg")
    write_page(folder / "results.md", _page(results, measured))


def _page(results: Results, measured: list[str]) -> Iterator[str]:
    found = list(comparisons(results))
    yield "# Accuracy against other methods at the same guarantee\n"
    yield (
        "For readers who compare mechanisms: the error of the released second moment "
        "S = X^T X / n, as mean ± standard error. Neighbouring tables differ in one row "
        "(replace-one), n is public, and rows are in the unit ball. Gaussian mechanisms get the "
        f"exact mu of (epsilon, {DELTA:g}), or mu = sqrt(2 rho). Other methods appear in all their "
        "forms, also projected onto the positive semidefinite matrices of trace at most 1, and are "
        "compared in the form that is best in each cell. Gramercy is compared in one form, chosen "
        "before any error is known. Written by `python -m benchmarks utility` from "
        "`results.jsonl`. Noise is seeded, so nothing here is a release.\n"
    )
    yield from _expected_errors(results)
    yield from _verdicts(found)
    yield from _losses(found)
    for dataset in measured:
        table = TABLES[dataset]
        yield f"\n## {dataset}: {table.n} x {table.p}\n\n{table.title}.\n"
        yield f"![Error against the guarantee](figures/{dataset}.svg)\n"
        for kind in GRID:
            for norm in NORMS:
                yield from _block(results, dataset, kind, norm)
    yield from _methods(results)


def _expected_errors(results: Results) -> Iterator[str]:
    yield "## Digits: measured and expected errors\n"
    lines = []
    for kind, value, name, form, known in JUDGED:
        result = results.get(Cell("digits", kind, value, name))
        if result:
            error = result.forms[form]
            lines.append(
                (
                    f"{TITLES[kind]}, {value:g}",
                    f"{METHODS[name].title}, {form}",
                    known,
                    str(Figure.of(error, "frobenius")),
                )
            )
    yield from table(("guarantee", "method", "expected", "Frobenius error"), lines)


def _verdicts(result: list[Comparison]) -> Iterator[str]:
    yield "## Gramercy against each method in its best form\n"
    yield (
        "Number of cells (a table and a guarantee) in which Gramercy's error is smaller, equal "
        "within two standard errors, or larger; and the range of the other error / Gramercy's.\n"
    )
    for norm in NORMS:
        lines = []
        for rival in METHODS:
            cases = [c for c in result if c.norm == norm and c.rival == rival]
            count = Counter(case.verdict for case in cases)
            if cases:
                ratios = [case.ratio for case in cases]
                span = f"{min(ratios):.2f} to {max(ratios):.2f}"
                verdicts = (str(count[v]) for v in ("less", "tie", "more"))
                lines.append((METHODS[rival].title, *verdicts, span))
        yield from table(
            (f"{CAPITAL[norm]} error", "smaller", "equal", "larger", "other / Gramercy's"), lines
        )


def _losses(result: list[Comparison]) -> Iterator[str]:
    yield "## Where other methods are better\n"
    lost = [case for case in result if case.verdict == "more"]
    if not lost:
        yield "In no cell, in neither norm.\n"
        return
    yield (
        f"In {len(lost)} of {len(result)} comparisons another method's error is smaller, by more "
        "than two "
        "standard errors:\n"
    )
    groups: dict[tuple[str, Kind, str, Norm], list[Comparison]] = {}
    for case in lost:
        groups.setdefault((case.dataset, case.kind, case.rival, case.norm), []).append(case)
    lines = []
    for (dataset, kind, rival, norm), cases in groups.items():
        pairs = ", ".join(
            f"{c.value:g}: {c.theirs.mean:.3g} / {c.ours.mean:.3g}"
            for c in sorted(cases, key=lambda c: c.value)
        )
        lines.append((dataset, TITLES[kind], METHODS[rival].title, CAPITAL[norm], pairs))
    yield from table(
        ("table", "guarantee", "method", "norm", "value: its error / Gramercy's"), lines
    )


def _block(results: Results, dataset: str, kind: Kind, norm: Norm) -> Iterator[str]:
    found = rows(results, dataset, kind, norm)
    ours = headline(found, kind, TABLES[dataset].p)
    if not found or not ours:
        return
    values = [value for value in GRID[kind] if value in ours.figures]
    lines = []
    for row in found:
        line = [f"**{row.title}**" if row is ours else row.title]
        for value in values:
            figure = row.figures.get(value)
            ratio = f" ({figure.mean / ours.figures[value].mean:.2f})" if figure else ""
            line.append(f"{figure}{ratio}" if figure else "")
        lines.append(line)
    title = f"{CAPITAL[norm]} error, {TITLES[kind]}; in brackets, relative to the line in bold"
    yield f"<details{' open' if norm == 'frobenius' else ''}><summary>{title}</summary>\n"
    yield from table(("", *(f"{value:g}" for value in values)), lines)
    yield "</details>\n"


def _methods(results: Results) -> Iterator[str]:
    yield "\n## The methods\n"
    for name, method in METHODS.items():
        ran = [result for result in results.values() if result.cell.method == name]
        if not ran:
            yield f"- **{method.title}**: not run here. {method.note}"
            continue
        times = sorted({result.repetitions for result in ran})
        slowest = max(ran, key=lambda result: result.seconds)
        yield (
            f"- **{method.title}**: {method.note} Repetitions: {' or '.join(map(str, times))}; at "
            f"most {slowest.seconds:.2g} s a release ({slowest.cell.dataset})."
        )
    yield "\n" + _choice()
    yield "\n" + _classical()


def _choice() -> str:
    names = {METHODS[chosen("pure", table.p)].title for table in TABLES.values()}
    return (
        "For pure epsilon, Gramercy's mechanism is the one with the least noise for the number of "
        f"columns, by its formula: {', '.join(sorted(names))}."
    )


def _classical() -> str:
    ratios = []
    for epsilon in GRID["approx"]:
        mu = gaussian_mu(2.0, classical_scale(epsilon))
        ratios.append(f"{epsilon:g}: {gdp_delta(mu, epsilon):.1e}")
    least = max(GRID["approx"])
    return (
        f"The classical Gaussian scale for delta = {DELTA:g} has the exact guarantee (epsilon: "
        "delta) "
        f"{', '.join(ratios)}; at epsilon = {least:g} the exact mu is "
        f"{Privacy('approx', least).mu:.3f}, the classical scale's "
        f"{gaussian_mu(2.0, classical_scale(least)):.3f}."
    )


RIVALS = tuple(name for name, method in METHODS.items() if method.headline is None)


def draw_errors(results: Results, dataset: str, path: Path) -> None:
    """Draw the Frobenius errors of Gramercy and of each peer in its best form, as SVG."""
    with figure(path, 12, 4) as canvas:
        for axes, kind in zip(canvas.subplots(1, len(GRID), sharey=True), GRID, strict=True):
            found = rows(results, dataset, kind, "frobenius")
            for row in best(rivals(found)):
                _line(axes, row, f"C{RIVALS.index(row.method) % 10}", 1.0)
            ours = headline(found, kind, TABLES[dataset].p)
            if ours:
                _line(axes, ours, "black", 2.5)
            axes.set(xscale="log", yscale="log", title=TITLES[kind])
            axes.set_xlabel("rho" if kind == "zcdp" else "epsilon")
            axes.set_xticks(GRID[kind], [f"{value:g}" for value in GRID[kind]])
            axes.minorticks_off()
            axes.grid(alpha=0.3)
        canvas.axes[0].set_ylabel("Frobenius error")
        named = [axes.get_legend_handles_labels() for axes in canvas.axes]
        lines = {label: line for pair in named for line, label in zip(*pair, strict=True)}
        if lines:
            canvas.legend(lines.values(), lines.keys(), loc="outside right upper", fontsize=8)


def _line(axes: Axes, row: Row, colour: str, width: float) -> None:
    values = sorted(row.figures)
    axes.errorbar(
        values,
        [row.figures[value].mean for value in values],
        [row.figures[value].error for value in values],
        color=colour, linewidth=width, marker="o", markersize=3, label=METHODS[row.method].title,
    )  # fmt: skip


BENCHMARK = Benchmark(
    name="utility",
    quick="measure a few cells with 5 repetitions",
    result=cells.Result,
    missing=cells.missing,
    measure=cells.measure,
    label=lambda cell: f"{cell.dataset} {cell.kind} {cell.value:g} {cell.method}",
    write=write,
)
