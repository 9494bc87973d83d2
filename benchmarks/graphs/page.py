"""Write the results page from the stored results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from benchmarks.cells import Benchmark, read_results
from benchmarks.graphs import cells, differences, joint, pairs
from benchmarks.graphs.cells import COLUMNS, EPSILONS, ROWS, Cell
from benchmarks.graphs.methods import HEADLINE, METHODS
from benchmarks.graphs.releases import DELTA, FOLDS
from benchmarks.graphs.tables import (
    LARGER,
    MEASURES,
    OURS,
    Measure,
    Results,
    comparison,
    mean,
    rivals,
)
from benchmarks.graphs.truths import TABLES
from benchmarks.pages import figure, table, write_page

TUNED = {
    "f1": [
        f"lasso-{rule}"
        for rule in ("auto", "ebic", "stability", "cv", "cv-refit", "first-drop", "oracle")
    ],
    "stein": [
        *(f"lasso-{rule}" for rule in ("auto", "ebic", "ebic-refit", "stability", "cv", "oracle")),
        *(f"ridge-{rule}" for rule in ("auto", "cv", "oracle")),
    ],
}
COMPARED: dict[Measure, tuple[str, ...]] = {
    "f1": (HEADLINE, "sgz-lasso", "gpp", "wx", "lw", "neighbourhood", "scio", "clime", "exact"),
    "auc": (HEADLINE, "sgz-lasso", "sgz-ridge", "gpp", "wx", "ridge-auto", "neighbourhood", "scio"),
    "stein": ("ridge-auto", HEADLINE, "sgz-ridge", "sgz-lasso", "gpp", "scio", "clime", "exact"),
    "covariance": (
        *(
            "ridge-auto",
            HEADLINE,
            "threshold",
            "threshold-adaptive",
            "threshold-cv",
            "threshold-wx-cv",
            "sgz-ridge",
            "sgz-lasso",
            "gpp",
            "wx",
            "lw",
            "exact",
        ),
    ),
}


def write(folder: Path) -> None:
    """Write `results.md` and its figures from `results.jsonl` in the same folder."""
    results = read_results(folder / "results.jsonl", cells.Result)
    (folder / "figures").mkdir(exist_ok=True)
    draw_scores(results, COMPARED["f1"], folder / "figures" / "graphs.svg")
    draw_scores(results, TUNED["f1"], folder / "figures" / "tuning.svg")
    write_page(folder / "results.md", _page(results))


def _page(results: Results) -> Iterator[str]:
    count = len({cell.repetition for cell in results})
    yield "# Graphs and precision matrices at the same guarantee\n"
    yield (
        "For analysts who choose an estimator or a penalty. "
        f"Every release has the exact guarantee (epsilon, {DELTA:g}); neighbouring tables differ "
        "in one row, n is public, and public constants give rows length one. Synthetic rows are "
        f"Gaussian with an AR(1), a hub or a random graph; each is repeated {count} times. Numbers "
        "are means over the three kinds of graphs. Gramercy's methods use one release with "
        "isotropic noise, denoised, and choose the penalty from the release alone. The papers tune "
        "on the private rows; here their methods get the penalty that is best for each measure, "
        "which requires the truth. Written by `python -m benchmarks graphs` from "
        "`results.jsonl`. Noise is seeded, so nothing here is a release.\n"
    )
    yield from _verdicts(results)
    yield from _tuning(results)
    yield "## Gramercy and the papers, by columns, rows and epsilon\n"
    yield "![F1 against epsilon](figures/graphs.svg)\n"
    for measure, methods in COMPARED.items():
        yield f"\n### {_capitalised(MEASURES[measure])}, {_better(measure)}\n"
        yield from _by_size(results, measure, methods)
    yield from _tables(results)
    yield from _pairs(results)
    yield from _differences(results)
    yield from _pairs_of_groups(results)
    yield from _joint(results)
    yield "\n## The methods\n"
    for method in METHODS.values():
        yield f"- **{method.title}**{': ' + method.note if method.note else ''}"
    seconds = [result.seconds for result in results.values()]
    yield f"\nAll methods on one table: {max(seconds):.0f} s at most; {sum(seconds):.0f} s in all."


def _verdicts(results: Results) -> Iterator[str]:
    yield "## Gramercy against each paper's method at its best penalty\n"
    yield (
        "A cell is a graph, a number of columns, a number of rows and an epsilon. Better and worse "
        "mean by at least 0.01 of F1 or area, or by 1 % of a loss.\n"
    )
    for measure, title in MEASURES.items():
        lines = []
        for own, name in product(OURS[measure], rivals()):
            found = comparison(results, measure, own, name)
            if found is None:
                continue
            lost = "" if found.lost is None else _cell(found.lost)
            figure = f"{found.median:+.2f}" if measure in LARGER else f"{found.median:.2f}"
            counts = map(str, (found.better, found.tie, found.worse))
            lines.append((METHODS[own].title, METHODS[name].title, *counts, figure, lost))
        middle = "median difference" if measure in LARGER else "median other / Gramercy"
        head = ("Gramercy", "other", "better", "tie", "worse", middle, "largest loss")
        yield f"### {_capitalised(title)}\n"
        yield from table(head, lines)


def _tuning(results: Results) -> Iterator[str]:
    yield "## Penalties: when each rule wins\n"
    yield (
        f"Cross-validation needs folds: at the same guarantee, {FOLDS} folds together have {FOLDS} "
        "times the noise variance of one release. The best penalty is the best one in hindsight, "
        "for each measure. Refitting does not change the edges, except under cross-validation, "
        "which then scores graphs.\n"
    )
    yield "![F1 of the rules against epsilon](figures/tuning.svg)\n"
    yield f"### {MEASURES['f1']}, larger is better\n"
    yield from _by_size(results, "f1", TUNED["f1"])
    yield f"### {MEASURES['stein']}, smaller is better\n"
    yield from _by_size(results, "stein", TUNED["stein"])


def _by_size(results: Results, measure: Measure, methods: Iterable[str]) -> Iterator[str]:
    names = list(methods)
    lines = []
    for p, n, epsilon in product(COLUMNS, ROWS, EPSILONS):
        found = [mean(results, name, measure, _at_setting(p, n, epsilon)) for name in names]
        if any(found):
            texts = ["" if each is None else str(each) for each in found]
            lines.append((f"{p}", f"{n}", f"{epsilon:g}", *texts))
    overall = [mean(results, name, measure, lambda cell: cell.synthetic) for name in names]
    texts = ["" if each is None else f"**{each}**" for each in overall]
    lines.append(("all", "", "", *texts))
    yield from table(("p", "n", "epsilon", *(METHODS[name].title for name in names)), lines)


def _tables(results: Results) -> Iterator[str]:
    held = [name for name in TABLES if any(cell.source == name for cell in results)]
    if not held:
        return
    yield "\n## Real tables\n"
    yield (
        "The truth is unknown. F1 is the agreement with the graph of the exact matrix (graphical "
        "lasso, ebic); the error of the covariance is relative to the exact matrix.\n"
    )
    rules = (HEADLINE, *(f"lasso-{rule}" for rule in ("auto", "stability", "cv-refit", "oracle")))
    names = (*rules, "sgz-lasso", "gpp", "wx")
    errors = ("ridge-auto", "threshold", "sgz-ridge", "wx")
    lines = []
    for name, epsilon in product(held, EPSILONS):
        here = _at_table(name, epsilon)
        cell = next((cell for cell in results if here(cell)), None)
        if cell is None:
            continue
        found = [mean(results, each, "f1", here) for each in names]
        found += [mean(results, each, "covariance", here) for each in errors]
        texts = ["" if each is None else str(each) for each in found]
        lines.append((f"{name}, {cell.n} x {cell.p}", f"{epsilon:g}", *texts))
    overall = [
        mean(results, each, "f1", lambda cell: not (cell.synthetic or cell.pairs)) for each in names
    ]
    texts = ["" if each is None else f"**{each}**" for each in overall]
    lines.append(("all", "", *texts, *("" for _ in errors)))
    head = ["table", "epsilon", *(f"F1: {METHODS[name].title}" for name in names)]
    yield from table(head + [f"error: {METHODS[name].title}" for name in errors], lines)
    yield from (f"- {name}: {TABLES[name].title}" for name in held)


def _pairs(results: Results) -> Iterator[str]:
    yield "\n## Private constants, in one stage and in two\n"
    yield (
        f"Other tables: {pairs.COLUMNS} columns, {pairs.ROWS:,} Gaussian rows, bounds at ten "
        "standard deviations, and `scaling: private`. A release in one stage has spherical noise. "
        "A release in two stages spends a part of the same epsilon on a pilot matrix, and draws "
        "the other in its metric, if that pays. Numbers are means over epsilon "
        f"{_listed(EPSILONS)}: one stage -> two stages. The truth is that of the population; for "
        "thresholding, the edges are its correlations.\n"
    )
    measures: tuple[tuple[Measure, str], ...] = (
        ("f1", "F1"),
        ("false", "false edges"),
        ("stein", "Stein loss"),
    )
    for measure, title in measures:
        lines = []
        for name, (of, _) in pairs.ESTIMATORS.items():
            found = [_pair(results, name, measure, kind) for kind in pairs.KINDS]
            if any(found):
                lines.append((of, *found))
        yield from table((title, *pairs.KINDS), lines)
    yield from (f"- {kind}: {title}" for kind, title in pairs.KINDS.items())


def _differences(results: Results) -> Iterator[str]:
    yield "\n## Where two graphs differ\n"
    yield (
        f"Two releases with an intercept and clipped rows: {differences.DRAWS} pairs in each "
        "setting, of n rows and, in every other pair, of a quarter of them in the second table. "
        "Numbers are means over chains, hubs and random graphs: F1 / share of false differences. "
        "`difference` finds differences at the false discovery rate 0.05; the D-trace loss is the "
        "sparse estimate that the estimator has too, which is not a test.\n"
    )
    for change, title in differences.CHANGES.items():
        yield f"\n### {'No' if change == 'none' else _capitalised(change)} differences\n"
        yield f"{title}.\n"
        lines = []
        for p, n, epsilon in product(differences.COLUMNS, differences.ROWS, EPSILONS):
            found = [
                _f1_and_false(results, f"{name}-{tails}", change, (p, n, epsilon))
                for name, of_tails in (
                    ("difference", differences.TAILS),
                    ("precision", ("normal",)),
                )
                for tails in of_tails
            ]
            if any(found):
                lines.append((f"{p}", f"{n}", f"{epsilon:g}", *found))
        head = [f"difference: {each}" for each in differences.TAILS.values()]
        yield from table(("p", "n", "epsilon", *head, "D-trace: normal rows"), lines)


def _pairs_of_groups(results: Results) -> Iterator[str]:
    n = differences.ROWS[-1]
    yield "\n### All pairs of four groups\n"
    yield (
        f"Groups of {n:,} normal rows, epsilon = 1: three have the same graph, and the fourth few "
        "differences. Every pair has a rate of its own. The F1 is that of the pairs that differ. "
        "Of equal pairs, the false share is that in which any difference is found.\n"
    )
    lines = []
    for p in differences.COLUMNS:
        both = (
            _f1_and_false(results, name, differences.GROUPS, (p, n, 1.0))
            for name in ("pairs", "equal-pairs")
        )
        lines.append((f"{p}", *both))
    yield from table(("p", "F1 / false share of all pairs", "false share of equal pairs"), lines)


def _f1_and_false(
    results: Results, method: str, change: str, setting: tuple[int, int, float]
) -> str:
    def here(cell: Cell) -> bool:
        own = cell.differences and cell.source.endswith(f":{change}")
        return own and (cell.p, cell.n, cell.epsilon) == setting

    both = [mean(results, method, measure, here) for measure in ("f1", "false")]
    return " / ".join(str(each) for each in both if each is not None)


def _joint(results: Results) -> Iterator[str]:
    """The table of graphs of groups."""
    yield "\n## Groups that share edges\n"
    yield (
        f"Unit rows of {joint.COLUMNS} columns in groups, epsilon = {joint.EPSILON:g} for all "
        "together; every group has the noise of the whole release. Numbers are means over the "
        f"groups. With edges in common, {joint.OWN:.0%} of the edges of a group are its own. The "
        "best penalties require the truth, and are equal for all groups.\n"
    )
    sizes = list(product(joint.GROUPS, joint.ROWS))
    yield from _of_tables(results, sizes, (joint.SHARED, joint.APART), joint.METHODS)
    yield "\n## Periods whose graphs drift\n"
    yield (
        f"As above, with a release of epsilon = {joint.EPSILON:g} for each period: "
        f"{joint.DRIFT:.0%} of the edges of a period are elsewhere in the next one. "
        "`joint` is `structure: group` here.\n"
    )
    periods = joint.GROUPS[0]
    yield from _of_tables(
        results, [(periods, n) for n in joint.ROWS], (joint.DRIFTING,), joint.FUSED
    )


def _of_tables(
    results: Results,
    sizes: Sequence[tuple[int, int]],
    kinds: Sequence[str],
    methods: Mapping[str, str],
) -> Iterator[str]:
    measures: tuple[tuple[Measure, str], ...] = (("f1", "F1"), ("false", "false edges"))
    for measure, title in measures:
        lines = []
        for (groups, n), shared in product(sizes, kinds):
            sources = [each for each, (_, own) in joint.SOURCES.items() if own == shared]
            for which, title_of in [([each], each) for each in sources] + [
                (sources, f"**all, {shared}**")
            ]:
                found = [_of_groups(results, name, measure, which, n, groups) for name in methods]
                lines.append([title_of, f"{groups}", f"{n}", *found])
        yield from table((title, "tables", "rows of each", *methods.values()), lines)


def _of_groups(
    results: Results, name: str, measure: Measure, sources: Sequence[str], n: int, groups: int
) -> str:
    found = mean(
        results, name, measure, lambda c: c.source in sources and (c.n, c.groups) == (n, groups)
    )
    return "" if found is None else str(found)


def _pair(results: Results, name: str, measure: Measure, kind: str) -> str:
    def here(cell: Cell) -> bool:
        return cell.pairs and cell.source == kind

    both = [mean(results, f"{stages}-{name}", measure, here) for stages in pairs.STAGES]
    return " -> ".join(str(each) for each in both if each is not None)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{each:g}" for each in values)


def _at_setting(p: int, n: int, epsilon: float) -> Where:
    return lambda cell: cell.synthetic and (cell.p, cell.n, cell.epsilon) == (p, n, epsilon)


def _at_table(name: str, epsilon: float) -> Where:
    return lambda cell: not cell.pairs and (cell.source, cell.epsilon) == (name, epsilon)


def _cell(cell: Cell) -> str:
    return f"{cell.source}, p = {cell.p}, n = {cell.n}, epsilon = {cell.epsilon:g}"


def _better(measure: Measure) -> str:
    return f"{'larger' if measure in LARGER else 'smaller'} is better"


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


Where = Callable[[Cell], bool]


def draw_scores(results: Results, methods: Sequence[str], path: Path) -> None:
    """Draw one line per method, the first one in black, as SVG."""
    with figure(path, 12, 6) as canvas:
        panels = canvas.subplots(len(COLUMNS), len(ROWS), sharex=True, sharey=True).flat
        for axes, (p, n) in zip(panels, product(COLUMNS, ROWS), strict=True):
            for index, name in enumerate(methods):
                points = [(e, mean(results, name, "f1", _at_setting(p, n, e))) for e in EPSILONS]
                known = [(e, each.mean, each.error) for e, each in points if each is not None]
                if known:
                    axes.errorbar(
                        *zip(*known, strict=True), label=METHODS[name].title, marker="o",
                        color="black" if index == 0 else f"C{index - 1}",
                        linewidth=2.5 if index == 0 else 1.0, markersize=3,
                    )  # fmt: skip
            axes.set(title=f"p = {p}, n = {n}", xscale="log", ylim=(-0.02, 1.02))
            axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
            axes.minorticks_off()
            axes.grid(alpha=0.3)
        canvas.supxlabel("epsilon")
        canvas.supylabel("F1 of the edges")
        named = [axes.get_legend_handles_labels() for axes in canvas.axes]
        lines = {label: line for pair in named for line, label in zip(*pair, strict=True)}
        if lines:
            canvas.legend(lines.values(), lines.keys(), loc="outside right upper", fontsize=8)


BENCHMARK = Benchmark(
    name="graphs",
    quick="a few cells, once",
    result=cells.Result,
    missing=lambda quick, done: [(cell,) for cell in cells.plan(quick) if cell not in done],
    measure=cells.measure,
    label=lambda cell: f"{cell.source} {cell.p} x {cell.n} {cell.epsilon:g}",
    write=write,
)
