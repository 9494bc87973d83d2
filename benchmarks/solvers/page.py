"""Write the results page from the stored results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from benchmarks.cells import Benchmark, read_results
from benchmarks.pages import figure, table, write_page
from benchmarks.solvers import cells
from benchmarks.solvers.cells import ACCURACY, AT, LARGE, LIMIT, What
from benchmarks.solvers.matrices import DENSE, REGIMES, STEPS
from benchmarks.solvers.peers import OURS
from benchmarks.solvers.tables import (
    Results,
    at,
    failed,
    floor,
    ratios,
    reached,
    seconds,
    sizes,
    solvers,
)

# Titles of all solvers, also of libraries not installed where the page is written.
TITLES = {
    OURS: "proximal Newton",
    "admm": "accelerated ADMM",
    "scikit-learn": "scikit-learn",
    "gglasso": "GGLasso",
    "quic": "QUIC",
}
_TITLE: dict[What, str] = {
    "path": f"A path of {STEPS} penalties",
    "single": f"One penalty, from nothing: that in place {AT + 1} of the path",
}


def write(folder: Path) -> None:
    """Write `results.md` and its figures from `results.jsonl` in the same folder."""
    results = read_results(folder / "results.jsonl", cells.Result)
    (folder / "figures").mkdir(exist_ok=True)
    for what in get_args(What):
        draw_times(results, what, TITLES, folder / "figures" / f"{what}.svg")
    write_page(folder / "results.md", _page(results))


def _page(results: Results) -> Iterator[str]:
    yield "# Speed of the graphical lasso's solvers at the same accuracy\n"
    yield (
        "For anyone who chooses a solver. Every solver runs at the loosest of its own tolerances "
        "at "
        f"which the objective exceeds its minimum by at most {ACCURACY:g} per column, for every "
        "solution. A certified bound on the minimum comes from Gramercy's solution with a duality "
        "gap of 1e-10. One process, one BLAS thread, no penalty on the diagonal, matrices of mean "
        "diagonal 1; on a path, each solver uses its library's warm start. The graphs are AR(1), "
        "hub and random. Penalties fall from that of the empty graph to a twentieth of it, or to a "
        "tenth above the point where soft-thresholding stops being positive definite. A solver is "
        f"stopped after {LIMIT:g} s. Where it missed the accuracy (in brackets), the time at its "
        "last tolerance counts. Where it raised an error, or returned a matrix that is not "
        "positive definite, it failed, and is not counted. "
        f"With {LARGE} columns, all but QUIC (Hsieh et al. 2014; skggm's source, compiled with "
        "-O3) run at their loosest tolerance only; with more, only QUIC is compared, up to 2000 "
        "columns, and the gap of the bound is 1e-08. "
        "Compilation (3 s, once per machine) is not counted. Written by "
        "`python -m benchmarks solvers` from `results.jsonl`.\n"
    )
    yield from (f"- **{name}**: {text}" for name, text in REGIMES.items())
    for what in get_args(What):
        yield f"\n## {_TITLE[what]}\n"
        yield f"![Seconds against columns](figures/{what}.svg)\n"
        yield (
            "Time relative to Gramercy's proximal Newton: median over regimes (and minimum). Below "
            "one, the other solver is faster.\n"
        )
        yield from _verdict(results, what, tuple(REGIMES))
        yield f"The same without the {DENSE} matrices, whose last graphs are dense.\n"
        yield from _verdict(results, what, tuple(name for name in REGIMES if name != DENSE))
        for p in sizes(results, what):
            yield f"### {p} columns\n"
            yield from _seconds(results, p, what)
    total = sum(result.seconds for result in results.values())
    yield f"\n{total / 60:.0f} minutes in all."


def _verdict(results: Results, what: What, regimes: tuple[str, ...]) -> Iterator[str]:
    others = [name for name in solvers(results) if name != OURS]
    lines = []
    for p in sizes(results, what):
        texts = []
        for name in others:
            found = ratios(results, name, at(p, what, *regimes))
            text = (
                ""
                if found is None
                else f"**{_rounded_ratio(found.median)}** ({_rounded_ratio(found.least)})"
            )
            if found is not None and found.short:
                text += f"; {found.short} of {found.cells} not accurate"
            if found is not None and found.failed:
                text += f"; {found.failed} of {found.cells} failed"
            texts.append(text)
        lines.append((f"{p}", *texts))
    yield from table(("columns", *(TITLES.get(name, name) for name in others)), lines)


def _seconds(results: Results, p: int, what: What) -> Iterator[str]:
    names, lines = solvers(results), []
    for cell, result in sorted(results.items(), key=lambda pair: (pair[0].kind, pair[0].regime)):
        if not at(p, what)(cell):
            continue
        texts = []
        for name in names:
            found = result.solvers.get(name)
            if found is None:
                texts.append("")
            elif reached(found):
                texts.append(f"{found.seconds:.3g}")
            elif failed(found):
                texts.append("failed")
            else:
                texts.append(f"({found.seconds:.3g})")
        lines.append((cell.kind, cell.regime, f"{result.density:.0%}", *texts))
    heads = (f"{TITLES.get(name, name)}, s" for name in names)
    yield from table(("graph", "regime", "edges at the last penalty", *heads), lines)


def _rounded_ratio(number: float) -> str:
    return f"{number:.2g}" if number < 100 else f"{number:.0f}"


def draw_times(results: Results, what: What, titles: dict[str, str], path: Path) -> None:
    """Draw one line per solver, Gramercy in black, and dashed one Cholesky and inverse; as SVG."""
    with figure(path, 12, 3.6) as canvas:
        panels = canvas.subplots(1, len(REGIMES), sharex=True, sharey=True)
        for axes, regime in zip(panels, REGIMES, strict=True):
            for index, name in enumerate(solvers(results)):
                points = [
                    (p, seconds(results, name, at(p, what, regime))) for p in sizes(results, what)
                ]
                known = [(p, each) for p, each in points if each is not None]
                if known:
                    axes.plot(
                        *zip(*known, strict=True), label=titles.get(name, name), marker="o",
                        color="black" if name == OURS else f"C{index - 1}",
                        linewidth=2.5 if name == OURS else 1.0, markersize=3,
                    )  # fmt: skip
            lowest = [(p, floor(results, at(p, what, regime))) for p in sizes(results, what)]
            below = [(p, each) for p, each in lowest if each is not None]
            if below:
                axes.plot(
                    *zip(*below, strict=True), color="gray", linestyle="--", linewidth=1.0,
                    label="one Cholesky and inverse",
                )  # fmt: skip
            axes.set(title=regime, xscale="log", yscale="log")
            axes.set_xticks(sizes(results, what), [f"{p}" for p in sizes(results, what)])
            axes.minorticks_off()
            axes.grid(alpha=0.3)
        canvas.supxlabel("columns")
        canvas.supylabel("seconds")
        named = [axes.get_legend_handles_labels() for axes in canvas.axes]
        lines = {label: line for pair in named for line, label in zip(*pair, strict=True)}
        canvas.legend(lines.values(), lines.keys(), loc="outside right upper", fontsize=8)


BENCHMARK = Benchmark(
    name="solvers",
    quick="the two smallest sizes",
    result=cells.Result,
    missing=lambda quick, done: [(cell,) for cell in cells.plan(quick) if cell not in done],
    measure=cells.measure,
    label=lambda cell: f"{cell.what} of {cell.kind} {cell.regime}, {cell.p} columns",
    write=write,
    alone=True,
)
